/* SPDX-License-Identifier: Apache-2.0
 * Does not give back what it took. */
#include <kvcast/policy.h>

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    (void)options;
    host->alloc(host, 1, 8);
    return host->alloc(host, 1, 8);
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

#define MORE .create = create, .destroy = destroy,
#include "bad.h"
