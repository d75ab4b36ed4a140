/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/engine/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/error.h"
#include "studies/csv_table.h"

/* ---- reading ---- */

/* Columns without which a file is none of this kind. */
static const char *const needed[] = {"backend", "model_path", "system", "mode", "isl", "osl",
                                     "silicon_ttft_ms", "silicon_tpot_ms"};

static enum kvc_status check_columns(const struct kvc_csv_table *t, struct kvc_error *err)
{
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!kvc_csv_table_has(t, needed[i]))
            return kvc_fail_at(err, KVC_ERR_INPUT, t->path, 1, needed[i],
                               "no such column; engine rows have those of aiconfigurator's "
                               "silicon_sample.csv");
    return KVC_OK;
}

static void text(struct kvc_csv_table *t, const char *name, char *to, size_t size)
{
    const char *cell = kvc_csv_table_cell(t, name);
    size_t n = strlen(cell) < size ? strlen(cell) : size - 1;

    memcpy(to, cell, n);
    to[n] = '\0';
}

/* A whole number; empty is otherwise. */
static bool count(struct kvc_csv_table *t, const char *name, uint32_t otherwise, uint32_t *out)
{
    const char *cell = kvc_csv_table_cell(t, name);
    char *end;
    double v = strtod(cell, &end);

    *out = otherwise;
    if (*cell == '\0')
        return true;
    if (*end || !(v >= 0 && v <= 1e9) || v != floor(v))
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool milliseconds(struct kvc_csv_table *t, const char *name, double *out)
{
    const char *cell = kvc_csv_table_cell(t, name);
    char *end;

    *out = strtod(cell, &end);
    return end != cell && *end == '\0' && *out > 0 && *out < 1e12;
}

static bool workers(struct kvc_csv_table *t, const char *kind, struct kvc_row_workers *out)
{
    const struct {
        const char *name;
        uint32_t otherwise, *out;
    } columns[] = {{"num_workers", 0, &out->workers}, {"batch_size", 1, &out->batch},
                   {"tp_size", 0, &out->tp},          {"pp_size", 1, &out->pp},
                   {"attention_dp_size", 1, &out->dp}, {"moe_tp_size", 1, &out->moe_tp},
                   {"moe_ep_size", 1, &out->moe_ep}};
    char name[64];
    bool fine = true;

    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        snprintf(name, sizeof name, "%s_%s", kind, columns[i].name);
        fine = count(t, name, columns[i].otherwise, columns[i].out) && fine;
    }
    return fine && out->workers <= 4096 && out->batch <= 100000 && (out->tp || !out->workers) &&
           out->dp <= 4096;
}

/* Everything in flight is in decode: that many clients are busy. */
static bool disaggregated(struct kvc_csv_table *t, struct kvc_engine_row *r)
{
    const struct kvc_row_workers *d = &r->decode;

    if (!workers(t, "prefill", &r->prefill) || !workers(t, "decode", &r->decode))
        return false;
    r->tp = d->tp;
    r->pp = d->pp;
    r->dp = d->dp ? d->dp : 1;
    r->moe_tp = d->moe_tp;
    r->moe_ep = d->moe_ep;
    r->clients = d->batch * (d->workers ? d->workers : 1) * r->dp;
    return r->isl && r->osl && r->clients && r->clients <= 100000;
}

static bool numbers(struct kvc_csv_table *t, struct kvc_engine_row *r)
{
    bool fine = milliseconds(t, "silicon_ttft_ms", &r->ttft_ms);

    fine = milliseconds(t, "silicon_tpot_ms", &r->tpot_ms) && fine;
    fine = count(t, "isl", 0, &r->isl) && fine;
    fine = count(t, "osl", 0, &r->osl) && fine;
    if (r->disagg)
        return disaggregated(t, r) && fine;
    fine = count(t, "batch_size", 0, &r->clients) && fine;
    fine = count(t, "tp_size", 0, &r->tp) && fine;
    fine = count(t, "pp_size", 1, &r->pp) && fine;
    fine = count(t, "attention_dp_size", 1, &r->dp) && fine;
    fine = count(t, "moe_tp_size", 1, &r->moe_tp) && fine;
    fine = count(t, "moe_ep_size", 1, &r->moe_ep) && fine;
    return fine && r->isl && r->osl && r->clients && r->tp && r->clients <= 100000 &&
           r->isl <= 10000000 && r->osl <= 10000000;
}

/* "..measured=2025-11-02T00:00:00Z.." as 20251102 */
static uint32_t day_measured(const char *source)
{
    const char *at = strstr(source, "measured=");
    unsigned y, m, d;

    return at && sscanf(at, "measured=%4u-%2u-%2u", &y, &m, &d) == 3 ? (y * 100 + m) * 100 + d : 0;
}

static void read_row(struct kvc_csv_table *t, struct kvc_engine_row *r)
{
    memset(r, 0, sizeof *r);
    text(t, "id", r->id, sizeof r->id);
    text(t, "model_path", r->model, sizeof r->model);
    text(t, "system", r->system, sizeof r->system);
    text(t, "backend", r->backend, sizeof r->backend);
    text(t, "backend_version", r->version, sizeof r->version);
    text(t, "precision", r->precision, sizeof r->precision);
    text(t, "gemm_quant_mode", r->gemm, sizeof r->gemm);
    text(t, "moe_quant_mode", r->moe, sizeof r->moe);
    const char *slash = strrchr(r->model, '/');
    if (slash)
        memmove(r->model, slash + 1, strlen(slash));
    r->disagg = strcmp(kvc_csv_table_cell(t, "mode"), "disagg") == 0;
    const char *source = kvc_csv_table_cell(t, "silicon_data_source");
    r->harvested = strstr(source, "aic-auto") == NULL;
    r->measured = day_measured(source);
    if (!numbers(t, r))
        r->unusable = "a number is missing or wrong";
}

/* ---- repair (where the same measurement also carries a plain label, this is what it says) ---- */

/* The same GPUs counted twice. InferenceX's MiniMax-M2.5 fp8 scripts know no data parallelism, and
 * these runs equal those of the plain label. */
static void data_and_tensor(struct kvc_engine_row *r)
{
    r->repaired = "data and tensor parallelism were multiplied";
    r->moe_ep = r->dp;
    if (strcmp(r->model, "MiniMax-M2.5") == 0 && strcmp(r->precision, "fp8") == 0) {
        r->clients *= r->dp;
        r->dp = 1;
    } else {
        r->tp = 1;
    }
}

static void repair(struct kvc_engine_row *r)
{
    if (r->moe_ep == 0) {
        r->moe_ep = 1;
        r->repaired = "no experts' parallelism stated: 1";
    }
    if (r->dp == 0)
        r->dp = 1;
    if (!r->harvested || r->disagg)
        return;
    if (r->moe_tp > 1 && r->moe_tp == r->moe_ep) {
        if (r->tp == r->moe_tp * r->moe_ep && r->dp == 1) {
            r->tp = r->moe_ep;
            r->moe_tp = 1;
            r->repaired = "tensor and expert parallelism were multiplied";
        } else if (r->dp == r->moe_tp * r->moe_ep && r->tp == 1) {
            r->clients *= r->dp / r->moe_ep; /* they are counted per replica */
            r->dp = r->moe_ep;
            r->moe_tp = 1;
            r->repaired = "data and expert parallelism were multiplied";
        }
    } else if (r->dp > 1 && r->dp == r->tp && r->moe_ep == r->tp * r->dp) {
        data_and_tensor(r);
    }
}

/* ---- measurements that contradict themselves or their neighbours ---- */

struct doubt {
    const char *model, *system, *backend, *gemm; /* NULL: any */
    uint32_t tp, ep, isl, osl;                   /* 0: any */
    uint32_t clients, clients_up_to;             /* 0, 0: any */
    uint32_t measured;                           /* 0: any day */
    double ttft_above_ms;
    const char *why;
};

static const struct doubt doubts[] = {
    {.model = "gpt-oss-120b", .system = "h100_sxm", .backend = "vllm", .clients = 512,
     .clients_up_to = 512,
     .why = "TPOT of 4 to 64 clients beside a TTFT of 20 to 462 s: both can't hold"},
    {.model = "gpt-oss-120b", .system = "h100_sxm", .backend = "vllm", .tp = 4, .isl = 1024,
     .osl = 1024, .clients = 32, .clients_up_to = 32, .why = "TPOT far above that of more clients"},
    {.model = "gpt-oss-120b", .system = "h100_sxm", .backend = "vllm", .tp = 4, .isl = 1024,
     .osl = 8192, .clients = 16, .clients_up_to = 16, .why = "TPOT above that of more clients"},
    {.model = "Llama-3.1-8B-Instruct-FP8", .system = "h200_sxm", .backend = "vllm",
     .why = "about half the time the machine needs, at every point"},
    {.model = "DeepSeek-R1", .system = "b200_sxm", .backend = "sglang", .gemm = "nvfp4", .ep = 1,
     .ttft_above_ms = 4000,
     .why = "TTFT of 4 to 12 s, not monotone in clients: warm-up inside the run"},
    {.model = "DeepSeek-V3", .system = "b200_sxm", .backend = "sglang", .gemm = "nvfp4", .ep = 1,
     .ttft_above_ms = 4000,
     .why = "TTFT of 4 to 12 s, not monotone in clients: warm-up inside the run"},
    {.model = "gpt-oss-120b", .system = "h200_sxm", .backend = "trtllm", .tp = 1, .clients = 64,
     .clients_up_to = 64, .ttft_above_ms = 5000,
     .why = "a queue at lengths that fit: a limit that the row does not state"},
};

/* Runs that guess tokens ahead (multi-token prediction) carry no label. */
static const struct doubt speculative[] = {
    {.model = "DeepSeek-R1", .system = "b200_sxm", .backend = "sglang", .gemm = "fp8",
     .measured = 20260325,
     .why = "128 to 512 clients, which InferenceX runs with multi-token prediction only"},
    {.model = "DeepSeek-V3", .system = "b200_sxm", .backend = "sglang", .gemm = "fp8",
     .measured = 20260325,
     .why = "128 to 512 clients, which InferenceX runs with multi-token prediction only"},
    {.model = "DeepSeek-R1", .system = "h200_sxm", .backend = "trtllm", .gemm = "fp8", .tp = 8,
     .ep = 8, .measured = 20260114, .why = "8.6 ms a token where the plain runs take 13.8"},
    {.model = "Qwen3.5-397B-A17B", .system = "b200_sxm", .backend = "sglang", .gemm = "fp8",
     .tp = 4, .ep = 1, .why = "tokens come faster than from twice the GPUs"},
    {.model = "Qwen3.5-397B-A17B", .system = "b300_sxm", .backend = "sglang", .gemm = "fp8",
     .tp = 4, .ep = 1, .measured = 20260403,
     .why = "a third less a token than the same configuration two weeks later"},
};

static bool any_or(const char *pattern, const char *value)
{
    return !pattern || strcmp(pattern, value) == 0;
}

static bool applies(const struct doubt *d, const struct kvc_engine_row *r)
{
    return any_or(d->model, r->model) && any_or(d->system, r->system) &&
           any_or(d->backend, r->backend) && any_or(d->gemm, r->gemm) &&
           (!d->tp || d->tp == r->tp) && (!d->ep || d->ep == r->moe_ep) &&
           (!d->isl || d->isl == r->isl) && (!d->osl || d->osl == r->osl) &&
           (!d->clients || (r->clients >= d->clients && r->clients <= d->clients_up_to)) &&
           (!d->measured || d->measured == r->measured) &&
           r->ttft_ms > d->ttft_above_ms;
}

static void doubt(struct kvc_engine_row *r)
{
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0] && !r->doubtful; i++)
        if (applies(&doubts[i], r))
            r->doubtful = doubts[i].why;
    for (size_t i = 0; i < sizeof speculative / sizeof speculative[0] && !r->speculative; i++)
        if (applies(&speculative[i], r))
            r->speculative = speculative[i].why;
    r->kind = r->disagg        ? KVC_ROW_DISAGG
              : r->dp > 1      ? KVC_ROW_DATA_PARALLEL
              : r->speculative ? KVC_ROW_SPECULATIVE
                               : KVC_ROW_PLAIN;
}

/* ---- repeats: dumps overlap, and R1's runs are listed as V3's too ---- */

static int order(const struct kvc_engine_row *a, const struct kvc_engine_row *b)
{
    int by = a->disagg - b->disagg;

    by = by ? by : strcmp(a->backend, b->backend);
    by = by ? by : strcmp(a->system, b->system);
    by = by ? by : (a->isl > b->isl) - (a->isl < b->isl);
    return by ? by : (a->osl > b->osl) - (a->osl < b->osl);
}

static int by_measurement(const void *pa, const void *pb)
{
    const struct kvc_engine_row *a = *(struct kvc_engine_row *const *)pa,
                                *b = *(struct kvc_engine_row *const *)pb;
    int by = order(a, b);

    by = by ? by : (a->ttft_ms > b->ttft_ms) - (a->ttft_ms < b->ttft_ms);
    return by ? by : (a > b) - (a < b);
}

/* Some dumps are printed with fewer digits: 0.01 % of 338.34 ms, 0.15 % of 6.33 ms. */
static bool repeats(const struct kvc_engine_row *a, const struct kvc_engine_row *b)
{
    return order(a, b) == 0 && fabs(a->ttft_ms / b->ttft_ms - 1) < 1e-4 &&
           fabs(a->tpot_ms / b->tpot_ms - 1) < 1.5e-3;
}

/* A plain label stays rather than one that had to be repaired, a dated row rather than another,
 * else the first. */
static bool better(const struct kvc_engine_row *a, const struct kvc_engine_row *b)
{
    if (!a->repaired != !b->repaired)
        return !a->repaired;
    if (!a->measured != !b->measured)
        return a->measured;
    return a < b;
}

static enum kvc_status mark_repeats(struct kvc_engine_rows *rows, struct kvc_error *err)
{
    struct kvc_engine_row **sorted = kvc_malloc(rows->n, sizeof(struct kvc_engine_row *));
    size_t n = 0;

    if (!sorted)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < rows->n; i++)
        if (!rows->row[i].unusable)
            sorted[n++] = &rows->row[i];
    if (n)
        qsort(sorted, n, sizeof *sorted, by_measurement);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n && !sorted[i]->unusable &&
                               sorted[j]->ttft_ms < sorted[i]->ttft_ms * (1 + 1e-4) &&
                               order(sorted[i], sorted[j]) == 0; j++)
            if (!sorted[j]->unusable && repeats(sorted[i], sorted[j]))
                (better(sorted[i], sorted[j]) ? sorted[j] : sorted[i])->unusable =
                    "a repeat of another row's measurement";
    kvc_free(sorted);
    return KVC_OK;
}

enum kvc_status kvc_engine_rows_read(struct kvc_engine_rows *out, const char *path,
                                     const char *mode, struct kvc_error *err)
{
    struct kvc_csv_table t;
    bool more = true;
    enum kvc_status status = kvc_csv_table_open(&t, path, err);

    memset(out, 0, sizeof *out);
    if (status == KVC_OK)
        status = check_columns(&t, err);
    while (status == KVC_OK && (status = kvc_csv_table_next(&t, &more, err)) == KVC_OK && more) {
        if (mode && strcmp(mode, kvc_csv_table_cell(&t, "mode")) != 0)
            continue;
        if (!kvc_grow((void **)&out->row, &out->cap, out->n + 1, sizeof *out->row)) {
            status = kvc_fail_nomem(err);
            break;
        }
        struct kvc_engine_row *r = &out->row[out->n++];
        read_row(&t, r);
        repair(r);
        doubt(r);
    }
    kvc_csv_table_close(&t);
    if (status == KVC_OK && out->n)
        status = mark_repeats(out, err);
    if (status != KVC_OK)
        kvc_engine_rows_clear(out);
    return status;
}

void kvc_engine_rows_clear(struct kvc_engine_rows *rows)
{
    kvc_free(rows->row);
    memset(rows, 0, sizeof *rows);
}

/* ---- profiles ---- */

const struct kvc_llm *kvc_engine_row_llm(const struct kvc_engine_row *row)
{
    static const char *const formats[] = {"FP8", "NVFP4", "FP4", "INT4", "Instruct", "2507",
                                          NULL};
    char name[KVC_ROW_NAME];

    memcpy(name, row->model, sizeof name);
    for (;;) {
        const struct kvc_llm *llm = kvc_llm_find(name);
        char *dash = strrchr(name, '-');
        size_t i = 0;
        if (llm || !dash)
            return llm;
        while (formats[i] && strcasecmp(dash + 1, formats[i]) != 0)
            i++;
        if (!formats[i])
            return NULL;
        *dash = '\0';
    }
}

bool kvc_engine_row_dtypes(const struct kvc_engine_row *row, const struct kvc_llm *llm,
                           const struct kvc_gpu *gpu, enum kvc_dtype *weights,
                           enum kvc_dtype *kv)
{
    const char *format = *row->gemm ? row->gemm : *row->precision ? row->precision : "bf16";
    const char *published = llm->weights_dtype ? llm->weights_dtype : "";
    bool block = strcmp(format, "fp8_block") == 0 || strcmp(row->moe, "fp8_block") == 0;
    bool fp8 = !block && strcmp(format, "fp8") == 0;
    bool fp4 = strcmp(format, "nvfp4") == 0 || strcmp(format, "fp4") == 0;
    bool mxfp4 = fp4 && strcmp(published, "mxfp4") == 0;

    if (fp4)
        *weights = mxfp4 ? KVC_MXFP4 : KVC_NVFP4;
    else if (block || (fp8 && strcmp(published, "fp8_block") == 0))
        *weights = KVC_FP8_BLOCK; /* such checkpoints are labelled fp8 too */
    else if (strcmp(format, "int4_wo") == 0)
        *weights = KVC_INT4;
    else if (!kvc_dtype_parse(format, weights))
        return false;
    *kv = fp8 || (fp4 && !mxfp4) || (mxfp4 && gpu->fp4_flops.value > 0) ? KVC_FP8 : KVC_BF16;
    return true;
}
