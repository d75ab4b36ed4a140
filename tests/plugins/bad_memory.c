/* SPDX-License-Identifier: Apache-2.0
 * Takes it for granted that there is memory. */
#include <kvcast/policy.h>

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    volatile uint64_t *state = host->alloc(host, 1, sizeof(*state));
    (void)options;
    *state = 1;
    return (void *)(uintptr_t)state;
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

#define MORE .create = create, .destroy = destroy,
#include "bad.h"
