/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/profile_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "models/user_profile.h"

static void put_percent(struct kvc_json *j, const char *key, double share)
{
    if (isfinite(share))
        kvc_json_double(j, key, round(share * 1e4) / 100);
}

static void put_figure(struct kvc_json *j, const char *key, const struct kvc_measured_fit *f,
                       size_t constant, const char *sources)
{
    const struct kvc_fit_constant *c = &f->constant[constant];

    kvc_json_open_object(j, key);
    kvc_json_double(j, "value", kvc_readings_rounded(c->value));
    kvc_json_string(j, "kind", !c->told ? "assumed" : f->n > 1 ? "fitted" : "measured");
    kvc_json_string(j, "source", sources);
    if (c->told)
        kvc_json_double(j, "standard_error", kvc_readings_rounded(c->error));
    else
        kvc_json_string(j, "because",
                        "not told by the rows, but they rule out the profile's figure");
    kvc_json_u64(j, "rows", f->n);
    put_percent(j, "median_residual_percent", f->median);
    put_percent(j, "held_out_percent", f->held_out_median);
}

static void put_range(struct kvc_json *j, const char *key, double from, double to)
{
    kvc_json_open_array(j, key);
    kvc_json_double(j, NULL, round(from));
    kvc_json_double(j, NULL, round(to)); /* null: without end */
    kvc_json_close(j);
}

static void put_link_figure(struct kvc_json *j, const char *key, const struct kvc_link_fit *f,
                            size_t constant)
{
    if (!f || (!f->fit.constant[constant].told && !kvc_link_fit_bounds(f, constant)))
        return;
    put_figure(j, key, &f->fit, constant, f->sources.buf);
    put_range(j, "op_bytes", f->least_bytes, f->most_bytes);
    put_range(j, "depth", f->least_depth, f->most_depth);
    kvc_json_close(j);
}

static bool is_storage(const char *link)
{
    return strncmp(link, "nvme", 4) == 0 || strcmp(link, "gds") == 0;
}

static const struct kvc_link_fit *fit_of(const struct kvc_link_fits *fits,
                                         const struct kvc_link_profile *base,
                                         enum kvc_towards direction)
{
    for (size_t i = 0; i < fits->n; i++)
        if (fits->fit[i].base == base && fits->fit[i].direction == direction)
            return &fits->fit[i];
    return NULL;
}

static void put_both(struct kvc_json *j, const struct kvc_link_fits *fits,
                     const struct kvc_link_profile *base)
{
    for (size_t i = 0; i < fits->n_both; i++) {
        const struct kvc_link_both *b = &fits->both[i];
        if (b->base != base)
            continue;
        kvc_json_open_object(j, "both_bytes_per_s");
        kvc_json_double(j, "value", kvc_readings_rounded(kvc_link_both_rate(b)));
        kvc_json_string(j, "kind", "measured");
        kvc_json_string(j, "source", b->sources.buf);
        kvc_json_u64(j, "rows", b->rows[0] + b->rows[1]);
        kvc_json_close(j);
    }
}

static void put_link(struct kvc_json *j, const struct kvc_profile_parts *p,
                     const struct kvc_link_profile *base)
{
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "name", base->name);
    put_link_figure(j, "read_bytes_per_s", fit_of(p->links, base, KVC_TOWARDS_GPU), KVC_LINK_RATE);
    put_link_figure(j, "write_bytes_per_s", fit_of(p->links, base, KVC_FROM_GPU), KVC_LINK_RATE);
    put_link_figure(j, "latency_ns", kvc_link_fits_source(p->links, base, KVC_LINK_LATENCY),
                    KVC_LINK_LATENCY);
    put_link_figure(j, "per_op_ns", kvc_link_fits_source(p->links, base, KVC_LINK_PER_OP),
                    KVC_LINK_PER_OP);
    put_both(j, p->links, base);
    if (p->queue_depth >= 1 && is_storage(base->name)) {
        kvc_json_open_object(j, "queue_depth");
        kvc_json_double(j, "value", p->queue_depth);
        kvc_json_string(j, "kind", "assumed");
        kvc_json_string(j, "source",
                        "operations the engine keeps under way, as --queue-depth says");
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_links(struct kvc_json *j, const struct kvc_profile_parts *p)
{
    kvc_json_open_array(j, "links");
    for (size_t i = 0; p->links && i < p->links->n; i++) {
        size_t k = 0;
        while (p->links->fit[k].base != p->links->fit[i].base)
            k++;
        if (k == i)
            put_link(j, p, p->links->fit[i].base);
    }
    for (size_t i = 0; p->links && i < p->links->n_both; i++)
        if (!fit_of(p->links, p->links->both[i].base, KVC_TOWARDS_GPU) &&
            !fit_of(p->links, p->links->both[i].base, KVC_FROM_GPU))
            put_link(j, p, p->links->both[i].base);
    kvc_json_close(j);
}

static void put_engines(struct kvc_json *j, const struct kvc_host_fit *h)
{
    static const char *const keys[KVC_HOST_CONSTANTS] = {
        "host_per_step_ns", "host_per_sequence_ns", "host_per_prefill_step_ns", "front_end_ns"};

    kvc_json_open_array(j, "engines");
    if (h) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "backend", h->backend);
        for (size_t i = 0; i < KVC_HOST_CONSTANTS; i++)
            if (h->fit.constant[i].told) {
                put_figure(j, keys[i], &h->fit, i, h->sources.buf);
                kvc_json_close(j);
            }
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

void kvc_profile_put_reading(struct kvc_json *j, const struct kvc_reading *row, const char *link,
                             double predicted)
{
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "link", link);
    kvc_json_string(j, "direction", row->direction == KVC_TOWARDS_GPU ? "read" : "write");
    kvc_json_double(j, "op_bytes", row->op_bytes);
    kvc_json_double(j, "depth", row->depth); /* null: as many as it takes */
    kvc_json_bool(j, "batch", row->batch);
    if (row->both)
        kvc_json_bool(j, "both", true);
    kvc_json_double(j, "bytes_per_s", row->bytes_per_s);
    if (isfinite(row->spread))
        kvc_json_double(j, "spread", kvc_readings_rounded(row->spread));
    if (isfinite(predicted))
        kvc_json_double(j, "predicted_bytes_per_s", kvc_readings_rounded(predicted));
    kvc_json_close(j);
}

/* Rows of a fit with what it says of them; then those of both directions at once. */
static void put_measurements(struct kvc_json *j, const struct kvc_readings *r,
                             const struct kvc_link_fits *fits)
{
    kvc_json_open_array(j, "measurements");
    for (size_t i = 0; fits && i < fits->n; i++) {
        const struct kvc_link_fit *f = &fits->fit[i];
        double c[KVC_LINK_CONSTANTS];
        for (size_t k = 0; k < KVC_LINK_CONSTANTS; k++)
            c[k] = f->fit.constant[k].value;
        for (size_t k = 0; k < f->fit.n; k++)
            kvc_profile_put_reading(j, f->row[k], f->base->name, kvc_link_predict(c, f->row[k]));
    }
    for (size_t i = 0; r && i < r->n; i++)
        if (r->row[i].both)
            kvc_profile_put_reading(j, &r->row[i], r->row[i].link, NAN);
    kvc_json_close(j);
}

/* ---- kernels of a GPU ---- */

static void put_gpu_figure(struct kvc_json *j, const char *key, double value, const char *kind,
                           const char *source)
{
    if (!(value > 0))
        return;
    kvc_json_open_object(j, key);
    kvc_json_double(j, "value", kvc_readings_rounded(value));
    kvc_json_string(j, "kind", kind);
    kvc_json_string(j, "source", source);
    kvc_json_close(j);
}

/* A device that another GPU's name stands for. */
static void put_gpus(struct kvc_json *j, const struct kvc_readings_device *d,
                     const struct kvc_own_kernels *k)
{
    char source[200];

    kvc_json_open_array(j, "gpus");
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "name", d->gpu);
    kvc_json_string(j, "device", d->name);
    put_gpu_figure(j, "memory_bytes", d->memory_bytes, "measured", "what CUDA reports as total");
    put_gpu_figure(j, "multiprocessors", d->multiprocessors, "measured", "what CUDA reports");
    if (k) {
        snprintf(source, sizeof source, "matrix products measured here: with it the kernels of %s "
                 "would take as long, at their shares of the peak", d->gpu);
        put_gpu_figure(j, "bf16_flops", k->told.bf16_flops, "fitted", source);
        put_gpu_figure(j, "fp8_flops", k->told.fp8_flops, "fitted", source);
        put_gpu_figure(j, "hbm_bytes_per_s", k->told.bytes_per_s, "fitted", source);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}

static void put_kernels(struct kvc_json *j, const struct kvc_own_kernels *k)
{
    kvc_json_open_object(j, "kernels");
    kvc_json_open_array(j, "tables");
    for (size_t i = 0; i < k->tables.n; i++)
        kvc_kernel_table_write(&k->tables.table[i], j);
    kvc_json_close(j);
    kvc_json_close(j);
}

static void put_kernel_measurements(struct kvc_json *j, const struct kvc_readings *r)
{
    struct kvc_text list = {0};

    kvc_text_addf(&list, "[%s]", r->kernel_json.buf);
    if (list.failed)
        j->failed = true;
    else
        kvc_json_raw(j, "kernel_measurements", list.buf);
    kvc_text_clear(&list);
}

enum kvc_status kvc_profile_text(char **out, const struct kvc_profile_parts *p,
                                 struct kvc_error *err)
{
    struct kvc_json j;

    kvc_json_init(&j, true);
    kvc_json_open_object(&j, NULL);
    kvc_json_string(&j, "schema", KVC_PROFILE_SCHEMA);
    kvc_json_string(&j, "version", kvc_version());
    if (p->gpu && *p->gpu)
        kvc_json_string(&j, "gpu", p->gpu);
    if (p->machine)
        kvc_json_raw(&j, "machine", p->machine);
    if (p->readings && p->readings->device.name[0])
        put_gpus(&j, &p->readings->device, p->kernels);
    if (p->kernels && p->kernels->tables.n)
        put_kernels(&j, p->kernels);
    put_links(&j, p);
    put_engines(&j, p->host);
    put_measurements(&j, p->readings, p->links);
    if (p->readings && p->readings->kernel_json.len)
        put_kernel_measurements(&j, p->readings);
    if (p->more)
        kvc_json_raw(&j, "other_measurements", p->more);
    kvc_json_close(&j);
    *out = kvc_json_take(&j);
    return *out ? KVC_OK : kvc_fail_nomem(err);
}
