/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/headlines/headlines.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "models/models.h"

const char *kvc_headline_verdict_name(enum kvc_headline_verdict verdict)
{
    static const char *const names[] = {"met", "order", "missed", "conditions unknown"};

    return names[verdict];
}

static double farther(double a, double b)
{
    return isnan(a) || fabs(log(b)) > fabs(log(a)) ? b : a;
}

/* Each within its tolerance, or within twice. */
static void judge_each(struct kvc_headline_result *r)
{
    const struct kvc_headline *h = r->headline;
    bool met = true, order = true;

    for (size_t i = 0; i < h->values; i++) {
        double ratio = r->predicted[i] / h->published[i];
        r->ratio = farther(r->ratio, ratio);
        met &= fabs(ratio - 1) <= h->tolerance + 1e-9;
        order &= ratio >= 0.5 && ratio <= 2;
    }
    r->verdict = met ? KVC_HEADLINE_MET : order ? KVC_HEADLINE_ORDER : KVC_HEADLINE_MISSED;
}

static bool within(double v, double low, double high)
{
    return v >= low && v <= high;
}

static void judge(struct kvc_headline_result *r)
{
    const struct kvc_headline *h = r->headline;
    const double *p = r->predicted, *q = h->published;

    r->ratio = p[0] / q[0];
    r->predictions = h->rule == KVC_HEADLINE_RANGE ? 1 : h->values;
    switch (h->rule) {
    case KVC_HEADLINE_EACH:
        r->ratio = NAN;
        judge_each(r);
        break;
    case KVC_HEADLINE_AT_LEAST:
        r->verdict = p[0] >= q[0] ? KVC_HEADLINE_MET : KVC_HEADLINE_MISSED;
        break;
    case KVC_HEADLINE_RANGE:
        r->verdict = within(p[0], q[0], q[1])           ? KVC_HEADLINE_MET
                     : within(p[0], q[0] / 2, q[1] * 2) ? KVC_HEADLINE_ORDER
                                                        : KVC_HEADLINE_MISSED;
        r->ratio = p[0] < q[0] ? p[0] / q[0] : p[0] > q[1] ? p[0] / q[1] : 1;
        break;
    case KVC_HEADLINE_DIRECTION:
        r->verdict = p[0] > p[1] ? KVC_HEADLINE_ORDER : KVC_HEADLINE_MISSED;
        break;
    default:
        r->verdict = KVC_HEADLINE_UNKNOWN;
    }
}

static bool wanted(const char *id, const char *const *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (kvc_name_equal(id, ids[i]))
            return true;
    return n == 0;
}

static enum kvc_status check_ids(const char *const *ids, size_t n, struct kvc_error *err)
{
    size_t rows;
    const struct kvc_headline *table = kvc_headline_table(&rows);

    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        while (j < rows && !kvc_name_equal(table[j].id, ids[i]))
            j++;
        if (j == rows)
            return kvc_fail(err, KVC_ERR_USAGE,
                            "no published figure is called '%.40s': they go from %s to %s, and "
                            "'kvcast validate' alone shows them all", ids[i],
                            table[0].id, table[rows - 1].id);
    }
    return KVC_OK;
}

enum kvc_status kvc_headlines_run(const char *const *ids, size_t n, kvc_headline_fn fn, void *user,
                                  struct kvc_error *err)
{
    size_t rows;
    const struct kvc_headline *table = kvc_headline_table(&rows);
    enum kvc_status status = kvc_profiles_ready(err);

    if (status == KVC_OK)
        status = check_ids(ids, n, err);

    for (size_t i = 0; i < rows && status == KVC_OK; i++) {
        struct kvc_headline_result r = {.headline = &table[i], .ratio = NAN,
                                        .verdict = KVC_HEADLINE_UNKNOWN};
        if (!wanted(table[i].id, ids, n))
            continue;
        if (table[i].predict) {
            status = table[i].predict(r.predicted, err);
            if (status == KVC_OK)
                judge(&r);
        }
        if (status == KVC_OK)
            status = fn(user, &r);
    }
    return status;
}
