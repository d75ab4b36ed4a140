/* SPDX-License-Identifier: Apache-2.0
 * Writes behind the memory that it asked for. */
#include <kvcast/policy.h>

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    (void)options;
    return host->alloc(host, 4, 4);
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

static void count(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    uint32_t *counts = state;
    (void)ghost;
    counts[4]++;
    host->put(host, 0, piece);
}

#define STORED count
#define MORE .create = create, .destroy = destroy,
#include "bad.h"
