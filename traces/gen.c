/* SPDX-License-Identifier: Apache-2.0
 * Synthetic traffic with known statistics, as Mooncake JSON lines.
 *
 * Sessions arrive as a Poisson process. All share a system prompt; each has a context, drawn by
 * Zipf's law (exponent 1) from a set of documents, or its own where there are none. Turn k's
 * prompt is the system prompt, the context, all earlier turns and answers, and the turn's own
 * text; texts and answers are uniform within half of their mean on either side. The next turn
 * comes after the answer's time, taken as ANSWER_MS + TOKEN_MS a token, and a think time of
 * exponential law. Rows past the duration are left out, as in an hour cut from a log.
 *
 * Blocks are numbered as the stream reaches them; a partial last block has an id of its own. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "traces/packfile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 500
#define TOKEN_MS 20
#define MOST_TURNS 1000

/* Assumed, all of them; no log was fitted. rag-chat has the lengths that the preset kga-rag is made
 * for: a system prompt of 1.5K, a context of 8K, six turns of 200 tokens. */
static const struct kvc_gen_config kinds[] = {
    { sizeof(kinds[0]), "rag-chat", 0, 3600000000000u, 0.7, 1536, 8192, 200, 300, 6, 16, 2000,
      30000000000u },
    { sizeof(kinds[0]), "shared-prompt", 0, 3600000000000u, 5.0, 2048, 0, 400, 300, 1, 16, 0, 0 },
    { sizeof(kinds[0]), "agent", 0, 3600000000000u, 0.2, 8192, 2048, 800, 200, 24, 16, 0,
      3000000000u },
};

void kvc_gen_defaults(struct kvc_gen_config *config, const char *kind)
{
    *config = kinds[0];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kvc_name_equal(kinds[i].kind, kind))
            *config = kinds[i];
}

static enum kvc_status check(const struct kvc_gen_config *c, struct kvc_error *err)
{
    bool known = false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        known = known || (c->kind && kvc_name_equal(kinds[i].kind, c->kind));
    if (!known)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "kind", "\"%s\" is none of rag-chat, "
                           "shared-prompt, agent", c->kind ? c->kind : "");
    if (!(c->sessions_per_s > 0 && c->sessions_per_s <= 1e6))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "rate",
                           "sessions per second must be above 0 and at most a million");
    if (c->duration_ns < 1000000 || c->duration_ns > (uint64_t)1000 * 86400 * 1000000000)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "duration",
                           "a duration from 1ms to 1000d is needed");
    if ((double)c->duration_ns * 1e-9 * c->sessions_per_s > 1e7)
        return kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, "rate",
                           "rate times duration is more than 10 million sessions");
    if (c->turns < 1 || c->turns > MOST_TURNS)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "turns", "1 to %d turns are possible",
                           MOST_TURNS);
    if (!c->block_tokens || !c->turn_tokens || !c->output_tokens)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, NULL,
                           "tokens of a block, a turn and an answer must be above 0");
    if (((double)c->turn_tokens + c->output_tokens) * 1.5 * c->turns + c->system_tokens +
            c->context_tokens > 1e8)
        return kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, NULL,
                           "prompts of more than 100 million tokens would arise");
    return KVC_OK;
}

struct turn {
    uint64_t ms;
    uint32_t session, number; /* turn number from 0 */
    uint32_t input, output;
    uint64_t think_ms;
};

struct chain { /* ids of consecutive blocks, made when first reached */
    uint64_t *id;
    size_t n, cap;
};

struct gen {
    const struct kvc_gen_config *c;
    struct turn *turns;
    size_t n_turns, turns_cap;
    uint32_t *document; /* of each session */
    size_t n_sessions, sessions_cap;
    double *zipf; /* cumulative weights */
    uint64_t next_id;
    struct chain system, *documents, *talk; /* talk: what is a session's own */
    struct kvc_packfile *file;
    uint64_t seed_arrival, seed_document, seed_think, seed_text, seed_answer;
};

static double exponential(uint64_t *stream, double mean)
{
    return -log(1.0 - kvc_rng_unit(stream)) * mean;
}

/* Uniform over mean - h .. mean + h, h = mean / 2: the mean is exact. */
static uint32_t around(uint64_t *stream, uint32_t mean)
{
    uint32_t half = mean / 2;
    return mean - half + (uint32_t)kvc_rng_below(stream, 2 * (uint64_t)half + 1);
}

static uint32_t draw_document(struct gen *g)
{
    uint32_t n = g->c->documents, lo = 0, hi = n - 1;
    double at = kvc_rng_unit(&g->seed_document) * g->zipf[n - 1];
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (g->zipf[mid] > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static bool add_session(struct gen *g, uint64_t start_ms, uint64_t end_ms)
{
    const struct kvc_gen_config *c = g->c;
    uint32_t session = (uint32_t)g->n_sessions, input = c->system_tokens + c->context_tokens;
    uint64_t ms = start_ms, think = 0;
    if (!kvc_grow((void **)&g->document, &g->sessions_cap, g->n_sessions + 1, 4))
        return false;
    g->document[g->n_sessions++] = c->documents ? draw_document(g) : 0;
    for (uint32_t k = 0; k < c->turns; k++) {
        input += around(&g->seed_text, c->turn_tokens);
        uint32_t output = around(&g->seed_answer, c->output_tokens);
        if (ms < end_ms) {
            if (!kvc_grow((void **)&g->turns, &g->turns_cap, g->n_turns + 1, sizeof(*g->turns)))
                return false;
            g->turns[g->n_turns++] = (struct turn){ ms, session, k, input, output, think };
        }
        input += output;
        think = (uint64_t)(exponential(&g->seed_think, (double)c->think_mean_ns * 1e-6) + 0.5);
        ms += ANSWER_MS + (uint64_t)output * TOKEN_MS + think;
    }
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->ms != y->ms)
        return x->ms < y->ms ? -1 : 1;
    if (x->session != y->session)
        return x->session < y->session ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static bool plan(struct gen *g)
{
    const struct kvc_gen_config *c = g->c;
    uint64_t end_ms = c->duration_ns / 1000000;
    double s = 0, end_s = (double)c->duration_ns * 1e-9;
    g->zipf = kvc_malloc(c->documents, sizeof(*g->zipf));
    if (!g->zipf)
        return false;
    for (uint32_t i = 0; i < c->documents; i++)
        g->zipf[i] = (i ? g->zipf[i - 1] : 0) + 1.0 / (i + 1);
    while ((s += exponential(&g->seed_arrival, 1.0 / c->sessions_per_s)) < end_s)
        if (!add_session(g, (uint64_t)(s * 1000), end_ms))
            return false;
    if (g->n_turns)
        qsort(g->turns, g->n_turns, sizeof(*g->turns), by_time);
    g->documents = kvc_calloc(c->documents, sizeof(*g->documents));
    g->talk = kvc_calloc(g->n_sessions, sizeof(*g->talk));
    return g->documents && g->talk;
}

/* Block k of a chain. */
static bool chain_id(struct gen *g, struct chain *chain, size_t k, uint64_t *id)
{
    if (!kvc_grow((void **)&chain->id, &chain->cap, k + 1, sizeof(*chain->id)))
        return false;
    while (chain->n <= k)
        chain->id[chain->n++] = g->next_id++;
    *id = chain->id[k];
    return true;
}

static size_t put_number(char *p, uint64_t v)
{
    char digits[20];
    size_t n = 0, i = 0;
    do {
        digits[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (n)
        p[i++] = digits[--n];
    return i;
}

static bool put_ids(struct gen *g, const struct turn *t)
{
    const struct kvc_gen_config *c = g->c;
    char text[32];
    size_t b = c->block_tokens, full = t->input / b;
    size_t system = c->system_tokens / b;
    size_t shared = c->documents ? ((size_t)c->system_tokens + c->context_tokens) / b : system;
    for (size_t k = 0; k < full + (t->input % b != 0); k++) {
        uint64_t id = 0;
        bool ok = true;
        if (k == full)
            id = g->next_id++;
        else if (k < system)
            ok = chain_id(g, &g->system, k, &id);
        else if (k < shared)
            ok = chain_id(g, &g->documents[g->document[t->session]], k - system, &id);
        else
            ok = chain_id(g, &g->talk[t->session], k - shared, &id);
        if (!ok)
            return false;
        size_t n = 0;
        if (k) {
            text[n++] = ',';
            text[n++] = ' ';
        }
        n += put_number(text + n, id);
        kvc_packfile_write(g->file, text, n);
    }
    return true;
}

static bool put_row(struct gen *g, const struct turn *t)
{
    char text[160];
    int n = snprintf(text, sizeof(text),
                     "{\"timestamp\": %llu, \"input_length\": %u, \"output_length\": %u, "
                     "\"hash_ids\": [", (unsigned long long)t->ms, t->input, t->output);
    kvc_packfile_write(g->file, text, (size_t)n);
    if (!put_ids(g, t))
        return false;
    if (g->c->turns == 1)
        n = snprintf(text, sizeof(text), "]}\n");
    else if (t->number == 0)
        n = snprintf(text, sizeof(text), "], \"session_id\": \"s%u\"}\n", t->session);
    else
        n = snprintf(text, sizeof(text), "], \"session_id\": \"s%u\", \"delay\": %llu}\n",
                     t->session, (unsigned long long)t->think_ms);
    kvc_packfile_write(g->file, text, (size_t)n);
    if (t->number + 1 == g->c->turns) { /* the session is over */
        kvc_free(g->talk[t->session].id);
        g->talk[t->session] = (struct chain){ 0 };
    }
    return true;
}

static void clear(struct gen *g)
{
    for (uint32_t i = 0; g->documents && i < g->c->documents; i++)
        kvc_free(g->documents[i].id);
    for (size_t i = 0; g->talk && i < g->n_sessions; i++)
        kvc_free(g->talk[i].id);
    kvc_free(g->system.id);
    kvc_free(g->documents);
    kvc_free(g->talk);
    kvc_free(g->turns);
    kvc_free(g->document);
    kvc_free(g->zipf);
}

enum kvc_status kvc_gen_write(const struct kvc_gen_config *config, const char *path,
                              struct kvc_error *err)
{
    struct gen g = { .c = config };
    enum kvc_status status = check(config, err);
    if (status != KVC_OK)
        return status;
    g.seed_arrival = kvc_rng_stream(config->seed, "gen.arrival");
    g.seed_document = kvc_rng_stream(config->seed, "gen.document");
    g.seed_think = kvc_rng_stream(config->seed, "gen.think");
    g.seed_text = kvc_rng_stream(config->seed, "gen.text");
    g.seed_answer = kvc_rng_stream(config->seed, "gen.answer");
    if (!plan(&g))
        status = kvc_fail_nomem(err);
    else if (!g.n_turns)
        status = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "duration",
                             "no session begins within it; make it longer or the rate higher");
    else
        status = kvc_packfile_open(&g.file, path, err);
    for (size_t i = 0; i < g.n_turns && status == KVC_OK; i++)
        if (!put_row(&g, &g.turns[i]))
            status = kvc_fail_nomem(err);
    if (status == KVC_OK)
        status = kvc_packfile_close(g.file, err);
    else
        kvc_packfile_abandon(g.file);
    clear(&g);
    return status;
}
