/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"
#include "cli/trace_args.h"
#include "reports/reports.h"
#include "reports/traffic.h"
#include "sim/scenario/scenario.h"

#include <stdio.h>
#include <string.h>

static const struct kvc_cli_option options[] = {
    {"report", "F.html", NULL, "write the report for people to this file"},
    {"db", "F.db", NULL, "add the run to this SQLite database"},
    {"requests", "F.csv", NULL, "write one row per request to this file (- for stdout)"},
    {"format", "NAME", "auto", "format of the log"},
    KVC_CLI_LOG_OPTIONS,
    {"what-if", "LIST", NULL,
     "also run without a tenant's requests (noisy=TENANT), or with each tenant on its own "
     "(isolation), and compare by tenant; apart by commas"},
    {"step-by-step", NULL, NULL,
     "execute every engine step instead of jumping: slow, for checking"},
    {"no-bounds", NULL, NULL, "leave out the hit-rate bounds, the capacity curve and the saving "
                              "against HBM only"},
    {NULL, NULL, NULL, NULL},
};

#define MOST_WHAT_IFS 16

struct replay {
    struct kvc_cli *cli;
    const char *scenario_path, *trace_path;
    struct kvc_scenario *scenario;
    struct kvc_trace *trace;
    struct kvc_result *result;
};

/* One log, one scenario, or both in any order, told apart by what they hold. */
static int sort_arguments(struct replay *r)
{
    for (size_t i = 0; i < kvc_cli_count(r->cli); i++) {
        const char *path = kvc_cli_argument(r->cli, i);
        const char **slot = kvc_scenario_sniff(path) ? &r->scenario_path : &r->trace_path;
        if (*slot)
            return kvc_cli_usage(r->cli, "two %s: %s and %s; give one",
                                 slot == &r->trace_path ? "traces" : "scenarios", *slot, path);
        *slot = path;
    }
    return KVC_EXIT_OK;
}

static enum kvc_status build_scenario(struct replay *r, struct kvc_error *err)
{
    kvc_cli_scenario_file(r->cli, r->scenario_path);
    enum kvc_status st = r->scenario_path
                             ? kvc_scenario_load(&r->scenario, r->scenario_path, err)
                             : kvc_scenario_create(&r->scenario, NULL, err);
    if (st == KVC_OK)
        st = kvc_cli_apply_scenario(r->cli, r->scenario, err);
    return st == KVC_OK ? kvc_scenario_check(r->scenario, err) : st;
}

static enum kvc_status open_trace(struct replay *r, const struct kvc_import_options *io,
                                  struct kvc_error *err)
{
    struct kvc_import_report report = {0};
    enum kvc_status st = kvc_trace_open(&r->trace, r->trace_path, io, &report, err);
    if (st == KVC_OK)
        kvc_cli_import_report(r->cli, &report);
    return st;
}

static enum kvc_status run(struct replay *r, struct kvc_error *err)
{
    struct kvc_replay_options ro = {.struct_size = sizeof(ro)};
    ro.step_by_step = kvc_cli_flag(r->cli, "step-by-step");
    ro.skip_bounds = kvc_cli_flag(r->cli, "no-bounds");
    ro.threads = kvc_cli_threads(r->cli);
    ro.trace_path = r->trace_path;
    ro.progress = kvc_cli_progress(r->cli, &ro.progress_user);
    const char *list = kvc_cli_value(r->cli, "what-if"), *what[MOST_WHAT_IFS];
    char text[1024];
    snprintf(text, sizeof(text), "%s", list ? list : "");
    if (list && strlen(list) >= sizeof(text))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "what-if", "the list is too long");
    char *p = strtok(text, ",");
    for (; p && ro.n_what_ifs < MOST_WHAT_IFS; p = strtok(NULL, ","))
        what[ro.n_what_ifs++] = p;
    if (p || (list && !ro.n_what_ifs))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "what-if",
                           "%s; noisy=TENANT or isolation is expected, %d at most",
                           p ? "too many" : "nothing is asked", MOST_WHAT_IFS);
    ro.what_ifs = what;
    int ours = kvc_cli_keep_stdout();
    enum kvc_status st = kvc_replay_run(&r->result, r->trace, r->scenario, &ro, err);
    kvc_cli_take_stdout(ours);
    return st;
}

/* The page tells what the log is like, too. */
static enum kvc_status write_page(const struct replay *r, const char *path, struct kvc_error *err)
{
    struct kvc_traffic *traffic = kvc_malloc(1, sizeof(*traffic));
    if (!traffic)
        return kvc_fail_nomem(err);
    enum kvc_status st = kvc_traffic_make(traffic, r->trace, r->trace_path,
                                          r->result->kv_bytes_per_token, err);
    if (st == KVC_OK) {
        st = kvc_report_html_traffic(r->result, traffic, path, err);
        kvc_traffic_clear(traffic);
    }
    kvc_free(traffic);
    return st;
}

static enum kvc_status write_reports(struct replay *r, struct kvc_error *err)
{
    const char *html = kvc_cli_value(r->cli, "report");
    const char *db = kvc_cli_value(r->cli, "db");
    const char *csv = kvc_cli_value(r->cli, "requests");
    int64_t id = 0;
    enum kvc_status st = KVC_OK;
    if (kvc_cli_json(r->cli))
        st = kvc_report_json(r->result, "-", err);
    else if (!csv || strcmp(csv, "-") != 0)
        st = kvc_report_text(r->result, "-", err);
    if (st == KVC_OK && csv)
        st = kvc_report_requests_csv(r->result, csv, err);
    if (st == KVC_OK && html)
        st = write_page(r, html, err);
    if (st == KVC_OK && db)
        st = kvc_report_sqlite(r->result, db, &id, err);
    if (st == KVC_OK && db && !kvc_cli_quiet(r->cli))
        fprintf(stderr, "kvcast: run %lld in %s\n", (long long)id, db);
    if (st == KVC_OK && html && !kvc_cli_quiet(r->cli))
        fprintf(stderr, "kvcast: report in %s\n", html);
    return st;
}

static const char *const outputs[] = {"report", "db", "requests", NULL};

static int refuse_overwriting(const struct replay *r)
{
    for (size_t i = 0; outputs[i]; i++) {
        const char *out = kvc_cli_value(r->cli, outputs[i]);
        bool trace = out && kvc_cli_same_file(r->trace_path, out);
        if (trace || (out && r->scenario_path && kvc_cli_same_file(r->scenario_path, out)))
            return kvc_cli_usage(r->cli, "--%s %s would overwrite the %s", outputs[i], out,
                                 trace ? "log" : "scenario");
    }
    return KVC_EXIT_OK;
}

/* Before hours of work rather than behind them. */
static enum kvc_status try_outputs(const struct replay *r, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    for (size_t i = 0; outputs[i] && st == KVC_OK; i++) {
        const char *out = kvc_cli_value(r->cli, outputs[i]);
        st = out ? kvc_outfile_try(out, err) : KVC_OK;
    }
    return st;
}

static int replay_main(struct kvc_cli *cli)
{
    struct replay r = {.cli = cli};
    struct kvc_import_options io;
    struct kvc_error err = {0};
    enum kvc_status st;
    int rc = kvc_cli_import_options(cli, &io);
    if (rc == KVC_EXIT_OK)
        rc = sort_arguments(&r);
    if (rc != KVC_EXIT_OK)
        return rc;
    if (kvc_cli_json(cli) && kvc_cli_value(cli, "requests") &&
        !strcmp(kvc_cli_value(cli, "requests"), "-"))
        return kvc_cli_usage(cli, "--json and --requests - both want stdout; give a file");
    st = build_scenario(&r, &err);
    if (st == KVC_OK && !r.trace_path)
        r.trace_path = kvc_scenario_trace(r.scenario);
    if (st == KVC_OK && !r.trace_path) {
        rc = kvc_cli_usage(cli, "no trace: give a log or .kvt, or a scenario that names one");
        goto out;
    }
    if (st == KVC_OK && (rc = refuse_overwriting(&r)) != KVC_EXIT_OK)
        goto out;
    if (st == KVC_OK)
        st = try_outputs(&r, &err);
    if (st == KVC_OK)
        st = open_trace(&r, &io, &err);
    if (st == KVC_OK)
        st = run(&r, &err);
    if (st == KVC_OK)
        st = write_reports(&r, &err);
    if (st != KVC_OK)
        rc = kvc_cli_fail(cli, &err);
out:
    kvc_result_destroy(r.result);
    kvc_trace_destroy(r.trace);
    kvc_scenario_destroy(r.scenario);
    return rc;
}

const struct kvc_cli_command kvc_cmd_replay = {
    .name = "replay",
    .arguments = "TRACE|SCENARIO.json [TRACE] [--KEY VALUE..]",
    .summary = "replay a log on a modelled cluster: hits, TTFT, TPOT, links and cost",
    .description =
        "TRACE is a log in any known format (plain, .zst, .gz, - for stdin) or a .kvt. A scenario "
        "file may name its trace. Keys given as options win over the file, and both over --preset. "
        "Without a file, --model and --gpu, or --preset, say what to model.\n\n"
        "kvcast replay log.jsonl --preset kga-rag --report report.html\n"
        "kvcast replay log.jsonl --model llama-3.1-70b --gpu h100-sxm --tp 8 --dram 512GiB",
    .options = options,
    .scenario_keys = true,
    .outputs = outputs,
    .run = replay_main,
};
