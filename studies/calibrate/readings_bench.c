/* SPDX-License-Identifier: Apache-2.0
 * The measurements that a profile of kvcast's own holds, so that profiles can be put together and
 * fitted again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "models/user_profile.h"
#include "studies/calibrate/readings.h"

static bool sniff(const struct kvc_readings_text *t)
{
    const char *schema = t->json ? kvc_profile_string(t->json, "schema") : NULL;

    return schema && strcmp(schema, KVC_PROFILE_SCHEMA) == 0;
}

/* ---- kernels ---- */

/* A member as a column's text; that of a number holds until the next one is asked for. */
struct columns {
    const struct kvc_jval *row;
    char number[64];
};

static const char *column(void *user, const char *name)
{
    struct columns *c = user;
    bool time = strcmp(name, "latency") == 0;
    const struct kvc_jval *v = kvc_jval_member(c->row, time ? "ns" : name);
    double x;

    if (v && kvc_jval_string(v))
        return kvc_jval_string(v);
    if (!v || !kvc_jval_number(v, &x))
        return "";
    snprintf(c->number, sizeof c->number, "%.17g", time ? x / 1e6 : x);
    return c->number;
}

static enum kvc_status keep_json(struct kvc_readings *r, const struct kvc_jval *v,
                                 struct kvc_error *err)
{
    struct kvc_json j;

    kvc_json_init(&j, false);
    kvc_json_value(&j, NULL, v);
    char *text = kvc_json_take(&j);
    if (text)
        kvc_text_addf(&r->kernel_json, "%s%s", r->kernel_json.len ? "," : "", text);
    kvc_free(text);
    return text && !r->kernel_json.failed ? KVC_OK : kvc_fail_nomem(err);
}

enum kvc_status kvc_readings_kernel(struct kvc_readings *r, const struct kvc_jval *v,
                                    struct kvc_error *err)
{
    const char *name = kvc_profile_string(v, "family");
    const struct kvc_jval *bound = kvc_jval_member(v, "bound");
    struct kvc_own_row row = {.family = name ? kvc_kernel_family_find(name) : NULL};
    struct columns c = {.row = v};

    if (!row.family || !row.family->read(&c, column, &row.row) ||
        !(row.row.ns >= 100 && row.row.ns <= 1e11)) {
        kvc_readings_note(r, "line %llu: no kernel's time: %s; left out",
                          (unsigned long long)kvc_jval_line(v),
                          !name           ? "no family is named"
                          : !row.family   ? "there is no such family of kernels"
                                          : "a number that it needs is missing or makes no sense");
        return KVC_OK;
    }
    if (bound)
        kvc_jval_bool(bound, &row.bound);
    if (!kvc_grow((void **)&r->kernel, &r->cap_kernels, r->n_kernels + 1, sizeof *r->kernel))
        return kvc_fail_nomem(err);
    r->kernel[r->n_kernels++] = row;
    r->file[r->n_files - 1].rows++;
    return keep_json(r, v, err);
}

/* Kernels of two GPUs fit no table; links can be put together. */
static enum kvc_status other_device(struct kvc_readings *r, const char *gpu, const char *device,
                                    bool kernels, const char *path, struct kvc_error *err)
{
    const struct kvc_readings_device *d = &r->device;
    const char *mine = device ? device : gpu, *first = d->name[0] ? d->name : d->gpu;

    if (kvc_name_equal(gpu, d->gpu) && (!device || !d->name[0] || strcmp(device, d->name) == 0))
        return KVC_OK;
    if (kernels || r->n_kernels)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, "gpu",
                           "is of %.64s, a file before it of %.64s, and kernels are among them: "
                           "make a profile of each", mine, first);
    kvc_readings_note(r, "measured beside %.64s, a file before it beside %.64s", mine, first);
    return KVC_OK;
}

static enum kvc_status read_device(struct kvc_readings *r, const struct kvc_jval *doc,
                                   const char *path, bool kernels, struct kvc_error *err)
{
    const struct kvc_jval *list = kvc_jval_member(doc, "gpus"),
                          *g = list ? kvc_jval_first(list) : NULL;
    const char *name = kvc_profile_string(doc, "gpu"), *device = NULL;
    struct kvc_readings_device *d = &r->device;
    struct kvc_figure figure;

    while (g && !(device = kvc_profile_string(g, "device")))
        g = kvc_jval_next(g);
    if (g)
        name = kvc_profile_string(g, "name");
    enum kvc_status status =
        name && d->gpu[0] ? other_device(r, name, device, kernels, path, err) : KVC_OK;
    if (status != KVC_OK || !name || d->name[0] ||
        (d->gpu[0] && !(g && kvc_name_equal(name, d->gpu))))
        return status;
    snprintf(d->gpu, sizeof d->gpu, "%s", name);
    if (!g)
        return KVC_OK;
    snprintf(d->name, sizeof d->name, "%s", device);
    if (kvc_profile_figure(g, "memory_bytes", &figure))
        d->memory_bytes = figure.value;
    if (kvc_profile_figure(g, "multiprocessors", &figure))
        d->multiprocessors = figure.value;
    return KVC_OK;
}

static enum kvc_status read(struct kvc_readings *r, const struct kvc_readings_text *t,
                            struct kvc_error *err)
{
    const struct kvc_jval *list = kvc_jval_member(t->json, "measurements");
    const struct kvc_jval *kernels = kvc_jval_member(t->json, "kernel_measurements");
    bool of_gpu = kernels && kvc_jval_first(kernels);
    enum kvc_status status = read_device(r, t->json, t->path, of_gpu, err);

    for (const struct kvc_jval *v = kernels ? kvc_jval_first(kernels) : NULL;
         v && status == KVC_OK; v = kvc_jval_next(v))
        status = kvc_readings_kernel(r, v, err);
    for (const struct kvc_jval *v = list ? kvc_jval_first(list) : NULL; v && status == KVC_OK;
         v = kvc_jval_next(v)) {
        const char *link = kvc_profile_string(v, "link");
        const char *direction = kvc_profile_string(v, "direction");
        const struct kvc_jval *batch = kvc_jval_member(v, "batch");
        struct kvc_reading row = {.op_bytes = kvc_profile_number(v, "op_bytes", NAN),
                                  .depth = kvc_profile_number(v, "depth", INFINITY),
                                  .bytes_per_s = kvc_profile_number(v, "bytes_per_s", NAN),
                                  .spread = kvc_profile_number(v, "spread", NAN),
                                  .line = kvc_jval_line(v)};
        if (!link) {
            kvc_readings_note(r, "figures of no link (memory, zstd) are not fitted");
            continue;
        }
        if (batch)
            kvc_jval_bool(batch, &row.batch);
        if (kvc_jval_member(v, "both"))
            kvc_jval_bool(kvc_jval_member(v, "both"), &row.both);
        row.direction = direction && strcmp(direction, "write") == 0 ? KVC_FROM_GPU
                                                                     : KVC_TOWARDS_GPU;
        snprintf(row.link, sizeof row.link, "%s", link);
        status = kvc_readings_row(r, &row, err);
    }
    return status;
}

const struct kvc_reader kvc_reader_bench = {
    .name = "bench", .what = "a profile that kvcast bench or calibrate wrote", .link = NULL,
    .sniff = sniff, .read = read};
