/* SPDX-License-Identifier: Apache-2.0 */
#include "models/kernel_grid.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/kernel_blend.h"

#define MAX_KNOTS KVC_KERNEL_DIGITS /* a character of a file names one */
#define NEIGHBOURS 8
#define GOOD_ENOUGH 0.01 /* mean absolute error of the log at which no component is added */
#define MINOR 0.3         /* weight of what lies outside the claimed range */

struct grid {
    struct kvc_kernel_table *table;
    size_t n; /* sites x cells */
    double *value;    /* [site][cell], NAN: not measured */
    double *base;     /* what the neighbours say there, NAN: nothing */
    double *filled;
    double *site_weight, *cell_weight;
    size_t *neighbour; /* [site][NEIGHBOURS] */
    double *distance;  /* of them */
    size_t n_neighbours;
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* ---- knots and sites ---- */

/* The values that occur; where they are many, every eighth of an octave. */
static bool find_knots(struct kvc_kernel_table *t, size_t axis, const struct kvc_kernel_row *rows,
                       size_t n)
{
    size_t at = t->family->n_site + axis, kept = 0;
    double *v = kvc_malloc(n, sizeof *v);

    t->n_knots[axis] = 1;
    t->knot[axis] = kvc_calloc(MAX_KNOTS * 2, sizeof(double));
    if (!v || !t->knot[axis]) {
        kvc_free(v);
        return false;
    }
    if (axis < t->family->n_axes) {
        for (size_t i = 0; i < n; i++)
            v[i] = log(rows[i].x[at]);
        qsort(v, n, sizeof *v, ascending);
        for (int pass = 0; pass < 2; pass++) {
            double gap = pass ? log(2) / 8 : 1e-9;
            kept = 0;
            for (size_t i = 0; i < n && kept < 2 * MAX_KNOTS; i++)
                if (kept == 0 || v[i] > t->knot[axis][kept - 1] + gap)
                    t->knot[axis][kept++] = v[i];
            if (kept <= MAX_KNOTS)
                break;
        }
        t->n_knots[axis] = kept;
    }
    kvc_free(v);
    return true;
}

static bool find_sites(struct kvc_kernel_table *t, const struct kvc_kernel_row *rows, size_t n)
{
    size_t n_site = t->family->n_site;

    for (size_t i = 0; i < n; i++)
        if (i == 0 || memcmp(rows[i].x, rows[i - 1].x, n_site * sizeof(double)) != 0)
            t->n_sites++;
    t->site = kvc_calloc(t->n_sites * KVC_KERNEL_PLACE, sizeof(double));
    if (!t->site)
        return false;
    for (size_t i = 0, s = 0; i < n; i++) {
        if (i > 0 && memcmp(rows[i].x, rows[i - 1].x, n_site * sizeof(double)) == 0)
            continue;
        kvc_kernel_place(t->family, rows[i].x, t->site + s++ * KVC_KERNEL_PLACE);
    }
    return true;
}

/* ---- the matrix ---- */

static bool allocate(struct grid *g)
{
    struct kvc_kernel_table *t = g->table;

    g->n = t->n_sites * t->n_cells;
    g->value = kvc_calloc(g->n, sizeof(double));
    g->base = kvc_calloc(g->n, sizeof(double));
    g->filled = kvc_calloc(g->n, sizeof(double));
    g->site_weight = kvc_calloc(t->n_sites, sizeof(double));
    g->cell_weight = kvc_calloc(t->n_cells, sizeof(double));
    g->neighbour = kvc_calloc(t->n_sites * NEIGHBOURS, sizeof(size_t));
    g->distance = kvc_calloc(t->n_sites * NEIGHBOURS, sizeof(double));
    return g->value && g->base && g->filled && g->site_weight && g->cell_weight && g->neighbour &&
           g->distance;
}

static void release(struct grid *g)
{
    kvc_free(g->value);
    kvc_free(g->base);
    kvc_free(g->filled);
    kvc_free(g->site_weight);
    kvc_free(g->cell_weight);
    kvc_free(g->neighbour);
    kvc_free(g->distance);
}

/* log(measured / form) at the knot of each row; the mean where several meet. filled counts, base is
 * log(measured). */
static void gather(struct grid *g, const struct kvc_kernel_row *rows, size_t n,
                   const struct kvc_peaks *peaks)
{
    struct kvc_kernel_table *t = g->table;
    const struct kvc_kernel_family *f = t->family;
    size_t site = 0;

    for (size_t i = 0; i < t->n_sites; i++)
        g->site_weight[i] = MINOR;
    for (size_t i = 0; i < t->n_cells; i++)
        g->cell_weight[i] = MINOR;
    for (size_t i = 0; i < n; i++) {
        size_t knot[KVC_KERNEL_AXES] = {0};
        if (i > 0 && memcmp(rows[i].x, rows[i - 1].x, f->n_site * sizeof(double)) != 0)
            site++;
        for (size_t a = 0; a < f->n_axes; a++)
            knot[a] = kvc_kernel_nearest(t->knot[a], t->n_knots[a], log(rows[i].x[f->n_site + a]));
        size_t cell = knot[0] * t->n_knots[1] + knot[1], at = site * t->n_cells + cell;
        g->value[at] += log(rows[i].ns / f->form(t->constants, t->params, peaks, rows[i].x));
        g->base[at] += log(rows[i].ns);
        g->filled[at]++;
        if (!rows[i].excluded)
            g->site_weight[site] = g->cell_weight[cell] = 1;
    }
    for (size_t i = 0; i < g->n; i++) {
        g->value[i] = g->filled[i] > 0 ? g->value[i] / g->filled[i] : NAN;
        g->base[i] = g->filled[i] > 0 ? g->base[i] / g->filled[i] : NAN;
    }
}

/* Where the rows of each site begin and end on each axis, and the largest of all. */
static bool note_ends(struct kvc_kernel_table *t, const struct kvc_kernel_row *rows, size_t n)
{
    const struct kvc_kernel_family *f = t->family;
    struct kvc_kernel_ends *e = t->ends = kvc_calloc(t->n_sites, sizeof *t->ends);

    for (size_t i = 0; i < n && t->ends; i++) {
        bool first = i == 0 || memcmp(rows[i].x, rows[i - 1].x, f->n_site * sizeof(double)) != 0;
        unsigned char knot[KVC_KERNEL_AXES] = {0};
        e += first && i > 0;
        for (size_t a = 0; a < f->n_axes; a++) {
            double x = rows[i].x[f->n_site + a];
            knot[a] = (unsigned char)kvc_kernel_nearest(t->knot[a], t->n_knots[a], log(x));
            if (first || knot[a] < e->first[a])
                e->first[a] = knot[a];
            if (knot[a] > e->last[a])
                e->last[a] = knot[a];
            t->most[a] = x > t->most[a] ? x : t->most[a];
        }
        if (kvc_kernel_product(t, knot) > kvc_kernel_product(t, e->corner))
            memcpy(e->corner, knot, sizeof knot);
    }
    return t->ends != NULL;
}

/* The next measured cell of a site along an axis; SIZE_MAX: none. with_base: the neighbours have
 * something to say there, too. */
static size_t next_measured(const struct grid *g, size_t i, size_t axis, int way, bool with_base)
{
    const struct kvc_kernel_table *t = g->table;
    size_t cell = i % t->n_cells, step = axis ? 1 : t->n_knots[1];
    size_t at = axis ? cell % t->n_knots[1] : cell / t->n_knots[1];

    while (way < 0 ? at > 0 : at + 1 < t->n_knots[axis]) {
        at = way < 0 ? at - 1 : at + 1;
        i = way < 0 ? i - step : i + step;
        if (!isnan(g->value[i]) && !(with_base && isnan(g->base[i])))
            return i;
    }
    return SIZE_MAX;
}

/* Whether all cells around take a third of the time, one with more work among them: there the
 * machine stumbled, not the kernel (two sequences of 131,072 tokens on H200, fp8 latent decode: ten
 * times as long as four). Products and experts are tuned one count of tokens by one, and may well
 * be slow at one of them. */
static bool stumbled(const struct grid *g, size_t i)
{
    bool more = false;

    for (size_t axis = 0; g->table->family->n_axes == 2 && axis < 2; axis++)
        for (int way = -1; way <= 1; way += 2) {
            size_t j = next_measured(g, i, axis, way, false);
            if (j != SIZE_MAX && g->base[i] - g->base[j] < log(3))
                return false;
            more |= way > 0 && j != SIZE_MAX;
        }
    return more;
}

static void drop_stumbles(struct grid *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (!isnan(g->value[i]) && stumbled(g, i))
            g->value[i] = NAN;
}

/* Mean square of the difference of two sites where both are measured; NAN: nowhere. */
static double differ(const struct grid *g, size_t a, size_t b)
{
    size_t cells = g->table->n_cells, n = 0;
    double sum = 0;

    for (size_t c = 0; c < cells; c++) {
        double d = g->value[a * cells + c] - g->value[b * cells + c];
        if (!isnan(d)) {
            sum += d * d;
            n++;
        }
    }
    return n ? sum / (double)n : NAN;
}

struct pairs {
    double (*octaves2)[1 + KVC_KERNEL_PLACE], *differ2; /* squares; octaves2[0] is 1 */
    size_t n;
};

static size_t coordinates(const struct kvc_kernel_table *t)
{
    return t->family->n_site + t->family->n_derived;
}

static void gather_pairs(const struct grid *g, struct pairs *p)
{
    const struct kvc_kernel_table *t = g->table;

    for (size_t i = 0; i < t->n_sites * NEIGHBOURS; i++) {
        size_t a = i / NEIGHBOURS, b = g->neighbour[i];
        if (i % NEIGHBOURS >= g->n_neighbours || isnan(p->differ2[p->n] = differ(g, a, b)))
            continue;
        p->octaves2[p->n][0] = 1;
        for (size_t d = 0; d < coordinates(t); d++) {
            double o = t->site[a * KVC_KERNEL_PLACE + d] - t->site[b * KVC_KERNEL_PLACE + d];
            p->octaves2[p->n][1 + d] = o * o;
        }
        p->n++;
    }
}

/* Learns which dimensions matter: differ^2 = constant + sum of distance x octaves^2, none negative,
 * by the multiplicative updates of Lee and Seung (divergence). */
static bool learn_distance(struct grid *g)
{
    struct kvc_kernel_table *t = g->table;
    size_t most = t->n_sites * NEIGHBOURS + 1, n_terms = 1 + coordinates(t);
    struct pairs p = {kvc_calloc(most, sizeof *p.octaves2), kvc_calloc(most, sizeof(double)), 0};
    bool ok = p.octaves2 && p.differ2;

    if (ok)
        gather_pairs(g, &p);
    for (int step = 0; ok && p.n && step < 40; step++) {
        double up[1 + KVC_KERNEL_PLACE] = {0}, down[1 + KVC_KERNEL_PLACE] = {0};
        for (size_t i = 0; i < p.n; i++) {
            double expected = 1e-12;
            for (size_t d = 0; d < n_terms; d++)
                expected += t->distance[d] * p.octaves2[i][d];
            for (size_t d = 0; d < n_terms; d++) {
                up[d] += p.octaves2[i][d] * p.differ2[i] / expected;
                down[d] += p.octaves2[i][d];
            }
        }
        for (size_t d = 0; d < n_terms; d++)
            if (down[d] > 0)
                t->distance[d] *= up[d] / down[d];
    }
    for (size_t d = 0; d < n_terms; d++)
        t->distance[d] = d ? t->distance[d] + 1e-5 : 0;
    kvc_free(p.octaves2);
    kvc_free(p.differ2);
    return ok;
}

static void find_neighbours(struct grid *g)
{
    const struct kvc_kernel_table *t = g->table;

    g->n_neighbours = t->n_sites - 1 < NEIGHBOURS ? t->n_sites - 1 : NEIGHBOURS;
    for (size_t s = 0; s < t->n_sites; s++) {
        size_t *who = g->neighbour + s * NEIGHBOURS, n = 0;
        double *far = g->distance + s * NEIGHBOURS;
        for (size_t o = 0; o < t->n_sites; o++) {
            double d = kvc_kernel_place_distance(t, t->site + s * KVC_KERNEL_PLACE,
                                                 t->site + o * KVC_KERNEL_PLACE);
            size_t at;
            if (o == s || (n == g->n_neighbours && (n == 0 || d >= far[n - 1])))
                continue;
            at = n < g->n_neighbours ? n++ : n - 1;
            for (; at > 0 && far[at - 1] > d; at--) {
                far[at] = far[at - 1];
                who[at] = who[at - 1];
            }
            far[at] = d;
            who[at] = o;
        }
    }
}

static void ask_neighbours(struct grid *g)
{
    size_t cells = g->table->n_cells;

    for (size_t i = 0; i < g->n; i++) {
        size_t s = i / cells;
        double sum = 0, weight = 0;
        for (size_t k = 0; k < g->n_neighbours; k++) {
            double v = g->value[g->neighbour[s * NEIGHBOURS + k] * cells + i % cells];
            double w = 1 / g->distance[s * NEIGHBOURS + k];
            if (!isnan(v)) {
                sum += w * v;
                weight += w;
            }
        }
        g->base[i] = weight > 0 ? sum / weight : NAN;
    }
}

static double knot_of(const struct kvc_kernel_table *t, size_t i, size_t axis)
{
    size_t cell = i % t->n_cells;

    return t->knot[axis][axis ? cell % t->n_knots[1] : cell / t->n_knots[1]];
}

/* What the measured cells around say: in full, or above what the neighbours say. */
static double around(const struct grid *g, size_t i, bool with_base)
{
    const struct kvc_kernel_table *t = g->table;
    double sum = 0, weight = 0;

    for (size_t axis = 0; axis < t->family->n_axes; axis++)
        for (int way = -1; way <= 1; way += 2) {
            size_t j = next_measured(g, i, axis, way, with_base);
            if (j == SIZE_MAX)
                continue;
            double w = 1 / fabs(knot_of(t, j, axis) - knot_of(t, i, axis));
            sum += w * (with_base ? g->value[j] - g->base[j] : g->value[j]);
            weight += w;
        }
    return weight > 0 ? sum / weight : 0;
}

/* How much of a site's difference to its neighbours carries over to the next cell: the least
 * squares answer over the cells where both are measured. Noise makes it small. */
static double carry_over(const struct grid *g)
{
    double product = 0, square = 0;

    for (size_t i = 0; i < g->n; i++) {
        if (isnan(g->value[i]) || isnan(g->base[i]))
            continue;
        double near = around(g, i, true);
        product += near * (g->value[i] - g->base[i]);
        square += near * near;
    }
    double share = square > 0 ? product / square : 1;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* What neighbours that were measured at both cells have more at i than at j; NAN: none was. Means
 * over whoever was measured at each would differ by who that is. */
static double neighbours_step(const struct grid *g, size_t i, size_t j)
{
    size_t cells = g->table->n_cells, s = i / cells;
    double sum = 0, weight = 0;

    for (size_t k = 0; k < g->n_neighbours; k++) {
        const double *v = g->value + g->neighbour[s * NEIGHBOURS + k] * cells;
        double step = v[i % cells] - v[j % cells], w = 1 / g->distance[s * NEIGHBOURS + k];
        if (!isnan(step)) {
            sum += w * step;
            weight += w;
        }
    }
    return weight > 0 ? sum / weight : NAN;
}

/* The measured cells around, each with its neighbours' step from there; NAN: no step is known. */
static double stepped(const struct grid *g, size_t i)
{
    double sum = 0, weight = 0;

    for (size_t axis = 0; axis < g->table->family->n_axes; axis++)
        for (int way = -1; way <= 1; way += 2) {
            size_t j = next_measured(g, i, axis, way, false);
            double step = j == SIZE_MAX ? NAN : neighbours_step(g, i, j);
            if (isnan(step))
                continue;
            double w = 1 / fabs(knot_of(g->table, j, axis) - knot_of(g->table, i, axis));
            sum += w * (g->value[j] + step);
            weight += w;
        }
    return weight > 0 ? sum / weight : NAN;
}

/* Ways to tell a cell from others: its neighbours' steps from the measured cells around; what they
 * say there plus a share of how the site differs from them around; the cells around alone. */
enum way { STEPPED, ABOVE, ALONE, WAYS };

static double told(const struct grid *g, size_t i, enum way way, double share)
{
    double v = way == STEPPED ? stepped(g, i) : NAN;

    if (isnan(v) && way != ALONE && !isnan(g->base[i]))
        v = g->base[i] + share * around(g, i, true);
    return isnan(v) ? around(g, i, false) : v;
}

/* A gap is told in the way that tells the measured cells best: rows that jump about make poor
 * steps. */
static void fill(struct grid *g)
{
    double share = carry_over(g), off[WAYS] = {0};
    enum way best = STEPPED;

    for (size_t i = 0; i < g->n; i++)
        for (enum way w = STEPPED; w < WAYS && !isnan(g->value[i]) && !isnan(g->base[i]); w++)
            off[w] += fabs(g->value[i] - told(g, i, w, share));
    for (enum way w = ABOVE; w < WAYS; w++)
        if (off[w] < off[best])
            best = w;
    for (size_t i = 0; i < g->n; i++)
        g->filled[i] = isnan(g->value[i]) ? told(g, i, best, share) : g->value[i];
}

/* ---- components ---- */

static void take_mean(struct grid *g)
{
    struct kvc_kernel_table *t = g->table;

    for (size_t c = 0; c < t->n_cells; c++) {
        double sum = 0, weight = 0;
        for (size_t s = 0; s < t->n_sites; s++) {
            sum += g->site_weight[s] * g->filled[s * t->n_cells + c];
            weight += g->site_weight[s];
        }
        t->mean[c] = sum / weight;
        for (size_t s = 0; s < t->n_sites; s++)
            g->filled[s * t->n_cells + c] -= t->mean[c];
    }
}

/* Mean absolute error where something was measured inside the claimed range. */
static double left_over(const struct grid *g)
{
    size_t cells = g->table->n_cells, n = 0;
    double sum = 0;

    for (size_t i = 0; i < g->n; i++) {
        if (isnan(g->value[i]) || g->site_weight[i / cells] < 1 || g->cell_weight[i % cells] < 1)
            continue;
        sum += fabs(g->filled[i]);
        n++;
    }
    return n ? sum / (double)n : 0;
}

/* Moves the next component from the matrix (filled) into the table. */
static void take_component(struct grid *g, size_t r, size_t most, const gsl_matrix *sites,
                           const gsl_vector *size, const gsl_matrix *cells, double *weights)
{
    struct kvc_kernel_table *t = g->table;

    for (size_t s = 0; s < t->n_sites; s++)
        weights[s * most + r] =
            gsl_matrix_get(sites, s, r) * gsl_vector_get(size, r) / g->site_weight[s];
    for (size_t c = 0; c < t->n_cells; c++)
        t->component[r * t->n_cells + c] = gsl_matrix_get(cells, c, r) / g->cell_weight[c];
    for (size_t i = 0; i < g->n; i++)
        g->filled[i] -= weights[i / t->n_cells * most + r] *
                        t->component[r * t->n_cells + i % t->n_cells];
}

static bool take_components(struct grid *g)
{
    struct kvc_kernel_table *t = g->table;
    bool tall = t->n_sites >= t->n_cells;
    size_t rows = tall ? t->n_sites : t->n_cells, columns = tall ? t->n_cells : t->n_sites;
    size_t most = columns < KVC_KERNEL_RANK ? columns : KVC_KERNEL_RANK;
    gsl_matrix *a = gsl_matrix_alloc(rows, columns), *v = gsl_matrix_alloc(columns, columns);
    gsl_vector *size = gsl_vector_alloc(columns), *work = gsl_vector_alloc(columns);
    double *weights = kvc_calloc(t->n_sites * most, sizeof *weights);
    bool ok = a && v && size && work && weights;

    if (ok) {
        for (size_t i = 0; i < g->n; i++) {
            size_t s = i / t->n_cells, c = i % t->n_cells;
            gsl_matrix_set(a, tall ? s : c, tall ? c : s,
                           g->filled[i] * g->site_weight[s] * g->cell_weight[c]);
        }
        gsl_linalg_SV_decomp(a, v, size, work);
        while (t->rank < most && left_over(g) > GOOD_ENOUGH) {
            take_component(g, t->rank, most, tall ? a : v, size, tall ? v : a, weights);
            t->rank++;
        }
        t->weight = kvc_calloc(t->n_sites * t->rank + 1, sizeof *t->weight);
        ok = t->weight != NULL;
        for (size_t i = 0; ok && i < t->n_sites * t->rank; i++)
            t->weight[i] = weights[i / t->rank * most + i % t->rank];
    }
    kvc_free(weights);
    gsl_vector_free(work);
    gsl_vector_free(size);
    gsl_matrix_free(v);
    gsl_matrix_free(a);
    return ok;
}

enum kvc_status kvc_kernel_grid_fit(struct kvc_kernel_table *t, const struct kvc_kernel_row *rows,
                                    size_t n, const struct kvc_peaks *peaks, struct kvc_error *err)
{
    struct grid g = {.table = t};
    bool ok = find_sites(t, rows, n);

    for (size_t a = 0; a < KVC_KERNEL_AXES && ok; a++)
        ok = find_knots(t, a, rows, n);
    t->n_cells = t->n_knots[0] * t->n_knots[1];
    ok = ok && allocate(&g) && note_ends(t, rows, n);
    t->mean = kvc_calloc(t->n_cells, sizeof(double));
    t->component = kvc_calloc(t->n_cells * KVC_KERNEL_RANK, sizeof(double));
    ok = ok && t->mean && t->component;
    if (ok) {
        gather(&g, rows, n, peaks);
        drop_stumbles(&g);
        t->distance[0] = 0.01;
        for (size_t i = 1; i <= coordinates(t); i++)
            t->distance[i] = 1;
        find_neighbours(&g);
        ok = learn_distance(&g);
        find_neighbours(&g);
        ask_neighbours(&g);
        fill(&g);
        take_mean(&g);
        ok = ok && take_components(&g);
    }
    release(&g);
    return ok ? KVC_OK : kvc_fail_nomem(err);
}
