/* SPDX-License-Identifier: Apache-2.0
 * Errors by group, by backend and over all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "studies/engine/study.h"

/* What a prototype of this model reached, with some room. NULL and "" fit anything. */
static const struct {
    const char *llm, *system, *backend, *format;
    struct kvc_engine_bars bars;
} bars[] = {
    {"Llama-3.1-70B", "", "trtllm", "", {6, 12, 15, NAN, NAN, NAN, 0}},
    {"Llama-3.1-70B", "", "vllm", "fp8", {10, 18, 15, NAN, NAN, NAN, 0}},
    {"Llama-3.1-70B", "", "vllm", "nvfp4", {12, 22, 25, NAN, NAN, NAN, 0}},
    {"Llama-3.1-8B", "h100_sxm", "trtllm", "", {8, 24, 15, NAN, NAN, NAN, 64}},
    {"Qwen3-32B", "h100_sxm", "trtllm", "", {8, 24, 25, NAN, NAN, NAN, 64}},
    {"Qwen3-235B-A22B", "", "trtllm", "", {12, 25, 20, NAN, NAN, NAN, 0}},
    {"gpt-oss-120b", "", "", "", {14, 38, 35, NAN, NAN, NAN, 0}},
    {"Llama-3.1-8B", "", "sglang", "", {16, 25, NAN, NAN, NAN, NAN, 0}},
    {"Qwen3-235B-A22B", "", "sglang", "", {16, 25, NAN, NAN, NAN, NAN, 0}},
    {NULL, "", "trtllm", "", {8, NAN, 17, 0.88, 0.55, 0.85, 0}},
    {NULL, "", "vllm", "", {10, NAN, 25, 0.80, 0.45, 0.80, 0}},
};

/* Bars of predictions without fitted constants. */
static const struct {
    const char *name, *llm, *system, *without; /* without: a backend */
    struct kvc_engine_bars bars;
} unfitted[KVC_ENGINE_UNFITTED] = {
    {"TensorRT-LLM and vLLM", "", "", "sglang", {11, 22, NAN, NAN, NAN, NAN, 0}},
    {"DeepSeek on H200", "DeepSeek", "h200_sxm", "", {10, 18, NAN, NAN, NAN, NAN, 0}},
};

static bool fits(const char *pattern, const char *value)
{
    return !*pattern || strcmp(pattern, value) == 0;
}

static struct kvc_engine_bars bars_of(const struct kvc_engine_group *g)
{
    bool plain = g->backend && g->kind == KVC_ROW_PLAIN;

    for (size_t i = 0; g->unfitted && i < KVC_ENGINE_UNFITTED; i++)
        if (strcmp(g->unfitted, unfitted[i].name) == 0)
            return unfitted[i].bars;
    for (size_t i = 0; plain && i < sizeof bars / sizeof bars[0]; i++)
        if ((bars[i].llm ? g->llm && strcmp(bars[i].llm, g->llm->name) == 0 : !g->llm) &&
            fits(bars[i].system, g->system) && fits(bars[i].backend, g->backend) &&
            fits(bars[i].format, g->format))
            return bars[i].bars;
    return (struct kvc_engine_bars){NAN, NAN, NAN, NAN, NAN, NAN, 0};
}

const char *kvc_engine_verdict(double value, double bar)
{
    return isnan(value) || isnan(bar) ? "-" : value <= bar ? "met" : "missed";
}

/* ---- errors ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double kvc_engine_quantile(double *values, size_t n, double q)
{
    double at = q * (double)(n - 1), *sorted = values;
    size_t i = (size_t)at;

    qsort(values, n, sizeof *values, ascending);
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

struct sample {
    double *error; /* [rows] scratch */
    size_t n, within_20, within_50, covered;
};

static void add(struct sample *s, double predicted, double measured, double low, double high)
{
    s->error[s->n++] = 100 * (predicted / measured - 1);
    s->within_20 += fabs(predicted / measured - 1) <= 0.2;
    s->within_50 += fabs(predicted / measured - 1) <= 0.5;
    s->covered += measured >= predicted * low && measured <= predicted * high;
}

static struct kvc_engine_errors sum(struct sample *s)
{
    struct kvc_engine_errors e = {s->n, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    double total = 0;

    if (s->n == 0)
        return e;
    e.bias = kvc_engine_quantile(s->error, s->n, 0.5);
    for (size_t i = 0; i < s->n; i++)
        total += s->error[i] = fabs(s->error[i]);
    e.median = kvc_engine_quantile(s->error, s->n, 0.5);
    e.p90 = kvc_engine_quantile(s->error, s->n, 0.9);
    e.mean = total / (double)s->n;
    e.within_20 = (double)s->within_20 / (double)s->n;
    e.within_50 = (double)s->within_50 / (double)s->n;
    e.coverage = (double)s->covered / (double)s->n;
    return e;
}

static bool in_unfitted(const struct kvc_engine_group *of, const char *name)
{
    size_t i = 0;

    while (strcmp(unfitted[i].name, name) != 0)
        i++;
    return strncmp(of->llm->name, unfitted[i].llm, strlen(unfitted[i].llm)) == 0 &&
           fits(unfitted[i].system, of->system) && strcmp(of->backend, unfitted[i].without) != 0;
}

static bool in_group(const struct kvc_engine_validation *v, size_t row,
                     const struct kvc_engine_group *g)
{
    size_t at = v->prediction[row].group;

    if (at == SIZE_MAX)
        return false;
    if (g->llm)
        return g == &v->group[at];
    if (v->group[at].kind != KVC_ROW_PLAIN)
        return false;
    if (g->unfitted)
        return in_unfitted(&v->group[at], g->unfitted);
    return !g->backend || strcmp(g->backend, v->group[at].backend) == 0;
}

static struct kvc_engine_errors errors_of(const struct kvc_engine_validation *v,
                                          const struct kvc_engine_group *g, double *scratch,
                                          bool aside, bool first)
{
    struct sample s = {scratch, 0, 0, 0, 0};

    for (size_t i = 0; i < v->rows.n; i++) {
        const struct kvc_engine_prediction *p = &v->prediction[i];
        const struct kvc_engine_row *r = &v->rows.row[i];
        if (!in_group(v, i, g) || (aside && !p->aside))
            continue;
        if (aside && first && g->bars.ttft_clients && r->clients > g->bars.ttft_clients)
            continue;
        if (first)
            add(&s, g->unfitted ? p->unfitted_ttft_ms : p->ttft_ms, r->ttft_ms, p->band.ttft_low,
                p->band.ttft_high);
        else
            add(&s, g->unfitted ? p->unfitted_tpot_ms : p->tpot_ms, r->tpot_ms, p->band.tpot_low,
                p->band.tpot_high);
    }
    return sum(&s);
}

/* ---- groups ---- */

static bool is_of(const struct kvc_engine_group *g, const struct kvc_engine_row *r,
                  const struct kvc_engine_prediction *p)
{
    return g->kind == r->kind && g->llm == kvc_engine_row_llm(r) &&
           strcmp(g->system, r->system) == 0 &&
           strcmp(g->backend, r->backend) == 0 &&
           strcmp(g->format, kvc_dtype_name(p->weights)) == 0;
}

static void assign(struct kvc_engine_validation *v, size_t row)
{
    const struct kvc_engine_row *r = &v->rows.row[row];
    struct kvc_engine_prediction *p = &v->prediction[row];
    size_t i = 0;

    while (i < v->n_groups && !is_of(&v->group[i], r, p))
        i++;
    if (i == v->n_groups) {
        struct kvc_engine_group *g = &v->group[v->n_groups++];
        g->llm = kvc_engine_row_llm(r);
        g->kind = r->kind;
        g->system = r->system;
        g->backend = r->backend;
        snprintf(g->format, sizeof g->format, "%s", kvc_dtype_name(p->weights));
    }
    p->group = i;
    v->scored++;
}

static void add_backends(struct kvc_engine_validation *v)
{
    for (size_t i = 0; i < v->n_groups; i++) {
        size_t j = 0;
        while (j < v->n_backends &&
               strcmp(v->group[v->n_groups + j].backend, v->group[i].backend) != 0)
            j++;
        if (j == v->n_backends)
            v->group[v->n_groups + v->n_backends++].backend = v->group[i].backend;
    }
}

enum kvc_status kvc_engine_score(struct kvc_engine_validation *v, struct kvc_error *err)
{
    double *scratch = kvc_malloc(v->rows.n + 1, sizeof *scratch);

    v->group = kvc_calloc(2 * v->rows.n + 1 + KVC_ENGINE_UNFITTED, sizeof *v->group);
    if (!scratch || !v->group) {
        kvc_free(scratch);
        return kvc_fail_nomem(err);
    }
    for (size_t i = 0; i < v->rows.n; i++)
        if (!v->prediction[i].skipped) {
            if (v->rows.row[i].doubtful)
                v->doubtful++;
            else
                assign(v, i);
        }
    add_backends(v);
    size_t all = v->n_groups + v->n_backends;
    for (size_t i = 0; i < KVC_ENGINE_UNFITTED; i++)
        v->group[all + 1 + i].unfitted = unfitted[i].name;
    for (size_t i = 0; i <= all + KVC_ENGINE_UNFITTED; i++) {
        struct kvc_engine_group *g = &v->group[i];
        g->bars = bars_of(g);
        g->ttft = errors_of(v, g, scratch, false, true);
        g->tpot = errors_of(v, g, scratch, false, false);
        g->aside_ttft = errors_of(v, g, scratch, true, true);
        g->aside_tpot = errors_of(v, g, scratch, true, false);
    }
    kvc_free(scratch);
    return KVC_OK;
}
