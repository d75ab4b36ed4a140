/* SPDX-License-Identifier: Apache-2.0
 * What a link gives when it moves operations of one size: the rate of all its devices, and what a
 * transfer waits beside its bytes. */
#ifndef KVC_MODELS_LINK_USE_H
#define KVC_MODELS_LINK_USE_H

#include "models/models.h"

struct kvc_link_use {
    double bytes_per_s;      /* of all devices, as many operations under way as there may be */
    double wide_bytes_per_s; /* the same were there no end to them */
    double op_bytes;
    double each_ns; /* one operation, from its start to its end */
    double slots;   /* under way at once, all devices; 0: enough of them */
    double setup_ns, latency_ns;
};

/* A device takes per_op and the bytes' time for an operation, or the time between two that it can
 * begin, whichever is longer; with q under way it ends no more than q in the time of one (Little's
 * law); all devices reach no more than what they reach together. */
void kvc_link_use_of(struct kvc_link_use *out, const struct kvc_link_profile *link, bool write,
                     double op_bytes, double devices);

/* What goes before the bytes of a transfer that has the link to itself: the latency, or more where
 * rounds of operations take longer than their bytes. */
uint64_t kvc_link_ahead_ns(const struct kvc_link_use *use, uint64_t bytes);

/* What an operation costs at least, its bytes aside. */
double kvc_link_op_ns(const struct kvc_link_profile *link);

#endif
