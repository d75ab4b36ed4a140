/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/engine/bands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define SHARE 0.9 /* of the configurations above the low end, and below the high one */

/* Rows by configuration, and their orders by both shares. */
struct fit {
    struct kvc_band_row *row;
    size_t n;
    double *weight;      /* [n] 1 / rows of its configuration; 0: left out */
    size_t *order[2];    /* [n] each, by ttft and by tpot */
};

static double share_of(const struct kvc_band_row *r, int which)
{
    return which ? r->tpot : r->ttft;
}

static int by_configuration(const void *a, const void *b)
{
    const struct kvc_band_row *x = a, *y = b;

    return (x->configuration > y->configuration) - (x->configuration < y->configuration);
}

struct keyed {
    double key;
    size_t row;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                            : (x->row > y->row) - (x->row < y->row);
}

static enum kvc_status sort(struct fit *f, int which, struct kvc_error *err)
{
    struct keyed *k = kvc_malloc(f->n + 1, sizeof *k);

    f->order[which] = kvc_malloc(f->n + 1, sizeof *f->order[which]);
    if (!k || !f->order[which]) {
        kvc_free(k);
        return kvc_fail_nomem(err);
    }
    for (size_t i = 0; i < f->n; i++)
        k[i] = (struct keyed){share_of(&f->row[i], which), i};
    qsort(k, f->n, sizeof *k, by_key);
    for (size_t i = 0; i < f->n; i++)
        f->order[which][i] = k[i].row;
    kvc_free(k);
    return KVC_OK;
}

static size_t end_of(const struct fit *f, size_t begin)
{
    size_t end = begin;

    while (end < f->n && f->row[end].configuration == f->row[begin].configuration)
        end++;
    return end;
}

/* ---- what the rows carry ---- */

/* Configurations with a row that carries all these flags, on that GPU or any. */
static size_t carry(const struct fit *f, uint32_t flags, const char *gpu)
{
    size_t n = 0;

    for (size_t begin = 0, end; begin < f->n; begin = end) {
        bool any = false;
        end = end_of(f, begin);
        for (size_t i = begin; i < end; i++)
            any |= (f->row[i].flags & flags) == flags && (!gpu || strcmp(f->row[i].gpu, gpu) == 0);
        n += any;
    }
    return n;
}

static bool is_listed(const struct kvc_engine_band *b, const char *gpu)
{
    for (size_t i = 0; i < b->n_gpus; i++)
        if (strcmp(b->gpu[i], gpu) == 0)
            return true;
    return false;
}

static void find_carried(struct kvc_engine_band *out, const struct fit *f)
{
    static const uint32_t widening[] = {KVC_STEP_PAST, KVC_STEP_OUTSIDE};

    for (size_t i = 0; i < 2; i++)
        if (carry(f, widening[i], NULL) >= KVC_BAND_LEAST)
            out->flags |= widening[i];
    for (size_t i = 0; i < f->n && out->n_gpus < KVC_BAND_GPUS; i++)
        if (f->row[i].flags & KVC_STEP_BORROWED && !is_listed(out, f->row[i].gpu) &&
            carry(f, KVC_STEP_BORROWED, f->row[i].gpu) >= KVC_BAND_LEAST)
            out->gpu[out->n_gpus++] = f->row[i].gpu;
}

static bool counts(const struct kvc_engine_band *b, const struct kvc_band_row *r)
{
    uint32_t widening = r->flags & (KVC_STEP_PAST | KVC_STEP_OUTSIDE | KVC_STEP_FAR);

    return !(widening & ~b->flags) && (!(r->flags & KVC_STEP_BORROWED) || is_listed(b, r->gpu));
}

static void weigh(struct fit *f, const struct kvc_engine_band *b)
{
    for (size_t begin = 0, end; begin < f->n; begin = end) {
        size_t n = 0;
        end = end_of(f, begin);
        for (size_t i = begin; i < end; i++)
            n += counts(b, &f->row[i]);
        for (size_t i = begin; i < end; i++)
            f->weight[i] = counts(b, &f->row[i]) ? 1.0 / (double)n : 0;
    }
}

/* ---- the ends ---- */

/* The first share, from below or above, with so much of the weight at or before it; rows from skip
 * to end are left out. NAN: no row. */
static double quantile(const struct fit *f, int which, bool from_above, size_t skip, size_t end)
{
    double all = 0, sum = 0, last = NAN;

    for (size_t i = 0; i < f->n; i++)
        all += i >= skip && i < end ? 0 : f->weight[i];
    for (size_t i = 0; i < f->n; i++) {
        size_t row = f->order[which][from_above ? f->n - 1 - i : i];
        if ((row >= skip && row < end) || f->weight[row] <= 0)
            continue;
        last = share_of(&f->row[row], which);
        sum += f->weight[row];
        if (sum >= SHARE * all * (1 - 1e-12))
            break;
    }
    return last;
}

/* A band that holds what was predicted, whatever the bias. */
static struct kvc_time_band ends(const struct fit *f, size_t skip, size_t end)
{
    struct kvc_time_band b = {0};

    b.ttft_low = fmin(1, quantile(f, 0, true, skip, end));
    b.ttft_high = fmax(1, quantile(f, 0, false, skip, end));
    b.tpot_low = fmin(1, quantile(f, 1, true, skip, end));
    b.tpot_high = fmax(1, quantile(f, 1, false, skip, end));
    return b;
}

/* ---- how it holds ---- */

static void add(struct kvc_band_cover *c, const struct kvc_time_band *b,
                const struct kvc_band_row *r, bool first)
{
    c->rows++;
    c->configurations += first;
    c->ttft += r->ttft >= b->ttft_low && r->ttft <= b->ttft_high;
    c->tpot += r->tpot >= b->tpot_low && r->tpot <= b->tpot_high;
}

static void add_rows(struct kvc_band_cover *c, const struct fit *f, size_t begin, size_t end,
                     const struct kvc_time_band *b, uint32_t flag, bool without)
{
    bool first = true;

    for (size_t i = begin; i < end; i++) {
        bool fits = without ? !f->row[i].flags : (f->row[i].flags & flag) == flag;
        if (!fits || f->weight[i] <= 0)
            continue;
        add(c, b, &f->row[i], first);
        first = false;
    }
}

static void share_out(struct kvc_band_cover *c)
{
    c->ttft = c->rows ? c->ttft / (double)c->rows : NAN;
    c->tpot = c->rows ? c->tpot / (double)c->rows : NAN;
}

static void leave_out(struct kvc_engine_band *out, const struct fit *f)
{
    static const uint32_t flags[4] = {KVC_STEP_PAST, KVC_STEP_OUTSIDE, KVC_STEP_BORROWED,
                                      KVC_STEP_SHAPE};

    for (size_t begin = 0, end; begin < f->n; begin = end) {
        end = end_of(f, begin);
        struct kvc_time_band b = ends(f, begin, end);
        add_rows(&out->all, f, begin, end, &b, 0, false);
        add_rows(&out->plain, f, begin, end, &b, 0, true);
        for (size_t i = 0; i < 4; i++)
            add_rows(&out->flagged[i], f, begin, end, &b, flags[i], false);
    }
    share_out(&out->all);
    share_out(&out->plain);
    for (size_t i = 0; i < 4; i++)
        share_out(&out->flagged[i]);
}

enum kvc_status kvc_engine_band_fit(struct kvc_engine_band *out, struct kvc_band_row *rows,
                                    size_t n, struct kvc_error *err)
{
    struct fit f = {rows, n, kvc_malloc(n + 1, sizeof *f.weight), {NULL, NULL}};
    enum kvc_status status = f.weight ? KVC_OK : kvc_fail_nomem(err);

    memset(out, 0, sizeof *out);
    qsort(rows, n, sizeof *rows, by_configuration);
    for (int which = 0; which < 2 && status == KVC_OK; which++)
        status = sort(&f, which, err);
    if (status == KVC_OK) {
        find_carried(out, &f);
        weigh(&f, out);
        out->band = ends(&f, n, n);
        leave_out(out, &f);
    }
    kvc_free(f.weight);
    kvc_free(f.order[0]);
    kvc_free(f.order[1]);
    return status;
}
