/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"
#include "cli/calibrate/profile.h"
#include "cli/calibrate/profile_report.h"
#include "cli/trace_args.h"
#include "models/user_profile.h"
#include "studies/engine/study.h"
#include "studies/kernels/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct kvc_cli_option options[] = {
    {"nvbandwidth", "F", NULL, "output of nvbandwidth, text or --json"},
    {"fio", "F", NULL, "output of fio --output-format=json, run with --direct=1"},
    {"perftest", "F", NULL, "output of ib_read_bw, ib_write_bw, ib_read_lat or --out_json"},
    {"nixl", "F", NULL, "output of nixlbench"},
    {"bench", "F", NULL, "a profile of kvcast bench, or of calibrate, to be fitted again"},
    {"link", "NAME|TOOL=NAME", "the GPU's host link, nvme-gen5-x4, rdma-400",
     "the link that files (of that tool) are about; 'kvcast show link' lists them"},
    {"queue-depth", "N", NULL,
     "reads and writes that the engine keeps under way on storage; goes into the profile"},
    {"requests", "F", NULL,
     "times of a served run's requests, JSON lines or CSV: input_tokens, output_tokens, and "
     "arrival, first_token and last_token in seconds (or ttft_ms and e2e_ms), or the result that "
     "vllm bench serve --save-detailed saves; --trace names the traffic where arrivals or shared "
     "prefixes are not in it"},
    {"prometheus", "F", NULL,
     "a scrape of vLLM's, SGLang's or TensorRT-LLM's metrics; two or more, in order of time"},
    {"served-model", "NAME", NULL,
     "which model's metrics count (model_name) where a scrape has several"},
    {"rows", "F.csv", NULL,
     "fit each backend's host constants to engine benchmark rows and print them, or with -o write "
     "them as a profile"},
    {"kernels", NULL, NULL,
     "the files are tables of measured kernels (columns as aiconfigurator's), .zst and .gz too"},
    {"o", "PROFILE.json", NULL, "where the profile goes, - for stdout"},
    {"output", "PROFILE.json", NULL, "the same"},
    {"origin", "TEXT", NULL,
     "with --kernels: where the files come from; stands before each source"},
    {"format", "NAME", "auto", "format of the traffic that goes with --requests"},
    {NULL, NULL, NULL, NULL},
};

static void print_error(const struct kvc_kernel_error *e)
{
    if (e->rows)
        fprintf(stderr, " %6.2f", e->mape);
    else
        fputs("      -", stderr);
}

/* One line a table; the profile itself may go to stdout. */
static void print_tables(const struct kvc_kernel_calibration *c)
{
    fprintf(stderr, "%s, %s %s: %zu rows, %zu unusable. Mean absolute error in percent on the rows "
            "fitted,\non a quarter of the rows kept aside, on a quarter of the shapes kept aside, "
            "and the target:\n", c->gpu->id, c->label.backend, c->label.version, c->rows,
            c->bad_rows);
    for (size_t i = 0; i < c->tables.n; i++) {
        const struct kvc_kernel_table *t = &c->tables.table[i];
        double target = kvc_kernel_target(t->family, t->key);
        print_error(&t->fitted);
        print_error(&t->random);
        print_error(&t->shape);
        if (isnan(target))
            fputs("    -", stderr);
        else
            fprintf(stderr, " %4.0f", target);
        fprintf(stderr, "  %s %s\n", t->family->name, t->key);
    }
}

static enum kvc_status write_profile(const struct kvc_kernel_calibration *c, const char *path,
                                     struct kvc_error *err)
{
    const struct kvc_kernel_profile profile = {c->gpu->id, c->label.backend, c->label.version};
    char *text = kvc_kernel_store_text(&c->tables, &profile);
    enum kvc_status status;

    if (!text)
        return kvc_outfile_put(path, NULL, 0, err);
    status = kvc_profile_put(text, path, err);
    kvc_free(text);
    return status;
}

/* ---- host constants ---- */

static const char *const constant_keys[KVC_ENGINE_CONSTANTS] = {
    "host_per_step_ns", "host_per_sequence_ns", "host_per_prefill_step_ns", "front_end_ns",
    "front_end_token_ns"};

/* "host time per step: not told by these measurements: .."; false: no memory. */
static bool words_of(const struct kvc_fit_constant *c, struct kvc_text *out)
{
    const struct kvc_measured_fit one = {.n_constants = 1, .constant = {*c}};

    kvc_measured_fit_words(&one, "", out);
    return !out->failed;
}

/* source: of a profile's figure; NULL: just the numbers. */
static bool put_constant(struct kvc_json *j, const char *key, const struct kvc_fit_constant *c,
                         const char *source)
{
    struct kvc_text words = {0};
    bool fine = words_of(c, &words);

    if (words.len)
        words.buf[words.len - 1] = '\0'; /* the line's end */
    kvc_json_open_object(j, key);
    kvc_json_double(j, "value", c->value);
    if (source) {
        kvc_json_string(j, "kind", "fitted");
        kvc_json_string(j, "source", source);
    }
    kvc_json_double(j, "standard_error", c->error);
    if (fine && !c->told)
        kvc_json_string(j, "not_told", words.buf);
    kvc_json_close(j);
    kvc_text_clear(&words);
    return fine;
}

static void put_cover(struct kvc_json *j, const char *key, const struct kvc_band_cover *c)
{
    kvc_json_open_object(j, key);
    kvc_json_u64(j, "rows", c->rows);
    kvc_json_u64(j, "configurations", c->configurations);
    kvc_json_double(j, "ttft_covered", c->ttft);
    kvc_json_double(j, "tpot_covered", c->tpot);
    kvc_json_close(j);
}

static void put_band(struct kvc_json *j, const struct kvc_engine_band *b, const char *of)
{
    char gpus[32 * KVC_BAND_GPUS] = " ";

    for (size_t i = 0; i < b->n_gpus; i++)
        snprintf(gpus + strlen(gpus), sizeof gpus - strlen(gpus), "%.30s ", b->gpu[i]);
    kvc_json_open_object(j, of);
    kvc_json_double(j, "ttft_low", b->band.ttft_low);
    kvc_json_double(j, "ttft_high", b->band.ttft_high);
    kvc_json_double(j, "tpot_low", b->band.tpot_low);
    kvc_json_double(j, "tpot_high", b->band.tpot_high);
    kvc_json_string(j, "carried",
                    b->flags == (KVC_STEP_PAST | KVC_STEP_OUTSIDE)
                        ? " prefill_behind_past outside_tables "
                    : b->flags == KVC_STEP_PAST    ? " prefill_behind_past "
                    : b->flags == KVC_STEP_OUTSIDE ? " outside_tables "
                                                   : " ");
    kvc_json_string(j, "borrowed_on", gpus);
    kvc_json_open_object(j, "left_out"); /* one configuration after the other */
    put_cover(j, "all", &b->all);
    put_cover(j, "without_flags", &b->plain);
    put_cover(j, "prefill_behind_past", &b->flagged[0]);
    put_cover(j, "outside_tables", &b->flagged[1]);
    put_cover(j, "borrowed_kernels", &b->flagged[2]);
    put_cover(j, "shape_between_tables", &b->flagged[3]);
    kvc_json_close(j);
    kvc_json_close(j);
}

/* Of a profile what is told; replays take no front end per token. */
static enum kvc_status put_constants(struct kvc_json *j, const char *backend,
                                     const struct kvc_engine_constants *c, const char *source,
                                     struct kvc_error *err)
{
    bool fine = true;

    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "backend", backend);
    if (!source)
        kvc_json_u64(j, "rows", c->rows);
    for (size_t i = 0; i < KVC_ENGINE_CONSTANTS; i++)
        if (!source || (c->constant[i].told && i < KVC_ENGINE_CONSTANTS - 1))
            fine &= put_constant(j, constant_keys[i], &c->constant[i], source);
    if (!source) {
        put_band(j, &c->band, "band");
        put_band(j, &c->carried, "band_of_carried");
    }
    kvc_json_close(j);
    return fine ? KVC_OK : kvc_fail_nomem(err);
}

/* Beside a profile: what is not in it. */
static void print_untold(const char *backend, const struct kvc_engine_constants *c)
{
    struct kvc_text words = {0};

    for (size_t i = 0; i < KVC_ENGINE_CONSTANTS; i++)
        if (!c->constant[i].told) {
            kvc_text_addf(&words, "%s, ", backend);
            words_of(&c->constant[i], &words);
        }
    if (words.len && !words.failed)
        fputs(words.buf, stderr);
    kvc_text_clear(&words);
}

static enum kvc_status put_engines(struct kvc_json *j, const struct kvc_engine_validation *v,
                                   const char *file, bool quiet, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;

    kvc_json_open_array(j, "engines");
    for (size_t i = 0; i < v->n_backends && status == KVC_OK; i++) {
        struct kvc_engine_constants c;
        const char *backend = v->group[v->n_groups + i].backend;
        char source[160];
        status = kvc_engine_calibrate(&c, v, backend, err);
        snprintf(source, sizeof source, "robust fit to %zu engine rows (%.100s)", c.rows,
                 file ? file : "");
        if (status == KVC_OK)
            status = put_constants(j, backend, &c, file ? source : NULL, err);
        if (status == KVC_OK && file && !quiet)
            print_untold(backend, &c);
    }
    kvc_json_close(j);
    return status;
}

/* Printed, or as a profile. */
static int run_rows(struct kvc_cli *cli, const char *out)
{
    struct kvc_engine_validation v;
    struct kvc_error err = {0};
    struct kvc_json j;
    const char *path = kvc_cli_value(cli, "rows"), *slash = strrchr(path, '/');
    enum kvc_status status = kvc_engine_validate(&v, path, "agg", false, NULL, NULL, &err);

    if (status == KVC_OK && v.n_groups == 0) {
        kvc_engine_validation_clear(&v);
        status = kvc_fail_at(&err, KVC_ERR_INPUT, path, 0, NULL, "no row that can be predicted: "
                             "'kvcast validate --rows' counts them by reason");
    }
    if (status != KVC_OK)
        return kvc_cli_fail(cli, &err);
    kvc_cli_json_begin(&j, out ? KVC_PROFILE_SCHEMA : "kvcast.calibrate.rows.v1");
    status = put_engines(&j, &v, out ? (slash ? slash + 1 : path) : NULL, kvc_cli_quiet(cli),
                         &err);
    if (status != KVC_OK && !err.file[0])
        snprintf(err.file, sizeof err.file, "%s", path);
    kvc_engine_validation_clear(&v);
    if (status == KVC_OK && out) {
        kvc_json_close(&j);
        char *text = kvc_json_take(&j);
        status = text ? kvc_profile_put(text, out, &err) : kvc_fail_nomem(&err);
        kvc_free(text);
    } else if (status == KVC_OK) {
        status = kvc_cli_json_print(&j, &err);
    } else {
        kvc_json_clear(&j);
    }
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}

static int run(struct kvc_cli *cli)
{
    struct kvc_kernel_calibration c;
    struct kvc_error err = {0};
    const char *paths[64], *out = kvc_calibrate_output(cli);
    size_t n = kvc_cli_count(cli);

    for (size_t i = 0; i < n && out; i++)
        if (kvc_cli_same_file(kvc_cli_argument(cli, i), out))
            return kvc_cli_usage(cli, "-o %s would overwrite the measurements in it; give another "
                                 "file", out);
    if (kvc_cli_value(cli, "rows"))
        return n || kvc_cli_flag(cli, "kernels")
                   ? kvc_cli_usage(cli, "--rows takes one file and goes with no other")
                   : run_rows(cli, out);
    if (!kvc_cli_flag(cli, "kernels"))
        return kvc_calibrate_profile(cli);
    if (n == 0 || n > sizeof paths / sizeof paths[0])
        return kvc_cli_usage(cli, n ? "64 files at most" : "no file of kernel rows named");
    if (!out)
        return kvc_cli_usage(cli, "where to? name the profile with -o PROFILE.json");
    for (size_t i = 0; i < n; i++)
        paths[i] = kvc_cli_argument(cli, i);
    if (kvc_kernel_calibrate(&c, paths, n, kvc_cli_value(cli, "origin"), &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    enum kvc_status status = write_profile(&c, out, &err);
    if (status == KVC_OK && !kvc_cli_quiet(cli))
        print_tables(&c);
    kvc_kernel_calibration_clear(&c);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}

static const char *const outputs[] = {"o", "output", NULL};

const struct kvc_cli_command kvc_cmd_calibrate = {
    .name = "calibrate",
    .arguments =
        "FILE.. -o PROFILE.json | --kernels FILE.csv.. -o PROFILE.json | --rows F.csv [-o ..]",
    .summary = "fit links, hosts or kernels to measurements of your own",
    .description =
        "Files are the output of nvbandwidth, fio, ib_read_bw and its like, nixlbench or kvcast "
        "bench, told apart by what they hold. What a link takes per transfer, per operation and "
        "per byte is fitted to them; with --requests or --prometheus, and --model, --gpu and "
        "other keys of the scenario that was served, what the engine's host takes too. Printed: "
        "each constant with its error, how well measurements left out are met, and what these "
        "measurements can not tell. The profile goes into a scenario as \"profile\": "
        "\"my.json\" (--profile my.json); all else stays as it was.\n\n"
        "kvcast calibrate h2d.txt drive.json --gpu h100-sxm -o my.json\n"
        "kvcast calibrate --requests run.jsonl --model llama-3.1-8b --gpu h100-sxm -o my.json\n"
        "kvcast replay log.jsonl --model llama-3.1-8b --gpu h100-sxm --dram 1TiB --profile "
        "my.json\n\n"
        "--kernels: fits compact tables to measured kernel times of one GPU and engine backend: "
        "matrix products, attention, latent attention, experts, collectives, linear attention. "
        "A file is named system__family__backend__version.csv, or has columns of these names. "
        "Each table states its source, its range and three errors: on the rows it was fitted "
        "to, on rows and on shapes kept aside.\n"
        "'kvcast validate --kernels FILE.csv --profile PROFILE.json' shows how well a profile "
        "predicts other rows.\n"
        "--rows: fits what the host takes per step, per sequence, per step with prefill and per "
        "request, one set a backend, by robust least squares to half of the configurations in "
        "the file, and prints the constants with their standard errors, those that the rows do not "
        "tell and which stay, and the 80 % band of such times, with what it holds of "
        "configurations left out; with -o the constants told become a profile.",
    .scenario_keys = true,
    .options = options,
    .outputs = outputs,
    .run = run,
};
