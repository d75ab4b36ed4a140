/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/error.h"
#include "base/outfile.h"
#include "base/units.h"
#include "cli/trace_args.h"
#include "reports/billing.h"
#include "reports/traffic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct kvc_cli_option options[] = {
    {"format", "NAME", "auto", "format of a log, one of those of import"},
    KVC_CLI_LOG_OPTIONS,
    {"model", "NAME", NULL, "model whose KV the tokens are, for sizes in bytes"},
    {"kv-dtype", "DTYPE", "bf16", "of the KV cache"},
    {"prices", "LIST", NULL,
     "dollars per million tokens, input=1.25,cached=0.125,output=10[,write=W][,model=M]: what the "
     "requests cost with what the log says was cached"},
    {"report", "F.html", NULL, "write the page for people to this file as well"},
    {NULL, NULL, NULL, NULL},
};

static enum kvc_status print_json(const struct kvc_traffic *f, const struct kvc_import_report *r,
                                  const struct kvc_bill *bill, struct kvc_error *err)
{
    struct kvc_json j;
    kvc_cli_json_begin(&j, "kvcast.inspect.v1");
    kvc_cli_json_trace(&j, &f->stats);
    kvc_traffic_json(&j, f);
    kvc_bill_json(&j, bill, r);
    kvc_engines_json(&j, r);
    if (r->rows)
        kvc_cli_json_report(&j, r);
    else
        kvc_json_null(&j, "import");
    return kvc_cli_json_print(&j, err);
}

static void row_count(struct kvc_text *t, uint64_t n, const char *what)
{
    if (n)
        kvc_text_addf(t, "  %s %s\n", kvc_fmt_count(n).s, what);
}

/* What became of the rows, when a log was read. */
static void text_rows(struct kvc_text *t, const struct kvc_import_report *r, bool has_prefix)
{
    if (!r->rows)
        return;
    kvc_text_addf(t, "\nRows\n  %s: %s used, %s bad; %s\n",
                  kvc_fmt_some(r->rows, "row").s, kvc_fmt_count(r->accepted).s,
                  kvc_fmt_count(r->bad).s, kvc_fmt_some(r->blank, "blank line").s);
    if (has_prefix)
        kvc_text_addf(t, "  last partial block: with an id in %s, without in %s\n",
                      kvc_fmt_some(r->ceil_rows, "row").s, kvc_fmt_count(r->floor_rows).s);
    row_count(t, r->inversions, "rows earlier than the row before them (sorted, order kept among "
                                "equals)");
    row_count(t, r->repeated_ids, "rows hold a block id twice");
    row_count(t, r->without_ids, "rows without ids: their reuse is unknown");
    row_count(t, r->gateway_answered, "rows left out: a gateway's response cache answered");
    if (r->key_instances)
        kvc_text_addf(t, "  %s instances store %s blocks; salted keys make %s of them unreadable "
                         "to others\n    that hold the same (%s)\n",
                      kvc_fmt_count(r->key_instances).s, kvc_fmt_count(r->key_stored_blocks).s,
                      kvc_fmt_count(r->key_copied_blocks).s,
                      "docs/import.md, Keys of several engines");
    row_count(t, r->zero_output, "rows generate nothing");
    row_count(t, r->unknown_output, "rows don't say how much they generated: unknown, not 0");
    for (uint32_t i = 0; i < r->n_tallies; i++)
        kvc_text_addf(t, "  %s: %s\n", r->tallies[i].text, kvc_fmt_count(r->tallies[i].rows).s);
}

static char *text_of(const struct kvc_traffic *f, const struct kvc_import_report *r,
                     const struct kvc_bill *bill)
{
    struct kvc_text t = {0};
    kvc_traffic_text(&t, f);
    kvc_bill_text(&t, bill, r);
    kvc_engines_text(&t, r);
    text_rows(&t, r, f->stats.has_prefix);
    if (t.failed)
        kvc_text_clear(&t);
    return t.buf;
}

/* The name of the file, without folders. */
static const char *title_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "stdin" : slash && slash[1] ? slash + 1 : path;
}

static enum kvc_status print_text(char *text, struct kvc_error *err)
{
    if (!text)
        return kvc_fail_nomem(err);
    fputs(text, stdout);
    kvc_free(text);
    return KVC_OK;
}

/* A page is about requests. */
static void no_page(const struct kvc_cli *cli)
{
    if (kvc_cli_value(cli, "report") && !kvc_cli_quiet(cli))
        fprintf(stderr, "kvcast: note: no report was written: the page shows requests, and this "
                        "log holds none\n");
}

/* A server's log without a request in it still says something. */
static enum kvc_status show_engines(const struct kvc_cli *cli, const struct kvc_import_report *r,
                                    struct kvc_error *err)
{
    struct kvc_text t = {0};
    struct kvc_json j;
    if (!kvc_cli_json(cli)) {
        kvc_text_add(&t, "No request is in this log; what it says of engines:\n");
        kvc_engines_text(&t, r);
        text_rows(&t, r, false);
        if (t.failed)
            kvc_text_clear(&t);
        return print_text(t.buf, err);
    }
    kvc_cli_json_begin(&j, "kvcast.inspect.v1");
    kvc_json_null(&j, "trace");
    kvc_engines_json(&j, r);
    kvc_cli_json_report(&j, r);
    return kvc_cli_json_print(&j, err);
}

static enum kvc_status show(const struct kvc_cli *cli, const struct kvc_traffic *f,
                            const struct kvc_import_report *r, const struct kvc_bill *bill,
                            struct kvc_error *err)
{
    const char *html = kvc_cli_value(cli, "report");
    enum kvc_status status = kvc_cli_json(cli) ? print_json(f, r, bill, err)
                                               : print_text(text_of(f, r, bill), err);
    if (status == KVC_OK && html)
        status = kvc_traffic_html(f, html, err);
    if (status == KVC_OK && html && !kvc_cli_quiet(cli))
        fprintf(stderr, "kvcast: report in %s\n", html);
    return status;
}

/* Of a cache's references to objects: no prompts, so nothing of what follows has a meaning. */
static enum kvc_status show_objects(const struct kvc_cli *cli, const struct kvc_trace_stats *s,
                                    const struct kvc_import_report *report, struct kvc_error *err)
{
    struct kvc_json j;
    if (!kvc_cli_json(cli)) {
        printf("%s references over %s to %s objects, digest %s\n"
               "An object is one block here; of tokens, prompts and sessions nothing is known.\n"
               "'kvcast ceiling' gives the hits of caches of any size.\n",
               kvc_fmt_count(s->requests).s, kvc_fmt_seconds((double)s->span_ns * 1e-9).s,
               kvc_fmt_count(s->blocks).s, s->digest);
        return KVC_OK;
    }
    kvc_cli_json_begin(&j, "kvcast.inspect.v1");
    kvc_cli_json_trace(&j, s);
    kvc_cli_json_report(&j, report);
    return kvc_cli_json_print(&j, err);
}

static int check_arguments(struct kvc_cli *cli)
{
    const char *page = kvc_cli_value(cli, "report");
    if (kvc_cli_count(cli) != 1)
        return kvc_cli_usage(cli, kvc_cli_count(cli) ? "one trace at a time" : "no trace named");
    if (page && kvc_cli_same_file(kvc_cli_argument(cli, 0), page))
        return kvc_cli_usage(cli, "--report %s would overwrite the log", page);
    if (kvc_cli_value(cli, "kv-dtype") && !kvc_cli_value(cli, "model"))
        return kvc_cli_usage(cli, "--kv-dtype says nothing without --model");
    return KVC_EXIT_OK;
}

/* What the log is to be seen by: prices (none: as they were), bytes of a token (0: not known). */
struct view {
    struct kvc_prices prices;
    bool priced;
    uint64_t token_bytes;
};

static enum kvc_status read_view(const struct kvc_cli *cli, struct view *v, struct kvc_error *err)
{
    const char *list = kvc_cli_value(cli, "prices"), *model = kvc_cli_value(cli, "model");
    const char *page = kvc_cli_value(cli, "report");
    enum kvc_status st = list ? kvc_prices_parse(list, &v->prices, err) : KVC_OK;
    v->priced = list != NULL;
    if (st == KVC_OK && model)
        st = kvc_model_kv_bytes_per_token(model, kvc_cli_value(cli, "kv-dtype"), &v->token_bytes,
                                          err);
    if (st == KVC_ERR_INPUT || st == KVC_ERR_UNSUPPORTED)
        st = err->status = KVC_ERR_USAGE;
    return st == KVC_OK && page ? kvc_outfile_try(page, err) : st;
}

static enum kvc_status show_requests(const struct kvc_cli *cli, const struct kvc_trace *trace,
                                     const struct kvc_import_report *report, const struct view *v,
                                     struct kvc_error *err)
{
    static struct kvc_traffic traffic; /* large for a stack; one command a process */
    struct kvc_bill bill;
    enum kvc_status st = kvc_traffic_make(&traffic, trace, title_of(kvc_cli_argument(cli, 0)),
                                          v->token_bytes, err);
    if (st != KVC_OK)
        return st;
    traffic.import = report;
    if (v->priced) {
        traffic.usd_per_lost_token = (v->prices.input - v->prices.cached) * 1e-6;
        kvc_traffic_findings(&traffic);
    }
    kvc_cli_import_report(cli, report);
    kvc_cli_forgotten(cli, &traffic.stats);
    kvc_bill_make(&bill, trace, report, v->priced ? &v->prices : NULL);
    st = show(cli, &traffic, report, &bill, err);
    kvc_traffic_clear(&traffic);
    return st;
}

static int run(struct kvc_cli *cli)
{
    struct kvc_import_options io;
    struct kvc_import_report report = {0};
    struct kvc_error err = {0};
    struct kvc_trace *trace = NULL;
    struct kvc_trace_stats stats = {0};
    struct view view = {0};
    int rc = check_arguments(cli);
    if (rc == KVC_EXIT_OK)
        rc = kvc_cli_import_options(cli, &io);
    if (rc != KVC_EXIT_OK)
        return rc;
    enum kvc_status st = read_view(cli, &view, &err);
    if (st == KVC_OK)
        st = kvc_trace_open(&trace, kvc_cli_argument(cli, 0), &io, &report, &err);
    if (st == KVC_OK)
        kvc_trace_stats(trace, &stats);
    if (st == KVC_ERR_INPUT && report.n_engines && !report.accepted && !report.bad) {
        st = show_engines(cli, &report, &err);
        no_page(cli);
    } else if (st == KVC_OK && !stats.has_tokens) {
        kvc_cli_import_report(cli, &report);
        st = show_objects(cli, &stats, &report, &err);
        no_page(cli);
    } else if (st == KVC_OK) {
        st = show_requests(cli, trace, &report, &view, &err);
    }
    kvc_trace_destroy(trace);
    return st == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}

static const char *const outputs[] = {"report", NULL};

const struct kvc_cli_command kvc_cmd_inspect = {
    .name = "inspect",
    .arguments = "TRACE",
    .summary = "show what is in a trace or log, before anything is simulated",
    .description =
        "TRACE is a .kvt or a log. Shows rates and bursts, lengths, turns, what prompts share and "
        "with whom, what a time to live would lose, working sets, the hottest prefixes, tenants "
        "and their overlap, and which rows of a log were dropped and why. Where the log does not "
        "say which prompts share a prefix, what they would share under stated assumptions.\n\n"
        "kvcast inspect log.jsonl.zst --model llama-3.1-70b --report traffic.html",
    .options = options,
    .outputs = outputs,
    .run = run,
};
