/* SPDX-License-Identifier: Apache-2.0
 * Does not come back from being loaded, and takes no CPU time meanwhile. */
#include <unistd.h>

struct kvc_policy;
const struct kvc_policy *kvc_policy_plugin(void);

const struct kvc_policy *kvc_policy_plugin(void)
{
    for (;;)
        pause();
}
