/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "studies/kernels/study.h"

struct mean {
    double sum, rows;
};

static void add(struct mean *m, const struct kvc_kernel_error *e)
{
    if (e->rows && !isnan(e->mape)) {
        m->sum += e->mape * (double)e->rows;
        m->rows += (double)e->rows;
    }
}

static double value(const struct mean *m)
{
    return m->rows > 0 ? m->sum / m->rows : NAN;
}

/* Sums up the tables of one family and dtype; first is the first of them. */
static void tell(const struct kvc_kernel_store *s, size_t first, struct kvc_kernel_stated *out,
                 kvc_kernel_stated_fn fn, void *user)
{
    struct mean fitted = {0, 0}, random = {0, 0}, shape = {0, 0};
    char dtype[KVC_KERNEL_KEY];

    for (size_t i = first; i < s->tables.n; i++) {
        const struct kvc_kernel_table *t = &s->tables.table[i];
        kvc_kernel_dtype(t->family, t->key, dtype);
        if (t->family != out->family || strcmp(dtype, out->dtype) != 0)
            continue;
        add(&fitted, &t->fitted);
        add(&random, &t->random);
        add(&shape, &t->shape);
    }
    out->rows = (size_t)fitted.rows;
    out->fitted = value(&fitted);
    out->random = value(&random);
    out->shape = value(&shape);
    if (out->rows)
        fn(user, out);
}

static bool seen_before(const struct kvc_kernel_store *s, size_t at, const char *dtype)
{
    char other[KVC_KERNEL_KEY];

    for (size_t i = 0; i < at; i++) {
        const struct kvc_kernel_table *t = &s->tables.table[i];
        kvc_kernel_dtype(t->family, t->key, other);
        if (t->family == s->tables.table[at].family && strcmp(other, dtype) == 0)
            return true;
    }
    return false;
}

enum kvc_status kvc_kernel_stated(kvc_kernel_stated_fn fn, void *user, struct kvc_error *err)
{
    static const char *const backends[] = {"vllm", "sglang", "trtllm", "nccl"};
    enum kvc_status status = kvc_profiles_ready(err);

    for (const char *const *g = kvc_gpu_names(); *g && status == KVC_OK; g++) {
        const struct kvc_gpu *gpu = kvc_gpu_find(*g);
        for (size_t b = 0; b < 4; b++) {
            struct kvc_kernel_store s;
            status = kvc_kernel_store_borrow(&s, gpu, gpu->id, backends[b], err);
            if (status != KVC_OK) {
                if (status != KVC_ERR_UNSUPPORTED)
                    return status;
                continue;
            }
            for (size_t i = 0; i < s.tables.n; i++) {
                struct kvc_kernel_stated out = {.gpu = gpu, .backend = backends[b],
                                                .version = s.version,
                                                .family = s.tables.table[i].family};
                kvc_kernel_dtype(out.family, s.tables.table[i].key, out.dtype);
                if (!seen_before(&s, i, out.dtype))
                    tell(&s, i, &out, fn, user);
            }
            kvc_kernel_store_clear(&s);
        }
        status = KVC_OK;
    }
    return status;
}
