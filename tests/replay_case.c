/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/replay_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "traces/forest/forest.h"

#define MS 1000000u

struct maker {
    uint64_t rng, next_id;
    struct replay_case *c;
    uint32_t max_blocks, max_out;
    bool outputs_known, tails_named;
};

static uint32_t below(struct maker *m, uint32_t n)
{
    return (uint32_t)kvc_rng_below(&m->rng, n);
}

static bool chance(struct maker *m, uint32_t percent)
{
    return below(m, 100) < percent;
}

/* Copies a leading part of what an earlier row's path holds. */
static uint32_t share_prefix(struct maker *m, struct tiny_row *row, uint32_t i)
{
    const struct tiny_row *from = &m->c->rows[below(m, i)];
    uint32_t full = from->input_tokens / m->c->block_tokens;
    const uint64_t *ids = from->ids;
    uint32_t n = from->n_ids < full ? from->n_ids : full;

    if (from->n_out && chance(m, 60)) {
        ids = from->out;
        n = from->n_out;
    }
    if (!chance(m, 40))
        n = below(m, n + 1);
    n = n < m->max_blocks ? n : m->max_blocks;
    memcpy(row->ids, ids, n * sizeof *ids);
    return n;
}

static void make_output(struct maker *m, struct tiny_row *row)
{
    uint32_t B = m->c->block_tokens, full = row->input_tokens / B;
    uint32_t n = (row->input_tokens + row->output_tokens) / B;

    if (!m->outputs_known || (full && row->n_ids == 0) || n > TINY_BLOCKS || chance(m, 20))
        return;
    memcpy(row->out, row->ids, full * sizeof row->ids[0]);
    row->n_out = n;
    for (uint32_t b = full; b < n; b++)
        row->out[b] = ++m->next_id;
}

static void make_row(struct maker *m, uint32_t i, uint64_t time_ns)
{
    struct tiny_row *row = &m->c->rows[i];
    uint32_t B = m->c->block_tokens, n = 0, more, tail;

    if (i && chance(m, 20)) { /* the very same prompt, often with the same known output */
        *row = m->c->rows[below(m, i)];
        row->time_ns = time_ns;
        if (chance(m, 50)) {
            row->n_out = 0;
            row->output_tokens = below(m, m->max_out + 1);
            make_output(m, row);
        }
        return;
    }
    memset(row, 0, sizeof *row);
    row->time_ns = time_ns;
    row->session = KVC_ID_NONE;
    row->think_ns = KVC_TIME_NONE;
    row->output_tokens = below(m, m->max_out + 1);
    if (i && chance(m, 70))
        n = share_prefix(m, row, i);
    more = below(m, m->max_blocks - n + 1);
    for (uint32_t k = 0; k < more; k++)
        row->ids[n++] = ++m->next_id;
    tail = chance(m, 30) ? 0 : below(m, B);
    row->input_tokens = n * B + tail;
    if (row->input_tokens == 0)
        row->input_tokens = 1;
    row->n_ids = n;
    if (row->input_tokens % B && m->tails_named)
        row->ids[row->n_ids++] = ++m->next_id;
    if (chance(m, 3))
        row->n_ids = row->n_out = 0; /* reuse unknown */
    else
        make_output(m, row);
}

static void make_rows(struct maker *m)
{
    struct replay_case *c = m->c;
    uint32_t gap_ms = chance(m, 50) ? 5 : chance(m, 50) ? 40 : 400;
    uint32_t sessions = chance(m, 50) ? 0 : 1 + below(m, 5), next = 0;
    uint64_t now = 0;

    c->n = 1 + below(m, CASE_ROWS);
    for (uint32_t i = 0; i < c->n; i++) {
        c->origin[i] = i;
        make_row(m, i, now);
        if (sessions && chance(m, 80)) {
            uint32_t s = below(m, sessions);

            s = s < next ? s : next++; /* dense, by first appearance */
            c->rows[i].session = s;
            if (chance(m, 70))
                c->rows[i].think_ns = (uint64_t)below(m, gap_ms * 1000) * 1000;
        } else {
            c->rows[i].session = KVC_ID_NONE;
            c->rows[i].think_ns = KVC_TIME_NONE;
        }
        c->rows[i].failed = chance(m, 3);
        if (!chance(m, 35)) /* even, so that half of it is whole */
            now += (uint64_t)below(m, gap_ms * 1000) * 2000;
    }
}

static void make_engine(struct maker *m, uint64_t kv_bytes_per_token)
{
    static const uint32_t pages_of[] = {1, 2, 3, 4, 5, 8, 16};
    struct kvc_scenario *sc = &m->c->sc;
    uint64_t largest = 1;

    sc->engine.page_tokens = chance(m, 40) ? m->c->block_tokens : pages_of[below(m, 7)];
    for (uint32_t i = 0; i < m->c->n; i++) {
        uint32_t o = m->c->rows[i].output_tokens ? m->c->rows[i].output_tokens : 1;
        uint64_t tokens = (uint64_t)m->c->rows[i].input_tokens + o - 1;
        uint64_t pages = (tokens + sc->engine.page_tokens - 1) / sc->engine.page_tokens;

        largest = pages > largest ? pages : largest;
    }
    m->c->pages = chance(m, 10)   ? 1 + below(m, (uint32_t)largest)
                  : chance(m, 20) ? largest
                                  : largest + below(m, (uint32_t)largest * 4);
    /* by seed: drawing it would make all other cases anew */
    uint64_t beside = m->c->seed % 7 == 3 ? 1 + m->c->seed / 7 % 4 : 0;
    uint64_t page_bytes = sc->engine.page_tokens * kv_bytes_per_token;
    sc->engine.sequence_memory_bytes = beside ? beside * page_bytes - m->c->seed % 3 : 0;
    m->c->pages += beside * (1 + m->c->seed / 28 % 4);
    sc->engine.kv_cache_memory_bytes = (m->c->pages + 1) * page_bytes;
    sc->engine.max_batched_tokens = chance(m, 30) ? 8192 : 1 + below(m, 60);
    sc->engine.max_seqs = chance(m, 50) ? 256 : 1 + below(m, 6);
    sc->engine.max_model_len = chance(m, 10) ? 1 + below(m, 100) : 0;
    sc->engine.chunked_prefill = !chance(m, 15);
    sc->engine.reserve_full_prompt = !chance(m, 30);
    sc->engine.plan_ahead = m->c->seed % 5 < 3; /* drawing it would make all other cases anew */
    sc->engine.prefix_caching = !chance(m, 5);
    sc->engine.unhashed_first = true;
}

static void make_traffic(struct maker *m)
{
    struct kvc_scenario *sc = &m->c->sc;
    static const double scales[] = {1.0, 2.0, 0.5};
    static const char *const orders[] = {"fcfs", "fcfs", "fcfs", "", "shortest", "uncached",
                                         "lpm:most=3", "fair"};

    snprintf(sc->engine.order, sizeof sc->engine.order, "%s", orders[m->c->seed / 4 % 8]);

    sc->arrivals.mode = KVC_ARRIVALS_OPEN;
    sc->arrivals.scale = 1.0;
    sc->arrivals.spread_ns = 0;
    sc->arrivals.rounds = false;
    sc->router.latency_ns = 0;
    sc->request_timeout_ns = sc->warmup_ns = 0;
    sc->cluster.replicas = 1;
    snprintf(sc->router.policy, sizeof sc->router.policy, "round-robin");
    if (m->c->level == CASE_ONE_REPLICA)
        return;
    sc->cluster.replicas = 1 + below(m, 4);
    snprintf(sc->router.policy, sizeof sc->router.policy, "%s",
             (const char *[]){"round-robin", "least-loaded", "prefix"}[below(m, 3)]);
    sc->router.latency_ns = chance(m, 25) ? below(m, 20) * MS : 0;
    sc->arrivals.scale = scales[below(m, 3)];
    sc->arrivals.spread_ns = chance(m, 30) ? below(m, 100) * MS + 1 : 0;
    if (chance(m, 40)) {
        sc->arrivals.mode = KVC_ARRIVALS_CLOSED;
        sc->arrivals.concurrency = 1 + below(m, 5);
        sc->arrivals.rounds = m->c->seed / 5 % 3 == 0;
    } else if (m->c->seed % 3 == 0) {
        sc->arrivals.mode = KVC_ARRIVALS_PACED;
    }
    sc->request_timeout_ns = chance(m, 15) ? 1 + below(m, 200) * MS : 0;
    sc->warmup_ns = chance(m, 20) ? below(m, 300) * MS : 0;
}

/* By draws of its own, so that the rest of a case stays what it was. */
static void make_operations(const struct maker *of, struct kvc_tier_config *t,
                            uint64_t kv_bytes_per_token)
{
    struct maker m = {.rng = kvc_rng_stream(of->rng, "operations")};

    t->link_queue_depth = chance(&m, 30) ? 1 + below(&m, 8) : 0;
    t->link_io_bytes = chance(&m, 30) ? 1 + below(&m, 40) * kv_bytes_per_token : 0;
    t->link_staged = chance(&m, 30) && t != of->c->sc.tiers; /* dram is host memory */
    t->connector = t == of->c->sc.tiers + 2 && !t->link_staged ? (enum kvc_connector)below(&m, 3)
                                                               : KVC_CONNECTOR_NONE;
}

/* The same: what loads cost beside their bytes. */
static void make_loads(const struct maker *of)
{
    struct maker m = {.rng = kvc_rng_stream(of->rng, "loads")};
    bool some = chance(&m, 30);

    of->c->sc.engine.kv_load_ns = some ? below(&m, 40 * MS) : 0;
    of->c->sc.engine.kv_load_token_ns = some ? below(&m, 100000) : 0;
}

/* The same: half of those with host memory and something below it fetch as requests come. */
static void make_prefetch(const struct maker *of)
{
    struct maker m = {.rng = kvc_rng_stream(of->rng, "prefetch")};
    struct kvc_scenario *sc = &of->c->sc;

    sc->engine.prefetch = chance(&m, 50) ? KVC_PREFETCH_NEVER
                                         : (enum kvc_prefetch_rule)(1 + below(&m, 3));
    sc->engine.prefetch_threshold = below(&m, 3 * of->c->block_tokens);
    sc->engine.prefetch_limit = chance(&m, 50) ? 1000 : 0.1 * below(&m, 30);
}

static void make_tiers(struct maker *m, uint64_t kv_bytes_per_token)
{
    struct kvc_scenario *sc = &m->c->sc;
    static const enum kvc_write_mode writes[] = {KVC_WRITE_THROUGH, KVC_WRITE_SELECTIVE,
                                                 KVC_WRITE_ON_EVICT, KVC_WRITE_BACK};
    static const enum kvc_scope scopes[] = {KVC_PER_REPLICA, KVC_PER_NODE, KVC_CLUSTER,
                                            KVC_PER_GPU};
    static const char *const links[] = {"pcie5-x16", "nvme-gen5-x4", "rdma-400"};

    sc->cluster.gpus_per_node = 1 + below(m, 3);
    for (int k = 0; k < 3; k++) {
        struct kvc_tier_config *t = &sc->tiers[k];

        t->present = m->c->level >= CASE_TIERS ? chance(m, 60) : m->c->level == CASE_DRAM && k == 0;
        if (!t->present) {
            t->capacity_bytes = 0;
            continue;
        }
        t->capacity_bytes = (uint64_t)(1 + below(m, 60)) * m->c->block_tokens * kv_bytes_per_token;
        t->scope = k == 0 && m->c->level == CASE_DRAM ? KVC_PER_REPLICA : scopes[below(m, 4)];
        snprintf(t->link, sizeof t->link, "%s", chance(m, 20) ? links[k] : "");
        t->link_bytes_per_s = 1e7 * (1 + below(m, 1000));
        t->link_efficiency = 1.0;
        t->link_latency_ns = chance(m, 30) ? 0 : below(m, 5000) * 1000;
        t->link_devices = below(m, 3);
        make_operations(m, t, kv_bytes_per_token);
        snprintf(t->policy, sizeof t->policy, chance(m, 75) ? "lru" : "fifo");
        t->write = writes[chance(m, 50) ? 0 : below(m, 4)];
        t->inclusive = !chance(m, 20);
        t->store_output = !chance(m, 25);
        t->chunk_tokens = chance(m, 60) ? 0 : 1 + below(m, 3 * m->c->block_tokens);
    }
}

/* ---- tenants ---- */

static struct kvc_amount make_amount(struct maker *m, uint64_t block_bytes, uint32_t percent)
{
    struct kvc_amount a = {KVC_AMOUNT_SHARE, (double)below(m, percent + 1) / 100, 0};

    if (chance(m, 20))
        a = (struct kvc_amount){KVC_AMOUNT_BYTES, 0, below(m, 12) * block_bytes};
    else if (chance(m, 10))
        a.kind = KVC_AMOUNT_NONE;
    return a;
}

static void make_rule(struct maker *m, const char *name, uint64_t block_bytes, bool reserves)
{
    struct kvc_tenant_rule *r = &m->c->sc.tenants[m->c->sc.n_tenants++];

    memset(r, 0, sizeof *r);
    snprintf(r->name, sizeof r->name, "%s", name);
    for (int k = 0; k < KVC_LEVELS; k++) {
        if (chance(m, 50))
            r->quota[k] = make_amount(m, block_bytes, 60);
        if (reserves && chance(m, 60))
            r->reserve[k] = (struct kvc_amount){KVC_AMOUNT_SHARE, below(m, 20) / 100.0, 0};
    }
    r->given = below(m, 16);
    r->quota_mode = (enum kvc_quota_mode)below(m, 4);
    r->ttl_ns = chance(m, 40) ? 0 : 1 + (uint64_t)below(m, 800) * MS;
    r->priority = below(m, 3);
}

/* One of them keeps most of HBM for itself. */
static void reserve_most(struct maker *m)
{
    struct kvc_scenario *sc = &m->c->sc;

    for (uint32_t i = 0; i < sc->n_tenants; i++)
        sc->tenants[i].reserve[0].kind = KVC_AMOUNT_NONE;
    sc->tenants[sc->n_tenants - 1].reserve[0] =
        (struct kvc_amount){KVC_AMOUNT_SHARE, (50 + below(m, 51)) / 100.0, 0};
}

/* Nobody reserves more than its quota lets it keep. */
static void raise_quotas(struct maker *m)
{
    struct kvc_scenario *sc = &m->c->sc;

    for (uint32_t i = 0; i < sc->n_tenants; i++)
        for (int k = 0; k < KVC_LEVELS; k++) {
            struct kvc_amount *quota = &sc->tenants[i].quota[k];
            struct kvc_amount *reserve = &sc->tenants[i].reserve[k];
            double share = reserve->share + below(m, 60) / 100.0;

            if (reserve->kind == KVC_AMOUNT_SHARE)
                *quota = (struct kvc_amount){KVC_AMOUNT_SHARE, share < 1 ? share : 1, 0};
            else if (quota->kind != KVC_AMOUNT_UNSET)
                reserve->kind = KVC_AMOUNT_NONE; /* not default's */
        }
}

static void make_tenants(struct maker *m, uint64_t kv_bytes_per_token)
{
    static const char *const names[TINY_TENANTS] = {"t0", "t1", "t2", "t3"};
    uint64_t block_bytes = m->c->block_tokens * kv_bytes_per_token;
    struct kvc_scenario *sc = &m->c->sc;
    bool reserves = chance(m, 50);

    sc->n_tenants = 0;
    if (m->c->level != CASE_TENANTS)
        return;
    for (uint32_t i = 0; i < m->c->n; i++)
        m->c->rows[i].tenant = below(m, TINY_TENANTS);
    if (chance(m, 50))
        make_rule(m, "default", block_bytes, reserves);
    for (uint32_t t = 0; t < TINY_TENANTS; t++)
        if (chance(m, 50))
            make_rule(m, names[t], block_bytes, reserves);
    if (reserves && sc->n_tenants && strcmp(sc->tenants[sc->n_tenants - 1].name, "default") &&
        chance(m, 30))
        reserve_most(m);
    raise_quotas(m);
    if (chance(m, 30))
        sc->hbm_ttl_ns = 1 + (uint64_t)below(m, 500) * MS;
    for (int k = 0; k < 3; k++)
        if (sc->tiers[k].present && chance(m, 30))
            sc->tiers[k].ttl_ns = 1 + (uint64_t)below(m, 1500) * MS;
}

/* What twin_admission.c reads: times in ms, whatever has another default given. */
static void make_admission(struct maker *m, struct kvc_tier_config *t)
{
    char *to = t->admission;
    size_t size = sizeof t->admission;

    switch (below(m, t->write == KVC_WRITE_ON_EVICT || t->write == KVC_WRITE_BACK ? 4 : 5)) {
    case 0:
        snprintf(to, size, "second:times=%u:memory=%u", 1 + below(m, 3), below(m, 4));
        break;
    case 1:
        snprintf(to, size, "depth:tokens=%u", below(m, 8 * m->c->block_tokens));
        break;
    case 2:
        snprintf(to, size, "tinylfu:sample=%u", 1 + below(m, 10));
        break;
    case 3:
        snprintf(to, size, "ttl:ttl=%ums", 1 + below(m, 500));
        break;
    default:
        snprintf(to, size, "size:tokens=%u", below(m, 12 * m->c->block_tokens));
    }
}

/* Of SGLang's, TensorRT-LLM's, or of any mixture; half of them without tiers. */
static void make_rules(struct maker *m)
{
    struct kvc_scenario *sc = &m->c->sc;
    uint32_t like = below(m, 3);

    sc->engine.prefill = like == 0 || (like == 2 && chance(m, 50)) ? KVC_PREFILL_FIRST
                                                                   : KVC_PREFILL_MIXED;
    sc->engine.reserve_output = like == 0   ? KVC_RESERVE_ESTIMATED
                                : like == 1 ? KVC_RESERVE_FULL
                                            : (enum kvc_reserve_rule)below(m, 3);
    sc->engine.publish = like == 0   ? KVC_PUBLISH_INSERTED
                         : like == 1 ? KVC_PUBLISH_COMPUTED
                                     : (enum kvc_publish_rule)below(m, 3);
    sc->engine.preempt = like == 0 || (like == 2 && chance(m, 50)) ? KVC_PREEMPT_SHORTEST
                                                                   : KVC_PREEMPT_LAST;
    if (sc->engine.prefill == KVC_PREFILL_FIRST && sc->engine.publish == KVC_PUBLISH_SCHEDULED)
        sc->engine.publish = KVC_PUBLISH_COMPUTED; /* the other is refused */
    sc->engine.partial_reuse = like == 1 || (like == 2 && chance(m, 50));
    for (int k = 0; k < 3 && m->c->seed % 2; k++) {
        sc->tiers[k].present = false;
        sc->tiers[k].capacity_bytes = 0;
    }
}

void replay_case_make(struct replay_case *c, uint64_t seed, enum case_level level,
                      const struct kvc_scenario *base, uint64_t kv_bytes_per_token)
{
    static const uint32_t blocks[] = {1, 2, 3, 4, 5, 8, 16};
    struct maker m = {.rng = kvc_rng_stream(seed, "replay_case"), .c = c};

    memset(c, 0, sizeof *c);
    c->seed = seed;
    c->level = level;
    c->sc = *base;
    c->block_tokens = blocks[below(&m, 7)];
    m.max_blocks = 1 + below(&m, 12);
    m.max_out = chance(&m, 30) ? 1 : 1 + below(&m, 3 * c->block_tokens + 10);
    m.outputs_known = chance(&m, 50);
    m.tails_named = chance(&m, 60);
    make_rows(&m);
    make_engine(&m, kv_bytes_per_token);
    make_traffic(&m);
    make_tiers(&m, kv_bytes_per_token);
    make_loads(&m);
    make_prefetch(&m);
    make_tenants(&m, kv_bytes_per_token);
    for (int k = 0; k < 3; k++)
        if (c->sc.tiers[k].present && chance(&m, 20))
            make_admission(&m, &c->sc.tiers[k]);
    if (level == CASE_RULES)
        make_rules(&m);
}

struct kvc_trace *replay_case_forest(const struct replay_case *c)
{
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_trace *t = NULL;

    for (uint32_t i = 0; i < c->n; i++) {
        const struct tiny_row *r = &c->rows[i];
        struct kvc_row in = {.time_ns = r->time_ns, .input_tokens = r->input_tokens,
                             .output_tokens = r->output_tokens, .ids = r->ids,
                             .n_ids = r->n_ids, .session = r->session, .tenant = KVC_ID_NONE,
                             .model = KVC_ID_NONE, .think_ns = r->think_ns,
                             .output_ids = r->out, .n_output_ids = r->n_out,
                             .status = r->failed ? KVC_ROW_FAILED : KVC_ROW_OK};

        if (kvc_forest_add(f, &in, NULL) != KVC_OK)
            abort();
    }
    if (kvc_forest_finish(f, c->block_tokens, false, &t, NULL) != KVC_OK)
        abort();
    if (c->level == CASE_TENANTS)
        tiny_trace_tenants(t, c->rows, c->n);
    return t;
}

static void print_amounts(const char *what, const struct kvc_amount *a)
{
    for (int k = 0; k < KVC_LEVELS; k++)
        if (a[k].kind == KVC_AMOUNT_BYTES)
            printf(" %s%d %llu B", what, k, (unsigned long long)a[k].bytes);
        else if (a[k].kind != KVC_AMOUNT_UNSET)
            printf(" %s%d %g%s", what, k, a[k].share, a[k].kind == KVC_AMOUNT_NONE ? "none" : "");
}

static void print_tenants(const struct kvc_scenario *s)
{
    printf("#   ttl: hbm %llu dram %llu nvme %llu remote %llu\n",
           (unsigned long long)s->hbm_ttl_ns, (unsigned long long)s->tiers[0].ttl_ns,
           (unsigned long long)s->tiers[1].ttl_ns, (unsigned long long)s->tiers[2].ttl_ns);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const struct kvc_tenant_rule *r = &s->tenants[i];

        printf("#   %s: given %x mode %d ttl %llu priority %u", r->name, r->given, r->quota_mode,
               (unsigned long long)r->ttl_ns, r->priority);
        print_amounts("quota", r->quota);
        print_amounts("reserve", r->reserve);
        printf("\n");
    }
}

static void print_ids(const char *what, const uint64_t *ids, uint32_t n)
{
    printf(" %s", what);
    for (uint32_t i = 0; i < n; i++)
        printf("%s%llu", i ? "," : "", (unsigned long long)ids[i]);
}

void replay_case_print(const struct replay_case *c)
{
    const struct kvc_scenario *s = &c->sc;

    printf("# seed %llu level %d: B %u P %u pages %llu budget %u max_seqs %u max_len %u chunked %d "
           "reserve %d caching %d ahead %d\n",
           (unsigned long long)c->seed, c->level, c->block_tokens, s->engine.page_tokens,
           (unsigned long long)c->pages, s->engine.max_batched_tokens, s->engine.max_seqs,
           s->engine.max_model_len, s->engine.chunked_prefill, s->engine.reserve_full_prompt,
           s->engine.prefix_caching, s->engine.plan_ahead);
    printf("#   prefill %d reserve_output %d publish %d preempt %d partial_reuse %d prefetch %d "
           "threshold %u limit %g\n",
           s->engine.prefill, s->engine.reserve_output, s->engine.publish, s->engine.preempt,
           s->engine.partial_reuse, s->engine.prefetch, s->engine.prefetch_threshold,
           s->engine.prefetch_limit);
    printf("#   replicas %u router %s latency %llu mode %d conc %u rounds %d scale %g spread %llu "
           "timeout %llu warmup %llu gpus_per_node %u tp %u order %s\n",
           s->cluster.replicas, s->router.policy, (unsigned long long)s->router.latency_ns,
           s->arrivals.mode, s->arrivals.concurrency, s->arrivals.rounds, s->arrivals.scale,
           (unsigned long long)s->arrivals.spread_ns, (unsigned long long)s->request_timeout_ns,
           (unsigned long long)s->warmup_ns, s->cluster.gpus_per_node,
           s->cluster.tp, s->engine.order);
    for (int k = 0; k < 3; k++)
        if (s->tiers[k].present)
            printf("#   tier %d: bytes %llu scope %d %s link %s rate %g latency %llu devices %u "
                   "depth %u io %llu staged %d connector %d "
                   "write %d inclusive %d output %d chunk %u admission %s\n",
                   k, (unsigned long long)s->tiers[k].capacity_bytes, s->tiers[k].scope,
                   s->tiers[k].policy, s->tiers[k].link[0] ? s->tiers[k].link : "own",
                   s->tiers[k].link_bytes_per_s, (unsigned long long)s->tiers[k].link_latency_ns,
                   s->tiers[k].link_devices, s->tiers[k].link_queue_depth,
                   (unsigned long long)s->tiers[k].link_io_bytes, s->tiers[k].link_staged,
                   s->tiers[k].connector,
                   s->tiers[k].write, s->tiers[k].inclusive,
                   s->tiers[k].store_output,
                   s->tiers[k].chunk_tokens, s->tiers[k].admission);
    print_tenants(s);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct tiny_row *r = &c->rows[i];

        printf("#   %u (%u): t%u t %llu L %u O %u session %d think %lld", i, c->origin[i],
               r->tenant,
               (unsigned long long)r->time_ns, r->input_tokens, r->output_tokens, (int)r->session,
               (long long)r->think_ns);
        printf("%s", r->failed ? " failed" : "");
        print_ids("ids ", r->ids, r->n_ids);
        print_ids("out ", r->out, r->n_out);
        printf("\n");
    }
}
