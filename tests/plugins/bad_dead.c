/* SPDX-License-Identifier: Apache-2.0
 * Goes on with handles that have ended. */
#include <kvcast/policy.h>

struct last {
    kvc_piece piece;
};

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    (void)options;
    return host->alloc(host, 1, sizeof(struct last));
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

static void keep(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    struct last *l = state;
    (void)ghost;
    if (l->piece == KVC_PIECE_NONE)
        l->piece = piece;
    host->put(host, 0, piece);
}

static kvc_piece kept(const struct kvc_host *host, void *state,
                      const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    const struct last *l = state;
    (void)host, (void)newcomer, (void)blocks;
    return l->piece;
}

#define STORED keep
#define VICTIM kept
#define MORE .create = create, .destroy = destroy,
#include "bad.h"
