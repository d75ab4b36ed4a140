/* SPDX-License-Identifier: Apache-2.0
 * Has an option whose default lies outside its own limits. */
#include <kvcast/policy.h>

static const struct kvc_policy_option option[] = {
    {"share", KVC_OPTION_NUMBER, "1.5", 0, 1, "of the cache"},
};

#define OPTIONS .options = option, .n_options = 1,
#include "bad.h"
