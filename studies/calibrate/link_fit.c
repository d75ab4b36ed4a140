/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/link_fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/link_use.h"

#define SCALE 0.1 /* of residuals (logarithms): repeats of a copy differ by less */

double kvc_link_predict(const double c[KVC_LINK_CONSTANTS], const struct kvc_reading *row)
{
    double busy = c[KVC_LINK_PER_OP] + row->op_bytes / c[KVC_LINK_RATE] * 1e9;
    double every = row->batch ? c[KVC_LINK_LATENCY] / row->depth + busy
                              : fmax(busy, (c[KVC_LINK_LATENCY] + busy) / row->depth);

    return row->op_bytes / every * 1e9;
}

static bool residuals(void *user, const double *x, double *out)
{
    const struct kvc_link_fit *f = user;

    for (size_t i = 0; i < f->fit.n; i++)
        out[i] = log(kvc_link_predict(x, f->row[i]) / f->row[i]->bytes_per_s);
    return true;
}

static const char *link_of(const struct kvc_readings *r, const struct kvc_reading *row,
                           const char *host_link)
{
    const char *link = row->link[0] ? row->link : r->file[row->file].link;

    return link ? link : host_link;
}

/* The smallest operations tell what one costs, the shallowest queue what it waits. What the rows
 * do not tell stays at the profile's figure, in the fit at least within what the rows allow. */
static void choose_start(struct kvc_link_fit *f)
{
    double rate = 0, op = INFINITY, latency = 0, depth = INFINITY, least = INFINITY;
    const struct kvc_link_profile *p = f->base;
    bool from = f->direction == KVC_FROM_GPU;

    for (size_t i = 0; i < f->fit.n; i++)
        rate = fmax(rate, f->row[i]->bytes_per_s);
    for (size_t i = 0; i < f->fit.n; i++) {
        const struct kvc_reading *row = f->row[i];
        double each = row->op_bytes / row->bytes_per_s * 1e9, wire = row->op_bytes / rate * 1e9;
        op = fmin(op, each - wire);
        least = fmin(least, each);
        if (row->depth < depth) {
            depth = row->depth;
            latency = each * row->depth - wire * (row->batch ? row->depth : 1);
            if (depth > 1 && !row->batch)
                latency /= 2; /* or less: a queue that is deep enough hides it */
        }
    }
    op = op > 0.05 * least ? op : 0.05 * least;
    latency = latency > 0 && isfinite(latency) ? latency : p->latency_ns.value;
    f->fit.constant[KVC_LINK_RATE] = (struct kvc_fit_constant){
        "bandwidth", rate, fmax(from ? p->write_bytes_per_s.value : p->read_bytes_per_s.value,
                                rate), .told = false};
    f->fit.constant[KVC_LINK_LATENCY] = (struct kvc_fit_constant){
        "latency", latency, fmin(p->latency_ns.value, latency), .told = false};
    f->fit.constant[KVC_LINK_PER_OP] = (struct kvc_fit_constant){
        "time per operation", op,
        kvc_link_op_ns(p) < 0.5 * least ? kvc_link_op_ns(p) : 0.05 * least, .told = false};
}

/* Operations of one size can't tell what is theirs from what is their bytes': what the base says
 * they are mostly is fitted. */
static void keep_one(struct kvc_link_fit *f)
{
    struct kvc_fit_constant *c = f->fit.constant;
    double wire = f->least_bytes / c[KVC_LINK_RATE].base * 1e9;
    size_t kept = c[KVC_LINK_PER_OP].base > wire ? KVC_LINK_RATE : KVC_LINK_PER_OP;

    if (f->most_bytes >= 2 * f->least_bytes)
        return;
    c[kept].kept = true;
    c[kept].with = 1u << KVC_LINK_RATE | 1u << KVC_LINK_PER_OP;
    if (kept == KVC_LINK_RATE) /* its start is the rate seen, all of which was put to the bytes */
        c[KVC_LINK_PER_OP].start = f->least_bytes / c[KVC_LINK_RATE].start * 1e9 - wire;
}

static void describe(struct kvc_link_fit *f, const struct kvc_readings *r)
{
    f->least_bytes = f->least_depth = INFINITY;
    f->bare = true;
    for (size_t k = 0; k < r->n_files; k++) {
        size_t rows = 0;
        for (size_t i = 0; i < f->fit.n; i++)
            rows += f->row[i]->file == k;
        if (rows)
            kvc_text_addf(&f->sources, "%s%s (%s), %zu row%s", f->sources.len ? "; " : "",
                          r->file[k].reader->name, r->file[k].name, rows, rows == 1 ? "" : "s");
    }
    for (size_t i = 0; i < f->fit.n; i++) {
        f->least_bytes = fmin(f->least_bytes, f->row[i]->op_bytes);
        f->most_bytes = fmax(f->most_bytes, f->row[i]->op_bytes);
        f->least_depth = fmin(f->least_depth, f->row[i]->depth);
        f->most_depth = fmax(f->most_depth, f->row[i]->depth);
        f->bare &= r->file[f->row[i]->file].reader->bare;
    }
}

static enum kvc_status fit_one(struct kvc_link_fit *f, const struct kvc_readings *r,
                               struct kvc_error *err)
{
    f->fit.residuals = residuals;
    f->fit.user = f;
    f->fit.n_constants = KVC_LINK_CONSTANTS;
    f->fit.scale = SCALE;
    describe(f, r);
    choose_start(f);
    keep_one(f);
    return f->sources.failed ? kvc_fail_nomem(err) : kvc_measured_fit_run(&f->fit, err);
}

static struct kvc_link_fit *fit_of(struct kvc_link_fits *fits, const struct kvc_link_profile *base,
                                   enum kvc_towards direction)
{
    size_t i = 0;

    while (i < fits->n && (fits->fit[i].base != base || fits->fit[i].direction != direction))
        i++;
    if (i == fits->n) {
        fits->fit[i].base = base;
        fits->fit[i].direction = direction;
        fits->n++;
    }
    return &fits->fit[i];
}

static void add_both(struct kvc_link_fits *fits, const struct kvc_link_profile *base,
                     const struct kvc_readings *r, const struct kvc_reading *row)
{
    size_t i = 0;

    while (i < fits->n_both && fits->both[i].base != base)
        i++;
    struct kvc_link_both *b = &fits->both[i];
    if (i == fits->n_both) {
        b->base = base;
        fits->n_both++;
        kvc_text_addf(&b->sources, "%s (%s)", r->file[row->file].reader->name,
                      r->file[row->file].name);
    }
    b->rows[row->direction]++;
    b->rate[row->direction] +=
        (row->bytes_per_s - b->rate[row->direction]) / (double)b->rows[row->direction];
}

double kvc_link_both_rate(const struct kvc_link_both *b)
{
    double each = b->rate[KVC_TOWARDS_GPU] + b->rate[KVC_FROM_GPU];

    return b->rows[KVC_TOWARDS_GPU] && b->rows[KVC_FROM_GPU] ? each : 2 * each;
}

static enum kvc_status name_links(struct kvc_readings *r, const char *host_link,
                                  struct kvc_error *err)
{
    for (size_t i = 0; i < r->n; i++) {
        const char *name = link_of(r, &r->row[i], host_link);
        const char *path = r->file[r->row[i].file].path;
        const struct kvc_link_profile *base = name ? kvc_link_find(name) : NULL;
        if (!name)
            return kvc_fail_at(err, KVC_ERR_USAGE, path, 0, NULL, "whose link is it? name the GPU "
                               "with --gpu ('kvcast show hardware' lists them), or the link with "
                               "--link ('kvcast show link')");
        if (!base)
            return kvc_fail_at(err, KVC_ERR_USAGE, path, r->row[i].line, "link",
                               "no link is called '%.64s' ('kvcast show link' lists them)", name);
        snprintf(r->row[i].link, sizeof r->row[i].link, "%s", base->name);
    }
    return KVC_OK;
}

/* Deals the rows out to their links. */
static enum kvc_status deal(struct kvc_link_fits *out, struct kvc_readings *r,
                            struct kvc_error *err)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct kvc_link_profile *base = kvc_link_find(r->row[i].link);
        if (r->row[i].both) {
            add_both(out, base, r, &r->row[i]);
            continue;
        }
        struct kvc_link_fit *f = fit_of(out, base, r->row[i].direction);
        if (!f->row && !(f->row = kvc_calloc(r->n, sizeof(struct kvc_reading *))))
            return kvc_fail_nomem(err);
        f->row[f->fit.n++] = &r->row[i];
    }
    return KVC_OK;
}

/* Sixteen lanes of the fourth generation carry 31.5 GB/s, of the fifth 63: a copy that lies in
 * between or below says which; beyond is no PCIe. */
static const char *guess_host_link(struct kvc_readings *r)
{
    double most = 0;

    for (size_t i = 0; i < r->n; i++)
        if (!link_of(r, &r->row[i], NULL))
            most = fmax(most, r->row[i].bytes_per_s);
    const char *link = most <= 0 || most > 63e9 ? NULL : most > 31.5e9 ? "pcie5-x16"
                       : most > 16e9 ? "pcie4-x16" : NULL;
    if (link)
        kvc_readings_note(r, "no --gpu and no --link: by its rate the host link is taken as %s",
                          link);
    return link;
}

enum kvc_status kvc_link_fits_run(struct kvc_link_fits *out, struct kvc_readings *r,
                                  const char *host_link, struct kvc_error *err)
{
    size_t links = 0;

    memset(out, 0, sizeof *out);
    while (kvc_link_names()[links])
        links++;
    out->fit = kvc_calloc(2 * links + 1, sizeof *out->fit);
    out->both = kvc_calloc(links + 1, sizeof *out->both);
    if (!out->fit || !out->both)
        return kvc_fail_nomem(err);
    enum kvc_status status = name_links(r, host_link ? host_link : guess_host_link(r), err);
    if (status == KVC_OK)
        status = kvc_readings_drop_repeats(r, err);
    if (status == KVC_OK)
        status = deal(out, r, err);
    for (size_t i = 0; i < out->n && status == KVC_OK; i++)
        status = fit_one(&out->fit[i], r, err);
    return status;
}

void kvc_link_fits_clear(struct kvc_link_fits *fits)
{
    for (size_t i = 0; i < fits->n; i++) {
        kvc_free((void *)fits->fit[i].row);
        kvc_text_clear(&fits->fit[i].sources);
    }
    for (size_t i = 0; i < fits->n_both; i++)
        kvc_text_clear(&fits->both[i].sources);
    kvc_free(fits->fit);
    kvc_free(fits->both);
    memset(fits, 0, sizeof *fits);
}

bool kvc_link_fit_bounds(const struct kvc_link_fit *f, size_t constant)
{
    const struct kvc_fit_constant *c = &f->fit.constant[constant];

    return !c->told &&
           ((constant == KVC_LINK_PER_OP && c->base < kvc_link_op_ns(f->base)) ||
            (constant == KVC_LINK_LATENCY && !f->bare && c->base < f->base->latency_ns.value));
}

const struct kvc_link_fit *kvc_link_fits_source(const struct kvc_link_fits *fits,
                                                const struct kvc_link_profile *base,
                                                size_t constant)
{
    const struct kvc_link_fit *f = NULL;

    for (size_t i = 0; i < fits->n; i++)
        if (fits->fit[i].base == base && (!f || fits->fit[i].direction == KVC_TOWARDS_GPU))
            f = &fits->fit[i];
    bool told = f && (f->fit.constant[constant].told || kvc_link_fit_bounds(f, constant));
    return told && !(f->bare && constant == KVC_LINK_LATENCY) ? f : NULL;
}
