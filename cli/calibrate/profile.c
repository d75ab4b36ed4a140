/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/calibrate/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"
#include "base/units.h"
#include "cli/calibrate/profile_report.h"
#include "cli/trace_args.h"
#include "models/models.h"
#include "sim/scenario/scenario.h"
#include "studies/calibrate/profile_write.h"
#include "studies/calibrate/request_log.h"
#include "traces/trace.h"

#define MOST_SCRAPES 256

struct job {
    struct kvc_cli *cli;
    struct kvc_scenario *scenario;
    struct kvc_trace *trace;
    struct kvc_measured_log log;
    struct kvc_readings readings;
    struct kvc_link_fits links;
    struct kvc_own_kernels own;
    struct kvc_host_fit host;
    bool has_host;
    char *profile;
};

const char *kvc_calibrate_output(const struct kvc_cli *cli)
{
    const char *o = kvc_cli_value(cli, "o");

    return o ? o : kvc_cli_value(cli, "output");
}

/* ---- input ---- */

/* The last --link that names the tool, else the last that names none. */
static const char *link_for(const struct kvc_cli *cli, const char *tool)
{
    const char *own = NULL, *all = NULL, *value;
    size_t n = tool ? strlen(tool) : 0;

    for (size_t i = 0; (value = kvc_cli_nth(cli, "link", i)); i++) {
        if (!strchr(value, '='))
            all = value;
        else if (tool && strncmp(value, tool, n) == 0 && value[n] == '=')
            own = value + n + 1;
    }
    return own ? own : all;
}

static enum kvc_status check_links(const struct kvc_cli *cli, struct kvc_error *err)
{
    const char *value;

    for (size_t i = 0; (value = kvc_cli_nth(cli, "link", i)); i++) {
        const char *equals = strchr(value, '='), *name = equals ? equals + 1 : value;
        const struct kvc_reader *const *k = kvc_readers;
        while (equals && *k && (strlen((*k)->name) != (size_t)(equals - value) ||
                                strncmp((*k)->name, value, (size_t)(equals - value)) != 0))
            k++;
        if (!*k)
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "link", "no tool is called \"%.*s\"",
                               (int)(equals - value), value);
        if (equals && *k == &kvc_reader_bench)
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "link", "%s: each figure of a profile "
                               "names its link itself", value);
        if (!kvc_link_find(name)) {
            const char *near = kvc_name_nearest(name, kvc_link_names());
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "link", "\"%.64s\" is not known%s%s "
                               "('kvcast show link' lists them)", name,
                               near ? "; did you mean " : "", near ? near : "");
        }
    }
    return KVC_OK;
}

/* A file's link depends on its tool, which shows when it is read. */
static enum kvc_status add_file(struct job *j, const char *path, const struct kvc_reader *reader,
                                struct kvc_error *err)
{
    enum kvc_status status = kvc_readings_add(&j->readings, path, reader, NULL, err);

    if (status == KVC_OK) {
        struct kvc_readings_file *f = &j->readings.file[j->readings.n_files - 1];
        const char *link = link_for(j->cli, f->reader->name);
        f->link = link ? link : f->link;
    }
    return status;
}

static enum kvc_status read_files(struct job *j, struct kvc_error *err)
{
    enum kvc_status status = check_links(j->cli, err);
    const char *path;

    for (size_t i = 0; status == KVC_OK && (path = kvc_cli_argument(j->cli, i)); i++)
        status = add_file(j, path, NULL, err);
    for (const struct kvc_reader *const *k = kvc_readers; *k; k++)
        for (size_t i = 0; status == KVC_OK && (path = kvc_cli_nth(j->cli, (*k)->name, i)); i++)
            status = add_file(j, path, *k, err);
    return status;
}

/* The GPU that is named, else the one that a profile among the files is of. */
static const char *gpu_of(const struct job *j)
{
    return j->scenario->cluster.gpu[0] ? j->scenario->cluster.gpu : j->readings.device.gpu;
}

static enum kvc_status fit_kernels(struct job *j, struct kvc_error *err)
{
    struct kvc_readings *r = &j->readings;
    const struct kvc_gpu *gpu = kvc_gpu_find(gpu_of(j));
    const struct kvc_readings_device *d = &r->device;

    if (!r->n_kernels)
        return KVC_OK;
    if (!gpu)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "gpu",
                           "the kernels in these files are of a GPU that none of them names: say "
                           "which with --gpu ('kvcast show hardware' lists them)");
    return kvc_own_kernels_fit(&j->own, r->kernel, r->n_kernels, gpu, j->scenario->engine.backend,
                               d->name[0] && kvc_gpu_find(d->gpu) == gpu, "kvcast calibrate", err);
}

static enum kvc_status fit_links(struct job *j, struct kvc_error *err)
{
    enum kvc_status status = read_files(j, err);
    const struct kvc_gpu *gpu = status == KVC_OK ? kvc_gpu_find(gpu_of(j)) : NULL;

    if (status == KVC_OK && j->readings.n)
        status = kvc_link_fits_run(&j->links, &j->readings, gpu ? gpu->host_link : NULL, err);
    return status;
}

/* The traffic: the trace that is named, else the log's own rows, else the log read as one. */
static enum kvc_status open_run(struct job *j, const char *log, struct kvc_error *err)
{
    struct kvc_import_options io;
    struct kvc_import_report report = {0};
    const char *traffic = kvc_scenario_trace(j->scenario);
    enum kvc_status status = kvc_scenario_check(j->scenario, err);

    if (status == KVC_OK)
        status = kvc_measured_log_read(&j->log, log, err);
    if (status == KVC_OK && !traffic) {
        status = kvc_measured_log_trace(&j->log, &j->trace, err);
        if (status == KVC_ERR_UNSUPPORTED && kvc_trace_recognised(log))
            traffic = log;
        else if (status == KVC_ERR_UNSUPPORTED)
            return kvc_fail_at(err, KVC_ERR_INPUT, log, 0, "arrival",
                               "not stated, so when requests came is not known: name the traffic "
                               "with --trace, or add a column arrival in seconds");
    }
    if (!traffic || (status != KVC_OK && status != KVC_ERR_UNSUPPORTED))
        return status;
    if (kvc_cli_import_options(j->cli, &io) != KVC_EXIT_OK)
        return kvc_fail(err, KVC_ERR_USAGE, "the options of the traffic are wrong");
    status = kvc_trace_open(&j->trace, traffic, &io, &report, err);
    if (status == KVC_OK)
        kvc_cli_import_report(j->cli, &report);
    return status;
}

static enum kvc_status fit_host(struct job *j, struct kvc_error *err)
{
    const char *log = kvc_cli_value(j->cli, "requests"), *paths[MOST_SCRAPES];
    enum kvc_status status = KVC_OK;
    size_t n = 0;

    while (n < MOST_SCRAPES && (paths[n] = kvc_cli_nth(j->cli, "prometheus", n)))
        n++;
    if (!log && !n)
        return KVC_OK;
    j->has_host = true;
    if (log) {
        void *user;
        kvc_progress_fn progress = kvc_cli_progress(j->cli, &user);
        status = open_run(j, log, err);
        if (status == KVC_OK)
            status = kvc_host_fit_requests(&j->host, &j->log, log, j->trace, j->scenario, progress,
                                           user, err);
        kvc_cli_progress_clear(j->cli);
        return status;
    }
    status = kvc_scenario_check(j->scenario, err);
    if (status == KVC_OK)
        status = kvc_host_fit_scrapes(&j->host, paths, n, kvc_cli_value(j->cli, "served-model"),
                                      j->scenario, err);
    return status;
}

static enum kvc_status build_scenario(struct job *j, struct kvc_error *err)
{
    const char *log = kvc_cli_value(j->cli, "requests");
    char said[512] = "";
    enum kvc_status status = kvc_scenario_create(&j->scenario, NULL, err);

    if (status == KVC_OK && log)
        status = kvc_measured_meta_apply(j->scenario, log, said, err);
    if (status == KVC_OK && *said)
        kvc_cli_note(j->cli, "meta.json beside the log: %s", said);
    return status == KVC_OK ? kvc_cli_apply_scenario(j->cli, j->scenario, err) : status;
}

/* ---- output ---- */

static void print_host(FILE *out, const struct kvc_host_fit *h)
{
    fprintf(out, "%s's host: %s\n", h->backend, h->sources.buf);
    kvc_profile_print_constant(out, &h->fit.constant[KVC_HOST_STEP], false, 1e-3, "us");
    kvc_profile_print_constant(out, &h->fit.constant[KVC_HOST_SEQUENCE], false, 1e-3, "us");
    kvc_profile_print_constant(out, &h->fit.constant[KVC_HOST_PREFILL], false, 1e-6, "ms");
    kvc_profile_print_constant(out, &h->fit.constant[KVC_HOST_FRONT], false, 1e-6, "ms");
    kvc_profile_print_quality(out, &h->fit);
}

static void print_report(FILE *out, const struct job *j)
{
    kvc_profile_print_links(out, &j->links);
    kvc_profile_print_kernels(out, &j->own);
    if (j->has_host)
        print_host(out, &j->host);
    if (j->readings.notes.buf)
        fprintf(out, "Notes\n%s", j->readings.notes.buf);
    if (j->host.notes.buf)
        fprintf(out, "%s%s", j->readings.notes.buf ? "" : "Notes\n", j->host.notes.buf);
}

static enum kvc_status write_profile(struct job *j, const char *path, double depth,
                                     struct kvc_error *err)
{
    struct kvc_profile_parts parts = {
        .gpu = gpu_of(j), .kernels = &j->own, .readings = &j->readings, .links = &j->links,
        .queue_depth = depth, .host = j->has_host ? &j->host : NULL};
    enum kvc_status status = j->profile ? KVC_OK : kvc_profile_text(&j->profile, &parts, err);

    return status == KVC_OK ? kvc_profile_put(j->profile, path, err) : status;
}

static int check_usage(const struct kvc_cli *cli, const char *out, double *depth)
{
    bool any = kvc_cli_count(cli) || kvc_cli_value(cli, "requests") ||
               kvc_cli_value(cli, "prometheus");
    const char *text = kvc_cli_value(cli, "queue-depth");
    uint64_t n = 0;

    for (const struct kvc_reader *const *k = kvc_readers; *k; k++)
        any |= kvc_cli_value(cli, (*k)->name) != NULL;
    if (!any)
        return kvc_cli_usage(cli, "nothing to fit to: name the output of nvbandwidth, fio, "
                             "ib_read_bw, nixlbench or kvcast bench, or --requests, --prometheus, "
                             "--kernels or --rows");
    if (kvc_cli_value(cli, "requests") && kvc_cli_value(cli, "prometheus"))
        return kvc_cli_usage(cli, "--requests tells more than --prometheus: give one of them");
    if (kvc_cli_nth(cli, "requests", 1))
        return kvc_cli_usage(cli, "--requests twice: one run at a time, its requests in one file");
    if (text && (kvc_parse_u64(text, "queue-depth", &n, NULL) != KVC_OK || n < 1 || n > 1000000))
        return kvc_cli_usage(cli, "--queue-depth %s: a whole number from 1 on is expected", text);
    *depth = (double)n;
    if (!out && !kvc_cli_json(cli))
        return kvc_cli_usage(cli, "where to? name the profile with -o PROFILE.json");
    return KVC_EXIT_OK;
}

int kvc_calibrate_profile(struct kvc_cli *cli)
{
    struct job j = {.cli = cli};
    struct kvc_error err = {0};
    const char *out = kvc_calibrate_output(cli);
    double depth = 0;
    int rc = check_usage(cli, out, &depth);

    if (rc != KVC_EXIT_OK)
        return rc;
    enum kvc_status status = out ? kvc_outfile_try(out, &err) : KVC_OK;
    if (status == KVC_OK)
        status = build_scenario(&j, &err);
    if (status == KVC_OK)
        status = fit_links(&j, &err);
    if (status == KVC_OK)
        status = fit_kernels(&j, &err);
    if (status == KVC_OK)
        status = fit_host(&j, &err);
    if (status == KVC_OK && out)
        status = write_profile(&j, out, depth, &err);
    if (status == KVC_OK && kvc_cli_json(cli) && (!out || strcmp(out, "-") != 0))
        status = write_profile(&j, "-", depth, &err);
    bool on_stdout = kvc_cli_json(cli) || (out && strcmp(out, "-") == 0);
    if (status == KVC_OK && !kvc_cli_quiet(cli))
        print_report(on_stdout ? stderr : stdout, &j);
    kvc_link_fits_clear(&j.links);
    kvc_own_kernels_clear(&j.own);
    kvc_readings_clear(&j.readings);
    kvc_host_fit_clear(&j.host);
    kvc_measured_log_clear(&j.log);
    kvc_trace_destroy(j.trace);
    kvc_scenario_destroy(j.scenario);
    kvc_free(j.profile);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}
