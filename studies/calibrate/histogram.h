/* SPDX-License-Identifier: Apache-2.0
 * A Prometheus histogram: cumulative counts by upper bound, and quantiles as PromQL has them. */
#ifndef KVC_STUDIES_HISTOGRAM_H
#define KVC_STUDIES_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define KVC_MOST_BUCKETS 128

struct kvc_histogram { /* all zero = empty */
    size_t n;
    double le[KVC_MOST_BUCKETS], count[KVC_MOST_BUCKETS]; /* upper bounds rise; counts cumulative */
};

/* Counts of equal bounds add up, as those of several engines. false: too many bounds. */
bool kvc_histogram_add(struct kvc_histogram *h, double le, double count);
/* What came between two scrapes. false: other bounds, or counts that fell. */
bool kvc_histogram_between(struct kvc_histogram *out, const struct kvc_histogram *before,
                           const struct kvc_histogram *after);
struct kvc_histogram_value {
    double value;     /* NAN: nothing was counted, or no bucket has everything (le="+Inf") */
    double low, high; /* of its bucket; high INFINITY: beyond all bounds, and value the last one */
};
/* histogram_quantile(q, h): values lie evenly in a bucket, the first one begins at 0. */
struct kvc_histogram_value kvc_histogram_quantile(const struct kvc_histogram *h, double q);

#endif
