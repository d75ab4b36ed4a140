/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/kernels/study.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"

struct gathered { /* rows of one file */
    struct kvc_kernel_calibration *out;
    const char *path;
    const struct kvc_kernel_family *family;
    struct kvc_kernel_row *row;
    size_t n, cap;
};

/* The first row settles whose profile this is. */
static enum kvc_status same_label(struct kvc_kernel_calibration *c,
                                  const struct kvc_kernel_label *l, const char *path,
                                  uint64_t line, struct kvc_error *err)
{
    if (!c->gpu) {
        c->label = *l;
        c->label.family[0] = '\0';
        c->gpu = kvc_gpu_find(l->system);
        if (!c->gpu) {
            const char *near = kvc_name_nearest(l->system, kvc_gpu_names());
            return kvc_fail_at(err, KVC_ERR_INPUT, path, line, "system",
                               "'%s' is no hardware profile%s%s; the form needs its datasheet "
                               "peaks ('kvcast show hardware' lists them)",
                               l->system, near ? "; nearest: " : "", near ? near : "");
        }
        return KVC_OK;
    }
    if (strcmp(c->label.system, l->system) == 0 && strcmp(c->label.backend, l->backend) == 0)
        return KVC_OK;
    return kvc_fail_at(err, KVC_ERR_USAGE, path, line, "system",
                       "rows of %s with %s beside rows of %s with %s: one profile, one system and "
                       "backend", l->system, l->backend, c->label.system, c->label.backend);
}

static enum kvc_status gather(void *user, const struct kvc_kernel_label *label,
                              const struct kvc_kernel_family *family,
                              const struct kvc_kernel_row *row, uint64_t line,
                              struct kvc_error *err)
{
    struct gathered *g = user;
    enum kvc_status status = same_label(g->out, label, g->path, line, err);

    if (status != KVC_OK)
        return status;
    if (g->family && g->family != family)
        return kvc_fail_at(err, KVC_ERR_USAGE, g->path, line, "family",
                           "rows of %s beside rows of %s: one family a file", family->name,
                           g->family->name);
    g->family = family;
    g->out->rows++;
    if (!row) {
        g->out->bad_rows++;
        return KVC_OK;
    }
    if (!kvc_grow((void **)&g->row, &g->cap, g->n + 1, sizeof *g->row))
        return kvc_fail_nomem(err);
    g->row[g->n++] = *row;
    return KVC_OK;
}

/* Of two tables for the same kernels only one would ever be looked at. */
static enum kvc_status check_new(const struct kvc_kernel_tables *t, size_t from, const char *path,
                                 struct kvc_error *err)
{
    for (size_t i = from; i < t->n; i++)
        for (size_t k = 0; k < from; k++)
            if (t->table[i].family == t->table[k].family &&
                strcmp(t->table[i].key, t->table[k].key) == 0)
                return kvc_fail_at(err, KVC_ERR_USAGE, path, 0, NULL,
                                   "%s %s was in a file before it: put the rows of both into one "
                                   "file, or name one of them", t->table[i].family->name,
                                   t->table[i].key);
    return KVC_OK;
}

/* "origin h100_sxm gemm vllm 0.24.0" */
static void source_of(const char *path, const char *origin, char *out, size_t size)
{
    const char *base = strrchr(path, '/');
    size_t n;

    base = base ? base + 1 : path;
    snprintf(out, size, "%s%s%s", origin ? origin : "", origin ? " " : "", base);
    char *end = strstr(out, ".csv");
    if (end)
        *end = '\0';
    for (char *u; (u = strstr(out, "__"));) {
        *u = ' ';
        n = strlen(u + 2);
        memmove(u + 1, u + 2, n + 1);
    }
}

enum kvc_status kvc_kernel_calibrate(struct kvc_kernel_calibration *out, const char *const *paths,
                                     size_t n, const char *origin, struct kvc_error *err)
{
    enum kvc_status status = kvc_profiles_ready(err);

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n && status == KVC_OK; i++) {
        struct gathered g = {.out = out, .path = paths[i]};
        char source[256];
        status = kvc_kernel_rows(paths[i], gather, &g, err);
        if (status == KVC_OK && g.n == 0)
            status = kvc_fail_at(err, KVC_ERR_INPUT, paths[i], 0, NULL, "no usable row");
        if (status == KVC_OK) {
            struct kvc_peaks peaks = kvc_peaks_of(out->gpu);
            source_of(paths[i], origin, source, sizeof source);
            size_t from = out->tables.n;
            status = kvc_kernel_fit(&out->tables, g.family, g.row, g.n, &peaks, source, err);
            if (status == KVC_OK)
                status = check_new(&out->tables, from, paths[i], err);
        }
        kvc_free(g.row);
    }
    if (status != KVC_OK)
        kvc_kernel_calibration_clear(out);
    return status;
}

void kvc_kernel_calibration_clear(struct kvc_kernel_calibration *c)
{
    kvc_kernel_tables_clear(&c->tables);
    memset(c, 0, sizeof *c);
}
