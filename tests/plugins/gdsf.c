/* SPDX-License-Identifier: Apache-2.0
 * gdsf as a plug-in (Cherkasova, HP 1998), each block of size and cost 1: touches since stored,
 * above what the last victim had. */
#include <kvcast/policy.h>

struct gdsf {
    double floor; /* the last victim's rank */
};

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    (void)options;
    return host->alloc(host, 1, sizeof(struct gdsf));
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

static void rank(const struct kvc_host *host, const struct gdsf *g, kvc_piece piece)
{
    double *mine = host->memory(host, piece);
    *mine = g->floor + host->info(host, piece)->touches;
    host->rank(host, piece, *mine);
}

static void stored(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)ghost;
    rank(host, state, piece);
}

static void touched(const struct kvc_host *host, void *state, kvc_piece piece)
{
    rank(host, state, piece);
}

/* The newcomers that come for one piece all go after the rest of it. */
static kvc_piece victim(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    struct gdsf *g = state;
    kvc_piece least = host->lowest(host);
    if (least != KVC_PIECE_NONE) {
        const double *rank_of_it = host->memory(host, least);
        g->floor = *rank_of_it;
    }
    *blocks = newcomer->hi - newcomer->lo;
    return least;
}

static const struct kvc_evict_ops ops = {
    .struct_size = sizeof(struct kvc_evict_ops),
    .flags = KVC_EVICT_TOUCHES | KVC_EVICT_CLOSED,
    .piece_bytes = sizeof(double),
    .create = create,
    .destroy = destroy,
    .stored = stored,
    .touched = touched,
    .victim = victim,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_EVICTION,
    .name = "plug-gdsf",
    .summary = "fewest touches since stored, above the last victim's figure",
    .source = "Cherkasova, HP 1998",
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
