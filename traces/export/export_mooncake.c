/* SPDX-License-Identifier: Apache-2.0
 * Mooncake JSON lines, with session_id, delay, model and tenant where the trace has them. */
#include "traces/export/export.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#include <string.h>

#define EXACT_MS ((uint64_t)1 << 33) /* milliseconds a double holds to the nanosecond */

struct writer {
    struct kvc_export *x;
    char **tenants, **models; /* as JSON text */
    uint64_t cancelled, lost, cached, unknown, fine;
};

/* Milliseconds with the fraction that nanoseconds need. */
static void put_ms(struct writer *w, uint64_t ns)
{
    uint64_t whole = ns / 1000000, part = ns % 1000000;
    kvc_export_number(w->x, whole);
    if (!part)
        return;
    char text[8] = ".000000";
    size_t n = 7;
    for (size_t i = 6; i > 0; i--, part /= 10)
        text[i] = (char)('0' + part % 10);
    while (text[n - 1] == '0')
        n--;
    kvc_export_put(w->x, text, n);
    w->fine += whole >= EXACT_MS;
}

static bool escape(char **names, uint32_t n, char ***out)
{
    *out = kvc_calloc(n, sizeof(**out));
    for (uint32_t i = 0; *out && i < n; i++) {
        struct kvc_json j;
        kvc_json_init(&j, false);
        kvc_json_string(&j, NULL, names[i]);
        if (!((*out)[i] = kvc_json_take(&j)))
            return false;
    }
    return *out != NULL;
}

static void put_name(struct writer *w, const char *key, const uint32_t *column, uint64_t r,
                     char **names)
{
    if (!column || column[r] == KVC_ID_NONE)
        return;
    kvc_export_text(w->x, key);
    kvc_export_text(w->x, names[column[r]]);
}

static void put_row(struct writer *w, uint64_t r)
{
    struct kvc_export *x = w->x;
    const struct kvc_trace *t = x->t;
    kvc_export_text(x, "{\"timestamp\": ");
    put_ms(w, t->arrival_ns[r]);
    kvc_export_text(x, ", \"input_length\": ");
    kvc_export_number(x, t->input_tokens[r]);
    kvc_export_text(x, ", \"output_length\": ");
    kvc_export_number(x, t->output_tokens[r]);
    if (t->prompt_seg[r] != KVC_SEG_NONE) {
        kvc_export_text(x, ", \"hash_ids\": [");
        kvc_export_blocks(x, t->prompt_seg[r], 0, ", ");
        kvc_export_text(x, "]");
    }
    if (t->session && t->session[r] != KVC_ID_NONE) {
        kvc_export_text(x, ", \"session_id\": \"s");
        kvc_export_number(x, t->session[r]);
        kvc_export_text(x, "\"");
    }
    if (t->think_ns && t->think_ns[r] != KVC_TIME_NONE) {
        kvc_export_text(x, ", \"delay\": ");
        put_ms(w, t->think_ns[r]);
    }
    put_name(w, ", \"model\": ", t->model, r, w->models);
    put_name(w, ", \"tenant\": ", t->tenant, r, w->tenants);
    kvc_export_text(x, "}\n");
    x->report->rows++;
}

static void put_notes(struct writer *w, bool share)
{
    struct kvc_export *x = w->x;
    const struct kvc_trace *t = x->t;
    if (t->n_segments && t->block_tokens != 512)
        kvc_export_note(x, "blocks of %u tokens: the format does not say so; import with "
                        "--block-tokens %u", t->block_tokens, t->block_tokens);
    if (share)
        kvc_export_note(x, "models share blocks here, which the format does not say; import with "
                        "--merge-models");
    if (x->report->left_out)
        kvc_export_note(x, "%llu failed requests left out: the format has no status",
                        (unsigned long long)x->report->left_out);
    if (w->lost)
        kvc_export_note(x, "the answers of %llu requests are known and can't be written: their "
                        "reuse is lost", (unsigned long long)w->lost);
    if (w->unknown)
        kvc_export_note(x, "%llu requests of which nobody knows how much they generated are "
                        "written with an output of 0: the format has no other",
                        (unsigned long long)w->unknown);
    if (w->cancelled)
        kvc_export_note(x, "%llu cancelled requests are written as if served: the format has no "
                        "status", (unsigned long long)w->cancelled);
    if (w->cached)
        kvc_export_note(x, "cached tokens that the log stated (%llu rows) can't be written",
                        (unsigned long long)w->cached);
    if (w->fine)
        kvc_export_note(x, "%llu times beyond 99 days have fractions that readers with doubles "
                        "round to a few ns", (unsigned long long)w->fine);
}

static enum kvc_status write_log(struct kvc_export *x, struct kvc_error *err)
{
    const struct kvc_trace *t = x->t;
    struct writer w = { .x = x };
    bool share = false;
    uint32_t *inferred = t->output_seg ? kvc_export_inferred(t) : NULL;
    bool ok = (inferred || !t->output_seg) && kvc_export_models_share(t, &share) &&
              escape(t->tenant_names, t->n_tenants, &w.tenants) &&
              escape(t->model_names, t->n_models, &w.models);
    for (uint64_t r = 0; ok && r < t->n_requests && kvc_packfile_ok(x->file); r++) {
        if (t->row_status && t->row_status[r] == KVC_ROW_FAILED) {
            x->report->left_out++;
            continue;
        }
        put_row(&w, r);
        w.lost += t->output_seg && t->output_seg[r] != inferred[r];
        w.cancelled += t->row_status && t->row_status[r] == KVC_ROW_CANCELLED;
        w.unknown += !kvc_trace_output_known(t, r);
        w.cached += t->cached_tokens && t->cached_tokens[r] != KVC_ID_NONE;
    }
    if (ok)
        put_notes(&w, share);
    for (uint32_t i = 0; w.tenants && i < t->n_tenants; i++)
        kvc_free(w.tenants[i]);
    for (uint32_t i = 0; w.models && i < t->n_models; i++)
        kvc_free(w.models[i]);
    kvc_free(w.tenants);
    kvc_free(w.models);
    kvc_free(inferred);
    if (ok && t->n_requests && x->report->left_out == t->n_requests)
        return kvc_fail(err, KVC_ERR_INPUT, "no request was served: nothing to write");
    return ok ? KVC_OK : kvc_fail_nomem(err);
}

const struct kvc_exporter kvc_exporter_mooncake = { "mooncake", write_log };
