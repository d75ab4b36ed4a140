/* SPDX-License-Identifier: Apache-2.0
 * Synthetic traffic with known statistics, as Mooncake JSON lines.
 *
 * Sessions arrive as a renewal process: gaps of a gamma law of the given CV (1: a Poisson process),
 * on a clock that runs faster and slower with the time of day. All share a system prompt; each has
 * a context, drawn by Zipf's law from a set of documents, or its own where there are none. Turn k's
 * prompt is the system prompt, the context, all earlier turns and answers, and the turn's own
 * text; texts and answers are uniform within half of their mean on either side, or lognormal. The
 * next turn comes after the answer's time, taken as ANSWER_MS + TOKEN_MS a token, and a think time
 * of exponential law: a person's, or a tool's. Rows past the duration are left out, as in an hour
 * cut from a log.
 *
 * Blocks are numbered as the stream reaches them; a partial last block has an id of its own. Memory
 * is that of the sessions under way and of the shared blocks. */
#include "base/alloc.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/sized.h"
#include "base/units.h"
#include "traces/parse/packfile.h"
#include "traces/synthetic/variates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 500 /* before the next turn: to the first token, and .. */
#define TOKEN_MS 20   /* .. for each: 50 tokens/s, about what people are served */
#define MOST_TURNS 1000
#define BUFFER ((size_t)1 << 16)

#define MOST_MODELS 64
#define NAME_MAX_LENGTH 64
#define LONGEST_PROMPT 100000000u
#define MOST_SPREAD 3 /* CV of lengths */

/* Assumed, all of them; no log was fitted. rag-chat has the lengths that the preset kga-rag is made
 * for: a system prompt of 1.5K, a context of 8K, six turns of 200 tokens. */
#define KIND(name, rate, system, context, turn, answer, count, docs, think)                        \
    {                                                                                              \
        .struct_size = sizeof(kinds[0]), .kind = name, .duration_ns = 3600000000000u,              \
        .sessions_per_s = rate, .system_tokens = system, .context_tokens = context,                \
        .turn_tokens = turn, .output_tokens = answer, .turns = count, .block_tokens = 16,          \
        .documents = docs, .think_mean_ns = think, .burstiness = 1, .zipf = 1,                     \
        .day_ns = 86400000000000u, .tool_gap_mean_ns = 3000000000u                                 \
    }
static const struct kvc_gen_config kinds[] = {
    KIND("rag-chat", 0.7, 1536, 8192, 200, 300, 6, 2000, 30000000000u),
    KIND("shared-prompt", 5.0, 2048, 0, 400, 300, 1, 0, 0),
    KIND("agent", 0.2, 8192, 2048, 800, 200, 24, 0, 3000000000u),
};
#undef KIND

void kvc_gen_defaults(struct kvc_gen_config *config, const char *kind)
{
    *config = kinds[0];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kvc_name_equal(kinds[i].kind, kind))
            *config = kinds[i];
}

static bool within(double v, double least, double most)
{
    return v >= least && v <= most; /* false for NAN */
}

static enum kvc_status refuse(struct kvc_error *err, const char *field, const char *rule)
{
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, field, "%s", rule);
}

static enum kvc_status check_shape(const struct kvc_gen_config *c, struct kvc_error *err)
{
    if (!within(c->burstiness, 0.01, 100))
        return refuse(err, "burstiness", "a CV from 0.01 to 100 is needed; 1 is Poisson");
    if (!within(c->diurnal, 0, 1))
        return refuse(err, "diurnal", "a share from 0 to 1 of the mean rate is needed");
    if (c->diurnal > 0 && c->day_ns < 1000000000)
        return refuse(err, "day", "a day of at least 1s is needed");
    if (!within(c->length_cv, 0, MOST_SPREAD))
        return refuse(err, "length-cv", "a CV from 0 to 3 is needed");
    if (!within(c->zipf, 0, 10))
        return refuse(err, "zipf", "an exponent from 0 to 10 is needed");
    if (!within(c->tool_calls, 0, MOST_TURNS))
        return refuse(err, "tool-calls", "a mean from 0 to 1000 is needed");
    return KVC_OK;
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
        return refuse(err, "rate", "sessions per second must be above 0 and at most a million");
    if (c->duration_ns < 1000000 || c->duration_ns > (uint64_t)1000 * 86400 * 1000000000)
        return refuse(err, "duration", "a duration from 1ms to 1000d is needed");
    if ((double)c->duration_ns * 1e-9 * c->sessions_per_s > 2e9)
        return kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, "rate",
                           "rate times duration is more than 2 billion sessions");
    if (c->turns < 1 || c->turns > MOST_TURNS)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "turns", "1 to %d turns are possible",
                           MOST_TURNS);
    if (!c->block_tokens || !c->turn_tokens || !c->output_tokens)
        return refuse(err, NULL, "tokens of a block, a turn and an answer must be above 0");
    if (((double)c->turn_tokens + c->output_tokens) * 1.5 * c->turns + c->system_tokens +
            c->context_tokens > LONGEST_PROMPT)
        return kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, NULL,
                           "prompts of more than 100 million tokens would arise");
    return check_shape(c, err);
}

struct turn {
    uint64_t ms;
    uint32_t input, output;
    uint64_t think_ms;
};

struct chain { /* ids of consecutive blocks, made when first reached */
    uint64_t *id;
    size_t n, cap;
};

struct session {
    uint32_t number, document, tenant, model;
    uint32_t next, n; /* turns, those within the duration */
    struct chain talk; /* what is its own */
    struct turn turn[];
};

struct weights { /* cumulative */
    double *at;
    uint32_t n;
};

struct gen {
    const struct kvc_gen_config *c;
    struct session **heap; /* under way, by the time of the next turn, then number */
    size_t n_heap, heap_cap;
    uint32_t sessions;
    double arrived_s; /* on the clock that does not know of days */
    struct weights documents_by_zipf, tenants_by_zipf, models_by_weight;
    char (*model)[NAME_MAX_LENGTH];
    uint64_t next_id, rows;
    struct chain system, *documents;
    struct kvc_packfile *file;
    char *buf;
    size_t n_buf;
    uint64_t seed_arrival, seed_document, seed_think, seed_text, seed_answer, seed_tool,
        seed_tenant, seed_model;
};

/* Uniform over mean - h .. mean + h, h = mean / 2: the mean is exact. Or lognormal, rounded at
 * random so that the mean stays; never below 1. */
static uint32_t around(const struct gen *g, uint64_t *stream, uint32_t mean)
{
    uint32_t half = mean / 2;
    if (g->c->length_cv <= 0)
        return mean - half + (uint32_t)kvc_rng_below(stream, 2 * (uint64_t)half + 1);
    double variance = log1p(g->c->length_cv * g->c->length_cv);
    double x = mean * exp(sqrt(variance) * kvc_draw_normal(stream) - variance / 2);
    uint64_t n = kvc_draw_round(stream, x < LONGEST_PROMPT ? x : LONGEST_PROMPT);
    return n ? (uint32_t)n : 1;
}

static uint32_t draw(const struct weights *w, uint64_t *stream)
{
    uint32_t lo = 0, hi = w->n - 1;
    double at = kvc_rng_unit(stream) * w->at[w->n - 1];
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (w->at[mid] > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static bool zipf(struct weights *w, uint32_t n, double exponent)
{
    w->n = n;
    w->at = kvc_malloc(n, sizeof(*w->at));
    for (uint32_t i = 0; w->at && i < n; i++) /* 1 / k apart from pow, whose last bit may differ */
        w->at[i] = (i ? w->at[i - 1] : 0) +
                   (exponent == 1 ? 1.0 / (i + 1) : pow(i + 1, -exponent));
    return w->at != NULL;
}

/* ---- sessions ---- */

/* The time at which the day's wave has let s seconds of mean traffic pass: the t with
 * t + A P / 2 pi (1 - cos(2 pi t / P)) = s, which lies in [s - A P / pi, s]. */
static double by_day(const struct kvc_gen_config *c, double s)
{
    static const double pi = 3.14159265358979323846;
    double day = (double)c->day_ns * 1e-9, swing = c->diurnal * day / (2 * pi);
    double lo = s - 2 * swing, hi = s;
    for (int i = 0; i < 60 && swing > 0; i++) {
        double mid = 0.5 * (lo + hi);
        if (mid + swing * (1 - cos(2 * pi * mid / day)) < s)
            lo = mid;
        else
            hi = mid;
    }
    return hi;
}

/* When the next session begins. */
static double next_arrival(struct gen *g)
{
    const struct kvc_gen_config *c = g->c;
    double shape = 1 / (c->burstiness * c->burstiness), mean = 1.0 / c->sessions_per_s;
    g->arrived_s += c->burstiness == 1 ? kvc_draw_exponential(&g->seed_arrival) * mean
                                       : kvc_draw_gamma(&g->seed_arrival, shape) / shape * mean;
    return by_day(c, g->arrived_s);
}

/* Milliseconds between an answer and the next turn. */
static uint64_t draw_think(struct gen *g)
{
    const struct kvc_gen_config *c = g->c;
    double mean = (double)c->think_mean_ns * 1e-6;
    if (c->tool_calls > 0 && kvc_rng_unit(&g->seed_tool) < c->tool_calls / (c->tool_calls + 1))
        mean = (double)c->tool_gap_mean_ns * 1e-6;
    return (uint64_t)(kvc_draw_exponential(&g->seed_think) * mean + 0.5);
}

/* All that chance decides of a session, at its start. */
static struct session *begin_session(struct gen *g, uint64_t start_ms)
{
    const struct kvc_gen_config *c = g->c;
    struct session *s = kvc_malloc(1, sizeof(*s) + c->turns * sizeof(struct turn));
    uint64_t ms = start_ms, think = 0, end_ms = c->duration_ns / 1000000;
    uint64_t input = (uint64_t)c->system_tokens + c->context_tokens;
    if (!s)
        return NULL;
    *s = (struct session){ .number = g->sessions++ };
    s->document = c->documents ? draw(&g->documents_by_zipf, &g->seed_document) : 0;
    s->tenant = c->tenants ? draw(&g->tenants_by_zipf, &g->seed_tenant) : 0;
    s->model = g->models_by_weight.n ? draw(&g->models_by_weight, &g->seed_model) : 0;
    for (uint32_t k = 0; k < c->turns; k++) {
        input += around(g, &g->seed_text, c->turn_tokens);
        uint32_t output = around(g, &g->seed_answer, c->output_tokens);
        if (ms < end_ms && input <= LONGEST_PROMPT)
            s->turn[s->n++] = (struct turn){ ms, (uint32_t)input, output, think };
        input += output;
        think = draw_think(g);
        ms += ANSWER_MS + (uint64_t)output * TOKEN_MS + think;
    }
    return s;
}

static void end_session(struct session *s)
{
    kvc_free(s->talk.id);
    kvc_free(s);
}

static bool before(const struct session *a, const struct session *b)
{
    uint64_t x = a->turn[a->next].ms, y = b->turn[b->next].ms;
    return x != y ? x < y : a->number < b->number;
}

static bool push(struct gen *g, struct session *s)
{
    size_t i = g->n_heap;
    if (!kvc_grow((void **)&g->heap, &g->heap_cap, g->n_heap + 1, sizeof(*g->heap)))
        return false;
    for (g->n_heap++; i && before(s, g->heap[(i - 1) / 2]); i = (i - 1) / 2)
        g->heap[i] = g->heap[(i - 1) / 2];
    g->heap[i] = s;
    return true;
}

/* The first one's next turn has changed. */
static void sift_first(struct gen *g)
{
    struct session *s = g->heap[0];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < g->n_heap; i = k) {
        k += k + 1 < g->n_heap && before(g->heap[k + 1], g->heap[k]);
        if (!before(g->heap[k], s))
            break;
        g->heap[i] = g->heap[k];
    }
    g->heap[i] = s;
}

/* ---- rows ---- */

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

static void put(struct gen *g, const char *text, size_t n)
{
    if (g->n_buf + n > BUFFER) {
        kvc_packfile_write(g->file, g->buf, g->n_buf);
        g->n_buf = 0;
    }
    memcpy(g->buf + g->n_buf, text, n);
    g->n_buf += n;
}

static void put_number(struct gen *g, uint64_t v)
{
    char digits[KVC_U64_DIGITS];
    put(g, digits, kvc_u64_digits(v, digits));
}

static bool put_ids(struct gen *g, struct session *s, const struct turn *t)
{
    const struct kvc_gen_config *c = g->c;
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
            ok = chain_id(g, &g->documents[s->document], k - system, &id);
        else
            ok = chain_id(g, &s->talk, k - shared, &id);
        if (!ok)
            return false;
        if (k)
            put(g, ", ", 2);
        put_number(g, id);
    }
    return true;
}

static bool put_row(struct gen *g, struct session *s)
{
    const struct turn *t = &s->turn[s->next];
    char text[160];
    int n = snprintf(text, sizeof(text),
                     "{\"timestamp\": %llu, \"input_length\": %u, \"output_length\": %u, "
                     "\"hash_ids\": [", (unsigned long long)t->ms, t->input, t->output);
    put(g, text, (size_t)n);
    if (!put_ids(g, s, t))
        return false;
    put(g, "]", 1);
    if (g->c->turns > 1) {
        n = snprintf(text, sizeof(text), ", \"session_id\": \"s%u\"", s->number);
        put(g, text, (size_t)n);
    }
    if (s->next) {
        n = snprintf(text, sizeof(text), ", \"delay\": %llu", (unsigned long long)t->think_ms);
        put(g, text, (size_t)n);
    }
    if (g->models_by_weight.n) {
        n = snprintf(text, sizeof(text), ", \"model\": \"%s\"", g->model[s->model]);
        put(g, text, (size_t)n);
    }
    if (g->c->tenants) {
        n = snprintf(text, sizeof(text), ", \"tenant\": \"t%u\"", s->tenant);
        put(g, text, (size_t)n);
    }
    put(g, "}\n", 2);
    g->rows++;
    return true;
}

/* Rows of the sessions under way up to that time. */
static bool put_until(struct gen *g, uint64_t ms)
{
    while (g->n_heap && kvc_packfile_ok(g->file)) {
        struct session *s = g->heap[0];
        if (s->turn[s->next].ms > ms)
            break;
        if (!put_row(g, s))
            return false;
        if (++s->next == s->n) {
            end_session(s);
            g->heap[0] = g->heap[--g->n_heap];
        }
        if (g->n_heap)
            sift_first(g);
    }
    return true;
}

static bool put_all(struct gen *g)
{
    double end_s = (double)g->c->duration_ns * 1e-9, at;
    while ((at = next_arrival(g)) < end_s && kvc_packfile_ok(g->file)) {
        uint64_t ms = (uint64_t)(at * 1000);
        if (!put_until(g, ms))
            return false;
        struct session *s = begin_session(g, ms);
        if (!s)
            return false;
        if (!s->n) { /* begins in the last millisecond, beyond the duration */
            end_session(s);
        } else if (!push(g, s)) {
            end_session(s);
            return false;
        }
    }
    if (!put_until(g, UINT64_MAX))
        return false;
    kvc_packfile_write(g->file, g->buf, g->n_buf);
    return true;
}

/* ---- set-up ---- */

/* "name=weight,name=weight"; a name alone weighs 1. */
static enum kvc_status read_models(struct gen *g, struct kvc_error *err)
{
    static const char rule[] = "names with weights above 0 are expected, as in big=1,small=3";
    struct weights *w = &g->models_by_weight;
    const char *p = g->c->models;
    g->model = p ? kvc_calloc(MOST_MODELS, sizeof(*g->model)) : NULL;
    w->at = p ? kvc_calloc(MOST_MODELS, sizeof(*w->at)) : NULL;
    if (p && (!g->model || !w->at))
        return kvc_fail_nomem(err);
    while (p && *p) {
        size_t n = strcspn(p, ","), k = strcspn(p, "=,");
        char number[32] = "1";
        double weight;
        if (k < n)
            snprintf(number, sizeof(number), "%.*s", (int)(n - k - 1), p + k + 1);
        if (w->n == MOST_MODELS || !k || k >= NAME_MAX_LENGTH || n - k > 30 ||
            kvc_parse_double(number, "models", &weight, NULL) != KVC_OK || !(weight > 0) ||
            !(weight < 1e9))
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "models", "%s", rule);
        for (size_t i = 0; i < k; i++)
            if (p[i] < ' ' || p[i] == '"' || p[i] == '\\' || (unsigned char)p[i] > 126)
                return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "models",
                                   "plain names are expected");
        memcpy(g->model[w->n], p, k);
        w->at[w->n] = (w->n ? w->at[w->n - 1] : 0) + weight;
        w->n++;
        p += n + (p[n] == ',');
    }
    return KVC_OK;
}

static enum kvc_status set_up(struct gen *g, struct kvc_error *err)
{
    const struct kvc_gen_config *c = g->c;
    g->seed_arrival = kvc_rng_stream(c->seed, "gen.arrival");
    g->seed_document = kvc_rng_stream(c->seed, "gen.document");
    g->seed_think = kvc_rng_stream(c->seed, "gen.think");
    g->seed_text = kvc_rng_stream(c->seed, "gen.text");
    g->seed_answer = kvc_rng_stream(c->seed, "gen.answer");
    g->seed_tool = kvc_rng_stream(c->seed, "gen.tool");
    g->seed_tenant = kvc_rng_stream(c->seed, "gen.tenant");
    g->seed_model = kvc_rng_stream(c->seed, "gen.model");
    enum kvc_status status = read_models(g, err);
    if (status != KVC_OK)
        return status;
    g->buf = kvc_malloc(BUFFER, 1);
    g->documents = kvc_calloc(c->documents, sizeof(*g->documents));
    bool ok = g->buf && g->documents && zipf(&g->documents_by_zipf, c->documents, c->zipf) &&
              zipf(&g->tenants_by_zipf, c->tenants, 1);
    return ok ? KVC_OK : kvc_fail_nomem(err);
}

static void clear(struct gen *g)
{
    for (uint32_t i = 0; g->documents && i < g->c->documents; i++)
        kvc_free(g->documents[i].id);
    for (size_t i = 0; i < g->n_heap; i++)
        end_session(g->heap[i]);
    kvc_free(g->heap);
    kvc_free(g->system.id);
    kvc_free(g->documents);
    kvc_free(g->documents_by_zipf.at);
    kvc_free(g->tenants_by_zipf.at);
    kvc_free(g->models_by_weight.at);
    kvc_free(g->model);
    kvc_free(g->buf);
}

enum kvc_status kvc_gen_write(const struct kvc_gen_config *config, const char *path,
                              struct kvc_error *err)
{
    struct kvc_gen_config own;
    struct gen g = { .c = &own };
    kvc_gen_defaults(&own, config->kind ? config->kind : "");
    kvc_sized_copy(&own, sizeof(own), config);
    enum kvc_status status = check(&own, err);
    if (status != KVC_OK)
        return status;
    status = set_up(&g, err);
    if (status == KVC_OK)
        status = kvc_packfile_open(&g.file, path, err);
    if (status == KVC_OK) {
        if (!put_all(&g))
            status = kvc_fail_nomem(err);
        else if (!g.rows && kvc_packfile_ok(g.file))
            status = refuse(err, "duration",
                            "no session begins within it; make it longer or the rate higher");
        if (status == KVC_OK)
            status = kvc_packfile_close(g.file, err);
        else
            kvc_packfile_abandon(g.file);
    }
    clear(&g);
    return status;
}
