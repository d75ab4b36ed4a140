/* SPDX-License-Identifier: Apache-2.0
 * Transfers of tiers below HBM as flows on the links they cross. */
#include "sim/replay/engine.h"

static void cross_host_link(struct kvc_flow_spec *spec, const struct kvc_replica *r,
                            uint32_t direction)
{
    spec->path[spec->n_path++] = direction;
    if (r->both_link != KVC_NONE)
        spec->path[spec->n_path++] = r->both_link;
}

static void start(struct kvc_engine *e, const struct kvc_flow_spec *spec)
{
    if (kvc_links_start(e->links, e->now, spec, NULL, NULL) != KVC_OK)
        e->nomem = true;
}

static uint32_t own_link(const struct kvc_tier *tier, const uint32_t *links,
                         const struct kvc_transfer *x)
{
    return links[tier->config->scope == KVC_CLUSTER ? x->replica : x->instance];
}

void kvc_tiers_move_up(struct kvc_engine *e, uint32_t transfer, uint64_t bytes, uint64_t ahead_ns)
{
    struct kvc_transfer *x = &e->transfers[transfer];
    const struct kvc_replica *r = &e->replicas[x->replica];
    struct kvc_tier *tier = &e->tiers[x->tier];
    struct kvc_flow_spec spec = {.tag = transfer, .bytes = bytes};

    spec.latency_ns = ahead_ns + kvc_link_ahead_ns(&tier->read_use, bytes);
    tier->read_bytes += bytes;
    if (tier->read_link)
        spec.path[spec.n_path++] = own_link(tier, tier->read_link, x);
    if (tier->read_link && tier->config->link_staged) {
        x->staged_bytes = bytes;
    } else {
        spec.latency_ns += tier->read_link ? e->host_latency_ns : 0;
        cross_host_link(&spec, r, r->h2d_link);
    }
    start(e, &spec);
}

bool kvc_tiers_move_on(struct kvc_engine *e, uint32_t transfer)
{
    struct kvc_transfer *x = &e->transfers[transfer];
    const struct kvc_replica *r = &e->replicas[x->replica];
    struct kvc_flow_spec spec = {.tag = transfer, .bytes = x->staged_bytes,
                                 .latency_ns = e->host_latency_ns};

    if (!x->staged_bytes)
        return false;
    x->staged_bytes = 0;
    cross_host_link(&spec, r, r->h2d_link);
    start(e, &spec);
    return true;
}

void kvc_tiers_move_down(struct kvc_engine *e, uint32_t transfer, uint64_t bytes, bool from_above)
{
    const struct kvc_transfer *x = &e->transfers[transfer];
    const struct kvc_replica *r = &e->replicas[x->replica];
    struct kvc_tier *tier = &e->tiers[x->tier];
    struct kvc_flow_spec spec = {.tag = transfer, .bytes = bytes,
                                 .latency_ns = kvc_link_ahead_ns(&tier->write_use, bytes)};

    tier->written_bytes += bytes;
    if (!from_above)
        cross_host_link(&spec, r, r->d2h_link);
    if (tier->write_link) {
        spec.path[spec.n_path++] = own_link(tier, tier->write_link, x);
        spec.latency_ns += from_above ? 0 : e->host_latency_ns;
    }
    start(e, &spec);
}
