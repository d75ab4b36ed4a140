/* SPDX-License-Identifier: Apache-2.0
 * Requests are sent, admitted and prefilled in the order of their numbers, so each stage is a range
 * of them; decoding ones advance together, and only the next end is looked for. */
#include "studies/engine/closed_loop.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

struct request {
    uint32_t input, output, done;
    uint64_t last_step; /* decode step that makes its last token */
    double sent_ns, first_ns;
};

struct run {
    const struct kvc_closed_loop *loop;
    struct kvc_closed_loop_result *out;
    struct request *r;
    struct kvc_chunk *chunk;
    uint32_t *decoding; /* [requests], each comes once; from ended_at on, by their last step */
    uint32_t ended_at;
    /* filling..admitted have part of their prompt, admitted..received wait in the engine */
    uint32_t n_decoding, filling, admitted, received, sent, ended;
    uint32_t waited, unheard; /* decode steps since prompts could go, since requests were heard */
    size_t n_chunks;
    uint64_t decode_steps, next_end, context;
    double now, began, kv_used; /* began: the last step */
    double planned; /* the coming step holds nothing that came later */
};

static bool start(struct run *x)
{
    const struct kvc_closed_loop *l = x->loop;

    x->r = kvc_calloc(l->requests, sizeof *x->r);
    x->chunk = kvc_malloc(l->clients, sizeof *x->chunk);
    x->decoding = kvc_malloc(l->requests, sizeof *x->decoding);
    if (!x->r || !x->chunk || !x->decoding)
        return false;
    for (uint32_t i = 0; i < l->requests; i++) {
        x->r[i].input = l->length[i].input;
        x->r[i].output = l->length[i].output;
    }
    x->sent = l->clients < l->requests ? l->clients : l->requests;
    return true;
}

static uint32_t running(const struct run *x)
{
    return x->n_decoding + x->admitted - x->filling;
}

/* Where pages are taken one by one, running requests are half way through on average. */
static double kv_of(const struct run *x, const struct request *r)
{
    return (double)r->input + r->output * (x->loop->batching.reserves_output ? 1.0 : 0.5);
}

static double arrival(const struct run *x, uint32_t i)
{
    const struct kvc_host_costs *h = &x->loop->host;

    return x->r[i].sent_ns + h->front_ns / 2 + h->front_token_ns * x->r[i].input;
}

/* A step with prefill, and an engine with nothing to do, look for requests at once. */
static void receive(struct run *x)
{
    if (x->n_decoding && !x->n_chunks && ++x->unheard < x->loop->batching.receive_steps)
        return;
    x->unheard = 0;
    while (x->received < x->sent && arrival(x, x->received) <= x->planned)
        x->received++;
}

/* Whether the i-th may run beside so many sequences that use so much KV. */
static bool fits(const struct run *x, uint32_t i, uint32_t beside, double kv_used)
{
    const struct kvc_batching *b = &x->loop->batching;

    return i < x->received && (!b->slots || beside < b->slots) &&
           (kv_used + kv_of(x, &x->r[i]) <= x->loop->kv_tokens || beside == 0);
}

static bool may_admit(const struct run *x)
{
    return fits(x, x->admitted, running(x), x->kv_used);
}

/* Whether the tokens of a prompt that are left go into what is left of the budget. */
static bool may_start(const struct run *x, const struct request *r, uint32_t budget)
{
    const struct kvc_batching *b = &x->loop->batching;

    return budget && (!b->whole_prompts || r->input <= budget || r->input > b->max_batched_tokens ||
                      running(x) == 0);
}

/* Tokens of the prompts that could go now. */
static uint64_t tokens_ready(const struct run *x, uint32_t budget)
{
    uint64_t tokens = 0;
    double kv = x->kv_used;

    for (uint32_t i = x->admitted; fits(x, i, running(x) + i - x->admitted, kv); i++) {
        if (tokens + x->r[i].input > budget)
            break;
        tokens += x->r[i].input;
        kv += kv_of(x, &x->r[i]);
    }
    return tokens;
}

/* Prompts wait for more of them as long as there is something to decode. */
static bool hold_back(struct run *x, uint32_t budget)
{
    const struct kvc_batching *b = &x->loop->batching;

    if (!b->wait_steps || !x->n_decoding || x->filling < x->admitted || !may_admit(x))
        return false;
    if (x->waited < b->wait_steps && tokens_ready(x, budget) + x->n_decoding < b->wait_tokens) {
        x->waited++;
        return true;
    }
    x->waited = 0;
    return false;
}

/* Chunks of the step within budget; requests are admitted as long as some of it is left. */
static void plan_prefill(struct run *x, uint32_t budget)
{
    x->n_chunks = 0;
    if (hold_back(x, budget))
        return;
    for (uint32_t i = x->filling; budget; i++) {
        if (i == x->admitted) {
            if (!may_admit(x) || !may_start(x, &x->r[i], budget))
                return;
            x->kv_used += kv_of(x, &x->r[x->admitted++]);
        }
        struct request *r = &x->r[i];
        uint32_t left = r->input - r->done, n = left < budget ? left : budget;
        x->chunk[x->n_chunks++] = (struct kvc_chunk){n, r->done};
        r->done += n;
        budget -= n;
    }
}

/* Takes the step that is planned. */
static void run_step(struct run *x, uint32_t n_decode, uint32_t n_first)
{
    const struct kvc_closed_loop *l = x->loop;
    uint64_t context = n_decode ? x->context : 0, host, ns;

    ns = kvc_step_ns(l->model, x->chunk, x->n_chunks, n_decode, context, n_decode + n_first, &host);
    x->out->flags |= kvc_step_flags(l->model, x->chunk, x->n_chunks, n_decode, context);
    x->began = x->now;
    x->now += (double)(ns - host) + l->host.step_ns +
              l->host.sequence_ns * ((double)n_decode + (double)x->n_chunks) +
              (x->n_chunks ? l->host.prefill_ns : 0);
}

/* Decode steps until somebody ends or may come, at least one; a step lasts at first ns, and each
 * by more than the one before. */
static uint64_t stretch(const struct run *x, double first, double more)
{
    uint64_t steps = x->next_end - x->decode_steps;

    if (x->filling < x->admitted || may_admit(x))
        return 1;
    if (x->received < x->sent) { /* begins of steps before it arrives */
        double gap = arrival(x, x->received) - x->now, mean = first - more / 2;
        double begins = gap > 0 ? 2 * gap / (mean + sqrt(mean * mean + 2 * more * gap)) : 0;
        if (begins + 1 < (double)steps)
            steps = (uint64_t)begins + 1;
    }
    return steps;
}

/* Takes the decode step that is planned and those behind it that nothing changes. */
static uint64_t run_decodes(struct run *x)
{
    const struct kvc_closed_loop *l = x->loop;
    const uint32_t n = x->n_decoding, every = l->batching.receive_steps;
    struct kvc_decode_cost cost;

    kvc_step_decode(l->model, n, x->context, &cost);
    double token = ldexp((double)cost.c1_q40, -40);
    double first = ldexp((double)cost.c0_q16, -16) - (double)cost.host_ns + l->host.step_ns +
                   l->host.sequence_ns * n + token * (double)x->context;
    uint64_t steps = stretch(x, first, token * n), known = (cost.context_end - x->context) / n + 1;
    steps = steps < known ? steps : known;
    double last = first + token * n * (double)(steps - 1);
    x->out->flags |= kvc_step_flags(l->model, NULL, 0, n, x->context + (steps - 1) * n);
    x->began = x->now + (first + last) / 2 * (double)steps - last;
    x->now = x->began + last;
    if (every)
        x->unheard = (uint32_t)((x->unheard + steps - 1) % every);
    return steps;
}

static void end(struct run *x, const struct request *r)
{
    x->kv_used -= kv_of(x, r);
    x->out->ttft_ns += r->first_ns - r->sent_ns + x->loop->host.front_ns / 2;
    if (r->output > 1)
        x->out->tpot_ns += (x->now - r->first_ns) / (r->output - 1);
    x->ended++;
    if (x->sent < x->loop->requests)
        x->r[x->sent++].sent_ns = x->now;
}

static void find_next_end(struct run *x)
{
    x->next_end = x->n_decoding ? x->r[x->decoding[x->ended_at]].last_step : UINT64_MAX;
}

static void end_decodes(struct run *x)
{
    for (; x->n_decoding; x->n_decoding--) {
        const struct request *r = &x->r[x->decoding[x->ended_at]];
        if (r->last_step > x->decode_steps)
            break;
        x->ended_at++;
        x->context -= r->input + (uint64_t)r->output;
        end(x, r);
    }
    find_next_end(x);
}

static void decode_too(struct run *x, uint32_t request)
{
    uint32_t at = x->ended_at + x->n_decoding++;

    for (; at > x->ended_at &&
           x->r[x->decoding[at - 1]].last_step > x->r[request].last_step; at--)
        x->decoding[at] = x->decoding[at - 1];
    x->decoding[at] = request;
    x->context += x->r[request].input + 1ull;
}

/* Those whose prompt is whole have their first token now. */
static void begin_decodes(struct run *x)
{
    for (; x->filling < x->admitted && x->r[x->filling].done == x->r[x->filling].input;
         x->filling++) {
        struct request *r = &x->r[x->filling];
        r->first_ns = x->now;
        if (r->output == 1) {
            end(x, r);
            continue;
        }
        r->last_step = x->decode_steps + r->output - 1;
        decode_too(x, x->filling);
    }
    find_next_end(x);
}

static void step(struct run *x)
{
    const struct kvc_closed_loop *l = x->loop;
    uint32_t most = l->batching.max_batched_tokens, n_first = 0;

    receive(x);
    bool alone = l->batching.prefill_first && (x->filling < x->admitted || may_admit(x));
    uint32_t n_decode = alone ? 0 : x->n_decoding;
    plan_prefill(x, most > n_decode ? most - n_decode : 0);
    if (running(x) > x->out->peak_running)
        x->out->peak_running = running(x);
    while (x->filling + n_first < x->admitted &&
           x->r[x->filling + n_first].done == x->r[x->filling + n_first].input)
        n_first++;
    uint64_t steps = 1;
    if (x->n_chunks || !n_decode)
        run_step(x, n_decode, n_first);
    else
        steps = run_decodes(x);
    x->out->steps += steps;
    x->planned = l->batching.plan_ahead ? x->began : x->now;
    if (n_decode) {
        x->decode_steps += steps;
        x->context += steps * n_decode;
        if (x->decode_steps == x->next_end)
            end_decodes(x);
    }
    begin_decodes(x);
}

enum kvc_status kvc_closed_loop_run(const struct kvc_closed_loop *loop,
                                    struct kvc_closed_loop_result *out, struct kvc_error *err)
{
    struct run x = {.loop = loop, .out = out, .next_end = UINT64_MAX};
    enum kvc_status status = KVC_OK;

    memset(out, 0, sizeof *out);
    if (!start(&x))
        status = kvc_fail_nomem(err);
    while (status == KVC_OK && x.ended < loop->requests) {
        if (running(&x) == 0 && x.admitted == x.received) {
            if (arrival(&x, x.received) > x.now)
                x.now = arrival(&x, x.received);
            x.planned = x.now; /* nothing to do: it looks at what has come by now */
        }
        step(&x);
    }
    out->ttft_ns /= loop->requests;
    out->tpot_ns /= loop->requests;
    kvc_free(x.r);
    kvc_free(x.chunk);
    kvc_free(x.decoding);
    return status;
}
