/* SPDX-License-Identifier: Apache-2.0
 * What a run starts with, and what it leaves. */
#include "sim/replay/replica.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "models/user_profile.h"

#include <inttypes.h>
#include <string.h>

bool kvc_engine_watch(struct kvc_engine *e, uint32_t level, struct kvc_pool *pool,
                      uint32_t instance)
{
    pool->tell_nomem = &e->nomem;
    if ((level ? e->tiers[level - 1].instances : e->n_replicas) > 64)
        return true; /* more than there are bits */
    if (!e->where[level])
        e->where[level] = kvc_calloc(e->trace->n_segments, sizeof(*e->where[level]));
    pool->where = e->where[level];
    pool->bit = 1ull << instance;
    return pool->where != NULL;
}

static enum kvc_status classify_links(struct kvc_engine *e, struct kvc_error *err)
{
    uint32_t n = kvc_links_count(e->links);
    e->link_class = kvc_calloc(n, sizeof(*e->link_class));
    e->class_bytes = kvc_calloc(KVC_MAX_LINK_CLASSES, sizeof(*e->class_bytes));
    if (!e->link_class || !e->class_bytes)
        return kvc_fail_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        struct kvc_link_usage a, b;
        kvc_links_usage(e->links, 0, i, &a);
        uint32_t j = 0;
        for (; j < i; j++) {
            kvc_links_usage(e->links, 0, j, &b);
            if (strcmp(a.name, b.name) == 0)
                break;
        }
        if (j == i && e->n_link_classes == KVC_MAX_LINK_CLASSES)
            return kvc_fail(err, KVC_ERR_LIMIT, "more than %d kinds of links",
                            KVC_MAX_LINK_CLASSES);
        e->link_class[i] = j < i ? e->link_class[j] : e->n_link_classes++;
    }
    return KVC_OK;
}

/* Pages of a replica, and how many of them a running sequence takes beside its tokens'. */
static enum kvc_status share_out_room(struct kvc_engine *e, const struct kvc_step_config *config,
                                      uint64_t *pages, struct kvc_error *err)
{
    const struct kvc_scenario *sc = e->sc;
    uint64_t bytes = sc->engine.kv_cache_memory_bytes;
    kvc_step_kv_room(e->model, sc->engine.prefix_caching, sc->engine.unified_kv, &e->room);
    e->token_bytes = e->room.token_bytes;
    if (sc->engine.kv_resident < 1) /* of every token so much is left, in all tiers */
        e->token_bytes = (uint64_t)((double)e->token_bytes * sc->engine.kv_resident + 0.5);
    e->max_seqs = sc->engine.max_seqs;
    if (!bytes) {
        double all = (double)kvc_step_kv_capacity_bytes(
            e->model, sc->engine.gpu_memory_utilization, sc->engine.max_batched_tokens);
        double most = e->room.apart_bytes
                          ? all * (1 - e->room.token_share) / (double)e->room.apart_bytes
                          : e->max_seqs;
        e->max_seqs = most < e->max_seqs ? (uint32_t)most : e->max_seqs;
        bytes = (uint64_t)(all * e->room.token_share);
    }
    uint64_t beside = sc->engine.sequence_memory_bytes ? sc->engine.sequence_memory_bytes
                                                       : e->room.sequence_bytes;
    uint64_t page_bytes = e->token_bytes * e->page_tokens;
    *pages = page_bytes ? bytes / page_bytes : 0;
    e->sequence_pages = page_bytes ? kvc_div_up(beside, page_bytes) : 0;
    if (*pages < 2 + e->sequence_pages && sc->engine.kv_cache_memory_bytes)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "engine.kv_cache_memory",
                           "holds less than the %" PRIu64 " pages of %u tokens that a run needs, "
                           "%" PRIu64 " bytes each: raise it", 2 + e->sequence_pages,
                           e->page_tokens, page_bytes);
    if (*pages < 2 + e->sequence_pages || !e->max_seqs)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "model",
                           "%s does not fit: no memory for KV cache is left on %u x %s after the "
                           "weights; raise cluster.tp, cluster.pp or "
                           "engine.gpu_memory_utilization, or take a smaller weights_dtype or "
                           "engine.max_batched_tokens, whose activations count too",
                           config->llm->name, config->tp * config->pp, config->gpu->name);
    *pages -= 1; /* vLLM keeps one block as the null block */
    return KVC_OK;
}

enum kvc_status kvc_engine_step_config(const struct kvc_engine *e, struct kvc_step_config *config,
                                       struct kvc_engine_profile *engine, struct kvc_error *err)
{
    const struct kvc_scenario *sc = e->sc;
    *config = (struct kvc_step_config){.backend = sc->engine.backend, .tp = sc->cluster.tp,
                                       .pp = sc->cluster.pp, .ep = sc->cluster.ep,
                                       .dp = sc->cluster.dp,
                                       .kv_resident = sc->engine.kv_resident,
                                       .max_seqs = sc->engine.max_seqs,
                                       .batch_tokens = sc->engine.max_batched_tokens,
                                       .gpus_per_node = sc->cluster.gpus_per_node};
    config->llm = kvc_llm_find(sc->model);
    config->gpu = kvc_user_gpu(e->user, sc->cluster.gpu);
    config->user = e->user;
    if (!config->llm)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "model",
                           "no model is called \"%s\"; see kvcast show model", sc->model);
    if (!config->gpu)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "cluster.gpu",
                           "no GPU is called \"%s\"; see kvcast show hardware", sc->cluster.gpu);
    if (!kvc_dtype_parse(sc->weights_dtype, &config->weights))
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "weights_dtype",
                           "\"%s\" is not a known type", sc->weights_dtype);
    if (!kvc_dtype_parse(sc->kv_dtype, &config->kv))
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "kv_dtype", "\"%s\" is not a known type",
                           sc->kv_dtype);
    if (!kvc_user_engine(e->user, config->backend, engine))
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "engine.backend",
                           "no kernel times for \"%s\"", config->backend);
    return KVC_OK;
}

static enum kvc_status init_model(struct kvc_engine *e, uint64_t *pages, struct kvc_error *err)
{
    struct kvc_step_config config;
    struct kvc_engine_profile engine;
    enum kvc_status st = kvc_engine_step_config(e, &config, &engine, err);
    if (st == KVC_OK && !e->model_is_lent)
        st = kvc_step_model_create_with(&e->model, &config, &engine, err);
    if (st != KVC_OK)
        return st;
    e->front_ns = kvc_step_front_ns(e->model);
    return share_out_room(e, &config, pages, err);
}

static bool init_replica(struct kvc_engine *e, struct kvc_replica *r, uint32_t id, uint64_t pages,
                         bool touch_moves)
{
    memset(r, 0, sizeof(*r));
    r->id = id;
    r->due_ns = KVC_TIME_NONE;
    r->heap_pos = KVC_NONE;
    r->output_ratio = KVC_OUTPUT_RATIO;
    r->waiting.head = r->waiting.tail = r->ready.head = r->ready.tail = KVC_NONE;
    r->running.head = r->running.tail = r->unheard.head = r->unheard.tail = KVC_NONE;
    r->phase = kvc_calloc(e->page_tokens, sizeof(*r->phase));
    return r->phase && kvc_pool_init(&r->pool, e->trace, e->page_tokens, pages, touch_moves);
}

static void clear_replica(struct kvc_replica *r)
{
    kvc_pool_clear(&r->pool);
    kvc_ordering_destroy(r->order);
    kvc_free(r->phase);
    kvc_free(r->finishes.v);
    kvc_free(r->publishes.v);
    kvc_free(r->chunk_jobs);
    memset(r, 0, sizeof(*r));
}

static enum kvc_status init_memory(struct kvc_engine *e, struct kvc_error *err)
{
    const struct kvc_trace *t = e->trace;
    e->longest_path = 1;
    for (uint64_t i = 0; i < t->n_requests; i++) {
        uint32_t seg[2] = {t->prompt_seg[i], t->output_seg ? t->output_seg[i] : KVC_SEG_NONE};
        for (int k = 0; k < 2; k++) {
            uint32_t n = seg[k] == KVC_SEG_NONE ? 0 : kvc_trace_path_length(t, seg[k]);
            if (n > e->longest_path)
                e->longest_path = n;
        }
    }
    uint32_t n = e->n_replicas;
    e->paths = kvc_malloc((size_t)KVC_PATH_ROWS * e->longest_path, sizeof(*e->paths));
    e->segments = kvc_malloc(t->n_segments, sizeof(*e->segments));
    e->results = kvc_calloc(t->n_requests, sizeof(*e->results));
    e->admissions = kvc_malloc(t->n_requests, sizeof(*e->admissions));
    e->views = kvc_calloc(n, sizeof(*e->views));
    e->due_heap = kvc_calloc(n, sizeof(*e->due_heap));
    if (!e->paths || !e->segments || !e->results || !e->admissions || !e->views || !e->due_heap)
        return kvc_fail_nomem(err);
    for (uint32_t s = 0; s < t->n_segments; s++)
        e->segments[s] = (struct kvc_engine_segment){t->seg_parent[s], t->seg_depth[s],
                                                     t->seg_len[s], 0, 0};
    for (uint64_t i = 0; i < t->n_requests; i++)
        e->results[i].ttft_ns = e->results[i].e2e_ns = KVC_TIME_NONE;
    return KVC_OK;
}

static enum kvc_status init_tenants(struct kvc_engine *e, uint64_t pages, struct kvc_error *err)
{
    uint64_t block_bytes = e->token_bytes * e->block_tokens;
    struct kvc_level levels[KVC_LEVELS] = {{true, pages, e->token_bytes * e->page_tokens}};
    for (uint32_t k = 0; k < KVC_LOWER_TIERS; k++) {
        uint64_t bytes = kvc_tier_instance_bytes(e->sc, k);
        levels[1 + k] = (struct kvc_level){e->sc->tiers[k].present,
                                           block_bytes ? bytes / block_bytes : 0, block_bytes};
    }
    enum kvc_status st = kvc_tenants_create(&e->tenants, e->trace, e->sc, levels, &e->now, err);
    if (st != KVC_OK || !e->tenants.metered)
        return st;
    e->tenant_missed = kvc_calloc(e->tenants.n, sizeof(*e->tenant_missed));
    return e->tenant_missed && kvc_timeline_init(&e->tenant_timeline,
                                                 3 * e->tenants.meter.n_groups)
               ? KVC_OK
               : kvc_fail_nomem(err);
}

static enum kvc_status init_replicas(struct kvc_engine *e, uint64_t pages, struct kvc_error *err)
{
    uint32_t gpus = e->sc->cluster.tp * e->sc->cluster.pp;
    uint32_t per_node = e->sc->cluster.gpus_per_node;
    struct kvc_eviction order;
    enum kvc_status st = kvc_eviction_of(e->sc->hbm_policy, &order, err);
    if (st != KVC_OK)
        return st;
    e->replicas = kvc_calloc(e->n_replicas, sizeof(*e->replicas));
    if (!e->replicas)
        return kvc_fail_nomem(err);
    for (uint32_t i = 0; i < e->n_replicas && st == KVC_OK; i++) {
        if (!init_replica(e, &e->replicas[i], i, pages, order.touch_moves) ||
            !kvc_engine_watch(e, 0, &e->replicas[i].pool, i) ||
            !kvc_tenants_watch(&e->tenants, 0, &e->replicas[i].pool,
                               e->token_bytes * e->page_tokens, e->token_bytes * e->block_tokens))
            return kvc_fail_nomem(err);
        kvc_step_compiled(e->model, e->sc->engine.cold, e->sc->engine.max_batched_tokens,
                          &e->replicas[i].compiled);
        e->replicas[i].node = (uint32_t)((uint64_t)i * gpus / per_node);
        if (!order.queue)
            st = kvc_engine_set_policy(e, &e->replicas[i].pool, e->sc->hbm_policy, false, err);
        if (st == KVC_OK)
            st = kvc_replica_set_order(e, &e->replicas[i], err);
    }
    return st;
}

enum kvc_status kvc_engine_open(struct kvc_engine *e, struct kvc_error *err)
{
    e->block_tokens = e->trace->block_tokens;
    e->page_tokens = e->sc->engine.page_tokens;
    e->n_replicas = e->sc->cluster.replicas * e->sc->cluster.dp;
    e->free_job = e->looking = e->free_fetch = KVC_NONE;
    e->first_tier = KVC_LOWER_TIERS;
    e->router_rng = kvc_rng_stream(e->sc->seed, "router");
    e->hbm_only_prefill_ns = KVC_TIME_NONE;
    uint64_t pages = 0;
    enum kvc_status st = kvc_router_open(&e->router, e->sc->router.policy, err);
    if (st == KVC_OK)
        st = kvc_routing_begin(&e->routing, &e->router, e->n_replicas, err);
    if (st == KVC_OK)
        st = init_model(e, &pages, err);
    if (st == KVC_OK)
        st = init_memory(e, err);
    if (st == KVC_OK)
        st = init_tenants(e, pages, err);
    if (st == KVC_OK)
        st = init_replicas(e, pages, err);
    if (st == KVC_OK)
        st = kvc_links_create(&e->links, err);
    if (st == KVC_OK)
        st = kvc_tiers_init(e, err);
    if (st == KVC_OK)
        kvc_fetch_init(e);
    if (st == KVC_OK)
        st = classify_links(e, err);
    if (st == KVC_OK && !kvc_timeline_init(&e->timeline, KVC_CHANNEL_LINKS + e->n_link_classes))
        st = kvc_fail_nomem(err);
    if (st == KVC_OK)
        st = kvc_arrivals_create(&e->arrivals, e->trace, e->sc, err);
    return st;
}

void kvc_engine_close(struct kvc_engine *e)
{
    for (uint32_t i = 0; e->replicas && i < e->n_replicas; i++)
        clear_replica(&e->replicas[i]);
    kvc_tiers_clear(e);
    kvc_routing_end(&e->routing);
    kvc_router_close(&e->router);
    kvc_links_destroy(e->links);
    if (!e->model_is_lent)
        kvc_step_model_destroy(e->model);
    kvc_arrivals_destroy(e->arrivals);
    kvc_timeline_clear(&e->timeline);
    kvc_timeline_clear(&e->tenant_timeline);
    kvc_tenants_clear(&e->tenants);
    void *all[] = {e->replicas, e->due_heap, e->jobs, e->way, e->segments, e->paths,
                   e->chunks, e->views, e->results, e->link_class, e->class_bytes,
                   e->tenant_missed, e->seen_anywhere, e->admissions,
                   e->seg_number, e->seg_end, e->fetches};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        kvc_free(all[i]);
    for (uint32_t level = 0; level <= KVC_LOWER_TIERS; level++)
        kvc_free(e->where[level]);
}
