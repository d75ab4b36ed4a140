/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/error.h"
#include "base/units.h"
#include "cli/trace_args.h"
#include "reports/reports.h"

#include <string.h>

static const struct kvc_cli_option options[] = {
    {"o", "FILE", "-", "write the report to this file (- for stdout)"},
    {"format", "NAME", "by the file's ending, else text", "html, md, json, csv or text"},
    {"run", "ID", "the latest", "which run of a database"},
    {NULL, NULL, NULL, NULL},
};

static const char *const formats[] = {"html", "md", "json", "csv", "text", NULL};

static const char *format_of(const char *path)
{
    static const char *const endings[][2] = {{".html", "html"}, {".htm", "html"}, {".md", "md"},
                                             {".json", "json"}, {".csv", "csv"},  {".txt", "text"}};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t k = strlen(endings[i][0]);
        if (n > k && strcmp(path + n - k, endings[i][0]) == 0)
            return endings[i][1];
    }
    return "text";
}

static enum kvc_status write_report(const struct kvc_stored *stored, const char *format,
                                    const char *path, struct kvc_error *err)
{
    struct kvc_text t = {0};
    const struct kvc_result *r = kvc_stored_result(stored);
    const struct kvc_findings *f = kvc_stored_findings(stored);
    enum kvc_status status = KVC_OK;
    if (strcmp(format, "html") == 0)
        status = kvc_html(&t, r, f, NULL, err);
    else if (strcmp(format, "md") == 0)
        kvc_markdown(&t, r, f);
    else if (strcmp(format, "csv") == 0)
        kvc_figures_csv(&t, kvc_stored_figures(stored));
    else if (strcmp(format, "json") == 0) {
        kvc_text_add(&t, kvc_stored_json(stored));
        if (t.len && t.buf[t.len - 1] != '\n')
            kvc_text_add(&t, "\n");
    } else
        kvc_text_summary(&t, r, f);
    if (status == KVC_OK)
        status = kvc_file_put_text(path, &t, err);
    kvc_text_clear(&t);
    return status;
}

static int report_main(struct kvc_cli *cli)
{
    struct kvc_error err = {0};
    struct kvc_stored *stored = NULL;
    uint64_t run_id = 0;
    const char *path = kvc_cli_value(cli, "o"), *run = kvc_cli_value(cli, "run");
    const char *format = kvc_cli_value(cli, "format");
    if (kvc_cli_count(cli) != 1)
        return kvc_cli_usage(cli, "give one file: the JSON of a replay, or a results database");
    path = path ? path : "-";
    if (kvc_cli_same_file(kvc_cli_argument(cli, 0), path))
        return kvc_cli_usage(cli, "-o %s would overwrite the run itself", path);
    if (kvc_cli_json(cli) && format && strcmp(format, "json") != 0)
        return kvc_cli_usage(cli, "--json and --format %s contradict one another", format);
    format = kvc_cli_json(cli) ? "json" : format ? format : format_of(path);
    size_t known = 0;
    while (formats[known] && strcmp(formats[known], format) != 0)
        known++;
    if (!formats[known])
        return kvc_cli_usage(cli, "--format %s: html, md, json, csv or text is expected%s", format,
                             strcmp(format, "prometheus") == 0 ? "; prometheus is not in this "
                                                                 "release yet" : "");
    if (run && (kvc_parse_u64(run, "--run", &run_id, &err) != KVC_OK || !run_id ||
                run_id > INT64_MAX))
        return kvc_cli_usage(cli, "--run %s: the number of a run is expected, from 1", run);
    enum kvc_status status =
        kvc_stored_open(&stored, kvc_cli_argument(cli, 0), (int64_t)run_id, &err);
    if (status == KVC_OK)
        status = write_report(stored, format, path, &err);
    kvc_stored_close(stored);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}

static const char *const outputs[] = {"o", NULL};

const struct kvc_cli_command kvc_cmd_report = {
    .name = "report",
    .arguments = "RUN.json|RUNS.db -o R.html",
    .summary = "rebuild the report of a stored run",
    .description =
        "Takes a results database (replay --db) or the JSON of one run (replay --json). A database "
        "keeps all that a report shows but what the log is like (kvcast inspect --report writes "
        "that); the JSON of a run has no capacity curve, time series, TTFT "
        "distribution and sources, so these sections are left out.\n\n"
        "kvcast report runs.db -o report.html\n"
        "kvcast report runs.db --run 3 --format md\n"
        "kvcast report run.json --format csv -o figures.csv",
    .options = options,
    .outputs = outputs,
    .run = report_main,
};
