/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/timeline.h"

#include "base/alloc.h"

#include <string.h>

bool kvc_timeline_init(struct kvc_timeline *t, uint32_t channels)
{
    memset(t, 0, sizeof(*t));
    t->channels = channels;
    t->width_ns = 1000000; /* 1 ms to begin with */
    t->n = 1;
    t->sum = kvc_calloc((size_t)channels * KVC_TIMELINE_BUCKETS, sizeof(*t->sum));
    return t->sum != NULL;
}

void kvc_timeline_clear(struct kvc_timeline *t)
{
    kvc_free(t->sum);
    memset(t, 0, sizeof(*t));
}

static void halve(struct kvc_timeline *t)
{
    for (uint32_t c = 0; c < t->channels; c++) {
        double *s = t->sum + (size_t)c * KVC_TIMELINE_BUCKETS;
        for (size_t i = 0; i < KVC_TIMELINE_BUCKETS / 2; i++)
            s[i] = s[2 * i] + s[2 * i + 1];
        memset(s + KVC_TIMELINE_BUCKETS / 2, 0, KVC_TIMELINE_BUCKETS / 2 * sizeof(*s));
    }
    t->width_ns *= 2;
    t->n = (t->n + 1) / 2;
}

bool kvc_timeline_advance(struct kvc_timeline *t, uint64_t now_ns, const double *level,
                          uint32_t n_levels)
{
    bool completed = false;
    while (now_ns / t->width_ns >= KVC_TIMELINE_BUCKETS)
        halve(t);
    while (t->now_ns < now_ns) {
        uint64_t bucket = t->now_ns / t->width_ns, edge = (bucket + 1) * t->width_ns;
        uint64_t to = now_ns < edge ? now_ns : edge;
        double s = (double)(to - t->now_ns) * 1e-9;
        for (uint32_t c = 0; c < n_levels; c++)
            t->sum[(size_t)c * KVC_TIMELINE_BUCKETS + bucket] += level[c] * s;
        completed |= to == edge;
        t->now_ns = to;
    }
    size_t bucket = (size_t)(now_ns / t->width_ns);
    if (bucket + 1 > t->n)
        t->n = bucket + 1;
    return completed;
}

void kvc_timeline_add(struct kvc_timeline *t, uint32_t channel, double amount)
{
    t->sum[(size_t)channel * KVC_TIMELINE_BUCKETS + t->now_ns / t->width_ns] += amount;
}
