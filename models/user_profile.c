/* SPDX-License-Identifier: Apache-2.0 */
#include "models/user_profile.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/units.h"

struct kvc_user_profile { /* strings point into the document */
    struct kvc_jval *doc;
    const struct kvc_jval *links, *engines, *gpus; /* NULL: none */
    const char *gpu;
    const char *backend;            /* of the kernels; NULL: any */
    struct kvc_kernel_store kernels;
    struct kvc_gpu *own;            /* one for each of gpus, as the file has it */
    size_t n_own;
    char digest[24];
};

#define LINK(field) #field, offsetof(struct kvc_link_profile, field)
#define GPU(field) #field, offsetof(struct kvc_gpu, field)
#define ENGINE(field) #field, offsetof(struct kvc_engine_profile, field)

const struct kvc_user_figure kvc_user_link_figures[] = {
    {LINK(read_bytes_per_s), 1e3, 1e15},
    {LINK(write_bytes_per_s), 1e3, 1e15},
    {LINK(latency_ns), 0, 60e9},
    {LINK(per_op_ns), 0, 60e9},
    {LINK(queue_depth), 1, 1e6},
    {LINK(both_bytes_per_s), 0, 1e15},
    {LINK(op_latency_ns), 0, 60e9},
    {LINK(ops_per_s), 0, 1e12},
    {LINK(stream_bytes_per_s), 0, 1e15},
    {LINK(all_read_bytes_per_s), 0, 1e15},
    {LINK(all_write_bytes_per_s), 0, 1e15},
    {NULL, 0, 0, 0},
};

const struct kvc_user_figure kvc_user_engine_figures[] = {
    {ENGINE(host_per_step_ns), 0, 10e9},
    {ENGINE(host_per_sequence_ns), 0, 10e9},
    {ENGINE(host_per_prefill_step_ns), 0, 10e9},
    {ENGINE(front_end_ns), 0, 60e9},
    {ENGINE(compile_ns), 0, 60e9},
    {NULL, 0, 0, 0},
};

const struct kvc_user_figure kvc_user_gpu_figures[] = {
    {GPU(memory_bytes), 1e9, 1e13},
    {GPU(hbm_bytes_per_s), 1e10, 1e15},
    {GPU(bf16_flops), 1e12, 1e18},
    {GPU(fp8_flops), 0, 1e18},
    {GPU(fp4_flops), 0, 1e18},
    {GPU(tdp_w), 0, 1e5},
    {GPU(usd_per_hour), 0, 1e4},
    {GPU(nic_bytes_per_s), 0, 1e13},
    {GPU(gpu_link_bytes_per_s), 1e8, 1e14},
    {GPU(multiprocessors), 1, 1e5},
    {GPU(l2_bytes), 0, 1e10},
    {NULL, 0, 0, 0},
};

static const char *const kinds[] =
    {"measured", "fitted", "datasheet", "published", "assumed", NULL};

/* ---- what a file may hold ---- */

static enum kvc_status bad(const struct kvc_jval *v, const char *file, const char *field,
                           const char *what, struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(v), field, "%s", what);
}

static enum kvc_status check_figure(const struct kvc_jval *entry, const struct kvc_user_figure *f,
                                    const char *file, struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_jval_member(entry, f->key);
    struct kvc_figure figure;

    if (!v)
        return KVC_OK;
    if (!kvc_profile_figure(entry, f->key, &figure))
        return bad(v, file, f->key, "a figure is an object with value (a number), kind and source "
                   "(texts)", err);
    const char *const *kind = kinds;
    while (*kind && strcmp(*kind, figure.kind) != 0)
        kind++;
    if (!*kind)
        return kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(v), f->key,
                           "kind \"%.40s\" says nothing of where the figure comes from: measured, "
                           "fitted, datasheet, published or assumed", figure.kind);
    if (!(figure.value >= f->min && figure.value <= f->max))
        return kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(v), f->key,
                           "%g is not between %g and %g", figure.value, f->min, f->max);
    return KVC_OK;
}

static bool is_figure(const struct kvc_user_figure *list, const char *key)
{
    while (list->key && strcmp(list->key, key) != 0)
        list++;
    return list->key != NULL;
}

/* A list of objects, each named by its member called id, which one of names must equal. */
struct list {
    const char *key, *id;
    const char *text; /* a further member, a text; NULL: none */
    const char *const *names;
    const struct kvc_user_figure *figures;
};

static enum kvc_status check_entry(const struct kvc_jval *entry, const struct list *l,
                                   const char *file, struct kvc_error *err)
{
    const char *name = kvc_profile_string(entry, l->id);
    enum kvc_status status = KVC_OK;
    size_t i = 0;

    if (kvc_jval_kind(entry) != KVC_JOBJECT || !name)
        return bad(entry, file, l->id, "each entry is an object with this name in it", err);
    while (l->names[i] && !kvc_name_equal(l->names[i], name))
        i++;
    if (!l->names[i]) {
        const char *near = kvc_name_nearest(name, l->names);
        return kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(entry), l->id,
                           "'%.64s' is not known, so there is nothing to replace; %s %s", name,
                           near ? "did you mean" : "there is for example",
                           near ? near : l->names[0]);
    }
    for (const struct kvc_jval *v = kvc_jval_first(entry); v; v = kvc_jval_next(v))
        if (l->text && strcmp(kvc_jval_key(v), l->text) == 0) {
            if (!kvc_jval_string(v) || !*kvc_jval_string(v))
                return bad(v, file, l->text, "a name, in quotes", err);
        } else if (strcmp(kvc_jval_key(v), l->id) != 0 && !is_figure(l->figures, kvc_jval_key(v)))
            return bad(v, file, kvc_jval_key(v), "no figure of this name", err);
    for (const struct kvc_user_figure *f = l->figures; f->key && status == KVC_OK; f++)
        status = check_figure(entry, f, file, err);
    return status;
}

/* The first of that name; NULL: none. */
static const struct kvc_jval *entry_of(const struct kvc_jval *list, const char *id,
                                       const char *name)
{
    const struct kvc_jval *v = list ? kvc_jval_first(list) : NULL;

    while (v && !kvc_name_equal(kvc_profile_string(v, id), name))
        v = kvc_jval_next(v);
    return v;
}

static enum kvc_status check_list(const struct kvc_jval *doc, const struct list *l,
                                  const struct kvc_jval **out, const char *file,
                                  struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;

    *out = kvc_jval_member(doc, l->key);
    if (!*out)
        return KVC_OK;
    if (kvc_jval_kind(*out) != KVC_JARRAY)
        return bad(*out, file, l->key, "is a list", err);
    for (const struct kvc_jval *v = kvc_jval_first(*out); v && status == KVC_OK;
         v = kvc_jval_next(v)) {
        status = check_entry(v, l, file, err);
        const char *name = status == KVC_OK ? kvc_profile_string(v, l->id) : NULL;
        const struct kvc_jval *first = name ? entry_of(*out, l->id, name) : v;
        if (first != v)
            status = kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(v), l->id,
                                 "'%.64s' stands here a second time, after line %llu: make one "
                                 "entry of both", name, (unsigned long long)kvc_jval_line(first));
    }
    return status;
}

static enum kvc_status check_keys(const struct kvc_jval *doc, const char *file,
                                  struct kvc_error *err)
{
    static const char *const keys[] = {"schema", "version", "gpu", "gpus", "kernels", "links",
                                       "engines", "machine", "measurements", "kernel_measurements",
                                       "other_measurements", NULL};

    for (const struct kvc_jval *v = kvc_jval_first(doc); v; v = kvc_jval_next(v)) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], kvc_jval_key(v)) != 0)
            i++;
        const char *near = keys[i] ? NULL : kvc_name_nearest(kvc_jval_key(v), keys);
        if (!keys[i])
            return kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(v), kvc_jval_key(v),
                               "a profile has no such part%s%s", near ? "; did you mean " : "",
                               near ? near : "");
    }
    return KVC_OK;
}

/* "kernels" is what a file of tables is, without its schema. */
static enum kvc_status read_kernels(struct kvc_user_profile *p, bool alone, const char *file,
                                    struct kvc_error *err)
{
    const struct kvc_jval *v = alone ? p->doc : kvc_jval_member(p->doc, "kernels");
    const struct kvc_jval *backend = v ? kvc_jval_member(v, "backend") : NULL;

    if (!v)
        return KVC_OK;
    p->backend = kvc_profile_string(v, "backend");
    if (backend && !p->backend)
        return bad(backend, file, "backend", "the name of an engine, in quotes", err);
    if (p->backend && !kvc_engine_find(p->backend))
        return bad(backend, file, "backend", "no such engine ('kvcast show engine' lists them)",
                   err);
    return kvc_kernel_store_read(&p->kernels, v, file, err);
}

static enum kvc_status check(struct kvc_user_profile *p, const char *file, struct kvc_error *err)
{
    const char *schema = kvc_profile_string(p->doc, "schema");
    bool kernels_alone = schema && strcmp(schema, KVC_KERNELS_SCHEMA) == 0;
    const struct list links = {"links", "name", NULL, kvc_link_names(), kvc_user_link_figures};
    const struct list gpus = {"gpus", "name", "device", kvc_gpu_names(), kvc_user_gpu_figures};
    const struct list engines = {"engines", "backend", NULL, kvc_engine_names(),
                                 kvc_user_engine_figures};

    if (!schema || (strcmp(schema, KVC_PROFILE_SCHEMA) != 0 && !kernels_alone))
        return kvc_fail_at(err, KVC_ERR_INPUT, file, 1, "schema",
                           "not a profile of measured figures (schema " KVC_PROFILE_SCHEMA
                           "), as 'kvcast calibrate' and 'kvcast bench' write it%s%.64s",
                           schema ? ", but " : "", schema ? schema : "");
    const struct kvc_jval *gpu = kvc_jval_member(p->doc, "gpu");
    p->gpu = kvc_profile_string(p->doc, "gpu");
    if (gpu && !p->gpu)
        return bad(gpu, file, "gpu", "the name of a GPU, in quotes ('kvcast show hardware' lists "
                   "them)", err);
    if (p->gpu && !kvc_gpu_find(p->gpu)) {
        const char *near = kvc_name_nearest(p->gpu, kvc_gpu_names());
        return kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(gpu), "gpu",
                           "'%.64s' is not known%s%s", p->gpu, near ? "; did you mean " : "",
                           near ? near : "");
    }
    enum kvc_status status = kernels_alone ? KVC_OK : check_keys(p->doc, file, err);
    if (status == KVC_OK)
        status = check_list(p->doc, &links, &p->links, file, err);
    if (status == KVC_OK)
        status = check_list(p->doc, &gpus, &p->gpus, file, err);
    if (status == KVC_OK)
        status = check_list(p->doc, &engines, &p->engines, file, err);
    return status == KVC_OK ? read_kernels(p, kernels_alone, file, err) : status;
}

static void overlay(const struct kvc_jval *list, const char *id, const char *name,
                    const struct kvc_user_figure *figures, void *profile)
{
    const struct kvc_jval *v = entry_of(list, id, name);

    for (const struct kvc_user_figure *f = figures; v && f->key; f++) {
        struct kvc_figure figure;
        if (kvc_profile_figure(v, f->key, &figure))
            memcpy((char *)profile + f->offset, &figure, sizeof figure);
    }
}

static bool has_tables(const struct kvc_gpu *gpu)
{
    char name[128];

    snprintf(name, sizeof name, "tables_%s_vllm.json", gpu->id);
    return kvc_blob_find(name) != NULL;
}

/* A device that stands behind another's name has no tables of its own. */
static void build_gpu(struct kvc_gpu *g, const struct kvc_jval *gpus, const struct kvc_jval *v)
{
    const struct kvc_gpu *base = kvc_gpu_find(kvc_profile_string(v, "name"));
    const char *device = kvc_profile_string(v, "device");

    *g = *base;
    overlay(gpus, "name", base->id, kvc_user_gpu_figures, g);
    if (!device)
        return;
    for (const struct kvc_user_figure *f = kvc_user_gpu_figures; f->key; f++) {
        struct kvc_figure *of = (struct kvc_figure *)(void *)((char *)g + f->offset);
        const struct kvc_figure *was =
            (const struct kvc_figure *)(const void *)((const char *)base + f->offset);
        if (of->source == was->source) {
            of->kind = "assumed";
            of->source = "not stated in the profile: that of the GPU which the device is most like";
        }
    }
    g->id = g->name = device;
    g->also = NULL;
    g->kernels_measured = false;
    if (has_tables(base))
        g->kernels_like = base->id;
}

static enum kvc_status build_gpus(struct kvc_user_profile *p, struct kvc_error *err)
{
    size_t n = p->gpus ? kvc_jval_count(p->gpus) : 0;

    p->own = kvc_calloc(n + 1, sizeof *p->own);
    if (!p->own)
        return kvc_fail_nomem(err);
    for (const struct kvc_jval *v = n ? kvc_jval_first(p->gpus) : NULL; v; v = kvc_jval_next(v))
        build_gpu(&p->own[p->n_own++], p->gpus, v);
    const struct kvc_gpu *gpu = p->gpu ? kvc_user_gpu(p, p->gpu) : NULL;
    if (p->kernels.tables.n && !gpu)
        return kvc_fail_at(err, KVC_ERR_INPUT, p->kernels.file, 0, "gpu",
                           "kernels are a GPU's: say which ('kvcast show hardware' lists them)");
    if (gpu)
        p->kernels.peaks = kvc_peaks_of(gpu);
    return KVC_OK;
}

enum kvc_status kvc_user_profile_parse(struct kvc_user_profile **out, const char *text, size_t n,
                                       const char *file, struct kvc_error *err)
{
    struct kvc_user_profile *p = kvc_calloc(1, sizeof *p);
    struct kvc_digest digest;
    enum kvc_status status = p ? kvc_profiles_ready(err) : kvc_fail_nomem(err);

    if (status == KVC_OK)
        status = kvc_json_parse(&p->doc, text, n, true, file, 1, err);
    if (status == KVC_OK)
        status = check(p, file, err);
    if (status == KVC_OK)
        status = build_gpus(p, err);
    if (status != KVC_OK) {
        kvc_user_profile_destroy(p);
        return status;
    }
    kvc_digest_init(&digest);
    kvc_digest_add(&digest, text, n);
    kvc_digest_hex(&digest, p->digest);
    *out = p;
    return KVC_OK;
}

void kvc_user_profile_destroy(struct kvc_user_profile *p)
{
    if (!p)
        return;
    kvc_kernel_store_clear(&p->kernels);
    kvc_free(p->own);
    kvc_json_free(p->doc);
    kvc_free(p);
}

/* ---- what it says ---- */

const char *kvc_user_profile_gpu(const struct kvc_user_profile *p)
{
    return p->gpu ? p->gpu : "";
}

const char *kvc_user_profile_digest(const struct kvc_user_profile *p)
{
    return p->digest;
}

bool kvc_user_link(const struct kvc_user_profile *p, const char *name,
                   struct kvc_link_profile *out)
{
    const struct kvc_link_profile *base = kvc_link_find(name);

    if (!base)
        return false;
    *out = *base;
    if (!p)
        return true;
    overlay(p->links, "name", base->name, kvc_user_link_figures, out);
    /* an operation's cost that was measured holds what limits their number */
    if (out->per_op_ns.source != base->per_op_ns.source &&
        out->ops_per_s.source == base->ops_per_s.source)
        out->ops_per_s = (struct kvc_figure){0};
    return true;
}

bool kvc_user_engine(const struct kvc_user_profile *p, const char *backend,
                     struct kvc_engine_profile *out)
{
    const struct kvc_engine_profile *base = kvc_engine_find(backend);

    if (!base)
        return false;
    *out = *base;
    if (p)
        overlay(p->engines, "backend", base->backend, kvc_user_engine_figures, out);
    return true;
}

const struct kvc_gpu *kvc_user_gpu(const struct kvc_user_profile *p, const char *name)
{
    const struct kvc_jval *v = p && p->gpus ? kvc_jval_first(p->gpus) : NULL;
    const struct kvc_gpu *base = kvc_gpu_find(name), *own = base;

    for (size_t i = 0; base && v; v = kvc_jval_next(v), i++)
        if (kvc_gpu_find(kvc_profile_string(v, "name")) == base)
            own = &p->own[i];
    return own;
}

const struct kvc_kernel_store *kvc_user_kernels(const struct kvc_user_profile *p,
                                                const struct kvc_gpu *gpu, const char *backend)
{
    bool its = p && p->kernels.tables.n && kvc_user_gpu(p, p->gpu) == gpu &&
               (!p->backend || kvc_name_equal(p->backend, backend));

    return its ? &p->kernels : NULL;
}

void kvc_user_profile_put_gpus(const struct kvc_user_profile *p, struct kvc_json *j)
{
    const struct kvc_jval *kernels = kvc_jval_member(p->doc, "kernels"),
                          *tables = kvc_jval_member(p->doc, "tables");

    if (p->gpu)
        kvc_json_string(j, "gpu", p->gpu);
    if (p->gpus)
        kvc_json_value(j, "gpus", p->gpus);
    if (kernels)
        kvc_json_value(j, "kernels", kernels);
    if (!tables) /* of a file of tables alone */
        return;
    kvc_json_open_object(j, "kernels");
    if (p->backend)
        kvc_json_string(j, "backend", p->backend);
    kvc_json_value(j, "tables", tables);
    kvc_json_close(j);
}
