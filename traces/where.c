/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/where.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/spill.h"
#include "base/units.h"
#include "traces/canonical.h"
#include "traces/trace_write.h"

#include <stdio.h>
#include <string.h>

/* ---- words ---- */

struct wanted { /* of a trace's tenants, or models */
    const char *key;
    char **names;
    uint32_t n;
    bool *of; /* by name; NULL: all are */
};

static enum kvc_status want(struct wanted *w, const char *name, struct kvc_error *err)
{
    if (!w->of && !(w->of = kvc_calloc(w->n, sizeof(*w->of))))
        return kvc_fail_nomem(err);
    uint32_t i = 0;
    while (i < w->n && strcmp(w->names[i], name) != 0)
        i++;
    if (i < w->n) {
        w->of[i] = true;
        return KVC_OK;
    }
    const char *near = NULL;
    const char **list = w->n ? kvc_calloc((size_t)w->n + 1, sizeof(*list)) : NULL;
    for (i = 0; list && i < w->n; i++)
        list[i] = w->names[i];
    if (list)
        near = kvc_name_nearest(name, list);
    enum kvc_status status =
        w->n ? kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--where",
                           "no request is of %s \"%.64s\"%s%.64s%s", w->key, name,
                           near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "")
             : kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--where",
                           "no request states a %s, so none is of \"%.64s\"", w->key, name);
    kvc_free(list);
    return status;
}

/* Each word goes to one of two; NULL: they are only checked. */
static enum kvc_status parse(const char *where, struct wanted *two, struct kvc_error *err)
{
    char *copy = kvc_strdup(where), *comma;
    enum kvc_status status = copy ? KVC_OK : kvc_fail_nomem(err);
    for (char *word = copy; word && status == KVC_OK; word = comma) {
        comma = strchr(word, ',');
        if (comma)
            *comma++ = '\0';
        char *name = strchr(word, '=');
        bool tenant = strncmp(word, "tenant=", 7) == 0;
        if (!name || !name[1] || (!tenant && strncmp(word, "model=", 6) != 0))
            status = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--where",
                                 "\"%.64s\" is not tenant=NAME or model=NAME; several stand apart "
                                 "by commas", word);
        else if (two)
            status = want(&two[tenant ? 0 : 1], name + 1, err);
    }
    kvc_free(copy);
    return status;
}

enum kvc_status kvc_where_check(const char *where, struct kvc_error *err)
{
    return parse(where, NULL, err);
}

/* ---- requests ---- */

static bool is_of(const struct wanted *w, const uint32_t *column, uint64_t r)
{
    return !w->of || (column && column[r] != KVC_ID_NONE && w->of[column[r]]);
}

/* Leaves the n rows of a column (a T **) that index[] names. */
static bool thin(struct kvc_trace *t, void *column, size_t size, const uint64_t *index, uint64_t n)
{
    unsigned char **old = column, *fresh;
    if (!*old)
        return true;
    if (!(fresh = kvc_malloc(n, size)))
        return false;
    for (uint64_t i = 0; i < n; i++)
        memcpy(fresh + i * size, *old + index[i] * size, size);
    kvc_trace_drop(t, column);
    *old = fresh;
    return true;
}

static bool thin_all(struct kvc_trace *t, const uint64_t *index, uint64_t n)
{
    bool good = thin(t, &t->arrival_ns, 8, index, n) && thin(t, &t->input_tokens, 4, index, n) &&
                thin(t, &t->output_tokens, 4, index, n) && thin(t, &t->prompt_seg, 4, index, n) &&
                thin(t, &t->output_seg, 4, index, n) && thin(t, &t->session, 4, index, n) &&
                thin(t, &t->think_ns, 8, index, n) && thin(t, &t->tenant, 4, index, n) &&
                thin(t, &t->model, 4, index, n) && thin(t, &t->output_unknown, 1, index, n) &&
                thin(t, &t->row_status, 1, index, n) && thin(t, &t->cached_tokens, 4, index, n);
    t->n_requests = n;
    for (uint64_t i = n; good && i-- > 0;)
        t->arrival_ns[i] -= t->arrival_ns[0];
    return good;
}

/* ---- segments ---- */

struct passing {
    uint32_t *children; /* by segment: those that are passed through */
    uint8_t *used;      /* 1: passed through; 2: some path ends here */
};

static void pass(struct passing *p, const struct kvc_trace *t, const uint32_t *column)
{
    for (uint64_t r = 0; column && r < t->n_requests; r++) {
        uint32_t s = column[r], up;
        bool was = s != KVC_SEG_NONE && p->used[s];
        if (s != KVC_SEG_NONE)
            p->used[s] = 2;
        for (; s != KVC_SEG_NONE && !was; s = up) {
            up = t->seg_parent[s];
            if (up == KVC_SEG_NONE)
                break;
            p->children[up]++;
            was = p->used[up];
            p->used[up] = was ? p->used[up] : 1;
        }
    }
}

static void remap(uint32_t *column, uint64_t n, const uint32_t *number)
{
    for (uint64_t i = 0; column && i < n; i++)
        if (column[i] != KVC_SEG_NONE)
            column[i] = number[column[i]];
}

/* Drops what nobody passes through, and joins what nobody parts any more. */
static bool join(struct kvc_trace *t)
{
    uint32_t n = t->n_segments, kept = 0;
    struct passing p = {kvc_calloc(n, sizeof(*p.children)), kvc_calloc(n, 1)};
    uint32_t *number = kvc_malloc(n, sizeof(*number)), *of[4];
    bool good = p.children && p.used && number;
    for (int i = 0; i < 4; i++) {
        of[i] = kvc_malloc(n, sizeof(*of[i]));
        good = good && of[i];
    }
    if (good) {
        pass(&p, t, t->prompt_seg);
        pass(&p, t, t->output_seg);
    }
    for (uint32_t s = 0; good && s < n; s++) {
        uint32_t up = t->seg_parent[s];
        if (!p.used[s])
            continue;
        if (up != KVC_SEG_NONE && p.children[up] == 1 && p.used[up] == 1) {
            number[s] = number[up];
            of[1][number[s]] += t->seg_len[s];
            continue;
        }
        number[s] = kept;
        of[0][kept] = up == KVC_SEG_NONE ? up : number[up];
        of[1][kept] = t->seg_len[s];
        of[2][kept] = t->seg_depth[s];
        of[3][kept++] = t->seg_draw ? t->seg_draw[s] : 0; /* of the first block: joins keep it */
    }
    if (good) {
        remap(t->prompt_seg, t->n_requests, number);
        remap(t->output_seg, t->n_requests, number);
        kvc_trace_drop(t, &t->seg_parent);
        kvc_trace_drop(t, &t->seg_len);
        kvc_trace_drop(t, &t->seg_depth);
        t->seg_parent = of[0];
        t->seg_len = of[1];
        t->seg_depth = of[2];
        t->n_segments = kept;
        of[0] = of[1] = of[2] = NULL;
    }
    if (good && t->seg_draw) {
        kvc_trace_drop(t, &t->seg_draw);
        t->seg_draw = of[3];
        of[3] = NULL;
    }
    for (int i = 0; i < 4; i++)
        kvc_free(of[i]);
    kvc_free(number);
    kvc_free(p.used);
    kvc_free(p.children);
    return good;
}

/* ---- the whole ---- */

static bool canonical(struct kvc_trace *t)
{
    struct kvc_spill spill = {0};
    bool good = kvc_spill_init(&spill, NULL, 0) && kvc_trace_canonical(t, &spill);
    kvc_spill_clear(&spill);
    return good;
}

static enum kvc_status leave(struct kvc_trace *t, const struct wanted *two, uint64_t *left_out,
                             struct kvc_error *err)
{
    uint64_t n = 0, *index = kvc_malloc(t->n_requests, sizeof(*index));
    if (!index)
        return kvc_fail_nomem(err);
    for (uint64_t r = 0; r < t->n_requests; r++)
        if (is_of(&two[0], t->tenant, r) && is_of(&two[1], t->model, r))
            index[n++] = r;
    *left_out = t->n_requests - n;
    enum kvc_status status =
        n ? KVC_OK : kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--where",
                                 "no request is of that tenant and that model");
    if (n && *left_out) {
        t->n_breaks = 0; /* places in all prompts, not in these */
        t->compared_prompts = 0;
        if (thin_all(t, index, n) && join(t) && canonical(t))
            kvc_trace_digest(t, t->digest);
        else
            status = kvc_fail_nomem(err);
    }
    kvc_free(index);
    return status;
}

enum kvc_status kvc_trace_where(struct kvc_trace *t, const char *where, uint64_t *left_out,
                                struct kvc_error *err)
{
    struct wanted two[] = {{"tenant", t->tenant_names, t->tenant ? t->n_tenants : 0, NULL},
                           {"model", t->model_names, t->model ? t->n_models : 0, NULL}};
    if (t->sample.weight)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--where", "these are samples of a log, "
                           "whose totals are not known by tenant or model");
    enum kvc_status status = parse(where, two, err);
    if (status == KVC_OK)
        status = leave(t, two, left_out, err);
    kvc_free(two[0].of);
    kvc_free(two[1].of);
    return status;
}

void kvc_where_tell(struct kvc_import_report *r, const char *where, uint64_t left_out)
{
    r->filtered += left_out;
    if (!left_out || r->n_tallies == KVC_REPORT_NOTES)
        return;
    struct kvc_import_tally *tally = &r->tallies[r->n_tallies++];
    snprintf(tally->text, sizeof(tally->text), "left out by --where %.120s", where);
    tally->rows = left_out;
}
