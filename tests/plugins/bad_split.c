/* SPDX-License-Identifier: Apache-2.0
 * Raises *blocks although newcomers would find other victims. */
#include <kvcast/policy.h>

static void first(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)state, (void)ghost;
    host->rank(host, piece, 1);
}

static void again(const struct kvc_host *host, void *state, kvc_piece piece)
{
    (void)state;
    host->rank(host, piece, host->info(host, piece)->touches);
}

static kvc_piece greedy(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)state;
    *blocks = newcomer->hi - newcomer->lo;
    return host->lowest(host);
}

#define STORED first
#define TOUCHED again
#define VICTIM greedy
#define MORE .flags = KVC_EVICT_TOUCHES,
#include "bad.h"
