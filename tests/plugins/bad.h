/* SPDX-License-Identifier: Apache-2.0
 * What the plug-ins that break one rule each have in common: they are lru, but for what they say
 * otherwise before they include this. */
#include <kvcast/policy.h>

#ifndef STORED
#define STORED stored
static void stored(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)state, (void)ghost;
    host->put(host, 0, piece);
}
#endif

#ifndef TOUCHED
#define TOUCHED touched
static void touched(const struct kvc_host *host, void *state, kvc_piece piece)
{
    (void)state;
    host->put(host, 0, piece);
}
#endif

#ifndef VICTIM
#define VICTIM victim
static kvc_piece victim(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)state;
    *blocks = newcomer->hi - newcomer->lo;
    return host->oldest(host, 0);
}
#endif

#ifndef OPS_SIZE
#define OPS_SIZE sizeof(struct kvc_evict_ops)
#endif
#ifndef MORE
#define MORE
#endif

static const struct kvc_evict_ops ops = {
    .struct_size = OPS_SIZE, .queues = 1, .stored = STORED, .touched = TOUCHED, .victim = VICTIM,
    MORE};

#define KIND KVC_POLICY_EVICTION
#include "bad_policy.h"
