/* SPDX-License-Identifier: Apache-2.0
 * Compiles a step model: the sums over a model's layers, tabled over the tokens of a step. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "base/whole.h"
#include "models/step_model.h"
#include "models/user_profile.h"

#define MAX_GEMMS 16
#define PCIE_BELOW 1e11 /* bytes/s of a link between GPUs */

/* Matrix products of a step and how many layers run each. */
struct products {
    struct kvc_gemm gemm[MAX_GEMMS];
    double layers[MAX_GEMMS];
    size_t n;
};

void kvc_step_ends(const struct kvc_kernel_curve *curve, size_t axis, uint64_t *least,
                   uint64_t *most)
{
    double first = curve->first[axis] + 0.5, last = curve->last[axis] + 0.5;

    /* what lies below the family's least is all launch, and was fitted for none */
    if (least && first > (double)*least && first > curve->table->family->least[axis] + 1)
        *least = (uint64_t)first;
    if (last < (double)*most)
        *most = (uint64_t)last;
}

#define LITTLE (512.0 * 512) /* elements; of smaller matrices, routers say, no shape is asked */

static void note_product(struct kvc_step_model *m, const struct kvc_gemm *g, uint32_t n, uint32_t k)
{
    const struct kvc_kernel_answer *a = &g->table;
    bool near = a->curve.octaves <= 1.01 || (double)n * k < LITTLE;

    m->products_exact &= near && !a->borrowed && !a->foreign && !a->narrowed;
    m->borrowed |= a->borrowed;
    kvc_step_ends(&a->curve, 0, &m->least.tokens, &m->range.tokens);
}

static enum kvc_status add_product(struct products *p, struct kvc_step_model *m,
                                   enum kvc_dtype dtype, double layers, uint32_t n, uint32_t k,
                                   struct kvc_error *err)
{
    if (layers <= 0 || n == 0 || k == 0)
        return KVC_OK;
    if (p->n == MAX_GEMMS)
        return kvc_fail(err, KVC_ERR_INTERNAL, "more than %d products in a layer", MAX_GEMMS);
    enum kvc_status status =
        kvc_kernels_gemm(m->kernels, dtype, n, k, &m->engine, m->foreign_products, &p->gemm[p->n],
                         err);
    if (status != KVC_OK)
        return status;
    if (m->quantise_ns < p->gemm[p->n].minus_ns)
        m->quantise_ns = p->gemm[p->n].minus_ns;
    note_product(m, &p->gemm[p->n], n, k);
    p->layers[p->n++] = layers;
    return KVC_OK;
}

static uint32_t share_of(uint32_t all, uint32_t ranks)
{
    return (uint32_t)kvc_div_up(all, ranks);
}

/* Latent attention in its absorbed form: the two per-head products around the latent are taken as
 * one product each. */
static enum kvc_status mla_products(struct products *p, struct kvc_step_model *m,
                                    struct kvc_error *err)
{
    const struct kvc_llm *l = &m->llm;
    double layers = l->layers - l->linear_layers;
    uint32_t heads = l->heads / m->tp;
    const struct {
        uint32_t n, k;
        enum kvc_dtype dtype;
    } shapes[] = {
        {l->q_lora_rank + l->kv_lora_rank + l->qk_rope_dim, l->hidden, m->plain},
        {heads * (l->qk_nope_dim + l->qk_rope_dim), l->q_lora_rank, m->plain},
        {l->kv_lora_rank, heads * l->qk_nope_dim, KVC_BF16},
        {heads * l->v_head_dim, l->kv_lora_rank, KVC_BF16},
        {l->hidden, heads * l->v_head_dim, m->plain},
        /* the indexer of sparse attention, whole on every rank; zero where there is none */
        {l->index_heads * l->indexer_dim, l->q_lora_rank, m->plain},
        {l->index_heads ? l->indexer_dim + l->index_heads : 0, l->hidden, m->plain},
    };

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        enum kvc_status status =
            add_product(p, m, shapes[i].dtype, layers, shapes[i].n, shapes[i].k, err);
        if (status != KVC_OK)
            return status;
    }
    return KVC_OK;
}

static enum kvc_status attention_products(struct products *p, struct kvc_step_model *m,
                                          struct kvc_error *err)
{
    const struct kvc_llm *l = &m->llm;
    double window = l->window_layers, full = l->layers - l->linear_layers - window;
    uint32_t heads = l->heads / m->tp;
    /* gated attention of the hybrid Qwen models doubles the query projection */
    bool gated = l->linear_kind && strcmp(l->linear_kind, "gdn") == 0;
    uint32_t queries = gated ? 2 * heads : heads;
    enum kvc_status status;

    if (l->kv_lora_rank)
        return mla_products(p, m, err);
    status =
        add_product(p, m, m->plain, full,
                    (queries + 2 * share_of(l->kv_heads, m->tp)) * l->head_dim, l->hidden, err);
    if (status == KVC_OK)
        status = add_product(p, m, m->plain, full, l->hidden, heads * l->head_dim, err);
    if (status == KVC_OK && window > 0)
        status = add_product(p, m, m->plain, window,
                             (heads + 2 * share_of(l->window_kv_heads, m->tp)) * l->window_head_dim,
                             l->hidden, err);
    if (status == KVC_OK && window > 0)
        status = add_product(p, m, m->plain, window, l->hidden, heads * l->window_head_dim, err);
    return status;
}

static enum kvc_status layer_products(struct products *p, struct kvc_step_model *m,
                                      struct kvc_error *err)
{
    const struct kvc_llm *l = &m->llm;
    double dense = l->experts ? l->dense_layers : l->layers, sparse = l->layers - dense;
    uint32_t inter = share_of(l->intermediate, m->tp), into = l->ungated ? 1 : 2,
             shared = share_of(l->shared_intermediate, m->tp);
    enum kvc_status status = attention_products(p, m, err);

    if (status == KVC_OK)
        status = add_product(p, m, m->plain, l->linear_layers, share_of(l->linear_width, m->tp),
                             l->hidden, err);
    if (status == KVC_OK)
        status = add_product(p, m, m->plain, l->linear_layers, l->hidden,
                             share_of(l->linear_value_width, m->tp), err);
    if (status == KVC_OK)
        status = add_product(p, m, m->plain, dense, into * inter, l->hidden, err);
    if (status == KVC_OK)
        status = add_product(p, m, m->plain, dense, l->hidden, inter, err);
    if (status == KVC_OK && l->experts)
        status = add_product(p, m, KVC_BF16, sparse, l->experts, l->hidden, err);
    if (status == KVC_OK && l->experts)
        status = add_product(p, m, m->plain, sparse, into * shared, l->hidden, err);
    if (status == KVC_OK && l->experts)
        status = add_product(p, m, m->plain, sparse, l->hidden, shared, err);
    return status;
}

/* Launches of small kernels and the bytes they move, per layer (docs/models.md). */
static double elementwise_ns(const struct kvc_step_model *m, double tokens)
{
    const struct kvc_llm *l = &m->llm;
    double inter = l->experts ? 0.0 : (l->ungated ? 2.0 : 3.0) * l->intermediate / m->tp;
    double qkv = 2.0 * (l->heads / m->tp + 2.0 * share_of(l->kv_heads, m->tp)) * l->head_dim;
    double bytes = 2.0 * tokens * (8.0 * l->hidden + inter + qkv);

    return m->engine.elementwise_launch_ns.value +
           1e9 * bytes / (m->engine.elementwise_bandwidth.value * m->gpu.hbm_bytes_per_s.value);
}

/* Where no shape of the dtype is measured: a roofline, the experts' weights and products on this
 * GPU's own peaks. Launch and compute share are rounded from a fit of aiconfigurator's tables
 * @095f58a (H100, vLLM, bf16: 64.9 us, 0.34); the bandwidth share of that fit, 1.01, is not
 * physical: 0.8 assumed. */
static double moe_closed_form_ns(const struct kvc_step_model *m, double tokens)
{
    const struct kvc_llm *l = &m->llm;
    double idle = pow(1.0 - (double)l->top_k / l->experts, tokens);
    double weights = kvc_llm_expert_params(l) / l->experts / m->ranks;
    double bytes = l->experts * (1.0 - idle) * weights * kvc_dtype_bytes(m->weights);
    double flops = 2.0 * weights * tokens * l->top_k;
    double memory = bytes / (0.8 * m->gpu.hbm_bytes_per_s.value);
    double compute = flops / (0.34 * m->gpu.bf16_flops.value);

    return 6e4 + 1e9 * (memory > compute ? memory : compute);
}

struct parts {
    struct products products;
    struct kvc_moe moe;
    struct kvc_messages allreduce, exchange;
};

static double allreduce_ns(const struct kvc_step_model *m, const struct parts *p, double bytes)
{
    if (m->ranks == 1)
        return 0;
    if (m->allreduce_measured)
        return kvc_messages_ns(&p->allreduce, bytes);
    return m->allreduce_latency_ns + 1e9 * bytes / m->allreduce_bytes_per_s;
}

/* All-reduce where it was not measured. Rounded from aiconfigurator's tables @095f58a: eight H100
 * take 5.4 us in a graph and reach 195 (vLLM's kernel) to 219 GB/s (NCCL) of the link's 450; two
 * L40S 10 of PCIe's 32 (NCCL). Without a switch each rank sends its slices over a link to each
 * peer, twice: eight MI300X reach 317 GB/s of bus bandwidth (RCCL, Azure AI-benchmarking-guide
 * ND_MI300X_v5, fork @3de0c294), which is 0.7 of each link. */
static void set_allreduce_form(struct kvc_step_model *m)
{
    double link = m->gpu.gpu_link_bytes_per_s.value, peers = m->gpu.peer_links.value;
    double ranks = m->ranks < peers + 1 ? m->ranks : peers + 1;

    m->allreduce_latency_ns = link < PCIE_BELOW ? 1e4 : 6e3;
    m->allreduce_bytes_per_s = peers > 0           ? 0.7 * link / peers * ranks / 2
                               : link < PCIE_BELOW ? 0.31 * link
                                                   : 0.5 * link;
}

/* Routed experts of all layers. */
static double experts_ns(const struct kvc_step_model *m, const struct parts *p, double tokens)
{
    double sparse = m->llm.layers - m->llm.dense_layers;

    if (!m->llm.experts)
        return 0;
    return sparse * (m->moe_table ? kvc_moe_ns(&p->moe, tokens) : moe_closed_form_ns(m, tokens));
}

/* From data-parallel ranks to the experts and back, in one layer. vLLM gathers all tokens' hidden
 * states with a float and an int32 for each of their experts, and scatters the sums (all2all.py,
 * AgRsAll2AllManager): in the mean 4 bytes a choice. Others, and where no gather was measured: the
 * bytes of an all-reduce, to all ranks or to those of a token's experts. */
static double exchange_ns(const struct kvc_step_model *m, const struct parts *p, double tokens)
{
    const struct kvc_llm *l = &m->llm;
    double hidden = tokens * l->hidden * 2.0;

    if (m->exchange_measured)
        return kvc_messages_ns(&p->exchange, hidden + tokens * l->top_k * 4.0);
    return allreduce_ns(m, p, hidden / m->dp * (m->dp < l->top_k ? m->dp : l->top_k));
}

/* What data-parallel ranks have in common. */
static double shared_ns(const struct kvc_step_model *m, const struct parts *p, double tokens)
{
    return (m->llm.layers - m->llm.dense_layers) * exchange_ns(m, p, tokens) +
           experts_ns(m, p, tokens);
}

static double layers_ns(const struct kvc_step_model *m, const struct parts *p, double tokens)
{
    const struct kvc_llm *l = &m->llm;
    double layers = l->layers;
    double ns = layers * elementwise_ns(m, tokens);

    if (l->joint_qk_norm) /* as many small kernels again, and both sums of squares from all ranks */
        ns += layers * (m->engine.elementwise_launch_ns.value +
                        (m->tp > 1 ? allreduce_ns(m, p, tokens * 8.0) : 0));
    if (l->index_heads) /* norm, rotation and format of keys, their scores, the choice */
        ns += layers * m->engine.elementwise_launch_ns.value;
    if (m->dp == 1)
        ns += 2.0 * layers * allreduce_ns(m, p, tokens * l->hidden * 2.0);
    for (size_t i = 0; i < p->products.n; i++)
        ns += p->products.layers[i] * kvc_gemm_ns(&p->products.gemm[i], tokens);
    return m->dp == 1 ? ns + experts_ns(m, p, tokens) : ns;
}

/* Least squares under "more tokens are never faster": neighbours that fall are pooled. Measured
 * tables dip by a few percent where a better kernel is chosen. */
bool kvc_make_monotone(double *v, size_t n)
{
    double *mean = kvc_malloc(n, sizeof *mean);
    size_t *count = kvc_malloc(n, sizeof *count);
    size_t pools = 0, at = 0;

    if (mean && count) {
        for (size_t i = 0; i < n; i++) {
            mean[pools] = v[i];
            count[pools++] = 1;
            while (pools > 1 && mean[pools - 2] > mean[pools - 1]) {
                size_t a = count[pools - 2], b = count[pools - 1];
                mean[pools - 2] =
                    (mean[pools - 2] * (double)a + mean[pools - 1] * (double)b) / (double)(a + b);
                count[pools - 2] = a + b;
                pools--;
            }
        }
        for (size_t i = 0; i < pools; i++)
            for (size_t j = 0; j < count[i]; j++)
                v[at++] = mean[i];
    }
    bool ok = mean && count;
    kvc_free(mean);
    kvc_free(count);
    return ok;
}

bool kvc_token_table_init(struct kvc_token_table *t, uint32_t max)
{
    t->max = max;
    t->ns = kvc_calloc(17 + (max - 16) / 16, sizeof *t->ns);
    return t->ns != NULL;
}

bool kvc_token_table_finish(struct kvc_token_table *t, size_t from)
{
    size_t n = 17 + (t->max - 16) / 16, half = 16 + (t->max / 2 - 16) / 16;

    if (!kvc_make_monotone(t->ns + from, n - from))
        return false;
    t->slope = (t->ns[n - 1] - t->ns[half]) / (t->max / 2.0);
    return true;
}

uint32_t kvc_token_table_knot(size_t i)
{
    return (uint32_t)(i <= 16 ? i : 16 + 16 * (i - 16));
}

/* A batch on its way from a stage to the next: vLLM sends hidden states and residual, each rank its
 * slice, and gathers both among the ranks it arrives at. A message takes 7.5 us + bytes / 360 GB/s
 * between two H100 of a node (450 GB/s of NVLink) and 18 us + bytes / 36 GB/s between nodes (a NIC
 * of 50 GB/s): own fit of vidur's network_h100_dgx_send_recv.csv @7d475133, 2.6 and 4.3 % off;
 * other GPUs reach the same share of their links, assumed. */
static double hop_ns(const struct kvc_step_model *m, const struct parts *p, double tokens,
                     bool leaves_node)
{
    double bytes = tokens * m->llm.hidden * 2.0;
    double rate = leaves_node ? 0.72 * m->gpu.nic_bytes_per_s.value
                              : 0.8 * m->gpu.gpu_link_bytes_per_s.value;
    double message = (leaves_node ? 18e3 : 7.5e3) + 1e9 * bytes / m->tp / rate;

    /* a gather moves half of what an all-reduce would */
    return 2 * message + (m->tp > 1 ? allreduce_ns(m, p, bytes) : 0);
}

static bool fill_hops(struct kvc_step_model *m, const struct parts *p)
{
    double outside = 0;

    if (!kvc_token_table_init(&m->hop, KVC_MAX_STEP_TOKENS) ||
        !kvc_token_table_init(&m->hops, KVC_MAX_STEP_TOKENS))
        return false;
    for (uint32_t s = 0; s + 1 < m->stages; s++)
        outside += kvc_stage_leaves_node(m->tp, m->gpus_per_node, s);
    for (size_t i = 1; i < 17 + (KVC_MAX_STEP_TOKENS - 16) / 16; i++) {
        double tokens = kvc_token_table_knot(i), far = hop_ns(m, p, tokens, true),
               near = hop_ns(m, p, tokens, false);
        m->hop.ns[i] = outside > 0 ? far : near;
        m->hops.ns[i] = outside * far + (m->stages - 1 - outside) * near;
    }
    return kvc_token_table_finish(&m->hop, 0) && kvc_token_table_finish(&m->hops, 0);
}

static enum kvc_status fill_tables(struct kvc_step_model *m, const struct parts *p,
                                   const struct kvc_gemm *head, struct kvc_error *err)
{
    if (!kvc_token_table_init(&m->layers, KVC_MAX_STEP_TOKENS) ||
        !kvc_token_table_init(&m->head, KVC_MAX_SAMPLED) ||
        (m->dp > 1 && !kvc_token_table_init(&m->shared, KVC_MAX_STEP_TOKENS)))
        return kvc_fail_nomem(err);
    for (size_t i = 1; i < 17 + (KVC_MAX_STEP_TOKENS - 16) / 16; i++) {
        m->layers.ns[i] = layers_ns(m, p, kvc_token_table_knot(i));
        if (m->dp > 1)
            m->shared.ns[i] = shared_ns(m, p, kvc_token_table_knot(i));
    }
    m->layers.ns[0] = m->layers.ns[1];
    for (size_t i = 1; i < 17 + (KVC_MAX_SAMPLED - 16) / 16; i++) {
        double sampled = kvc_token_table_knot(i);
        /* an all-gather of the logits moves half of what an all-reduce of them would */
        m->head.ns[i] =
            kvc_gemm_ns(head, sampled) +
            (m->tp > 1 ? 0.5 * allreduce_ns(m, p, sampled * m->llm.vocab * 2.0) : 0);
    }
    if (!kvc_token_table_finish(&m->layers, 0) || !kvc_token_table_finish(&m->head, 1) ||
        (m->dp > 1 && !kvc_token_table_finish(&m->shared, 0)))
        return kvc_fail_nomem(err);
    return m->stages == 1 || fill_hops(m, p) ? KVC_OK : kvc_fail_nomem(err);
}

static double expert_bytes(const struct kvc_step_model *m)
{
    const struct kvc_llm *l = &m->llm;

    return (l->layers - l->dense_layers) * kvc_llm_expert_params(l) * kvc_dtype_bytes(m->weights);
}

/* All of them dealt to the ranks; with attention data parallelism only the experts are. */
static double weight_bytes(const struct kvc_step_model *m)
{
    double all = (double)kvc_llm_weight_bytes(&m->llm, m->weights);

    return m->dp > 1 ? all - expert_bytes(m) * (1 - 1.0 / m->dp) : all / m->tp;
}

/* Layers by their number, experts by that of layers which have some, the embedding at the front and
 * the head at the end. */
double kvc_step_weight_bytes(const struct kvc_step_model *m, uint32_t stage)
{
    const struct kvc_llm *l = &m->llm;
    double dense = l->experts ? l->dense_layers : 0, before = 0;
    double layers = kvc_stage_layers(l->layers, m->stages, stage);
    double end = 2.0 * l->vocab * l->hidden / m->tp;
    double experts = l->experts ? expert_bytes(m) / m->ranks : 0;
    double rest = m->weight_bytes_per_rank - experts - 2 * end;

    if (m->stages == 1)
        return m->weight_bytes_per_rank;
    for (uint32_t s = 0; s < stage; s++)
        before += kvc_stage_layers(l->layers, m->stages, s);
    double plain = dense - before > 0 ? fmin(dense - before, layers) : 0;
    return rest * layers / l->layers + experts * (layers - plain) / (l->layers - dense) +
           (stage == 0 ? end : 0) + (stage + 1 == m->stages ? end : 0);
}

/* Kernels a layer launches where no graph is replayed: counted in TensorRT-LLM's modules, roughly.
 * Norm, queries with keys and values, attention, output, all-reduce with norm, up, gate, down. */
static double launches(const struct kvc_step_model *m)
{
    const struct kvc_llm *l = &m->llm;
    bool shared = l->shared_intermediate > 0;
    double n = 8;

    if (strcmp(m->engine.backend, "vllm") == 0)
        return n; /* what lies between products and attention is compiled into few kernels */
    if (l->experts)
        n += shared ? 5 : 2; /* the router and its choice, a shared expert's three */
    if (l->kv_lora_rank)
        n += 8; /* norms, two products more, rotation, cache, keys and values from the latent */
    if (m->weights == KVC_FP8_BLOCK) /* quantised before each product */
        n += (l->kv_lora_rank ? 3 : 2) + (shared || !l->experts ? 2 : 0);
    return n;
}

/* Where the longest table of the kernels ends; they see the tokens of all ranks. */
static void note_experts(struct kvc_step_model *m, const struct kvc_moe *moe)
{
    uint64_t most = 0;

    for (size_t i = 0; m->moe_table && i < moe->n; i++) {
        uint64_t end = UINT64_MAX;
        kvc_step_ends(&moe->kernel[i].curve, 0, NULL, &end);
        most = end > most ? end : most;
        m->borrowed |= moe->kernel[i].borrowed;
    }
    m->moe_measured = m->moe_table && moe->octaves == 0 && !moe->kernel[0].borrowed &&
                      !moe->kernel[0].foreign;
    if (m->moe_table && most / m->dp < m->range.tokens)
        m->range.tokens = most / m->dp;
}

/* What no table goes beyond, or is looked up beyond. */
static const struct kvc_step_range widest = {KVC_MAX_STEP_TOKENS, 2048, 131072, 16384,
                                              2048 * 131072};

static enum kvc_status build(struct kvc_step_model *m, const struct kvc_step_config *config,
                             struct kvc_error *err)
{
    struct kvc_gemm head;
    struct parts *p = kvc_calloc(1, sizeof *p);
    enum kvc_status status;

    if (!p)
        return kvc_fail_nomem(err);
    m->measured = m->products_exact = kvc_kernels_measured(m->kernels);
    m->range = widest;
    set_allreduce_form(m);
    m->allreduce_measured =
        m->ranks == 1 ||
        kvc_kernels_allreduce(m->kernels, m->ranks, m->engine.custom_allreduce_max_bytes.value,
                              &p->allreduce);
    m->exchange_measured = m->dp > 1 && strcmp(m->engine.backend, "vllm") == 0 &&
                           kvc_kernels_exchange(m->kernels, m->dp, &p->exchange);
    m->moe_table = m->llm.experts &&
                   kvc_kernels_moe(m->kernels, m->weights, config->narrow_experts,
                                   config->experts_kernel, &m->llm, m->ranks / m->ep, m->ep,
                                   &p->moe);
    note_experts(m, &p->moe);
    status = layer_products(&p->products, m, err);
    if (status == KVC_OK)
        status = kvc_kernels_gemm(m->kernels, KVC_BF16, share_of(m->llm.vocab, m->tp),
                                  m->llm.hidden, &m->engine, false, &head, err);
    if (status == KVC_OK)
        kvc_step_ends(&head.table.curve, 0, NULL, &m->range.sequences);
    if (status == KVC_OK)
        status = kvc_step_build_attention(m, err);
    if (status == KVC_OK)
        status = fill_tables(m, p, &head, err);
    if (kvc_kernels_status(m->kernels, NULL) != KVC_OK)
        status = kvc_kernels_status(m->kernels, err);
    kvc_free(p);
    return status;
}

/* min(2 max_num_seqs, 512), vllm/config/vllm.py, unless the run was told otherwise. */
static uint32_t captured_tokens(const struct kvc_step_config *config,
                                const struct kvc_engine_profile *engine)
{
    uint32_t most = (uint32_t)engine->captured_tokens.value;

    if (config->captured_tokens)
        return config->captured_tokens;
    return config->max_seqs && config->max_seqs < most / 2 ? 2 * config->max_seqs : most;
}

enum kvc_status kvc_step_model_create_with(struct kvc_step_model **out,
                                           const struct kvc_step_config *config,
                                           const struct kvc_engine_profile *engine,
                                           struct kvc_error *err)
{
    if (!config->llm || !config->gpu)
        return kvc_fail(err, KVC_ERR_USAGE, "a step model needs an LLM and a GPU profile");
    enum kvc_status status = kvc_step_check(config, err);
    if (status != KVC_OK)
        return status;
    struct kvc_step_model *m = kvc_calloc(1, sizeof *m);
    if (!m)
        return kvc_fail_nomem(err);
    m->llm = *config->llm;
    m->gpu = *config->gpu;
    m->engine = *engine;
    m->engine.fuses_quantise &= !config->quantise_apart &&
                                (config->weights != KVC_FP8_BLOCK ||
                                 strcmp(engine->backend, "vllm") != 0);
    m->weights = config->weights;
    m->plain = kvc_llm_plain_dtype(config->llm, config->weights);
    m->foreign_products = config->foreign_products;
    m->kv = config->kv;
    m->joint_attention = m->gpu.joint_attention && strcmp(engine->backend, "vllm") == 0 &&
                         !m->llm.kv_lora_rank;
    m->kv_resident = config->kv_resident > 0 ? config->kv_resident : 1;
    m->tp = config->tp;
    m->ep = config->ep > 1 ? config->ep : 1;
    m->dp = config->dp > 1 ? config->dp : 1;
    m->ranks = m->dp > 1 ? m->dp : m->tp;
    if (!config->graphed_prefill && !config->kernels_alone)
        m->eager_ns = engine->eager_launch_ns.value * launches(m) * config->llm->layers;
    m->stages = config->pp;
    m->batch_tokens = config->batch_tokens ? config->batch_tokens : 8192;
    m->gpus_per_node = config->gpus_per_node;
    for (uint32_t s = 0; s < m->stages; s++) {
        m->last_share = kvc_stage_layers(m->llm.layers, m->stages, s) / (double)m->llm.layers;
        m->most_share = fmax(m->most_share, m->last_share);
    }
    m->captured_tokens = captured_tokens(config, engine);
    m->mixed_factor = 1 + (config->kernels_alone ? 0 : engine->mixed_step_share.value);
    m->host_step = engine->host_per_step_ns.value;
    m->host_sequence = engine->host_per_sequence_ns.value;
    m->host_prefill = engine->host_per_prefill_step_ns.value;
    m->weight_bytes_per_rank = weight_bytes(m);
    status = kvc_kernels_load(&m->kernels, config->gpu, engine->backend, err);
    if (status == KVC_OK)
        kvc_kernels_put_first(m->kernels, kvc_user_kernels(config->user, config->gpu,
                                                          engine->backend));
    if (status == KVC_OK)
        status = build(m, config, err);
    if (status != KVC_OK) {
        kvc_step_model_destroy(m);
        return status;
    }
    *out = m;
    return KVC_OK;
}

enum kvc_status kvc_step_model_create(struct kvc_step_model **out,
                                      const struct kvc_step_config *config, struct kvc_error *err)
{
    const char *backend = config->backend ? config->backend : "vllm";
    enum kvc_status status = kvc_profiles_ready(err);

    if (status != KVC_OK)
        return status;
    const struct kvc_engine_profile *engine = kvc_engine_find(backend);
    if (!engine) {
        const char *near = kvc_name_nearest(backend, kvc_engine_names());
        return kvc_fail(err, KVC_ERR_UNSUPPORTED,
                        "no kernel times for engine backend '%s'; known: %s", backend,
                        near ? near : kvc_engine_names()[0]);
    }
    return kvc_step_model_create_with(out, config, engine, err);
}
