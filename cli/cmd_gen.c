/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/error.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

static const struct kvc_cli_option options[] = {
    {"o", "F.jsonl", NULL, "where the log goes (- for stdout); .zst and .gz are packed"},
    {"duration", "TIME", "1h", "length of the log"},
    {"rate", "N", "the kind's", "new sessions per second on average; of servegen: requests"},
    {"burstiness", "CV", "1",
     "standard deviation over mean of the gaps between sessions: 1 is a Poisson process, above it "
     "sessions come in bursts, below it evenly (a gamma law)"},
    {"diurnal", "A", "0", "daily wave: the rate is N x (1 + A sin(2 pi t / day)), A from 0 to 1"},
    {"day", "TIME", "24h", "period of that wave"},
    {"turns", "N", "the kind's", "turns of a session, exactly, unless the log ends before"},
    {"system-tokens", "N", "the kind's", "system prompt, the same in all sessions"},
    {"context-tokens", "N", "the kind's", "document or task at the start of a session"},
    {"turn-tokens", "N", "the kind's", "mean length of a turn's own text"},
    {"output-tokens", "N", "the kind's", "mean length of an answer"},
    {"length-cv", "CV", "uniform",
     "standard deviation over mean of both, lognormal; without it they are uniform between half "
     "and one and a half of the mean"},
    {"documents", "N", "the kind's", "distinct contexts, drawn by Zipf's law; 0 = each its own"},
    {"zipf", "S", "1", "its exponent: document k is drawn in proportion to k^-S; 0 = all alike"},
    {"think", "TIME", "the kind's", "mean pause between an answer and the next turn, exponential"},
    {"tool-calls", "N", "0",
     "mean number of tool calls between two turns of a person (geometric): each turn is followed "
     "by a tool with probability N / (N + 1), else by --think"},
    {"tool-gap", "TIME", "3s", "mean time a tool takes, exponential"},
    {"tenants", "N", "0", "tenants t0, t1, .. a session has one, drawn by Zipf's law, exponent 1"},
    {"models", "LIST", "none", "big=1,small=3: a session has one, drawn by weight"},
    {"block-tokens", "N", "16", "tokens of a block id"},
    {"from", "TIME", "0s", "servegen: where in the models to begin"},
    {NULL, NULL, NULL, NULL},
};

static enum kvc_status count(const struct kvc_cli *cli, const char *name, uint64_t least,
                             uint32_t *out, struct kvc_error *err)
{
    const char *text = kvc_cli_value(cli, name);
    uint64_t v = 0;
    if (!text)
        return KVC_OK;
    enum kvc_status status = kvc_parse_u64(text, name, &v, err);
    if (status == KVC_OK && (v < least || v > INT32_MAX))
        status = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, name, "%s is out of range", text);
    *out = (uint32_t)v;
    return status;
}

static enum kvc_status times(const struct kvc_cli *cli, struct kvc_gen_config *c,
                             struct kvc_error *err)
{
    const struct {
        const char *name;
        uint64_t *out;
    } of[] = {{"duration", &c->duration_ns}, {"think", &c->think_mean_ns}, {"day", &c->day_ns},
              {"tool-gap", &c->tool_gap_mean_ns}};
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]) && status == KVC_OK; i++) {
        const char *text = kvc_cli_value(cli, of[i].name);
        if (text)
            status = kvc_parse_ns(text, of[i].name, of[i].out, err);
    }
    return status;
}

static enum kvc_status shapes(const struct kvc_cli *cli, struct kvc_gen_config *c,
                              struct kvc_error *err)
{
    const struct {
        const char *name;
        double *out;
    } of[] = {{"rate", &c->sessions_per_s}, {"burstiness", &c->burstiness},
              {"diurnal", &c->diurnal}, {"length-cv", &c->length_cv}, {"zipf", &c->zipf},
              {"tool-calls", &c->tool_calls}};
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]) && status == KVC_OK; i++) {
        const char *text = kvc_cli_value(cli, of[i].name);
        if (text)
            status = kvc_parse_double(text, of[i].name, of[i].out, err);
    }
    return status;
}

static enum kvc_status configure(const struct kvc_cli *cli, struct kvc_gen_config *c,
                                 struct kvc_error *err)
{
    const struct {
        const char *name;
        uint64_t least;
        uint32_t *out;
    } of[] = {{"turns", 1, &c->turns}, {"system-tokens", 0, &c->system_tokens},
              {"context-tokens", 0, &c->context_tokens}, {"turn-tokens", 1, &c->turn_tokens},
              {"output-tokens", 1, &c->output_tokens}, {"documents", 0, &c->documents},
              {"block-tokens", 1, &c->block_tokens}, {"tenants", 0, &c->tenants}};
    c->seed = kvc_cli_seed(cli);
    c->models = kvc_cli_value(cli, "models");
    enum kvc_status status = times(cli, c, err);
    if (status == KVC_OK)
        status = shapes(cli, c, err);
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]) && status == KVC_OK; i++)
        status = count(cli, of[i].name, of[i].least, of[i].out, err);
    return status;
}

static enum kvc_status configure_servegen(const struct kvc_cli *cli, struct kvc_servegen_config *c,
                                          struct kvc_error *err)
{
    const char *duration = kvc_cli_value(cli, "duration"), *rate = kvc_cli_value(cli, "rate"),
               *from = kvc_cli_value(cli, "from");
    enum kvc_status status = KVC_OK;
    *c = (struct kvc_servegen_config){.struct_size = sizeof(*c), .seed = kvc_cli_seed(cli),
                                      .duration_ns = 3600000000000u};
    if (duration)
        status = kvc_parse_ns(duration, "duration", &c->duration_ns, err);
    if (status == KVC_OK && from)
        status = kvc_parse_ns(from, "from", &c->from_ns, err);
    if (status == KVC_OK && rate)
        status = kvc_parse_double(rate, "rate", &c->requests_per_s, err);
    if (status == KVC_OK && ((duration && !c->duration_ns) || (rate && !(c->requests_per_s > 0))))
        status = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, duration && !c->duration_ns ? "duration"
                             : "rate", "more than 0 is needed");
    return status;
}

static int run_servegen(struct kvc_cli *cli, const char *out)
{
    static const char *const others[] = {"turns", "system-tokens", "context-tokens", "turn-tokens",
                                         "output-tokens", "documents", "think", "block-tokens",
                                         "burstiness", "diurnal", "day", "length-cv", "zipf",
                                         "tool-calls", "tool-gap", "tenants", "models", NULL};
    struct kvc_servegen_config config;
    struct kvc_servegen_report r = {0};
    struct kvc_error err = {0};
    const char *models = kvc_cli_argument(cli, 1);
    if (!models || kvc_cli_argument(cli, 2))
        return kvc_cli_usage(cli, "gen servegen takes one folder or tar of models");
    for (const char *const *o = others; *o; o++)
        if (kvc_cli_flag(cli, *o))
            return kvc_cli_usage(cli, "--%s is not for servegen: its models tell", *o);
    enum kvc_status status = configure_servegen(cli, &config, &err);
    if (status != KVC_OK) {
        err.status = KVC_ERR_USAGE;
        return kvc_cli_fail(cli, &err);
    }
    if (kvc_servegen_write(&config, models, out, &r, &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (kvc_cli_quiet(cli))
        return KVC_EXIT_OK;
    if (r.clients_without_lengths)
        fprintf(stderr, "kvcast: note: %u of %u clients left out: the models have no lengths for "
                "them; they make %.1f of %.1f requests per second of this span\n",
                r.clients_without_lengths, r.clients, r.requests_per_s_without_lengths,
                r.model_requests_per_s);
    if (r.empty_prompts)
        fprintf(stderr, "kvcast: note: %llu prompts of 0 tokens written with 1\n",
                (unsigned long long)r.empty_prompts);
    fprintf(stderr, "kvcast: note: the models say nothing of shared prefixes: hit rates of this "
            "log are unknown\nkvcast: %llu requests of %u clients, seed %llu: %s\n",
            (unsigned long long)r.requests, r.clients - r.clients_without_lengths,
            (unsigned long long)config.seed, out);
    return KVC_EXIT_OK;
}

static int run(struct kvc_cli *cli)
{
    struct kvc_gen_config config;
    struct kvc_error err = {0};
    const char *kind = kvc_cli_argument(cli, 0), *out = kvc_cli_value(cli, "o");
    if (!kind)
        return kvc_cli_usage(cli, "which kind? rag-chat, shared-prompt, agent or servegen");
    if (!out)
        return kvc_cli_usage(cli, "where to? name the log with -o F.jsonl, or - for stdout");
    if (kvc_name_equal(kind, "servegen"))
        return run_servegen(cli, out);
    if (kvc_cli_argument(cli, 1))
        return kvc_cli_usage(cli, "one kind at a time, not also %s", kvc_cli_argument(cli, 1));
    if (kvc_cli_flag(cli, "from"))
        return kvc_cli_usage(cli, "--from is for servegen");
    kvc_gen_defaults(&config, kind);
    config.kind = kind;
    enum kvc_status status = configure(cli, &config, &err);
    if (status != KVC_OK) {
        err.status = KVC_ERR_USAGE; /* what is wrong stands on the command line */
        return kvc_cli_fail(cli, &err);
    }
    status = kvc_gen_write(&config, out, &err);
    if (status != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (!kvc_cli_quiet(cli) && strcmp(out, "-") != 0)
        fprintf(stderr, "kvcast: %s traffic of %.0f s, seed %llu: %s\n", kind,
                (double)config.duration_ns * 1e-9, (unsigned long long)config.seed, out);
    return KVC_EXIT_OK;
}

static const char *const outputs[] = {"o", NULL};

const struct kvc_cli_command kvc_cmd_gen = {
    .name = "gen",
    .arguments = "KIND -o F.jsonl",
    .summary = "write synthetic traffic",
    .description =
        "KIND is rag-chat (shared system prompt, a document per session drawn by Zipf's law, some "
        "turns), shared-prompt (single questions behind one system prompt) or agent (long "
        "sessions of tool calls); or servegen MODELS, which draws requests from the rate models of "
        "ServeGen, a folder or tar of chunk-N-trace.csv and chunk-N-dataset.json. The log is "
        "Mooncake JSON lines with session_id and delay, from servegen without block ids; equal "
        "seeds give equal logs. The kinds' figures are assumed, not fitted to a log. A turn's "
        "prompt is all that came before and its own text; the answer takes 0.5 s and 20 ms a token "
        "before the pause begins.",
    .options = options,
    .outputs = outputs,
    .run = run,
};
