/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/json.h"
#include "base/outfile.h"
#include "cli/trace_args.h"
#include "reports/out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct kvc_cli_option options[] = {
    {"o", "F", NULL,
     "where the log goes (- for stdout), whole or not at all; .zst and .gz are packed"},
    {"format", "NAME", "mooncake", "mooncake, oraclegeneral or csv"},
    {"input-format", "NAME", "auto", "format of the log, where it isn't a .kvt"},
    KVC_CLI_LOG_OPTIONS,
    {NULL, NULL, NULL, NULL},
};

static enum kvc_status print_json(const struct kvc_export_report *r, const char *path,
                                  const char *format, struct kvc_error *err)
{
    struct kvc_json j;
    kvc_cli_json_begin(&j, "kvcast.export.v1");
    kvc_json_string(&j, "output", path);
    kvc_json_string(&j, "format", format);
    kvc_json_u64(&j, "rows", r->rows);
    kvc_json_u64(&j, "left_out", r->left_out);
    kvc_json_open_array(&j, "notes");
    for (uint32_t i = 0; i < r->n_notes; i++)
        kvc_json_string(&j, NULL, r->notes[i]);
    kvc_json_close(&j);
    return kvc_cli_json_print(&j, err);
}

static int run(struct kvc_cli *cli)
{
    struct kvc_import_options io;
    struct kvc_import_report report = {0};
    struct kvc_export_report written;
    struct kvc_error err = {0};
    struct kvc_trace *trace = NULL;
    const char *in = kvc_cli_argument(cli, 0), *out = kvc_cli_value(cli, "o");
    const char *format = kvc_cli_value(cli, "format");
    if (!in || kvc_cli_argument(cli, 1))
        return kvc_cli_usage(cli, in ? "one trace at a time" : "no trace named");
    if (!out)
        return kvc_cli_usage(cli, "where to? name the log with -o F, or - for stdout");
    if (kvc_cli_same_file(in, out))
        return kvc_cli_usage(cli, "-o %s would overwrite the trace", out);
    if (kvc_cli_json(cli) && !strcmp(out, "-"))
        return kvc_cli_usage(cli, "--json and -o - both want stdout");
    format = format ? format : "mooncake";
    int rc = kvc_cli_import_options(cli, &io);
    if (rc != KVC_EXIT_OK)
        return rc;
    io.format = kvc_cli_value(cli, "input-format");
    if (kvc_outfile_try(out, &err) != KVC_OK ||
        kvc_trace_open(&trace, in, &io, &report, &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    kvc_cli_import_report(cli, &report);
    enum kvc_status status = kvc_trace_export(trace, out, format, &written, &err);
    kvc_trace_destroy(trace);
    if (status != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (kvc_cli_json(cli) && print_json(&written, out, format, &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (!kvc_cli_quiet(cli)) {
        for (uint32_t i = 0; i < written.n_notes; i++)
            fprintf(stderr, "kvcast: note: %s\n", written.notes[i]);
        fprintf(stderr, "kvcast: %s of %s: %s\n", kvc_fmt_some(written.rows, "row").s, format, out);
    }
    return KVC_EXIT_OK;
}

static const char *const outputs[] = {"o", NULL};

const struct kvc_cli_command kvc_cmd_export = {
    .name = "export",
    .arguments = "TRACE -o F",
    .summary = "write a trace as a log for other tools",
    .description =
        "TRACE is a .kvt or a log. mooncake: JSON lines with timestamp (ms), lengths, hash_ids, "
        "and session_id, delay, model and tenant where known; block ids are numbered anew, "
        "densely. oraclegeneral: libCacheSim's binary records, one a block reference. csv: one row "
        "a request with everything a trace holds. Imported again, mooncake and csv give the same "
        "trace; what a format has no place for is said in a note.",
    .options = options,
    .outputs = outputs,
    .run = run,
};
