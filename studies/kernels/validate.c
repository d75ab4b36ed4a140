/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/kernels/study.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "traces/parse/stream.h"

struct checker {
    struct kvc_kernel_validation *out;
    const struct kvc_kernel_validate_options *options;
    struct kvc_kernel_store store; /* for the label it was loaded for */
    char system[KVC_KERNEL_LABEL], backend[KVC_KERNEL_LABEL];
    bool loaded, known; /* a store was asked for; there is one */
    size_t last;        /* check of the last row */
};

static enum kvc_status count_excluded(struct kvc_kernel_validation *v, const char *reason)
{
    size_t i = 0;

    v->rows_excluded++;
    while (i < v->n_excluded && strcmp(v->excluded[i].reason, reason) != 0)
        i++;
    if (i == v->n_excluded && i < sizeof v->excluded / sizeof v->excluded[0])
        v->excluded[v->n_excluded++] = (struct kvc_kernel_excluded){reason, 0};
    if (i < v->n_excluded)
        v->excluded[i].rows++;
    return KVC_OK;
}

static enum kvc_status read_whole(const char *path, char **out, size_t *n, struct kvc_error *err)
{
    struct kvc_stream *s;
    size_t cap = 0, got = 1;
    enum kvc_status status = kvc_stream_open(&s, path, err);

    *out = NULL;
    *n = 0;
    while (status == KVC_OK && got) {
        if (!kvc_grow((void **)out, &cap, *n + 65536, 1))
            status = kvc_fail_nomem(err);
        else if ((status = kvc_stream_read(s, *out + *n, 65536, &got, err)) == KVC_OK)
            *n += got;
    }
    kvc_stream_close(s);
    return status;
}

static enum kvc_status load_file(struct checker *c, const struct kvc_gpu *gpu,
                                 struct kvc_error *err)
{
    char *text;
    size_t n;
    enum kvc_status status = read_whole(c->options->profile, &text, &n, err);

    if (status == KVC_OK)
        status = kvc_kernel_store_parse(&c->store, text, n, c->options->profile, err);
    kvc_free(text);
    if (status == KVC_OK) {
        c->store.peaks = kvc_peaks_of(gpu);
        snprintf(c->store.from, sizeof c->store.from, "%s", c->options->profile);
    }
    return status;
}

/* Tables for the row's system and backend; known is false where there are none. */
static enum kvc_status load(struct checker *c, const struct kvc_kernel_label *l,
                            struct kvc_error *err)
{
    const struct kvc_gpu *gpu = kvc_gpu_find(l->system);
    const char *like = c->options->like;
    enum kvc_status status = KVC_ERR_UNSUPPORTED;

    if (c->loaded && strcmp(c->system, l->system) == 0 && strcmp(c->backend, l->backend) == 0)
        return KVC_OK;
    kvc_kernel_store_clear(&c->store);
    c->loaded = true;
    snprintf(c->system, sizeof c->system, "%s", l->system);
    snprintf(c->backend, sizeof c->backend, "%s", l->backend);
    if (gpu && c->options->profile)
        status = load_file(c, gpu, err);
    else if (gpu)
        status = like ? kvc_kernel_store_borrow(&c->store, gpu, kvc_gpu_find(like)->id, l->backend,
                                                err)
                      : kvc_kernel_store_load(&c->store, gpu, l->backend, err);
    c->known = status == KVC_OK;
    return status == KVC_ERR_UNSUPPORTED ? KVC_OK : status;
}

static struct kvc_kernel_check *check_for(struct checker *c, const struct kvc_kernel_label *l,
                                          const struct kvc_kernel_family *f, const char *key)
{
    struct kvc_kernel_validation *v = c->out;
    char dtype[KVC_KERNEL_KEY];

    if (c->options->by_key)
        snprintf(dtype, sizeof dtype, "%s", key);
    else
        kvc_kernel_dtype(f, key, dtype);
    for (size_t i = 0; i <= v->n; i++) {
        size_t at = i ? i - 1 : c->last;
        struct kvc_kernel_check *k = &v->check[at];
        if (at < v->n && k->family == f && strcmp(k->key, dtype) == 0 &&
            strcmp(k->label.system, l->system) == 0 &&
            strcmp(k->label.backend, l->backend) == 0 &&
            strcmp(k->label.version, l->version) == 0) {
            c->last = at;
            return k;
        }
    }
    if (!kvc_grow((void **)&v->check, &v->cap, v->n + 1, sizeof *v->check))
        return NULL;
    struct kvc_kernel_check *k = &v->check[c->last = v->n++];
    memset(k, 0, sizeof *k);
    k->label = *l;
    k->family = f;
    k->borrowed = c->store.borrowed;
    snprintf(k->from, sizeof k->from, "%s", c->store.from);
    memcpy(k->key, dtype, sizeof k->key);
    return k;
}

static enum kvc_status check_row(void *user, const struct kvc_kernel_label *label,
                                 const struct kvc_kernel_family *family,
                                 const struct kvc_kernel_row *row, uint64_t line,
                                 struct kvc_error *err)
{
    struct checker *c = user;
    bool outside;
    double ns;
    enum kvc_status status = load(c, label, err);

    (void)line;
    if (status != KVC_OK)
        return status;
    if (!row)
        return count_excluded(c->out, "a number is missing or wrong");
    if (row->excluded)
        return count_excluded(c->out, row->excluded);
    if (!c->known)
        return count_excluded(c->out, "no kernel tables for this system and backend");
    if (!kvc_kernel_store_predict(&c->store, family, row, &ns, &outside))
        return count_excluded(c->out, "no table of this family and dtype");
    struct kvc_kernel_check *k = check_for(c, label, family, row->key);
    if (!k || !kvc_kernel_errors_add(&k->errors, ns, row->ns) ||
        !kvc_kernel_errors_add(&c->out->errors, ns, row->ns))
        return kvc_fail_nomem(err);
    k->outside += outside;
    c->out->rows++;
    return KVC_OK;
}

enum kvc_status kvc_kernel_validate(struct kvc_kernel_validation *out, const char *const *paths,
                                    size_t n, const struct kvc_kernel_validate_options *options,
                                    struct kvc_error *err)
{
    struct checker c = {.out = out, .options = options};
    enum kvc_status status = kvc_profiles_ready(err);

    memset(out, 0, sizeof *out);
    if (status == KVC_OK && options->like && !kvc_gpu_find(options->like))
        status = kvc_fail(err, KVC_ERR_USAGE, "no hardware profile '%s'", options->like);
    for (size_t i = 0; i < n && status == KVC_OK; i++)
        status = kvc_kernel_rows(paths[i], check_row, &c, err);
    kvc_kernel_store_clear(&c.store);
    for (size_t i = 0; i < out->n; i++)
        out->check[i].sum = kvc_kernel_errors_sum(&out->check[i].errors);
    out->sum = kvc_kernel_errors_sum(&out->errors);
    if (status != KVC_OK)
        kvc_kernel_validation_clear(out);
    return status;
}

void kvc_kernel_validation_clear(struct kvc_kernel_validation *v)
{
    for (size_t i = 0; i < v->n; i++)
        kvc_free(v->check[i].errors.error);
    kvc_free(v->check);
    kvc_free(v->errors.error);
    memset(v, 0, sizeof *v);
}
