/* SPDX-License-Identifier: Apache-2.0
 * Ranks by a FIELD of info that no flag asks for. */
#include <kvcast/policy.h>

static void by_field(const struct kvc_host *host, void *state, kvc_piece piece)
{
    (void)state;
    host->rank(host, piece, (double)host->info(host, piece)->FIELD);
}

static void first(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)ghost;
    by_field(host, state, piece);
}

static kvc_piece least(const struct kvc_host *host, void *state,
                       const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)state, (void)newcomer, (void)blocks;
    return host->lowest(host);
}

#define STORED first
#define TOUCHED by_field
#define VICTIM least
#include "bad.h"
