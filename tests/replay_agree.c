/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/replay_agree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kvc_scenario *replay_base_scenario(void)
{
    struct kvc_scenario *sc = NULL;
    struct kvc_error err;

    if (kvc_scenario_create(&sc, NULL, &err) != KVC_OK ||
        kvc_scenario_set(sc, "model", "llama-3.1-8b", &err) != KVC_OK ||
        kvc_scenario_set(sc, "cluster.gpu", "h100-sxm", &err) != KVC_OK ||
        kvc_scenario_set(sc, "engine.max_batched_tokens", "8192", &err) != KVC_OK) {
        print_error("%s\n", err.text);
        abort();
    }
    return sc;
}

uint64_t replay_kv_bytes(const struct kvc_scenario *sc)
{
    enum kvc_dtype kv = KVC_BF16;

    kvc_dtype_parse(sc->kv_dtype, &kv);
    return kvc_llm_kv_bytes_per_token(kvc_llm_find(sc->model), kv, sc->cluster.tp);
}

struct kvc_result *replay_run_engine(const struct kvc_trace *t, const struct kvc_scenario *sc,
                                     bool step_by_step)
{
    struct kvc_replay_options options = {.struct_size = sizeof options,
                                         .step_by_step = step_by_step, .skip_bounds = true};
    struct kvc_result *result = NULL;
    struct kvc_error err = {0};

    if (replay_run_lent(&result, t, sc, &options, &err) != KVC_OK) {
        print_error("replay: %s: %s\n", err.field, err.text);
        return NULL;
    }
    return result;
}

/* ---- the twin ---- */

#define DIFF(what, mine, its)                                                                     \
    if ((uint64_t)(mine) != (uint64_t)(its)) {                                                    \
        snprintf(text, size, "%s of request %u: twin %lld, engine %lld", what, i,                 \
                 (long long)(mine), (long long)(its));                                            \
        return true;                                                                              \
    }

static bool rows_differ(const struct kvc_request_result *a, const struct kvc_request_result *b,
                        uint32_t n, char *text, size_t size)
{
    for (uint32_t i = 0; i < n; i++) {
        DIFF("outcome", a[i].outcome, b[i].outcome)
        DIFF("arrival", a[i].arrival_ns, b[i].arrival_ns)
        if (a[i].outcome != KVC_UNSERVABLE)
            DIFF("replica", a[i].replica, b[i].replica)
        for (int k = 0; k < 4; k++)
            DIFF("hits", a[i].hit_tokens[k], b[i].hit_tokens[k])
        DIFF("ttft", a[i].ttft_ns, b[i].ttft_ns)
        DIFF("e2e", a[i].e2e_ns, b[i].e2e_ns)
        DIFF("recomputed", a[i].recomputed_tokens, b[i].recomputed_tokens)
        DIFF("measured", a[i].measured, b[i].measured)
        if (a[i].outcome != KVC_COMPLETED)
            continue;
        DIFF("rest of the step under way", a[i].unheard_ns, b[i].unheard_ns)
        DIFF("queue part", a[i].queue_ns, b[i].queue_ns)
        DIFF("route part", a[i].route_ns, b[i].route_ns)
        DIFF("load part", a[i].load_ns, b[i].load_ns)
        DIFF("host part", a[i].host_ns, b[i].host_ns)
        DIFF("prefill part", a[i].prefill_ns, b[i].prefill_ns)
    }
    return false;
}

/* Who lost what to whom. (A block smaller than a page may have none, and then no place in what goes
 * next.) */
static bool losses_differ(const struct twin_result *a, const struct kvc_result *b, char *text,
                          size_t size)
{
    uint32_t columns = a->n_tenants + TWIN_WHYS;

    for (uint32_t i = 0; b->losses.n_groups && i < a->n_tenants; i++) {
        uint32_t row = b->tenants[i].group * b->losses.n_columns;

        for (uint32_t j = 0; j < columns; j++) {
            uint32_t at = row + (j < a->n_tenants ? b->tenants[j].group : j);

            DIFF("bytes lost", a->evicted_blocks[i * columns + j] * b->block_bytes,
                 b->losses.bytes[at])
            DIFF("tokens missed for a loss", a->missed_to[i * columns + j],
                 b->losses.missed_tokens[at])
        }
    }
    return false;
}

static const char *const names[] = {"hbm", "dram", "nvme", "remote"};

static bool refused_differ(const struct twin_result *a, const struct kvc_result *b, char *text,
                           size_t size)
{
    for (uint32_t i = 1; i < b->n_tiers; i++)
        for (uint32_t j = 0; j < 3; j++)
            if (strcmp(names[1 + j], b->tiers[i].name) == 0)
                DIFF("bytes refused", a->tier_refused_blocks[j] * b->block_bytes,
                     b->tiers[i].refused_bytes)
    return false;
}

static bool totals_differ(const struct twin_result *a, const struct kvc_result *b, char *text,
                          size_t size)
{
    uint64_t preemptions = 0, peak = 0;

    for (uint32_t i = 0; i < KVC_MISS_CAUSES; i++)
        DIFF("missed tokens by cause", a->missed[i], b->missed_tokens[i])
    for (uint32_t i = 0; i < b->n_replicas; i++) {
        preemptions += b->replicas[i].preemptions;
        peak = b->replicas[i].peak_running > peak ? b->replicas[i].peak_running : peak;
    }
    for (uint32_t i = 0; i < 1; i++) {
        DIFF("a law of the twin's", a->wrong != NULL, 0)
        DIFF("preemptions", a->preemptions, preemptions)
        DIFF("peak running", a->peak_running, peak)
    }
    return refused_differ(a, b, text, size);
}

/* The engine lists the tiers that are there; the twin counts by kind. */
static void spread_hits(struct kvc_result *r)
{

    for (uint64_t i = 0; i < r->n_requests; i++) {
        uint32_t hits[4] = {0};

        for (uint32_t k = 0; k < r->n_tiers; k++)
            for (int j = 0; j < 4; j++)
                if (strcmp(names[j], r->tiers[k].name) == 0)
                    hits[j] = r->requests[i].hit_tokens[k];
        memcpy(r->requests[i].hit_tokens, hits, sizeof hits);
    }
}

struct kvc_trace *replay_case_trace(const struct replay_case *c)
{
    struct kvc_trace *t = tiny_trace(c->rows, c->n, c->block_tokens, true);

    if (c->level == CASE_TENANTS)
        tiny_trace_tenants(t, c->rows, c->n);
    return t;
}

/* Runs both engines and the twin; false when all agree, else says where not. */
bool replay_case_differs(const struct replay_case *c, char *text, size_t size)
{
    struct kvc_trace *t = replay_case_trace(c);
    struct kvc_trace *f = c->seed % 2 ? replay_case_forest(c) : NULL;
    struct twin_setup setup;
    struct twin_result twin;
    struct kvc_result *jump, *step;
    bool differs = false;

    if (!twin_setup_from_scenario(&setup, &c->sc))
        abort();
    replay_twin_run(t, &c->sc, &setup, &twin);
    if (!twin.stalled) {
        jump = replay_run_engine(f ? f : t, &c->sc, false);
        step = replay_run_engine(t, &c->sc, true);
        if (!jump || !step) {
            snprintf(text, size, "the engine failed");
            differs = true;
        } else {
            spread_hits(jump);
            spread_hits(step);
            differs = rows_differ(twin.requests, step->requests, c->n, text, size) ||
                      totals_differ(&twin, step, text, size) ||
                      (c->sc.engine.page_tokens <= c->block_tokens &&
                       losses_differ(&twin, step, text, size));
            if (!differs && (rows_differ(twin.requests, jump->requests, c->n, text, size) ||
                             totals_differ(&twin, jump, text, size))) {
                strncat(text, " (jumping)", size - strlen(text) - 1);
                differs = true;
            }
        }
        kvc_result_destroy(jump);
        kvc_result_destroy(step);
    }
    replay_twin_clear(&twin);
    tiny_trace_free(t);
    kvc_trace_destroy(f);
    return differs;
}

static void drop_row(struct replay_case *c, uint32_t at)
{
    uint64_t first;

    memmove(&c->rows[at], &c->rows[at + 1], (c->n - at - 1) * sizeof c->rows[0]);
    memmove(&c->origin[at], &c->origin[at + 1], (c->n - at - 1) * sizeof c->origin[0]);
    c->n--;
    first = c->rows[0].time_ns;
    for (uint32_t i = 0; i < c->n; i++)
        c->rows[i].time_ns -= first;
    for (uint32_t i = 0, next = 0; i < c->n; i++) { /* sessions stay dense */
        uint32_t old = c->rows[i].session;

        if (old == KVC_ID_NONE || old < next)
            continue;
        for (uint32_t j = i; j < c->n; j++)
            if (c->rows[j].session == old)
                c->rows[j].session = next;
            else if (c->rows[j].session == next)
                c->rows[j].session = old;
        next++;
    }
}

void replay_case_shrink(struct replay_case *c)
{
    char text[256];
    bool smaller = true;

    while (smaller) {
        smaller = false;
        for (uint32_t i = c->n; i-- > 0 && c->n > 1;) {
            struct replay_case less = *c;

            drop_row(&less, i);
            if (replay_case_differs(&less, text, sizeof text)) {
                *c = less;
                smaller = true;
            }
        }
    }
}
