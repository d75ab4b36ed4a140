/* SPDX-License-Identifier: Apache-2.0 */
#include "models/kernel_store.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/profiles.h"

#define FAR_OCTAVES 1.01
#define ROUNDED 1e-5 /* knots have six digits in files */

void kvc_kernel_store_clear(struct kvc_kernel_store *store)
{
    kvc_kernel_tables_clear(&store->tables);
    memset(store, 0, sizeof *store);
}

static enum kvc_status read_tables(struct kvc_kernel_store *out, const struct kvc_jval *doc,
                                   const char *file, struct kvc_error *err)
{
    const char *version = kvc_profile_string(doc, "version");
    const struct kvc_jval *array = kvc_jval_member(doc, "tables");

    if (!array)
        return kvc_fail_at(err, KVC_ERR_INPUT, file, kvc_jval_line(doc), "tables",
                           "no list of kernel tables, as 'kvcast calibrate --kernels' writes it");
    snprintf(out->version, sizeof out->version, "%s", version ? version : "");
    for (const struct kvc_jval *v = kvc_jval_first(array); v; v = kvc_jval_next(v)) {
        struct kvc_kernel_tables *t = &out->tables;
        if (!kvc_grow((void **)&t->table, &t->cap, t->n + 1, sizeof *t->table))
            return kvc_fail_nomem(err);
        enum kvc_status status = kvc_kernel_table_read(&t->table[t->n], v, file, err);
        if (status != KVC_OK)
            return status;
        t->n++;
    }
    return KVC_OK;
}

enum kvc_status kvc_kernel_store_read(struct kvc_kernel_store *out, const struct kvc_jval *v,
                                      const char *file, struct kvc_error *err)
{
    memset(out, 0, sizeof *out);
    snprintf(out->file, sizeof out->file, "%s", file);
    enum kvc_status status = read_tables(out, v, file, err);
    if (status != KVC_OK)
        kvc_kernel_store_clear(out);
    return status;
}

enum kvc_status kvc_kernel_store_parse(struct kvc_kernel_store *out, const char *text, size_t n,
                                       const char *file, struct kvc_error *err)
{
    struct kvc_jval *doc;
    enum kvc_status status = kvc_json_parse(&doc, text, n, false, file, 1, err);

    memset(out, 0, sizeof *out);
    if (status != KVC_OK)
        return status;
    const char *schema = kvc_profile_string(doc, "schema");
    if (!schema || strcmp(schema, KVC_KERNELS_SCHEMA) != 0)
        status = kvc_fail_at(err, KVC_ERR_INPUT, file, 1, "schema",
                             "not a kernel profile (" KVC_KERNELS_SCHEMA "); 'kvcast calibrate "
                             "--kernels' writes them");
    else
        status = kvc_kernel_store_read(out, doc, file, err);
    kvc_json_free(doc);
    return status;
}

enum kvc_status kvc_kernel_store_borrow(struct kvc_kernel_store *out, const struct kvc_gpu *gpu,
                                        const char *like, const char *backend,
                                        struct kvc_error *err)
{
    char name[128];

    snprintf(name, sizeof name, "tables_%s_%s.json", like, backend);
    const struct kvc_blob *blob = kvc_blob_find(name);
    if (!blob)
        return kvc_fail(err, KVC_ERR_UNSUPPORTED, "no kernel times of %s on %s", backend, like);
    enum kvc_status status =
        kvc_kernel_store_parse(out, (const char *)blob->data, blob->size, name, err);
    if (status != KVC_OK)
        return status;
    out->peaks = kvc_peaks_of(gpu);
    out->borrowed = strcmp(like, gpu->id) != 0;
    snprintf(out->from, sizeof out->from, "%s", like);
    return KVC_OK;
}

enum kvc_status kvc_kernel_store_load(struct kvc_kernel_store *out, const struct kvc_gpu *gpu,
                                      const char *backend, struct kvc_error *err)
{
    struct kvc_error own = {0};
    enum kvc_status status = kvc_kernel_store_borrow(out, gpu, gpu->id, backend, &own);

    if (status == KVC_ERR_UNSUPPORTED && gpu->kernels_like)
        return kvc_kernel_store_borrow(out, gpu, gpu->kernels_like, backend, err);
    if (status != KVC_OK && err)
        *err = own;
    return status;
}

char *kvc_kernel_store_text(const struct kvc_kernel_tables *tables,
                            const struct kvc_kernel_profile *profile)
{
    struct kvc_json j;

    kvc_json_init(&j, true);
    kvc_json_open_object(&j, NULL);
    kvc_json_string(&j, "schema", KVC_KERNELS_SCHEMA);
    kvc_json_string(&j, "gpu", profile->gpu);
    kvc_json_string(&j, "backend", profile->backend);
    kvc_json_string(&j, "version", profile->version);
    kvc_json_open_array(&j, "tables");
    for (size_t i = 0; i < tables->n; i++)
        kvc_kernel_table_write(&tables->table[i], &j);
    kvc_json_close(&j);
    kvc_json_close(&j);
    return kvc_json_take(&j);
}

/* Leading words that a and b share. */
static size_t words_shared(const char *a, const char *b)
{
    size_t words = 0;

    for (;; a++, b++) {
        bool end_a = *a == ' ' || !*a, end_b = *b == ' ' || !*b;
        if (end_a && end_b) {
            words++;
            if (!*a || !*b)
                return words;
        } else if (*a != *b) {
            return words;
        }
    }
}

const struct kvc_kernel_table *kvc_kernel_store_find(const struct kvc_kernel_store *store,
                                                     const struct kvc_kernel_family *family,
                                                     const char *key)
{
    const struct kvc_kernel_table *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < store->tables.n; i++) {
        const struct kvc_kernel_table *t = &store->tables.table[i];
        if (t->family != family)
            continue;
        if (strcmp(t->key, key) == 0)
            return t;
        size_t words = words_shared(t->key, key);
        if (words < family->n_dtype || words < most ||
            (words == most && best && t->fitted.rows <= best->fitted.rows))
            continue;
        most = words;
        best = t;
    }
    return best;
}

bool kvc_kernel_store_predict(const struct kvc_kernel_store *store,
                              const struct kvc_kernel_family *family,
                              const struct kvc_kernel_row *row, double *ns, bool *outside)
{
    const struct kvc_kernel_table *t = kvc_kernel_store_find(store, family, row->key);
    struct kvc_kernel_curve curve;
    const double *x = row->x + family->n_site;

    if (!t)
        return false;
    kvc_kernel_curve_at(t, row->x, &curve);
    memcpy(curve.params, row->params, sizeof curve.params);
    *ns = kvc_kernel_curve_ns(&curve, &store->peaks, x);
    if (!outside)
        return true;
    *outside = curve.octaves > FAR_OCTAVES;
    for (size_t a = 0; a < family->n_axes; a++)
        *outside |= x[a] < curve.first[a] * (1 - ROUNDED) || x[a] > curve.last[a] * (1 + ROUNDED);
    *outside |= family->n_axes == 2 && x[0] * x[1] > curve.product * (1 + ROUNDED);
    return true;
}
