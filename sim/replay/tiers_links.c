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
    uint64_t *flow = &e->transfers[spec->tag].flow;
    if (kvc_links_start(e->links, e->now, spec, flow, NULL) != KVC_OK)
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
    if (x->fetch) {
        x->staged_bytes = 0; /* host memory is where it goes */
    } else if (tier->read_link && tier->config->link_staged) {
        x->staged_bytes = bytes;
    } else {
        spec.latency_ns += tier->read_link ? e->host_latency_ns : 0;
        cross_host_link(&spec, r, r->h2d_link);
    }
    start(e, &spec);
}

void kvc_tiers_wake_after(struct kvc_engine *e, uint32_t transfer, uint64_t ns)
{
    const struct kvc_replica *r = &e->replicas[e->transfers[transfer].replica];
    struct kvc_flow_spec spec = {.tag = transfer, .latency_ns = ns, .n_path = 1,
                                 .path = {r->h2d_link}};

    start(e, &spec);
}

uint64_t kvc_tiers_cut(struct kvc_engine *e, uint32_t transfer)
{
    uint64_t flow = e->transfers[transfer].flow;
    uint64_t bytes = kvc_links_moved(e->links, e->now, flow);

    kvc_links_cancel(e->links, e->now, flow);
    return bytes;
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
