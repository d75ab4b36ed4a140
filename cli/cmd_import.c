/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/json.h"
#include "base/outfile.h"
#include "base/signals.h"
#include "cli/trace_args.h"
#include "reports/reports.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct kvc_cli_option options[] = {
    {"o", "T.kvt", NULL, "where the trace goes; written whole or not at all"},
    {"format", "NAME", "auto", "format of the logs, one of those below"},
    KVC_CLI_LOG_OPTIONS,
    {"sample", "SHARE", NULL,
     "keep only samples of that share of the prefix trees (0.001), for logs beyond memory: for "
     "ceiling, which takes their rates, with bands, for those of the log"},
    {"compare-readers", NULL, NULL,
     "read each row twice, fast and with care, and fail where the two differ: slow, for checking"},
    {NULL, NULL, NULL, NULL},
};

struct saving {
    kvc_progress_fn progress;
    void *user;
};

static bool go_on(void *user, const char *phase, uint64_t done, uint64_t total)
{
    const struct saving *s = user;
    return !kvc_signals_waiting() &&
           (!s->progress || s->progress(s->user, phase, done, total));
}

/* A signal waits until the file is gone or in place, and comes then. */
static enum kvc_status save(struct kvc_cli *cli, const struct kvc_trace *trace, const char *path,
                            struct kvc_error *err)
{
    struct saving s = {0};
    sigset_t before;
    s.progress = kvc_cli_progress(cli, &s.user);
    kvc_signals_hold(&before);
    enum kvc_status status = kvc_trace_save_with(trace, path, go_on, &s, err);
    kvc_signals_release(&before);
    return status;
}

static enum kvc_status print_json(const struct kvc_trace_stats *s,
                                  const struct kvc_import_report *r, const char *path,
                                  struct kvc_error *err)
{
    struct kvc_json j;
    kvc_cli_json_begin(&j, "kvcast.import.v1");
    kvc_json_string(&j, "output", path);
    kvc_cli_json_trace(&j, s);
    kvc_cli_json_report(&j, r);
    return kvc_cli_json_print(&j, err);
}

static int write_trace(struct kvc_cli *cli, const struct kvc_trace *trace,
                       const struct kvc_import_report *report, const char *path)
{
    struct kvc_error err = {0};
    struct kvc_trace_stats s;
    kvc_trace_stats(trace, &s);
    kvc_cli_forgotten(cli, &s);
    enum kvc_status status = save(cli, trace, path, &err);
    kvc_cli_progress_clear(cli);
    if (status != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (kvc_cli_json(cli) && print_json(&s, report, path, &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (!kvc_cli_quiet(cli)) {
        char blocks[128] = "no block ids, reuse unknown";
        if (!s.has_tokens) {
            fprintf(stderr, "kvcast: %s over %s to %s: %s\n",
                    kvc_fmt_some(s.requests, "reference").s,
                    kvc_fmt_seconds((double)s.span_ns * 1e-9).s,
                    kvc_fmt_some(s.blocks, "object").s, path);
            return KVC_EXIT_OK;
        }
        if (s.has_prefix)
            snprintf(blocks, sizeof(blocks), "%s of %u tokens in %s",
                     kvc_fmt_some(s.blocks, "block").s, s.block_tokens,
                     kvc_fmt_some(s.segments, "segment").s);
        fprintf(stderr, "kvcast: %s over %s, %s input tokens, %s: %s\n",
                kvc_fmt_some(s.requests, "request").s, kvc_fmt_seconds((double)s.span_ns * 1e-9).s,
                kvc_fmt_count(s.input_tokens).s,
                blocks, path);
    }
    return KVC_EXIT_OK;
}

/* Temporary files go beside the output, where there must be room anyhow; NULL: elsewhere. */
static const char *folder_of(const char *path, char *buf, size_t size)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    if (strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
        return NULL;
    int n = slash ? (int)(slash - path) + (slash == path) : 1;
    if (snprintf(buf, size, "%.*s", n, slash ? path : ".") >= (int)size)
        return NULL;
    return buf;
}

static int run(struct kvc_cli *cli)
{
    struct kvc_import_options io;
    struct kvc_import_report report = {0};
    struct kvc_error err = {0};
    struct kvc_trace *trace = NULL;
    const char *paths[1024], *out = kvc_cli_value(cli, "o");
    size_t n = kvc_cli_count(cli);
    if (n == 0 || !out)
        return kvc_cli_usage(cli, n ? "where to? name the trace with -o T.kvt" : "no log named");
    if (n > sizeof(paths) / sizeof(paths[0]))
        return kvc_cli_usage(cli, "more than %zu logs", sizeof(paths) / sizeof(paths[0]));
    for (size_t i = 0; i < n; i++) {
        paths[i] = kvc_cli_argument(cli, i);
        if (kvc_cli_same_file(paths[i], out))
            return kvc_cli_usage(cli, "-o %s would overwrite the log", out);
        for (size_t k = 0; k < i; k++)
            if (strcmp(paths[i], paths[k]) == 0)
                return kvc_cli_usage(cli, "%s is named twice: its rows would count twice",
                                     paths[i]);
    }
    int rc = kvc_cli_import_options(cli, &io);
    if (rc != KVC_EXIT_OK)
        return rc;
    if (kvc_cli_sample(cli, &io.sample_weight, &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    io.compare_readers = kvc_cli_flag(cli, "compare-readers");
    io.estimate = kvc_cli_estimate(cli, &io.estimate_user);
    char folder[4096];
    if (kvc_outfile_try(out, &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    io.spill_folder = folder_of(out, folder, sizeof(folder));
    enum kvc_status status = kvc_trace_import(&trace, paths, n, &io, &report, &err);
    kvc_cli_progress_clear(cli);
    if (status != KVC_OK) {
        rc = kvc_cli_fail(cli, &err);
        kvc_cli_import_report(cli, &report);
        return rc;
    }
    kvc_cli_import_report(cli, &report);
    rc = write_trace(cli, trace, &report, out);
    kvc_trace_destroy(trace);
    return rc;
}

static const char *const outputs[] = {"o", NULL};

const struct kvc_cli_command kvc_cmd_import = {
    .name = "import",
    .arguments = "LOG... -o T.kvt",
    .summary = "turn logs into a trace",
    .description =
        "Reads request logs, plain, packed with zstd or gzip or in a tar ('-' is stdin), merges "
        "several in time order, and writes their prefix forest and request columns as one .kvt "
        "file, which all other commands load in a moment. Rows that can't be used are counted and "
        "the first ones shown with their line; nothing is dropped in silence.",
    .options = options,
    .log_formats = true,
    .outputs = outputs,
    .run = run,
};
