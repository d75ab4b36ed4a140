/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's transfers as flows of sim/replay/links.h, which has a slow twin of its own. */
#include <math.h>
#include <stdlib.h>

#include "sim/replay/links.h"
#include "tests/twins/twin_tiers.h"

static void begin(const struct twin *tw, const struct kvc_flow_spec *spec, uint64_t *flow)
{
    if (kvc_links_start(tw->tiers->links, tw->now, spec, flow, NULL) != KVC_OK)
        abort();
}

/* What a transfer alone on its tier's link waits beside its bytes. */
static uint64_t ahead(const struct twin *tw, const struct transfer *t, uint64_t bytes)
{
    const struct twin_link *l = &tw->setup->links[1 + t->tier];
    double rate = t->load ? l->read_bytes_per_s : l->write_bytes_per_s, n = (double)bytes;
    double turns, by_bytes, by_turns;

    if (l->slots == 0)
        return l->latency_ns;
    turns = ceil(ceil(n / l->op_bytes) / l->slots);
    by_bytes = (double)l->latency_ns + n / l->wide[!t->load] * 1e9;
    by_turns = l->setup_ns + turns * l->each_ns[!t->load];
    by_bytes = (by_bytes > by_turns ? by_bytes : by_turns) - n / rate * 1e9;
    return by_bytes > 0 ? (uint64_t)(by_bytes + 0.5) : 0;
}

/* Over the replica's host link (index 0, which dram's own figures are of) and a tier's own, after
 * ahead_ns. */
void twin_flow_start(const struct twin *tw, struct transfer *t, bool host, bool own,
                     uint64_t bytes, uint64_t ahead_ns)
{
    const struct twin_tiers *ts = tw->tiers;
    uint32_t at = tw->sc->tiers[t->tier].scope == KVC_CLUSTER ? t->replica : t->instance;
    struct kvc_flow_spec spec = {.bytes = bytes, .tag = (uint64_t)(t - ts->transfers),
                                 .latency_ns = ahead_ns};

    if (host) {
        spec.latency_ns += own ? tw->setup->links[0].latency_ns : ahead(tw, t, bytes);
        spec.path[spec.n_path++] = (t->load ? ts->host_read : ts->host_write)[t->replica];
        if (ts->host_both)
            spec.path[spec.n_path++] = ts->host_both[t->replica];
    }
    if (own) {
        spec.latency_ns += ahead(tw, t, bytes);
        spec.path[spec.n_path++] = (t->load ? ts->own_read : ts->own_write)[t->tier][at];
    }
    begin(tw, &spec, &t->flow);
}

void twin_flow_wait(const struct twin *tw, struct transfer *t, uint64_t ns)
{
    struct kvc_flow_spec spec = {.tag = (uint64_t)(t - tw->tiers->transfers), .n_path = 1,
                                 .latency_ns = ns, .path = {tw->tiers->host_read[t->replica]}};

    begin(tw, &spec, &t->flow);
}

void twin_flow_on(const struct twin *tw, const struct transfer *t, uint64_t tag)
{
    const struct twin_tiers *ts = tw->tiers;
    struct kvc_flow_spec spec = {.bytes = t->rest, .tag = tag, .n_path = 1,
                                 .latency_ns = tw->setup->links[0].latency_ns,
                                 .path = {ts->host_read[t->replica]}};

    if (ts->host_both)
        spec.path[spec.n_path++] = ts->host_both[t->replica];
    begin(tw, &spec, NULL);
}
