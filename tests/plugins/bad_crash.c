/* SPDX-License-Identifier: Apache-2.0
 * Reads options where there are none. */
#include <kvcast/policy.h>

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    uint64_t *state = host->alloc(host, 1, sizeof(*state));
    if (state)
        *state = options[0].count;
    return state;
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

#define MORE .create = create, .destroy = destroy,
#include "bad.h"
