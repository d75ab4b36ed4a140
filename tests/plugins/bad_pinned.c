/* SPDX-License-Identifier: Apache-2.0
 * Keeps a list of its own, and does not ask who is pinned. */
#include <kvcast/policy.h>

struct list {
    kvc_piece piece[4096];
    uint32_t first, end;
};

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    (void)options;
    return host->alloc(host, 1, sizeof(struct list));
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

static void append(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    struct list *l = state;
    (void)host, (void)ghost;
    l->piece[l->end++ % 4096] = piece;
}

static kvc_piece head(const struct kvc_host *host, void *state,
                      const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    struct list *l = state;
    (void)host, (void)newcomer, (void)blocks;
    return l->piece[l->first % 4096];
}

static void pop(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t blocks)
{
    struct list *l = state;
    const struct kvc_piece_info *info = host->info(host, piece);
    l->first += blocks == info->hi - info->lo;
}

#define STORED append
#define TOUCHED NULL
#define VICTIM head
#define MORE .create = create, .destroy = destroy, .removed = pop, .flags = KVC_EVICT_SINGLE,
#include "bad.h"
