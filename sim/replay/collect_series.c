/* SPDX-License-Identifier: Apache-2.0
 * What was when: levels and rates over time. */
#include "sim/replay/collect.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>

static enum kvc_status add_series(const struct kvc_engine *e, struct kvc_result *r,
                                  const struct kvc_timeline *t, const char *name, const char *unit,
                                  uint32_t channel, struct kvc_error *err)
{
    struct kvc_series *s = &r->series[r->n_series++];
    snprintf(s->name, sizeof(s->name), "%s", name);
    snprintf(s->unit, sizeof(s->unit), "%s", unit);
    s->n = t->n;
    s->time_ns = kvc_malloc(t->n, sizeof(*s->time_ns));
    s->value = kvc_malloc(t->n, sizeof(*s->value));
    if (!s->time_ns || !s->value)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < t->n; i++) {
        uint64_t start = i * t->width_ns;
        uint64_t end = start + t->width_ns < e->end_ns ? start + t->width_ns : e->end_ns;
        double width = end > start ? (double)(end - start) * 1e-9 : (double)t->width_ns * 1e-9;
        s->time_ns[i] = start;
        s->value[i] = t->sum[(size_t)channel * KVC_TIMELINE_BUCKETS + i] / width;
    }
    return KVC_OK;
}

/* Of each group of tenants: what it holds, looks up and hits. */
static enum kvc_status tenant_series(const struct kvc_engine *e, struct kvc_result *r,
                                     struct kvc_error *err)
{
    static const struct { const char *name, *unit; } what[] = {
        {"resident_bytes", "bytes"}, {"looked_up_tokens_per_s", "tokens/s"},
        {"hit_tokens_per_s", "tokens/s"}};
    uint32_t n = r->losses.n_groups;
    enum kvc_status st = KVC_OK;
    for (uint32_t c = 0; c < 3 * n && st == KVC_OK; c++) {
        char name[48];
        snprintf(name, sizeof(name), "%s:%.24s", what[c / n].name, r->losses.names[c % n]);
        st = add_series(e, r, &e->tenant_timeline, name, what[c / n].unit, c, err);
    }
    return st;
}

enum kvc_status kvc_collect_series(const struct kvc_engine *e, struct kvc_result *r,
                                   struct kvc_error *err)
{
    static const struct { const char *name, *unit; } levels[] = {
        [KVC_CHANNEL_RUNNING] = {"running", "requests"},
        [KVC_CHANNEL_WAITING] = {"waiting", "requests"},
        [KVC_CHANNEL_HBM_USED] = {"hbm_used_fraction", "1"},
        [KVC_CHANNEL_ARRIVALS] = {"arrivals_per_s", "1/s"},
        [KVC_CHANNEL_INPUT_TOKENS] = {"input_tokens_per_s", "tokens/s"},
        [KVC_CHANNEL_HIT_TOKENS] = {"hit_tokens_per_s", "tokens/s"},
    };
    char name[48];
    r->series = kvc_calloc(KVC_CHANNEL_LINKS + e->n_link_classes + 3 * r->losses.n_groups,
                           sizeof(*r->series));
    if (!r->series)
        return kvc_fail_nomem(err);
    enum kvc_status st = KVC_OK;
    for (uint32_t c = 0; c < KVC_CHANNEL_MISSED && st == KVC_OK; c++)
        st = add_series(e, r, &e->timeline, levels[c].name, levels[c].unit, c, err);
    for (uint32_t c = 0; c < e->n_link_classes && st == KVC_OK; c++) {
        snprintf(name, sizeof(name), "link:%s", r->links[c].name);
        st = add_series(e, r, &e->timeline, name, "bytes/s", KVC_CHANNEL_LINKS + c, err);
    }
    for (uint32_t c = 0; c < KVC_MISS_CAUSES && st == KVC_OK; c++) {
        snprintf(name, sizeof(name), "missed:%s", kvc_miss_cause_name((enum kvc_miss_cause)c));
        st = add_series(e, r, &e->timeline, name, "tokens/s", KVC_CHANNEL_MISSED + c, err);
    }
    return st == KVC_OK ? tenant_series(e, r, err) : st;
}
