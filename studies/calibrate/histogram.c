/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/histogram.h"

#include <math.h>
#include <string.h>

bool kvc_histogram_add(struct kvc_histogram *h, double le, double count)
{
    size_t i = 0;

    while (i < h->n && h->le[i] < le)
        i++;
    if (i == h->n || h->le[i] != le) {
        if (h->n == KVC_MOST_BUCKETS)
            return false;
        memmove(&h->le[i + 1], &h->le[i], (h->n - i) * sizeof h->le[0]);
        memmove(&h->count[i + 1], &h->count[i], (h->n - i) * sizeof h->count[0]);
        h->le[i] = le;
        h->count[i] = 0;
        h->n++;
    }
    h->count[i] += count;
    return true;
}

bool kvc_histogram_between(struct kvc_histogram *out, const struct kvc_histogram *before,
                           const struct kvc_histogram *after)
{
    *out = *after;
    if (!before->n) /* nothing was seen until then */
        return true;
    if (before->n != after->n)
        return false;
    for (size_t i = 0; i < after->n; i++) {
        out->count[i] -= before->count[i];
        if (before->le[i] != after->le[i] || out->count[i] < 0)
            return false;
    }
    return true;
}

struct kvc_histogram_value kvc_histogram_quantile(const struct kvc_histogram *h, double q)
{
    struct kvc_histogram_value v = {NAN, NAN, NAN};
    size_t last = h->n ? h->n - 1 : 0, i = 0;
    double all = h->n ? h->count[last] : 0, rank = q * all;

    if (h->n < 2 || !isinf(h->le[last]) || !(all > 0))
        return v;
    while (i < last && h->count[i] < rank)
        i++;
    double below = i ? h->count[i - 1] : 0;
    v.high = h->le[i];
    v.low = i ? h->le[i - 1] : fmin(0, v.high);
    if (i == last)
        v.value = v.low;
    else if (i == 0 && v.high <= 0)
        v.value = v.high;
    else
        v.value = v.low + (v.high - v.low) *
                              (h->count[i] > below ? (rank - below) / (h->count[i] - below) : 0);
    return v;
}
