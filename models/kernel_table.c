/* SPDX-License-Identifier: Apache-2.0 */
#include "models/kernel_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "models/kernel_blend.h"
#include "models/profiles.h"

void kvc_kernel_table_clear(struct kvc_kernel_table *table)
{
    kvc_free(table->source);
    for (size_t a = 0; a < KVC_KERNEL_AXES; a++)
        kvc_free(table->knot[a]);
    kvc_free(table->site);
    kvc_free(table->ends);
    kvc_free(table->weight);
    kvc_free(table->mean);
    kvc_free(table->component);
    memset(table, 0, sizeof *table);
}

/* ---- prediction ---- */

double kvc_kernel_knot(const struct kvc_kernel_table *table, size_t axis, size_t knot)
{
    if (knot + 1 == table->n_knots[axis] && table->most[axis] > 0)
        return table->most[axis];
    return exp(table->knot[axis][knot]);
}

double kvc_kernel_product(const struct kvc_kernel_table *table, const unsigned char *knot)
{
    return kvc_kernel_knot(table, 0, knot[0]) * kvc_kernel_knot(table, 1, knot[1]);
}

/* Knots left of x and the share of the right one; held constant outside. */
static size_t bracket(const double *knot, size_t n, double x, double *share)
{
    size_t low = 0, high = n - 1;

    *share = 0;
    if (n == 1)
        return 0;
    if (x <= knot[0])
        return 0;
    if (x >= knot[high]) {
        *share = 1;
        return high - 1;
    }
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (knot[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    *share = (x - knot[low]) / (knot[high] - knot[low]);
    return low;
}

static double cell(const struct kvc_kernel_curve *c, size_t i, size_t j)
{
    const struct kvc_kernel_table *t = c->table;
    size_t at = i * t->n_knots[1] + j;
    double v = t->mean[at];

    for (size_t r = 0; r < t->rank; r++)
        v += c->weight[r] * t->component[r * t->n_cells + at];
    return v;
}

static double log_ratio(const struct kvc_kernel_curve *c, const double *axes)
{
    const struct kvc_kernel_table *t = c->table;
    double f[KVC_KERNEL_AXES], along[2];
    size_t at[KVC_KERNEL_AXES];

    for (size_t a = 0; a < KVC_KERNEL_AXES; a++)
        at[a] = a < t->family->n_axes
                    ? bracket(t->knot[a], t->n_knots[a], log(axes[a]), &f[a])
                    : (f[a] = 0, (size_t)0);
    for (size_t i = 0; i < 2; i++) {
        if (i == 1 && f[0] == 0)
            return along[0];
        along[i] = cell(c, at[0] + i, at[1]);
        if (f[1] > 0)
            along[i] += f[1] * (cell(c, at[0] + i, at[1] + 1) - along[i]);
    }
    return along[0] + f[0] * (along[1] - along[0]);
}

double kvc_kernel_curve_ns(const struct kvc_kernel_curve *curve, const struct kvc_peaks *peaks,
                           const double *axes)
{
    const struct kvc_kernel_table *t = curve->table;
    double x[KVC_KERNEL_X] = {0};

    for (size_t i = 0; i < t->family->n_site; i++)
        x[i] = curve->x[i];
    for (size_t a = 0; a < t->family->n_axes; a++)
        x[t->family->n_site + a] = axes[a];
    double ns = t->family->form(t->constants, curve->params, peaks, x);
    return t->n_cells ? ns * exp(log_ratio(curve, axes)) : ns;
}

/* ---- in files ---- */

/* A number of -45..45 steps as one character that JSON does not escape. */
#define STEPS 45
#define DIGITS KVC_KERNEL_DIGITS
/* Of the mean, which all shapes share, a number is two such characters: -4140..4140 steps. */
#define FINE_STEPS ((DIGITS * DIGITS - 1) / 2)

static char digit(double steps)
{
    int v = (int)lround(steps) + STEPS;
    char c = (char)('#' + (v < 0 ? 0 : v > 2 * STEPS ? 2 * STEPS : v));

    return c == '\\' ? '!' : c;
}

static bool undigit(char c, double *steps)
{
    int v = (c == '!' ? '\\' : c) - '#';

    *steps = v - STEPS;
    return v >= 0 && v <= 2 * STEPS && c != '\\';
}

static double largest(const double *v, size_t n, size_t stride)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        if (fabs(v[i * stride]) > most)
            most = fabs(v[i * stride]);
    return most > 0 ? most : 1;
}

static double rounded(double v)
{
    char text[32];

    snprintf(text, sizeof text, "%.4g", v);
    return strtod(text, NULL);
}

static void write_numbers(struct kvc_json *j, const char *name, const double *v, size_t n)
{
    kvc_json_open_array(j, name);
    for (size_t i = 0; i < n; i++)
        kvc_json_double(j, NULL, rounded(v[i]));
    kvc_json_close(j);
}

static void write_text(struct kvc_json *j, const char *name, struct kvc_text *t)
{
    kvc_json_string(j, name, t->buf ? t->buf : "");
    if (t->failed)
        j->failed = true;
    kvc_text_clear(t);
}

static void write_error(struct kvc_json *j, const char *name, const struct kvc_kernel_error *e)
{
    if (!e->rows)
        return;
    kvc_json_open_object(j, name);
    kvc_json_u64(j, "rows", e->rows);
    kvc_json_double(j, "mape_percent", round(100 * e->mape) / 100);
    kvc_json_double(j, "p90_percent", round(100 * e->p90) / 100);
    kvc_json_double(j, "bias_percent", round(100 * e->bias) / 100);
    kvc_json_close(j);
}

/* The values that a coordinate of the sites takes, ascending. Returns how many, or 0 when they are
 * more than one character can count. */
static size_t site_values(const struct kvc_kernel_table *t, size_t i, double *value)
{
    size_t n = 0;

    for (size_t s = 0; s < t->n_sites; s++) {
        double v = t->site[s * KVC_KERNEL_PLACE + i];
        size_t at = 0;
        while (at < n && value[at] < v - 1e-6)
            at++;
        if (at < n && value[at] < v + 1e-6)
            continue;
        if (n == DIGITS)
            return 0;
        memmove(value + at + 1, value + at, (n - at) * sizeof *value);
        value[at] = v;
        n++;
    }
    return n;
}

size_t kvc_kernel_nearest(const double *value, size_t n, double v)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (fabs(value[i] - v) < fabs(value[best] - v))
            best = i;
    return best;
}

/* Per site a character for each coordinate, which of its values it takes, and one for each weight,
 * in steps. */
static void write_sites(const struct kvc_kernel_table *t, const double *step, struct kvc_json *j)
{
    struct kvc_text text = {0};
    double value[KVC_KERNEL_SITE][DIGITS];
    size_t n[KVC_KERNEL_SITE];

    kvc_json_open_array(j, "site_values");
    for (size_t i = 0; i < t->family->n_site; i++) {
        n[i] = site_values(t, i, value[i]);
        for (size_t k = 0; k < n[i]; k++)
            kvc_text_addf(&text, "%s%.6g", k ? " " : "", exp2(value[i][k]));
        write_text(j, NULL, &text);
    }
    kvc_json_close(j);
    for (size_t s = 0; s < t->n_sites; s++) {
        for (size_t i = 0; i < t->family->n_site; i++) {
            size_t k = kvc_kernel_nearest(value[i], n[i], t->site[s * KVC_KERNEL_PLACE + i]);
            char c = digit((double)k - STEPS);
            kvc_text_addn(&text, &c, 1);
        }
        for (size_t r = 0; r < t->rank; r++) {
            char c = digit(t->weight[s * t->rank + r] / step[r]);
            kvc_text_addn(&text, &c, 1);
        }
    }
    write_text(j, "sites", &text);
}

static size_t ends_width(const struct kvc_kernel_table *t)
{
    return t->family->n_axes * (t->family->n_axes == 2 ? 3 : 2);
}

/* Per site and axis the first knot, the last and, of two axes, that of the largest product. */
static void write_ends(const struct kvc_kernel_table *t, struct kvc_json *j)
{
    struct kvc_text text = {0};

    for (size_t s = 0; s < t->n_sites; s++)
        for (size_t a = 0; a < t->family->n_axes; a++) {
            const struct kvc_kernel_ends *e = &t->ends[s];
            const char c[] = {digit((double)e->first[a] - STEPS), digit((double)e->last[a] - STEPS),
                              digit((double)e->corner[a] - STEPS)};
            kvc_text_addn(&text, c, ends_width(t) / t->family->n_axes);
        }
    write_text(j, "ends", &text);
}

static void write_row(const double *v, size_t n, double step, bool fine, struct kvc_json *j)
{
    struct kvc_text text = {0};

    for (size_t i = 0; i < n; i++) {
        long steps = lround(v[i] / step) + FINE_STEPS;
        const char two[] = {digit((double)(steps / DIGITS) - STEPS),
                            digit((double)(steps % DIGITS) - STEPS)};
        const char one = digit(v[i] / step);
        kvc_text_addn(&text, fine ? two : &one, fine ? 2 : 1);
    }
    write_text(j, NULL, &text);
}

static void write_knots(const struct kvc_kernel_table *t, struct kvc_json *j)
{
    struct kvc_text text = {0};

    kvc_json_open_array(j, "knots");
    for (size_t a = 0; a < t->family->n_axes; a++) {
        for (size_t i = 0; i < t->n_knots[a]; i++)
            kvc_text_addf(&text, "%s%.6g", i ? " " : "", exp(t->knot[a][i]));
        write_text(j, NULL, &text);
    }
    kvc_json_close(j);
}

static void write_most(const struct kvc_kernel_table *t, struct kvc_json *j)
{
    kvc_json_open_array(j, "measured_to");
    for (size_t a = 0; a < t->family->n_axes; a++)
        kvc_json_double(j, NULL, t->most[a]);
    kvc_json_close(j);
}

void kvc_kernel_table_write(const struct kvc_kernel_table *t, struct kvc_json *j)
{
    double weight_step[KVC_KERNEL_RANK], row_step[KVC_KERNEL_RANK + 1];

    row_step[0] = rounded(largest(t->mean, t->n_cells, 1) / (FINE_STEPS - 1)); /* if rounded down */
    for (size_t r = 0; r < t->rank; r++) {
        weight_step[r] = rounded(largest(t->weight + r, t->n_sites, t->rank) / STEPS);
        row_step[r + 1] = rounded(largest(t->component + r * t->n_cells, t->n_cells, 1) / STEPS);
    }
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "family", t->family->name);
    kvc_json_string(j, "key", t->key);
    kvc_json_string(j, "kind", t->kind);
    kvc_json_string(j, "source", t->source);
    kvc_json_string(j, "range", t->family->claim);
    if (t->most[0] > 0)
        write_most(t, j);
    write_error(j, "residual", &t->fitted);
    write_error(j, "residual_random_split", &t->random);
    write_error(j, "residual_shape_split", &t->shape);
    write_numbers(j, "constants", t->constants, t->family->n_constants);
    write_numbers(j, "params", t->params, KVC_KERNEL_PARAMS);
    if (t->n_cells) {
        write_numbers(j, "distance", t->distance,
                      1 + t->family->n_site + t->family->n_derived);
        write_knots(t, j);
        write_numbers(j, "row_steps", row_step, t->rank + 1);
        kvc_json_open_array(j, "rows");
        write_row(t->mean, t->n_cells, row_step[0], true, j);
        for (size_t r = 0; r < t->rank; r++)
            write_row(t->component + r * t->n_cells, t->n_cells, row_step[r + 1], false, j);
        kvc_json_close(j);
        write_numbers(j, "weight_steps", weight_step, t->rank);
        write_sites(t, weight_step, j);
        if (t->ends)
            write_ends(t, j);
    }
    kvc_json_close(j);
}

/* Up to max numbers of an array; false: more, or something else. */
static bool read_numbers(const struct kvc_jval *object, const char *name, double *out, size_t max,
                         size_t *n)
{
    const struct kvc_jval *array = kvc_jval_member(object, name);

    *n = 0;
    for (const struct kvc_jval *v = array ? kvc_jval_first(array) : NULL; v; v = kvc_jval_next(v))
        if (*n == max || !kvc_jval_number(v, &out[(*n)++]))
            return false;
    return array != NULL;
}

static void read_error(const struct kvc_jval *v, const char *name, struct kvc_kernel_error *e)
{
    const struct kvc_jval *o = kvc_jval_member(v, name);

    if (!o)
        return;
    e->rows = (size_t)kvc_profile_number(o, "rows", 0);
    e->mape = kvc_profile_number(o, "mape_percent", NAN);
    e->p90 = kvc_profile_number(o, "p90_percent", NAN);
    e->bias = kvc_profile_number(o, "bias_percent", NAN);
}

/* Numbers in text, parted by blanks; returns how many. */
static size_t numbers_in(const char *text, double *out, size_t max)
{
    size_t n = 0;

    for (char *end; n < max; text = end) {
        double x = strtod(text, &end);
        if (end == text)
            break;
        out[n++] = x;
    }
    return n;
}

static bool read_knots(struct kvc_kernel_table *t, const struct kvc_jval *v)
{
    const struct kvc_jval *array = kvc_jval_member(v, "knots");
    const struct kvc_jval *k = array ? kvc_jval_first(array) : NULL;

    t->n_cells = 1;
    for (size_t a = 0; a < KVC_KERNEL_AXES; a++, k = k ? kvc_jval_next(k) : NULL) {
        const char *text = a < t->family->n_axes && k ? kvc_jval_string(k) : "1";
        size_t cap = text ? strlen(text) / 2 + 1 : 0;
        if (!cap || !(t->knot[a] = kvc_calloc(cap, sizeof(double))))
            return false;
        t->n_knots[a] = numbers_in(text, t->knot[a], cap);
        for (size_t i = 0; i < t->n_knots[a]; i++)
            if (!((t->knot[a][i] = log(t->knot[a][i])) > (i ? t->knot[a][i - 1] : -1e9)))
                return false;
        t->n_cells *= t->n_knots[a];
    }
    return t->n_cells > 0 && t->n_cells < 100000;
}

static bool read_row(const char *text, size_t n, double step, double *out)
{
    bool fine = strlen(text) == 2 * n;

    for (size_t i = 0; i < n; i++) {
        double steps, low = 0;
        if (!undigit(*text++, &steps) || (fine && !undigit(*text++, &low)))
            return false;
        out[i] = (fine ? steps * DIGITS + low : steps) * step;
    }
    return *text == '\0';
}

static bool read_rows(struct kvc_kernel_table *t, const struct kvc_jval *v)
{
    double step[KVC_KERNEL_RANK + 1];
    const struct kvc_jval *array = kvc_jval_member(v, "rows");
    size_t n;

    if (!read_numbers(v, "row_steps", step, KVC_KERNEL_RANK + 1, &n) || n == 0 || !array ||
        kvc_jval_count(array) != n)
        return false;
    t->rank = n - 1;
    t->mean = kvc_calloc(t->n_cells, sizeof(double));
    t->component = kvc_calloc(t->rank * t->n_cells + 1, sizeof(double));
    if (!t->mean || !t->component)
        return false;
    size_t i = 0;
    for (const struct kvc_jval *r = kvc_jval_first(array); r; r = kvc_jval_next(r), i++) {
        const char *text = kvc_jval_string(r);
        double *to = i ? t->component + (i - 1) * t->n_cells : t->mean;
        if (!text || !read_row(text, t->n_cells, step[i], to))
            return false;
    }
    return true;
}

static bool read_site(struct kvc_kernel_table *t, size_t s, const char *text,
                      double value[][DIGITS], const size_t *n, const double *step)
{
    double steps, x[KVC_KERNEL_SITE];

    for (size_t i = 0; i < t->family->n_site; i++) {
        if (!undigit(*text++, &steps) || steps + STEPS >= (double)n[i])
            return false;
        x[i] = value[i][(size_t)(steps + STEPS)];
        if (!(x[i] > 0 && x[i] < 1e9))
            return false;
    }
    kvc_kernel_place(t->family, x, t->site + s * KVC_KERNEL_PLACE);
    for (size_t r = 0; r < t->rank; r++) {
        if (!undigit(*text++, &steps))
            return false;
        t->weight[s * t->rank + r] = steps * step[r];
    }
    return true;
}

static bool read_sites(struct kvc_kernel_table *t, const struct kvc_jval *v)
{
    const struct kvc_jval *array = kvc_jval_member(v, "site_values");
    const char *text = kvc_profile_string(v, "sites");
    double step[KVC_KERNEL_RANK], value[KVC_KERNEL_SITE][DIGITS];
    size_t n[KVC_KERNEL_SITE] = {0}, i = 0, width = t->family->n_site + t->rank;

    if (!array || !text || !read_numbers(v, "weight_steps", step, KVC_KERNEL_RANK, &i) ||
        i != t->rank || !read_numbers(v, "distance", t->distance, 1 + KVC_KERNEL_PLACE, &i) ||
        i != 1 + t->family->n_site + t->family->n_derived || strlen(text) % width != 0)
        return false;
    i = 0;
    for (const struct kvc_jval *e = kvc_jval_first(array); e && i < t->family->n_site;
         e = kvc_jval_next(e), i++)
        n[i] = kvc_jval_string(e) ? numbers_in(kvc_jval_string(e), value[i], DIGITS) : 0;
    t->n_sites = strlen(text) / width;
    t->site = kvc_calloc(t->n_sites * KVC_KERNEL_PLACE + 1, sizeof(double));
    t->weight = kvc_calloc(t->n_sites * t->rank + 1, sizeof(double));
    bool ok = t->site && t->weight;
    for (size_t s = 0; ok && s < t->n_sites; s++)
        ok = read_site(t, s, text + s * width, value, n, step);
    return ok;
}

static bool read_ends(struct kvc_kernel_table *t, const struct kvc_jval *v)
{
    const char *text = kvc_profile_string(v, "ends");

    if (!text)
        return true;
    if (strlen(text) != t->n_sites * ends_width(t) ||
        !(t->ends = kvc_calloc(t->n_sites + 1, sizeof *t->ends)))
        return false;
    for (size_t s = 0; s < t->n_sites; s++)
        for (size_t a = 0; a < t->family->n_axes; a++) {
            struct kvc_kernel_ends *e = &t->ends[s];
            unsigned char *const to[] = {&e->first[a], &e->last[a], &e->corner[a]};
            for (size_t i = 0; i < ends_width(t) / t->family->n_axes; i++) {
                double steps;
                if (!undigit(*text++, &steps) || steps + STEPS >= (double)t->n_knots[a])
                    return false;
                *to[i] = (unsigned char)(steps + STEPS);
            }
        }
    return true;
}

enum kvc_status kvc_kernel_table_read(struct kvc_kernel_table *t, const struct kvc_jval *v,
                                      const char *file, struct kvc_error *err)
{
    const char *family = kvc_profile_string(v, "family"), *key = kvc_profile_string(v, "key");
    const char *source = kvc_profile_string(v, "source"), *kind = kvc_profile_string(v, "kind");
    size_t n;

    memset(t, 0, sizeof *t);
    t->family = family ? kvc_kernel_family_find(family) : NULL;
    if (!t->family || !key || strlen(key) >= sizeof t->key || !source || !kind)
        goto broken;
    strcpy(t->key, key);
    snprintf(t->kind, sizeof t->kind, "%s", kind);
    if (!(t->source = kvc_strdup(source)))
        return kvc_fail_nomem(err);
    read_error(v, "residual", &t->fitted);
    read_error(v, "residual_random_split", &t->random);
    read_error(v, "residual_shape_split", &t->shape);
    if (kvc_jval_member(v, "measured_to") &&
        !(read_numbers(v, "measured_to", t->most, KVC_KERNEL_AXES, &n) && n == t->family->n_axes))
        goto broken;
    if (!read_numbers(v, "constants", t->constants, KVC_KERNEL_CONSTANTS, &n) ||
        n != t->family->n_constants ||
        !read_numbers(v, "params", t->params, KVC_KERNEL_PARAMS, &n))
        goto broken;
    if (kvc_jval_member(v, "knots") &&
        !(read_knots(t, v) && read_rows(t, v) && read_sites(t, v) && read_ends(t, v)))
        goto broken;
    return KVC_OK;
broken:
    kvc_kernel_table_clear(t);
    return kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(v), key ? key : "tables",
                       "not a kernel table as 'kvcast calibrate --kernels' writes them");
}
