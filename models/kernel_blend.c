/* SPDX-License-Identifier: Apache-2.0
 * Ordinary kriging over the nearest measured shapes: the combination of them with the least
 * expected error, if what two shapes differ by grows with a power of their distance. Unlike a mean
 * by distance it follows a trend, inside the measured shapes and a little beyond. */
#include "models/kernel_blend.h"

#include <math.h>
#include <string.h>

#define BLEND 24     /* shapes */
#define NOISE 0.01   /* of one shape's measurement, as a share of the neighbours' mean variogram */
#define SOME_WEIGHT 0.1 /* of all shares' sizes: 24 shapes are asked, few of them decide */
#define STRANGE 3.0  /* times the median error with which the others tell a shape */

void kvc_kernel_place(const struct kvc_kernel_family *family, const double *site, double *place)
{
    memset(place, 0, KVC_KERNEL_PLACE * sizeof *place);
    for (size_t i = 0; i < family->n_site; i++)
        place[i] = log2(site[i]);
    if (family->derive)
        family->derive(site, place + family->n_site);
}

double kvc_kernel_place_distance(const struct kvc_kernel_table *table, const double *a,
                                 const double *b)
{
    size_t n = table->family->n_site + table->family->n_derived;
    double sum = table->distance[0];

    for (size_t i = 0; i < n; i++)
        sum += table->distance[1 + i] * (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

struct near {
    double distance;
    size_t site;
};

/* Keeps the BLEND nearest, ascending. */
static void keep_nearest(struct near *best, size_t *n, struct near one)
{
    size_t at = *n;

    if (*n == BLEND && one.distance >= best[BLEND - 1].distance)
        return;
    if (*n < BLEND)
        (*n)++;
    else
        at = BLEND - 1;
    for (; at > 0 && best[at - 1].distance > one.distance; at--)
        best[at] = best[at - 1];
    best[at] = one;
}

static double octaves_between(const double *a, const double *b, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        if (fabs(a[i] - b[i]) > most)
            most = fabs(a[i] - b[i]);
    return most < 1e-3 ? 0 : most;
}

/* ---- the linear system ---- */

struct system {
    size_t n;                              /* shapes; one more row makes the shares sum to one */
    double between[BLEND][BLEND]; /* variogram of two shapes, in its mean to the asked one */
    double to[BLEND];             /* .. and of each to the asked one */
    double noise[BLEND];
    double inverse[BLEND + 1][BLEND + 1];
};

/* Gauss and Jordan with partial pivots; false: no inverse to speak of. */
static bool invert(struct system *s)
{
    size_t n = s->n + 1;
    double a[BLEND + 1][2 * (BLEND + 1)] = {{0}};

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            a[i][j] = i == s->n || j == s->n ? i != j : i == j ? s->noise[i] : -s->between[i][j];
        a[i][n + i] = 1;
    }
    for (size_t c = 0; c < n; c++) {
        size_t pivot = c;
        for (size_t i = c + 1; i < n; i++)
            if (fabs(a[i][c]) > fabs(a[pivot][c]))
                pivot = i;
        if (!(fabs(a[pivot][c]) > 1e-9) || !isfinite(a[pivot][c]))
            return false;
        for (size_t j = 0; j < 2 * n; j++) {
            double t = a[pivot][j];
            a[pivot][j] = a[c][j];
            a[c][j] = t;
        }
        for (size_t i = 0; i < n; i++) {
            double f = a[i][c] / a[c][c];
            for (size_t j = c; i != c && f != 0 && j < 2 * n; j++)
                a[i][j] -= f * a[c][j];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            s->inverse[i][j] = a[i][n + j] / a[i][i];
    return true;
}

static void fill_system(struct system *s, const struct kvc_kernel_table *t,
                        const struct near *best, size_t n)
{
    double power = t->family->rough / 2, mean = 0;

    s->n = n;
    for (size_t i = 0; i < n; i++)
        mean += (s->to[i] = pow(best[i].distance, power)) / (double)n;
    if (!(mean > 0))
        mean = 1;
    for (size_t i = 0; i < n; i++) {
        const double *a = t->site + best[i].site * KVC_KERNEL_PLACE;
        s->to[i] /= mean;
        s->noise[i] = NOISE;
        for (size_t j = 0; j < i; j++)
            s->between[i][j] = s->between[j][i] =
                pow(kvc_kernel_place_distance(t, a, t->site + best[j].site * KVC_KERNEL_PLACE),
                    power) / mean;
    }
}

static double median(const double *v, size_t n)
{
    double sorted[BLEND];

    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > v[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = v[i];
    }
    return sorted[n / 2];
}

/* Some shapes were measured with another kernel than their neighbours, four times slower: whom the
 * others tell far worse than usual is trusted less. The error with which a shape is told without
 * itself follows from the inverse. */
static void doubt_strangers(struct system *s, const struct kvc_kernel_table *t,
                            const struct near *best)
{
    double error[BLEND];

    for (size_t i = 0; i < s->n; i++) {
        double square = 0;
        for (size_t r = 0; r < t->rank; r++) {
            double v = 0;
            for (size_t j = 0; j < s->n; j++)
                v += s->inverse[i][j] * t->weight[best[j].site * t->rank + r];
            square += v * v;
        }
        error[i] = sqrt(square) / fabs(s->inverse[i][i]);
    }
    double usual = STRANGE * median(error, s->n);
    for (size_t i = 0; i < s->n; i++)
        if (usual > 0 && error[i] > usual)
            s->noise[i] += (error[i] / usual) * (error[i] / usual);
}

/* Shares of the nearest shapes, or false where the system has no answer. */
static bool krige(const struct kvc_kernel_table *t, const struct near *best, size_t n,
                  double *share)
{
    struct system s;

    fill_system(&s, t, best, n);
    if (!invert(&s))
        return false;
    doubt_strangers(&s, t, best);
    if (!invert(&s))
        return false;
    for (size_t i = 0; i < n; i++) {
        share[i] = s.inverse[i][n];
        for (size_t j = 0; j < n; j++)
            share[i] -= s.inverse[i][j] * s.to[j];
    }
    return true;
}

/* The plain mean by distance. */
static void by_distance(const struct near *best, size_t n, double *share)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += share[i] = 1 / (best[i].distance + 1e-9);
    for (size_t i = 0; i < n; i++)
        share[i] /= sum;
}

/* Where the rows of shapes end that have a share of some weight: the narrowest of them. */
static void find_ends(struct kvc_kernel_curve *out, const struct near *best, size_t n,
                      const double *share)
{
    const struct kvc_kernel_table *t = out->table;
    double all = 0;

    for (size_t i = 0; i < n; i++)
        all += fabs(share[i]);
    for (size_t i = 0; i < n; i++) {
        const struct kvc_kernel_ends *e = t->ends ? &t->ends[best[i].site] : NULL;
        if (!e || fabs(share[i]) < SOME_WEIGHT * all)
            continue;
        for (size_t a = 0; a < t->family->n_axes; a++) {
            out->first[a] = fmax(out->first[a], kvc_kernel_knot(t, a, e->first[a]));
            out->last[a] = fmin(out->last[a], kvc_kernel_knot(t, a, e->last[a]));
        }
        if (t->family->n_axes == 2)
            out->product = fmin(out->product, kvc_kernel_product(t, e->corner));
    }
}

void kvc_kernel_curve_at(const struct kvc_kernel_table *table, const double *site,
                         struct kvc_kernel_curve *out)
{
    struct near best[BLEND];
    size_t n = 0, n_site = table->family->n_site;
    double at[KVC_KERNEL_PLACE], share[BLEND] = {1};

    memset(out, 0, sizeof *out);
    out->table = table;
    memcpy(out->params, table->params, sizeof out->params);
    memcpy(out->x, site, n_site * sizeof *site);
    out->product = HUGE_VAL;
    for (size_t a = 0; a < KVC_KERNEL_AXES; a++)
        out->last[a] = table->n_cells ? kvc_kernel_knot(table, a, table->n_knots[a] - 1) : HUGE_VAL;
    kvc_kernel_place(table->family, site, at);
    for (size_t s = 0; s < table->n_sites; s++)
        keep_nearest(best, &n,
                     (struct near){kvc_kernel_place_distance(
                                       table, table->site + s * KVC_KERNEL_PLACE, at),
                                   s});
    if (n == 0)
        return;
    out->octaves = octaves_between(table->site + best[0].site * KVC_KERNEL_PLACE, at, n_site);
    if (out->octaves == 0)
        n = 1;
    else if (n > 1 && !krige(table, best, n, share))
        by_distance(best, n, share);
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < table->rank; r++)
            out->weight[r] += share[i] * table->weight[best[i].site * table->rank + r];
    find_ends(out, best, n, share);
}
