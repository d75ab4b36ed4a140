/* SPDX-License-Identifier: Apache-2.0
 * kvcast's own CSV: one row a request with all that a trace holds; docs/formats/kvcast-csv.md. */
#include "traces/export/export.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/formats/kvcast_csv.h"

#include <string.h>

static bool plain(const char *name)
{
    return name[0] && !name[strcspn(name, ",\"\r\n")];
}

/* Quoted where needed; an empty name is quoted, so that it differs from none. */
static void put_name(struct kvc_export *x, const uint32_t *column, uint64_t r, char **names)
{
    if (column && column[r] != KVC_ID_NONE) {
        const char *p = names[column[r]];
        if (plain(p)) {
            kvc_export_text(x, p);
        } else {
            kvc_export_text(x, "\"");
            for (; *p; p++)
                kvc_export_text(x, *p == '"' ? "\"\"" : (char[2]){ *p, '\0' });
            kvc_export_text(x, "\"");
        }
    }
    kvc_export_text(x, ",");
}

static void put_optional(struct kvc_export *x, bool there, uint64_t v)
{
    if (there)
        kvc_export_number(x, v);
    kvc_export_text(x, ",");
}

static void put_row(struct kvc_export *x, uint64_t r)
{
    static const char *const status[] = { "ok,", "failed,", "cancelled," };
    const struct kvc_trace *t = x->t;
    uint32_t prompt = t->prompt_seg[r], output = t->output_seg ? t->output_seg[r] : KVC_SEG_NONE;
    put_optional(x, true, t->arrival_ns[r]);
    put_optional(x, t->session && t->session[r] != KVC_ID_NONE, t->session ? t->session[r] : 0);
    put_optional(x, t->think_ns && t->think_ns[r] != KVC_TIME_NONE,
                 t->think_ns ? t->think_ns[r] : 0);
    put_name(x, t->tenant, r, t->tenant_names);
    put_name(x, t->model, r, t->model_names);
    kvc_export_text(x, status[t->row_status ? t->row_status[r] : KVC_ROW_OK]);
    put_optional(x, true, t->input_tokens[r]);
    put_optional(x, kvc_trace_output_known(t, r), t->output_tokens[r]);
    put_optional(x, t->cached_tokens && t->cached_tokens[r] != KVC_ID_NONE,
                 t->cached_tokens ? t->cached_tokens[r] : 0);
    put_optional(x, t->block_tokens != 0, t->block_tokens);
    kvc_export_blocks(x, prompt, 0, " ");
    kvc_export_text(x, ",");
    if (output != KVC_SEG_NONE && output != prompt)
        kvc_export_blocks(x, output, kvc_trace_full_blocks(t, r), " ");
    kvc_export_text(x, "\n");
    x->report->rows++;
}

static bool one_line(char **names, uint32_t n)
{
    for (uint32_t i = 0; names && i < n; i++)
        if (names[i][strcspn(names[i], "\r\n")])
            return false;
    return true;
}

static enum kvc_status write_log(struct kvc_export *x, struct kvc_error *err)
{
    const struct kvc_trace *t = x->t;
    bool share;
    if (!one_line(t->tenant_names, t->n_tenants) || !one_line(t->model_names, t->n_models))
        return kvc_fail(err, KVC_ERR_INPUT, "a tenant or model name holds a line break, which this "
                        "CSV has no place for; export to mooncake");
    if (!kvc_export_models_share(t, &share))
        return kvc_fail_nomem(err);
    if (share)
        kvc_export_note(x, "models share blocks here, which the format does not say; import with "
                        "--merge-models");
    kvc_export_text(x, KVC_CSV_HEADER "\n");
    for (uint64_t r = 0; r < t->n_requests && kvc_packfile_ok(x->file); r++)
        put_row(x, r);
    return KVC_OK;
}

const struct kvc_exporter kvc_exporter_csv = { "csv", write_log };
