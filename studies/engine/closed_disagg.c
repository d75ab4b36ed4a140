/* SPDX-License-Identifier: Apache-2.0
 * Requests are sent, prefilled and begun in the order of their numbers, so a prefill step holds a
 * range of them. What happens next is looked for among the engines, of which there are few. */
#include "studies/engine/closed_disagg.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

struct request {
    uint64_t last_step; /* of its decode engine, makes its last token */
    double sent, ready, first;
};

struct engine {
    bool busy;
    double end;              /* of its step, where busy */
    uint32_t from, to;       /* prefill: requests of the step */
    uint32_t *running;       /* decode: [clients], those of the step first, then those that wait */
    uint32_t n, n_running;
    uint64_t steps, context; /* decode */
    double kv_used;
};

struct run {
    const struct kvc_closed_disagg *loop;
    struct kvc_closed_loop_result *out;
    struct request *r;
    struct kvc_chunk *chunk;
    struct engine *prefill, *decode;
    uint32_t *moving; /* [clients] requests whose KV is on its way, the next to arrive last */
    uint32_t n_moving, next, sent, ended;
    double now;
};

static double kv_of(const struct run *x, uint32_t i)
{
    return (double)x->loop->length[i].input + x->loop->length[i].output;
}

static double arrival(const struct run *x, uint32_t i)
{
    const struct kvc_host_costs *h = &x->loop->host;

    return x->r[i].sent + h->front_ns / 2 + h->front_token_ns * x->loop->length[i].input;
}

/* ---- prefill ---- */

static void begin_prefill(struct run *x, struct engine *e)
{
    const struct kvc_closed_disagg *l = x->loop;
    uint32_t tokens = 0, n = 0;
    uint64_t host, ns;

    e->from = x->next;
    while (x->next < x->sent && arrival(x, x->next) <= x->now &&
           (n == 0 || tokens + l->length[x->next].input <= l->prefill.most)) {
        tokens += l->length[x->next].input;
        x->chunk[n++] = (struct kvc_chunk){l->length[x->next++].input, 0};
    }
    e->to = x->next;
    if (n == 0)
        return;
    ns = kvc_step_ns(l->prefill.model, x->chunk, n, 0, 0, n, &host);
    x->out->flags |= kvc_step_flags(l->prefill.model, x->chunk, n, 0, 0);
    x->out->steps++;
    e->busy = true;
    e->end = x->now + (double)(ns - host) + l->host.step_ns + l->host.prefill_ns +
             l->host.sequence_ns * n;
}

static void end_prefill(struct run *x, struct engine *e)
{
    const struct kvc_closed_disagg *l = x->loop;

    for (uint32_t i = e->from; i < e->to; i++) {
        x->r[i].ready = x->now + l->copy_ns + l->copy_ns_per_token * l->length[i].input;
        uint32_t at = x->n_moving++;
        for (; at > 0 && x->r[x->moving[at - 1]].ready < x->r[i].ready; at--)
            x->moving[at] = x->moving[at - 1];
        x->moving[at] = i;
    }
    e->busy = false;
}

/* ---- decode ---- */

static void arrive(struct run *x)
{
    struct engine *least = &x->decode[0];

    for (uint32_t i = 1; i < x->loop->decode.engines; i++)
        if (x->decode[i].n < least->n)
            least = &x->decode[i];
    least->running[least->n++] = x->moving[--x->n_moving];
}

static void begin_decode(struct run *x, struct engine *e)
{
    const struct kvc_closed_disagg *l = x->loop;
    uint64_t host, ns;

    while (e->n_running < e->n && (!l->decode.most || e->n_running < l->decode.most)) {
        uint32_t i = e->running[e->n_running];
        if (e->n_running && e->kv_used + kv_of(x, i) > l->decode.kv_tokens)
            break;
        x->r[i].last_step = e->steps + (l->length[i].output > 1 ? l->length[i].output - 1 : 1);
        x->r[i].first = -1;
        e->kv_used += kv_of(x, i);
        e->context += l->length[i].input + 1ull;
        e->n_running++;
    }
    if (e->n_running == 0)
        return;
    ns = kvc_step_ns(l->decode.model, NULL, 0, e->n_running, e->context, e->n_running, &host);
    x->out->flags |= kvc_step_flags(l->decode.model, NULL, 0, e->n_running, e->context);
    x->out->steps++;
    if (e->n_running > x->out->peak_running)
        x->out->peak_running = e->n_running;
    e->busy = true;
    e->end = x->now + (double)(ns - host) + l->host.step_ns + l->host.sequence_ns * e->n_running;
}

static void end_request(struct run *x, uint32_t i)
{
    const struct request *r = &x->r[i];

    x->out->ttft_ns += r->first - r->sent + x->loop->host.front_ns / 2;
    if (x->loop->length[i].output > 1)
        x->out->tpot_ns += (x->now - r->first) / (x->loop->length[i].output - 1);
    x->ended++;
    if (x->sent < x->loop->requests)
        x->r[x->sent++].sent = x->now;
}

static void end_decode(struct run *x, struct engine *e)
{
    uint32_t kept = 0;

    e->steps++;
    e->context += e->n_running;
    for (uint32_t at = 0; at < e->n; at++) {
        uint32_t i = e->running[at];
        if (at < e->n_running && x->r[i].first < 0)
            x->r[i].first = x->now;
        if (at < e->n_running && x->r[i].last_step == e->steps) {
            e->context -= x->loop->length[i].input + 1ull +
                          (x->loop->length[i].output > 1 ? x->loop->length[i].output - 1 : 1);
            e->kv_used -= kv_of(x, i);
            end_request(x, i);
            continue;
        }
        e->running[kept++] = i;
    }
    e->n_running -= e->n - kept;
    e->n = kept;
    e->busy = false;
}

/* ---- events ---- */

static double next_event(const struct run *x)
{
    const struct kvc_closed_disagg *l = x->loop;
    double t = x->n_moving ? x->r[x->moving[x->n_moving - 1]].ready : HUGE_VAL;
    bool idle = false;

    for (uint32_t i = 0; i < l->prefill.engines; i++) {
        idle |= !x->prefill[i].busy;
        if (x->prefill[i].busy && x->prefill[i].end < t)
            t = x->prefill[i].end;
    }
    for (uint32_t i = 0; i < l->decode.engines; i++)
        if (x->decode[i].busy && x->decode[i].end < t)
            t = x->decode[i].end;
    if (idle && x->next < x->sent && arrival(x, x->next) < t)
        t = arrival(x, x->next);
    return t;
}

static void advance(struct run *x)
{
    const struct kvc_closed_disagg *l = x->loop;

    x->now = next_event(x);
    for (uint32_t i = 0; i < l->decode.engines; i++)
        if (x->decode[i].busy && x->decode[i].end <= x->now)
            end_decode(x, &x->decode[i]);
    for (uint32_t i = 0; i < l->prefill.engines; i++)
        if (x->prefill[i].busy && x->prefill[i].end <= x->now)
            end_prefill(x, &x->prefill[i]);
    while (x->n_moving && x->r[x->moving[x->n_moving - 1]].ready <= x->now)
        arrive(x);
    for (uint32_t i = 0; i < l->prefill.engines; i++)
        if (!x->prefill[i].busy)
            begin_prefill(x, &x->prefill[i]);
    for (uint32_t i = 0; i < l->decode.engines; i++)
        if (!x->decode[i].busy)
            begin_decode(x, &x->decode[i]);
}

static bool start(struct run *x)
{
    const struct kvc_closed_disagg *l = x->loop;

    x->r = kvc_calloc(l->requests, sizeof *x->r);
    x->chunk = kvc_malloc(l->clients, sizeof *x->chunk);
    x->moving = kvc_malloc(l->clients, sizeof *x->moving);
    x->prefill = kvc_calloc(l->prefill.engines, sizeof *x->prefill);
    x->decode = kvc_calloc(l->decode.engines, sizeof *x->decode);
    if (!x->r || !x->chunk || !x->moving || !x->prefill || !x->decode)
        return false;
    for (uint32_t i = 0; i < l->decode.engines; i++) {
        x->decode[i].running = kvc_malloc(l->clients, sizeof *x->decode[i].running);
        if (!x->decode[i].running)
            return false;
    }
    x->sent = l->clients < l->requests ? l->clients : l->requests;
    return true;
}

enum kvc_status kvc_closed_disagg_run(const struct kvc_closed_disagg *loop,
                                      struct kvc_closed_loop_result *out, struct kvc_error *err)
{
    struct run x = {.loop = loop, .out = out};
    enum kvc_status status = KVC_OK;

    memset(out, 0, sizeof *out);
    if (!start(&x))
        status = kvc_fail_nomem(err);
    while (status == KVC_OK && x.ended < loop->requests)
        advance(&x);
    out->ttft_ns /= loop->requests;
    out->tpot_ns /= loop->requests;
    for (uint32_t i = 0; x.decode && i < loop->decode.engines; i++)
        kvc_free(x.decode[i].running);
    kvc_free(x.r);
    kvc_free(x.chunk);
    kvc_free(x.moving);
    kvc_free(x.prefill);
    kvc_free(x.decode);
    return status;
}
