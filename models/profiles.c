/* SPDX-License-Identifier: Apache-2.0 */
#include "models/profiles.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/units.h"
#include "models/user_profile.h"

enum { DOC_HARDWARE, DOC_LLMS, DOC_LINKS, DOC_PRICES, DOC_ENGINES, DOCS };

static const struct {
    const char *file, *list;
} doc_names[DOCS] = {{"hardware.json", "gpus"},
                     {"llms.json", "llms"},
                     {"links.json", "links"},
                     {"prices.json", "prices"},
                     {"engines.json", "engines"}};

/* Strings point into the documents, which live as long as the store. */
struct store {
    struct kvc_jval *doc[DOCS];
    struct kvc_gpu *gpus;
    struct kvc_llm *llms;
    struct kvc_link_profile *links;
    struct kvc_engine_profile *engines;
    struct kvc_prices prices;
    const char **gpu_names, **llm_names, **link_names, **engine_names;
};

const struct kvc_blob *kvc_blob_find(const char *name)
{
    for (const struct kvc_blob *b = kvc_blobs; b->name; b++)
        if (strcmp(b->name, name) == 0)
            return b;
    return NULL;
}

bool kvc_profile_figure(const struct kvc_jval *object, const char *key, struct kvc_figure *out)
{
    const struct kvc_jval *f = kvc_jval_member(object, key);
    double value;

    if (!f || kvc_jval_kind(f) != KVC_JOBJECT)
        return false;
    const char *kind = kvc_profile_string(f, "kind"), *source = kvc_profile_string(f, "source");
    const struct kvc_jval *v = kvc_jval_member(f, "value");
    if (!kind || !source || !v || !kvc_jval_number(v, &value))
        return false;
    *out = (struct kvc_figure){value, kind, source};
    return true;
}

double kvc_profile_number(const struct kvc_jval *object, const char *key, double otherwise)
{
    const struct kvc_jval *v = kvc_jval_member(object, key);
    double value;

    return v && kvc_jval_number(v, &value) ? value : otherwise;
}

const char *kvc_profile_string(const struct kvc_jval *object, const char *key)
{
    const struct kvc_jval *v = kvc_jval_member(object, key);

    return v ? kvc_jval_string(v) : NULL;
}

static uint32_t number_u32(const struct kvc_jval *object, const char *key)
{
    const struct kvc_jval *v = kvc_jval_member(object, key);
    uint64_t value;

    return v && kvc_jval_u64(v, &value) && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static uint64_t number_u64(const struct kvc_jval *object, const char *key)
{
    const struct kvc_jval *v = kvc_jval_member(object, key);
    uint64_t value;

    return v && kvc_jval_u64(v, &value) ? value : 0;
}

static bool read_gpu(const struct kvc_jval *v, struct kvc_gpu *g)
{
    const struct kvc_jval *measured = kvc_jval_member(v, "kernels_measured");
    const struct kvc_jval *joint = kvc_jval_member(v, "joint_attention");

    g->also = kvc_profile_string(v, "also");
    g->kernels_like = kvc_profile_string(v, "kernels_like");
    g->no_backend = kvc_profile_string(v, "no_backend");
    g->id = kvc_profile_string(v, "id");
    g->name = kvc_profile_string(v, "name");
    g->host_link = kvc_profile_string(v, "host_link");
    if (measured)
        kvc_jval_bool(measured, &g->kernels_measured);
    if (joint)
        kvc_jval_bool(joint, &g->joint_attention);
    if (!kvc_profile_figure(v, "fp4_flops", &g->fp4_flops))
        g->fp4_flops = (struct kvc_figure){0, "datasheet", "no fp4 units"};
    if (!kvc_profile_figure(v, "peer_links", &g->peer_links))
        g->peer_links = (struct kvc_figure){0, "assumed", "a switch"};
    if (!kvc_profile_figure(v, "multiprocessors", &g->multiprocessors))
        g->multiprocessors = (struct kvc_figure){0, "assumed", "not known"};
    if (!kvc_profile_figure(v, "l2_bytes", &g->l2_bytes))
        g->l2_bytes = (struct kvc_figure){0, "assumed", "not known"};
    return g->id && g->name && g->host_link &&
           kvc_profile_figure(v, "memory_bytes", &g->memory_bytes) &&
           kvc_profile_figure(v, "hbm_bytes_per_s", &g->hbm_bytes_per_s) &&
           kvc_profile_figure(v, "bf16_flops", &g->bf16_flops) &&
           kvc_profile_figure(v, "fp8_flops", &g->fp8_flops) &&
           kvc_profile_figure(v, "tdp_w", &g->tdp_w) &&
           kvc_profile_figure(v, "usd_per_hour", &g->usd_per_hour) &&
           kvc_profile_figure(v, "h2d_bytes_per_s", &g->h2d_bytes_per_s) &&
           kvc_profile_figure(v, "d2h_bytes_per_s", &g->d2h_bytes_per_s) &&
           kvc_profile_figure(v, "nic_bytes_per_s", &g->nic_bytes_per_s) &&
           kvc_profile_figure(v, "gpu_link_bytes_per_s", &g->gpu_link_bytes_per_s);
}

static bool read_llm(const struct kvc_jval *v, struct kvc_llm *m)
{
    const struct kvc_jval *compressed = kvc_jval_member(v, "compressed_kv");
    const struct { const char *key; uint32_t *out; } fields[] = {
        {"layers", &m->layers},
        {"hidden", &m->hidden},
        {"heads", &m->heads},
        {"kv_heads", &m->kv_heads},
        {"head_dim", &m->head_dim},
        {"vocab", &m->vocab},
        {"intermediate", &m->intermediate},
        {"max_position", &m->max_position},
        {"experts", &m->experts},
        {"top_k", &m->top_k},
        {"expert_intermediate", &m->expert_intermediate},
        {"shared_intermediate", &m->shared_intermediate},
        {"kv_lora_rank", &m->kv_lora_rank},
        {"q_lora_rank", &m->q_lora_rank},
        {"qk_rope_dim", &m->qk_rope_dim},
        {"qk_nope_dim", &m->qk_nope_dim},
        {"v_head_dim", &m->v_head_dim},
        {"window_layers", &m->window_layers},
        {"window_tokens", &m->window_tokens},
        {"window_kv_heads", &m->window_kv_heads},
        {"window_head_dim", &m->window_head_dim},
        {"linear_layers", &m->linear_layers},
        {"linear_width", &m->linear_width},
        {"linear_value_width", &m->linear_value_width},
        {"linear_key_heads", &m->linear_key_heads},
        {"linear_value_heads", &m->linear_value_heads},
        {"linear_head_dim", &m->linear_head_dim},
        {"dense_layers", &m->dense_layers},
        {"indexer_dim", &m->indexer_dim},
        {"index_heads", &m->index_heads},
        {"sparse_tokens", &m->sparse_tokens},
        {"int4_group", &m->int4_group},
        {"joint_qk_norm", &m->joint_qk_norm},
        {"ungated", &m->ungated},
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *fields[i].out = number_u32(v, fields[i].key);
    m->name = kvc_profile_string(v, "name");
    m->source = kvc_profile_string(v, "source");
    m->weights_dtype = kvc_profile_string(v, "weights_dtype");
    m->linear_kind = kvc_profile_string(v, "linear_kind");
    m->no_step_model = kvc_profile_string(v, "no_step_model");
    m->linear_state_bytes = number_u64(v, "linear_state_bytes");
    m->linear_conv_bytes = number_u64(v, "linear_conv_bytes");
    m->kv_bytes_per_token_bf16 = number_u64(v, "kv_bytes_per_token_bf16");
    m->params_total_b = kvc_profile_number(v, "params_total_b", 0);
    m->params_active_b = kvc_profile_number(v, "params_active_b", 0);
    if (compressed)
        kvc_jval_bool(compressed, &m->compressed_kv);
    if (m->window_layers && !m->window_kv_heads) {
        m->window_kv_heads = m->kv_heads;
        m->window_head_dim = m->head_dim;
    }
    return m->name && m->source && m->weights_dtype && m->layers && m->hidden && m->heads &&
           m->kv_heads && m->head_dim;
}

static bool read_link(const struct kvc_jval *v, struct kvc_link_profile *l)
{
    l->name = kvc_profile_string(v, "name");
    for (const struct kvc_user_figure *f = kvc_user_link_figures; f->key; f++)
        kvc_profile_figure(v, f->key, (struct kvc_figure *)((char *)l + f->offset));
    return l->name && l->read_bytes_per_s.source && l->write_bytes_per_s.source &&
           l->latency_ns.source && l->per_op_ns.source;
}

static bool read_band(const struct kvc_jval *engine, struct kvc_engine_profile *e)
{
    const struct kvc_jval *v = kvc_jval_member(engine, "band");
    const char *carried = v ? kvc_profile_string(v, "carried") : NULL;
    struct kvc_time_band *b = &e->band;

    if (!carried)
        return false;
    e->band_flags = (strstr(carried, " prefill_behind_past ") ? KVC_STEP_PAST : 0u) |
                    (strstr(carried, " outside_tables ") ? KVC_STEP_OUTSIDE : 0u);
    e->band_gpus = kvc_profile_string(v, "borrowed_on");
    b->ttft_low = kvc_profile_number(v, "ttft_low", 0);
    b->ttft_high = kvc_profile_number(v, "ttft_high", 0);
    b->tpot_low = kvc_profile_number(v, "tpot_low", 0);
    b->tpot_high = kvc_profile_number(v, "tpot_high", 0);
    b->source = kvc_profile_string(v, "source");
    return e->band_gpus && b->source && b->ttft_low > 0 && b->ttft_high >= 1 && b->tpot_low > 0 &&
           b->tpot_high >= 1;
}

static bool read_engine(const struct kvc_jval *v, struct kvc_engine_profile *e)
{
    const struct kvc_jval *fuses = kvc_jval_member(v, "fuses_quantise");

    e->backend = kvc_profile_string(v, "backend");
    if (fuses)
        kvc_jval_bool(fuses, &e->fuses_quantise);
    return e->backend && kvc_profile_figure(v, "host_per_step_ns", &e->host_per_step_ns) &&
           kvc_profile_figure(v, "host_per_sequence_ns", &e->host_per_sequence_ns) &&
           kvc_profile_figure(v, "host_per_prefill_step_ns", &e->host_per_prefill_step_ns) &&
           kvc_profile_figure(v, "front_end_ns", &e->front_end_ns) &&
           kvc_profile_figure(v, "front_end_token_ns", &e->front_end_token_ns) &&
           kvc_profile_figure(v, "kv_load_ns", &e->kv_load_ns) &&
           kvc_profile_figure(v, "kv_load_token_ns", &e->kv_load_token_ns) &&
           kvc_profile_figure(v, "fused_floor_ns", &e->fused_floor_ns) &&
           kvc_profile_figure(v, "elementwise_launch_ns", &e->elementwise_launch_ns) &&
           kvc_profile_figure(v, "elementwise_bandwidth", &e->elementwise_bandwidth) &&
           kvc_profile_figure(v, "eager_launch_ns", &e->eager_launch_ns) &&
           kvc_profile_figure(v, "mixed_step_share", &e->mixed_step_share) &&
           kvc_profile_figure(v, "compile_ns", &e->compile_ns) &&
           kvc_profile_figure(v, "captured_tokens", &e->captured_tokens) &&
           kvc_profile_figure(v, "custom_allreduce_max_bytes", &e->custom_allreduce_max_bytes) &&
           kvc_profile_figure(v, "memory_overhead_bytes", &e->memory_overhead_bytes) &&
           read_band(v, e);
}

static bool read_prices(const struct kvc_jval *v, struct kvc_prices *p)
{
    return kvc_profile_figure(v, "dram_gb_month_usd", &p->dram_gb_month_usd) &&
           kvc_profile_figure(v, "nvme_gb_month_usd", &p->nvme_gb_month_usd) &&
           kvc_profile_figure(v, "remote_gb_month_usd", &p->remote_gb_month_usd) &&
           kvc_profile_figure(v, "power_usd_per_kwh", &p->power_usd_per_kwh) &&
           kvc_profile_figure(v, "pue", &p->pue) &&
           kvc_profile_figure(v, "network_usd_per_hour_per_gpu", &p->network_usd_per_hour_per_gpu);
}

static void store_free(struct store *s)
{
    if (!s)
        return;
    kvc_free(s->gpus);
    kvc_free(s->llms);
    kvc_free(s->links);
    kvc_free(s->engines);
    kvc_free((void *)s->gpu_names);
    kvc_free((void *)s->llm_names);
    kvc_free((void *)s->link_names);
    kvc_free((void *)s->engine_names);
    for (int i = 0; i < DOCS; i++)
        kvc_json_free(s->doc[i]);
    kvc_free(s);
}

static enum kvc_status store_parse(struct store *s, struct kvc_error *err)
{
    for (int i = 0; i < DOCS; i++) {
        const struct kvc_blob *b = kvc_blob_find(doc_names[i].file);
        if (!b)
            return kvc_fail(err, KVC_ERR_INTERNAL, "no profile %s in this program",
                            doc_names[i].file);
        enum kvc_status status = kvc_json_parse(&s->doc[i], (const char *)b->data, b->size, false,
                                                doc_names[i].file, 1, err);
        if (status != KVC_OK)
            return status;
    }
    return KVC_OK;
}

static const struct kvc_jval *doc_list(const struct store *s, int doc)
{
    return kvc_jval_member(s->doc[doc], doc_names[doc].list);
}

static enum kvc_status store_allocate(struct store *s, struct kvc_error *err)
{
    size_t n_gpus = kvc_jval_count(doc_list(s, DOC_HARDWARE));
    size_t n_llms = kvc_jval_count(doc_list(s, DOC_LLMS));
    size_t n_links = kvc_jval_count(doc_list(s, DOC_LINKS));
    size_t n_engines = kvc_jval_count(doc_list(s, DOC_ENGINES));

    s->gpus = kvc_calloc(n_gpus + 1, sizeof *s->gpus);
    s->llms = kvc_calloc(n_llms + 1, sizeof *s->llms);
    s->links = kvc_calloc(n_links + 1, sizeof *s->links);
    s->engines = kvc_calloc(n_engines + 1, sizeof *s->engines);
    s->gpu_names = kvc_calloc(n_gpus + 1, sizeof *s->gpu_names);
    s->llm_names = kvc_calloc(n_llms + 1, sizeof *s->llm_names);
    s->link_names = kvc_calloc(n_links + 1, sizeof *s->link_names);
    s->engine_names = kvc_calloc(n_engines + 1, sizeof *s->engine_names);
    if (!s->gpus || !s->llms || !s->links || !s->engines || !s->gpu_names || !s->llm_names ||
        !s->link_names || !s->engine_names)
        return kvc_fail_nomem(err);
    return KVC_OK;
}

static enum kvc_status bad_entry(const struct kvc_jval *v, int doc, struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INTERNAL, doc_names[doc].file, kvc_jval_line(v), NULL,
                       "a figure of this profile is missing, or lacks value, kind or source");
}

static enum kvc_status store_read(struct store *s, struct kvc_error *err)
{
    const struct kvc_jval *v;
    size_t i = 0;

    for (v = kvc_jval_first(doc_list(s, DOC_HARDWARE)); v; v = kvc_jval_next(v), i++) {
        if (!read_gpu(v, &s->gpus[i]))
            return bad_entry(v, DOC_HARDWARE, err);
        s->gpu_names[i] = s->gpus[i].id;
    }
    i = 0;
    for (v = kvc_jval_first(doc_list(s, DOC_LLMS)); v; v = kvc_jval_next(v), i++) {
        if (!read_llm(v, &s->llms[i]))
            return bad_entry(v, DOC_LLMS, err);
        s->llm_names[i] = s->llms[i].name;
    }
    i = 0;
    for (v = kvc_jval_first(doc_list(s, DOC_LINKS)); v; v = kvc_jval_next(v), i++) {
        if (!read_link(v, &s->links[i]))
            return bad_entry(v, DOC_LINKS, err);
        s->link_names[i] = s->links[i].name;
    }
    i = 0;
    for (v = kvc_jval_first(doc_list(s, DOC_ENGINES)); v; v = kvc_jval_next(v), i++) {
        if (!read_engine(v, &s->engines[i]))
            return bad_entry(v, DOC_ENGINES, err);
        s->engine_names[i] = s->engines[i].backend;
    }
    if (!read_prices(doc_list(s, DOC_PRICES), &s->prices))
        return bad_entry(s->doc[DOC_PRICES], DOC_PRICES, err);
    return KVC_OK;
}

/* Parsed at the first question and immutable from then on; a failure (memory) is tried again at
 * the next one. */
static const struct store *store_get(struct kvc_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct store *ready;
    struct store *s;

    pthread_mutex_lock(&lock);
    s = ready;
    if (!s) {
        s = kvc_calloc(1, sizeof *s);
        if (!s) {
            kvc_fail_nomem(err);
        } else if (store_parse(s, err) != KVC_OK || store_allocate(s, err) != KVC_OK ||
                   store_read(s, err) != KVC_OK) {
            store_free(s);
            s = NULL;
        }
        ready = s;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

enum kvc_status kvc_profiles_ready(struct kvc_error *err)
{
    struct kvc_error local = {0};

    if (store_get(&local))
        return KVC_OK;
    if (err)
        *err = local;
    return local.status;
}

const struct kvc_llm *kvc_llm_find(const char *name)
{
    const struct store *s = store_get(NULL);

    for (const struct kvc_llm *m = s ? s->llms : NULL; m && m->name; m++)
        if (kvc_name_equal(m->name, name))
            return m;
    return NULL;
}

const struct kvc_gpu *kvc_gpu_find(const char *name)
{
    const struct store *s = store_get(NULL);

    for (const struct kvc_gpu *g = s ? s->gpus : NULL; g && g->id; g++)
        if (kvc_name_equal(g->id, name) || (g->also && kvc_name_equal(g->also, name)))
            return g;
    return NULL;
}

const struct kvc_link_profile *kvc_link_find(const char *name)
{
    const struct store *s = store_get(NULL);

    for (const struct kvc_link_profile *l = s ? s->links : NULL; l && l->name; l++)
        if (kvc_name_equal(l->name, name))
            return l;
    return NULL;
}

const struct kvc_engine_profile *kvc_engine_find(const char *backend)
{
    const struct store *s = store_get(NULL);

    for (const struct kvc_engine_profile *e = s ? s->engines : NULL; e && e->backend; e++)
        if (kvc_name_equal(e->backend, backend))
            return e;
    return NULL;
}

const struct kvc_prices *kvc_prices_default(void)
{
    const struct store *s = store_get(NULL);

    return s ? &s->prices : NULL;
}

static const char *const no_names[] = {NULL};

const char *const *kvc_llm_names(void)
{
    const struct store *s = store_get(NULL);

    return s ? s->llm_names : no_names;
}

const char *const *kvc_gpu_names(void)
{
    const struct store *s = store_get(NULL);

    return s ? s->gpu_names : no_names;
}

const char *const *kvc_link_names(void)
{
    const struct store *s = store_get(NULL);

    return s ? s->link_names : no_names;
}

const char *const *kvc_engine_names(void)
{
    const struct store *s = store_get(NULL);

    return s ? s->engine_names : no_names;
}

static char blobs_digest[24];

static void digest_blobs(void)
{
    struct kvc_digest digest;

    kvc_digest_init(&digest);
    for (const struct kvc_blob *b = kvc_blobs; b->name; b++)
        kvc_digest_add(&digest, b->data, b->size);
    kvc_digest_hex(&digest, blobs_digest);
}

const char *kvc_profiles_digest(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, digest_blobs);
    return blobs_digest;
}
