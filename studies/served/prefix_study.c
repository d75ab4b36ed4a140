/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/served/prefix_study.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "studies/csv_table.h"

static enum kvc_status predict(struct kvc_prefix_study *s, struct kvc_csv_table *t, bool seconds,
                               const struct kvc_scenario *scenario, struct kvc_error *err)
{
    const char *tier = kvc_csv_table_cell(t, "tier");
    double ttft, tokens;
    enum kvc_status status =
        kvc_csv_table_number(t, seconds ? "ttft_p50_s" : "ttft_ms", &ttft, err);
    struct kvc_request_result r;
    enum kvc_probe_tier which;

    if (status == KVC_OK)
        status = kvc_csv_table_number(t, "tokens", &tokens, err);
    if (status != KVC_OK)
        return status;
    if (!kvc_probe_tier_parse(tier, &which))
        return kvc_fail_at(err, KVC_ERR_INPUT, t->path, t->line, "tier",
                           "'%.40s' is no tier; miss, hbm, dram or remote", tier);
    if (!(ttft > 0) || !(tokens >= 16 && tokens <= 1u << 24))
        return kvc_fail_at(err, KVC_ERR_INPUT, t->path, t->line, NULL,
                           "tokens (16 or more) or the TTFT are missing or make no sense");
    if (!kvc_grow((void **)&s->row, &s->cap, s->n + 1, sizeof *s->row))
        return kvc_fail_nomem(err);
    status = kvc_probe(&r, scenario, which, (uint32_t)tokens, err);
    if (status != KVC_OK)
        return status;
    struct kvc_prefix_row *row = &s->row[s->n++];
    *row = (struct kvc_prefix_row){.tokens = (uint32_t)tokens, .which = which,
                                   .measured_ms = ttft * (seconds ? 1e3 : 1),
                                   .predicted_ms = (double)r.ttft_ns / 1e6};
    snprintf(row->tier, sizeof row->tier, "%.31s", tier);
    return KVC_OK;
}

static enum kvc_status shift(struct kvc_prefix_study *s, const char *path, struct kvc_error *err)
{
    s->host = s->row[0].calibrated = true;
    s->shift_ms = s->row[0].measured_ms - s->row[0].predicted_ms;
    for (size_t i = 0; i < s->n; i++) {
        struct kvc_prefix_row *r = &s->row[i];
        if (r->predicted_ms + s->shift_ms <= 0)
            return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                               "the first row puts %.4g ms less outside the model than it counts, "
                               "more than all of the %.4g ms predicted for %u tokens from %s: put "
                               "a row first whose prefix was served from hbm, or leave out "
                               "--calibrate", -s->shift_ms, r->predicted_ms, r->tokens, r->tier);
        r->predicted_ms += s->shift_ms;
    }
    return KVC_OK;
}

static enum kvc_status without_load_cost(struct kvc_scenario *s, struct kvc_error *err)
{
    enum kvc_status status = kvc_scenario_set(s, "engine.kv_load_time", "0s", err);

    return status == KVC_OK ? kvc_scenario_set(s, "engine.kv_load_token_time", "0s", err) : status;
}

/* What a row takes beside its prediction, less what a hit in HBM of that length does. */
static double beside(const struct kvc_prefix_study *s, const struct kvc_prefix_row *r)
{
    double hit = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->row[i].which == KVC_PROBE_HBM && s->row[i].tokens == r->tokens)
            hit = s->row[i].measured_ms - s->row[i].predicted_ms;
    return r->measured_ms - r->predicted_ms - hit;
}

/* A line through that of the tier's shortest and longest row. */
static void fit_load(struct kvc_prefix_study *s, enum kvc_probe_tier tier,
                     struct kvc_prefix_load *out)
{
    struct kvc_prefix_row *least = NULL, *most = NULL;

    for (size_t i = 0; i < s->n; i++) {
        struct kvc_prefix_row *r = &s->row[i];
        if (r->which != tier)
            continue;
        least = least && least->tokens <= r->tokens ? least : r;
        most = most && most->tokens >= r->tokens ? most : r;
        out->rows++;
    }
    if (!least || least->tokens == most->tokens) {
        out->rows = 0;
        return;
    }
    double low = beside(s, least), high = beside(s, most);
    double each = (high - low) / ((double)most->tokens - least->tokens);
    out->us_per_token = each * 1e3;
    out->ms = low - each * least->tokens;
    least->calibrated = most->calibrated = true;
    for (size_t i = 0; i < s->n; i++)
        if (s->row[i].which == tier)
            s->row[i].predicted_ms += out->ms + each * s->row[i].tokens;
}

enum kvc_status kvc_prefix_study_run(struct kvc_prefix_study *out, const char *path,
                                     const struct kvc_scenario *scenario, unsigned calibrate,
                                     struct kvc_error *err)
{
    struct kvc_csv_table t;
    struct kvc_scenario own = *scenario;
    bool more = true;
    enum kvc_status status = kvc_csv_table_open(&t, path, err);

    memset(out, 0, sizeof *out);
    if (status == KVC_OK && calibrate & KVC_PREFIX_LOADS)
        status = without_load_cost(&own, err);
    bool seconds = status == KVC_OK && kvc_csv_table_has(&t, "ttft_p50_s");
    while (status == KVC_OK) {
        status = kvc_csv_table_next(&t, &more, err);
        if (status != KVC_OK || !more)
            break;
        status = predict(out, &t, seconds, &own, err);
    }
    kvc_csv_table_close(&t);
    if (status == KVC_OK && out->n == 0)
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "no row in it");
    if (status == KVC_OK && calibrate & KVC_PREFIX_HOST)
        status = shift(out, path, err);
    if (status == KVC_OK && calibrate & KVC_PREFIX_LOADS) {
        fit_load(out, KVC_PROBE_DRAM, &out->dram);
        fit_load(out, KVC_PROBE_REMOTE, &out->remote);
    }
    if (status != KVC_OK)
        kvc_prefix_study_clear(out);
    return status;
}

void kvc_prefix_study_clear(struct kvc_prefix_study *study)
{
    kvc_free(study->row);
    memset(study, 0, sizeof *study);
}
