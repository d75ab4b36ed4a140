/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/arrivals.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct arrival {
    uint64_t time_ns;
    uint32_t request;
};

struct kvc_arrivals {
    const struct kvc_trace *trace;
    enum kvc_arrival_mode mode;
    struct arrival *v; /* open: sorted; else a heap by (time, request) */
    size_t n, next;
    uint64_t *own_ns;  /* paced: the trace's time of each request */
    uint32_t *session_next;   /* request -> the session's next one */
    uint32_t *unit;           /* first requests of sessions, in order */
    size_t n_units, next_unit;
    uint32_t *turn; /* rounds: request -> which of its session; unit then holds all, by turn */
    uint32_t lanes, under_way, round;
    uint64_t round_ns; /* when it began */
};

static bool earlier(const struct arrival *a, const struct arrival *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->request < b->request;
}

static int compare(const void *a, const void *b)
{
    return earlier(a, b) ? -1 : 1;
}

static void own_times(struct kvc_arrivals *a, const struct kvc_scenario *sc)
{
    const struct kvc_trace *t = a->trace;
    for (uint64_t i = 0; i < t->n_requests; i++) {
        double scaled = (double)t->arrival_ns[i] / sc->arrivals.scale;
        a->v[i].time_ns = sc->arrivals.scale == 1.0 ? t->arrival_ns[i]
                          : scaled < 9e18           ? (uint64_t)(scaled + 0.5)
                                                    : (uint64_t)9e18; /* refused when it comes */
        a->v[i].request = (uint32_t)i;
    }
    for (uint64_t i = 0, m; sc->arrivals.spread_ns && i < t->n_requests; i += m) {
        for (m = 1; i + m < t->n_requests && t->arrival_ns[i + m] == t->arrival_ns[i];)
            m++;
        for (uint64_t k = 1; k < m; k++) {
            __extension__ typedef unsigned __int128 u128;
            a->v[i + k].time_ns += (uint64_t)((u128)sc->arrivals.spread_ns * k / m);
        }
    }
}

static void open_times(struct kvc_arrivals *a)
{
    uint64_t n = a->trace->n_requests;
    bool sorted = true;
    for (uint64_t i = 1; i < n; i++)
        sorted &= a->v[i - 1].time_ns <= a->v[i].time_ns;
    if (!sorted)
        qsort(a->v, n, sizeof(*a->v), compare);
    a->n = n;
}

static void heap_push(struct kvc_arrivals *a, struct arrival x)
{
    size_t i = a->n++;
    for (; i && earlier(&x, &a->v[(i - 1) / 2]); i = (i - 1) / 2)
        a->v[i] = a->v[(i - 1) / 2];
    a->v[i] = x;
}

static void heap_pop(struct kvc_arrivals *a)
{
    struct arrival last = a->v[--a->n];
    size_t i = 0;
    for (size_t c = 1; c < a->n; c = 2 * i + 1) {
        if (c + 1 < a->n && earlier(&a->v[c + 1], &a->v[c]))
            c++;
        if (!earlier(&a->v[c], &last))
            break;
        a->v[i] = a->v[c];
        i = c;
    }
    a->v[i] = last;
}

/* Sessions as chains of requests. */
static enum kvc_status chain(struct kvc_arrivals *a, struct kvc_error *err)
{
    const struct kvc_trace *t = a->trace;
    uint32_t *last = kvc_malloc(t->n_sessions, sizeof(*last));
    a->session_next = kvc_malloc(t->n_requests, sizeof(*a->session_next));
    a->unit = kvc_malloc(t->n_requests, sizeof(*a->unit));
    if (!last || !a->session_next || !a->unit) {
        kvc_free(last);
        return kvc_fail_nomem(err);
    }
    memset(last, 0xff, t->n_sessions * sizeof(*last));
    memset(a->session_next, 0xff, t->n_requests * sizeof(*a->session_next));
    for (uint64_t i = 0; i < t->n_requests; i++) {
        uint32_t s = t->session ? t->session[i] : KVC_ID_NONE;
        if (s != KVC_ID_NONE && last[s] != KVC_ID_NONE)
            a->session_next[last[s]] = (uint32_t)i;
        else
            a->unit[a->n_units++] = (uint32_t)i;
        if (s != KVC_ID_NONE)
            last[s] = (uint32_t)i;
    }
    kvc_free(last);
    return KVC_OK;
}

/* All requests by turn, those of a turn in their order. */
static enum kvc_status sort_turns(struct kvc_arrivals *a, struct kvc_error *err)
{
    uint64_t n = a->trace->n_requests;
    uint32_t *first = kvc_calloc(n + 1, sizeof(*first));
    a->turn = kvc_calloc(n, sizeof(*a->turn));
    if (!first || !a->turn) {
        kvc_free(first);
        return kvc_fail_nomem(err);
    }
    for (uint64_t i = 0; i < n; i++) {
        if (a->session_next[i] != KVC_ID_NONE)
            a->turn[a->session_next[i]] = a->turn[i] + 1;
        first[a->turn[i] + 1]++;
    }
    for (uint64_t k = 0; k < n; k++)
        first[k + 1] += first[k];
    for (uint64_t i = 0; i < n; i++)
        a->unit[first[a->turn[i]]++] = (uint32_t)i;
    a->n_units = n;
    kvc_free(first);
    return KVC_OK;
}

static uint64_t think_ns(const struct kvc_arrivals *a, uint32_t request)
{
    uint64_t think = a->trace->think_ns ? a->trace->think_ns[request] : KVC_TIME_NONE;
    return think == KVC_TIME_NONE ? 0 : think;
}

/* Free lanes take what is left of the round; when nothing of it is under way, the next begins. */
static void take_turns(struct kvc_arrivals *a, uint64_t time_ns)
{
    for (; a->under_way < a->lanes && a->next_unit < a->n_units; a->under_way++) {
        uint32_t request = a->unit[a->next_unit];
        if (a->turn[request] != a->round) {
            if (a->under_way)
                return;
            a->round = a->turn[request];
            a->round_ns = time_ns;
        }
        uint64_t own = a->round_ns + think_ns(a, request);
        heap_push(a, (struct arrival){own > time_ns ? own : time_ns, request});
        a->next_unit++;
    }
}

/* Lanes take sessions in order of their first request. */
static void fill_lanes(struct kvc_arrivals *a, uint32_t lanes)
{
    for (; a->next_unit < a->n_units && a->next_unit < lanes; a->next_unit++)
        heap_push(a, (struct arrival){0, a->unit[a->next_unit]});
}

static enum kvc_status start_sessions(struct kvc_arrivals *a, struct kvc_error *err)
{
    uint64_t n = a->trace->n_requests;
    a->own_ns = kvc_malloc(n, sizeof(*a->own_ns));
    if (!a->own_ns)
        return kvc_fail_nomem(err);
    for (uint64_t i = 0; i < n; i++)
        a->own_ns[i] = a->v[i].time_ns;
    for (; a->next_unit < a->n_units; a->next_unit++)
        heap_push(a, (struct arrival){a->own_ns[a->unit[a->next_unit]], a->unit[a->next_unit]});
    return KVC_OK;
}

enum kvc_status kvc_arrivals_create(struct kvc_arrivals **out, const struct kvc_trace *trace,
                                    const struct kvc_scenario *scenario, struct kvc_error *err)
{
    if (trace->n_requests >= UINT32_MAX)
        return kvc_fail(err, KVC_ERR_LIMIT, "a replay takes at most %u requests", UINT32_MAX - 1);
    struct kvc_arrivals *a = kvc_calloc(1, sizeof(*a));
    if (!a)
        return kvc_fail_nomem(err);
    a->trace = trace;
    a->mode = scenario->arrivals.mode;
    a->v = kvc_malloc(trace->n_requests, sizeof(*a->v));
    enum kvc_status st = a->v ? KVC_OK : kvc_fail_nomem(err);
    if (st == KVC_OK && a->mode != KVC_ARRIVALS_CLOSED)
        own_times(a, scenario);
    if (st == KVC_OK && a->mode != KVC_ARRIVALS_OPEN)
        st = chain(a, err);
    if (st == KVC_OK && a->mode == KVC_ARRIVALS_OPEN)
        open_times(a);
    else if (st == KVC_OK && a->mode == KVC_ARRIVALS_PACED)
        st = start_sessions(a, err);
    else if (st == KVC_OK && !scenario->arrivals.rounds)
        fill_lanes(a, scenario->arrivals.concurrency);
    else if (st == KVC_OK && (st = sort_turns(a, err)) == KVC_OK) {
        a->lanes = scenario->arrivals.concurrency;
        take_turns(a, 0);
    }
    if (st != KVC_OK) {
        kvc_arrivals_destroy(a);
        return st;
    }
    *out = a;
    return KVC_OK;
}

void kvc_arrivals_destroy(struct kvc_arrivals *a)
{
    if (!a)
        return;
    kvc_free(a->v);
    kvc_free(a->own_ns);
    kvc_free(a->session_next);
    kvc_free(a->unit);
    kvc_free(a->turn);
    kvc_free(a);
}

uint64_t kvc_arrivals_next_ns(const struct kvc_arrivals *a)
{
    size_t i = a->mode == KVC_ARRIVALS_OPEN ? a->next : 0;
    return i < a->n ? a->v[i].time_ns : KVC_TIME_NONE;
}

uint32_t kvc_arrivals_pop(struct kvc_arrivals *a)
{
    if (a->mode == KVC_ARRIVALS_OPEN)
        return a->v[a->next++].request;
    uint32_t request = a->v[0].request;
    heap_pop(a);
    return request;
}

void kvc_arrivals_ended(struct kvc_arrivals *a, uint32_t request, uint64_t time_ns)
{
    if (a->mode == KVC_ARRIVALS_OPEN)
        return;
    if (a->turn) {
        a->under_way--;
        take_turns(a, time_ns);
        return;
    }
    uint32_t next = a->session_next[request];
    if (a->mode == KVC_ARRIVALS_PACED) {
        if (next != KVC_ID_NONE)
            heap_push(a, (struct arrival){a->own_ns[next] > time_ns ? a->own_ns[next] : time_ns,
                                          next});
    } else if (next != KVC_ID_NONE) {
        heap_push(a, (struct arrival){time_ns + think_ns(a, next), next});
    } else if (a->next_unit < a->n_units) {
        heap_push(a, (struct arrival){time_ns, a->unit[a->next_unit++]});
    }
}
