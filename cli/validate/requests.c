/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate/requests.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/trace_args.h"
#include "reports/reports.h"
#include "sim/scenario/scenario.h"
#include "studies/served/study.h"
#include "traces/trace.h"

static double error_percent(double measured, double predicted)
{
    return measured > 0 ? (predicted / measured - 1) * 100 : NAN;
}

/* ---- text: Markdown, so that docs/accuracy.md is this output ---- */

static void put_figure(const char *name, double measured, double predicted, bool target)
{
    double e = error_percent(measured, predicted);

    printf("| %s | %.1f | %.1f | ", name, measured, predicted);
    printf(isnan(e) ? "- | " : "%+.1f | ", e);
    if (target && !isnan(e))
        printf("%d | %s |\n", KVC_REQUEST_TARGET, fabs(e) <= KVC_REQUEST_TARGET ? "met" : "missed");
    else
        puts("- | |");
}

static void put_pair(const char *name, const struct kvc_request_pair *p, bool target)
{
    const struct {
        const char *word;
        double measured, predicted;
        bool target;
    } figure[] = {{"mean", p->measured.mean, p->predicted.mean, target},
                  {"P50", p->measured.p50, p->predicted.p50, target},
                  {"P90", p->measured.p90, p->predicted.p90, false},
                  {"P99", p->measured.p99, p->predicted.p99, target}};
    char text[32];

    for (size_t i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "%s %s", name, figure[i].word);
        put_figure(text, figure[i].measured, figure[i].predicted, figure[i].target);
    }
}

static void put_band(const char *name, const struct kvc_request_pair *p)
{
    double low = p->predicted.mean * p->low, high = p->predicted.mean * p->high;

    if (!isnan(low) && !isnan(high))
        printf(" %s mean %.1f to %.1f ms (%s).", name, low, high,
               p->measured.mean >= low && p->measured.mean <= high ? "holds" : "fails");
}

static void print_text(const struct kvc_request_validation *v)
{
    puts("| ms | measured | predicted | error % | at most | |\n|---|---|---|---|---|---|");
    put_pair("TTFT", &v->ttft, true);
    put_pair("TPOT", &v->tpot, true);
    put_pair("E2E", &v->e2e, false);
    printf("\n%llu requests measured, %llu replayed, %llu preemptions.",
           (unsigned long long)v->requests, (unsigned long long)v->replayed,
           (unsigned long long)v->preemptions);
    if (v->front_ms > 0)
        printf(" The log's clock is the engine's: %.0f ms of front end are taken off the "
               "predictions.", v->front_ms);
    if (v->paired && !isnan(v->tpot.median_ape) && !isnan(v->ttft.median_ape))
        printf(" Request by request, half of the TPOTs are within %.1f %%, of the TTFTs within "
               "%.1f %%.", v->tpot.median_ape, v->ttft.median_ape);
    else if (v->paired && !isnan(v->ttft.median_ape)) /* outputs of one token have no TPOT */
        printf(" Request by request, half of the TTFTs are within %.1f %%.", v->ttft.median_ape);
    fputs(" The 80 % bands:", stdout);
    put_band("TTFT", &v->ttft);
    put_band("TPOT", &v->tpot);
    putchar('\n');
}

/* ---- JSON ---- */

static void json_pair(struct kvc_json *j, const char *key, const struct kvc_request_pair *p)
{
    kvc_json_open_object(j, key);
    kvc_json_dist(j, "measured", &p->measured);
    kvc_json_dist(j, "predicted", &p->predicted);
    kvc_json_open_object(j, "error_percent");
    kvc_json_double(j, "mean", error_percent(p->measured.mean, p->predicted.mean));
    kvc_json_double(j, "p50", error_percent(p->measured.p50, p->predicted.p50));
    kvc_json_double(j, "p90", error_percent(p->measured.p90, p->predicted.p90));
    kvc_json_double(j, "p99", error_percent(p->measured.p99, p->predicted.p99));
    kvc_json_close(j);
    kvc_json_open_array(j, "band_of_mean");
    kvc_json_double(j, NULL, p->predicted.mean * p->low);
    kvc_json_double(j, NULL, p->predicted.mean * p->high);
    kvc_json_close(j);
    kvc_json_double(j, "median_ape_by_request_percent", p->median_ape);
    kvc_json_close(j);
}

static enum kvc_status print_json(const struct kvc_request_validation *v, struct kvc_error *err)
{
    struct kvc_json j;

    kvc_cli_json_begin(&j, "kvcast.validate.requests.v1");
    kvc_json_u64(&j, "requests", v->requests);
    kvc_json_u64(&j, "replayed", v->replayed);
    kvc_json_u64(&j, "preemptions", v->preemptions);
    kvc_json_double(&j, "front_end_taken_off_ms", v->front_ms);
    json_pair(&j, "ttft_ms", &v->ttft);
    json_pair(&j, "tpot_ms", &v->tpot);
    json_pair(&j, "e2e_ms", &v->e2e);
    return kvc_cli_json_print(&j, err);
}

/* The log itself is the traffic where no other is named: its prompts then share nothing known. */
static enum kvc_status prepare(struct kvc_cli *cli, const struct kvc_import_options *io,
                               struct kvc_measured_log *log, struct kvc_trace **trace,
                               struct kvc_scenario **scenario, struct kvc_error *err)
{
    const char *path = kvc_cli_value(cli, "requests"), *other = kvc_cli_argument(cli, 0);
    struct kvc_import_report report = {0};
    char said[512], odd[256];
    enum kvc_status status = kvc_measured_log_read(log, path, err);

    if (status == KVC_OK && !kvc_measured_log_note(log, odd))
        status = kvc_fail_nomem(err);
    if (status == KVC_OK && *odd)
        kvc_cli_note(cli, "%s: %s", path, odd);
    if (status == KVC_OK)
        status = kvc_scenario_create(scenario, NULL, err);
    if (status == KVC_OK)
        status = kvc_measured_meta_apply(*scenario, path, said, err);
    if (status == KVC_OK && *said)
        kvc_cli_note(cli, "meta.json beside the log: %s", said);
    if (status == KVC_OK)
        status = kvc_cli_apply_scenario(cli, *scenario, err);
    if (status == KVC_OK && kvc_cli_value(cli, "profile"))
        status = kvc_scenario_set(*scenario, "profile", kvc_cli_value(cli, "profile"), err);
    if (status == KVC_OK)
        status = kvc_scenario_check(*scenario, err);
    if (status == KVC_OK && !other && !kvc_trace_recognised(path)) /* a client's times */
        return kvc_measured_log_trace(log, trace, err);
    if (status == KVC_OK)
        status = kvc_trace_open(trace, other ? other : path, io, &report, err);
    if (status == KVC_OK)
        kvc_cli_import_report(cli, &report);
    return status;
}

int kvc_validate_requests(struct kvc_cli *cli)
{
    struct kvc_measured_log log = {0};
    struct kvc_request_validation v;
    struct kvc_import_options io;
    struct kvc_trace *trace = NULL;
    struct kvc_scenario *scenario = NULL;
    struct kvc_error err = {0};
    int rc = kvc_cli_import_options(cli, &io);

    if (rc != KVC_EXIT_OK)
        return rc;
    if (kvc_cli_count(cli) > 1)
        return kvc_cli_usage(cli, "--requests takes one log and at most one trace beside it");
    enum kvc_status status = prepare(cli, &io, &log, &trace, &scenario, &err);
    if (status == KVC_OK)
        status = kvc_request_validate(&v, &log, trace, scenario, &err);
    if (status == KVC_OK && kvc_cli_json(cli))
        status = print_json(&v, &err);
    else if (status == KVC_OK)
        print_text(&v);
    kvc_measured_log_clear(&log);
    kvc_trace_destroy(trace);
    kvc_scenario_destroy(scenario);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}
