/* SPDX-License-Identifier: Apache-2.0
 * Frees the same memory twice. */
#include <kvcast/policy.h>

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    (void)options;
    return host->alloc(host, 4, 4);
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
    host->free(host, state);
}

#define MORE .create = create, .destroy = destroy,
#include "bad.h"
