/* SPDX-License-Identifier: Apache-2.0
 * Step functions of simulated time, averaged over equal buckets. The bucket width doubles when
 * there would be too many, so a run of any length keeps a few hundred. */
#ifndef KVC_SIM_TIMELINE_H
#define KVC_SIM_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVC_TIMELINE_BUCKETS 512

struct kvc_timeline {
    uint32_t channels;
    uint64_t width_ns, now_ns;
    size_t n; /* buckets begun */
    double *sum; /* [channel][bucket]: integral over time in seconds, or a plain sum */
};

bool kvc_timeline_init(struct kvc_timeline *t, uint32_t channels);
void kvc_timeline_clear(struct kvc_timeline *t);
/* Time moves to now_ns while channel c stands at level[c], for c < n_levels. True when a bucket was
 * completed. */
bool kvc_timeline_advance(struct kvc_timeline *t, uint64_t now_ns, const double *level,
                          uint32_t n_levels);
/* Adds amount to a channel's current bucket (for counts rather than levels). */
void kvc_timeline_add(struct kvc_timeline *t, uint32_t channel, double amount);

#endif
