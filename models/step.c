/* SPDX-License-Identifier: Apache-2.0
 * The time of one engine step: table look-ups and a few multiplications, no libm. */
#include "models/step_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define Q16 65536.0
#define Q40 1099511627776.0

static double decode_attention(const struct kvc_step_model *m, uint32_t n, uint64_t context)
{
    double c0, c1;

    kvc_decode_line(&m->decode, n, context, &c0, &c1);
    return c0 + c1 * (double)context + m->decode_per_sequence * n;
}

/* One chunk among so many prefilled tokens in all: alone it leaves part of the machine idle. */
static double prefill_attention(const struct kvc_step_model *m, const struct kvc_chunk *c,
                                uint64_t tokens)
{
    double alike = (double)tokens / c->tokens;
    double capped = c->past < m->cap_tokens ? c->past : (double)m->cap_tokens;
    double base = kvc_token_table_at(&m->eight, c->tokens);

    if (alike < 8)
        base = (kvc_token_table_at(&m->alone, c->tokens) * (8 - alike) +
                8 * base * (alike - 1)) / (7 * alike);
    return base + (m->cap_tokens ? kvc_token_table_at(&m->capped, c->tokens) * capped : 0);
}

/* What the tokens before the chunks cost: at work side by side, but none faster than alone. */
static double past_attention(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                             size_t n)
{
    double all = 0, longest = 0;

    for (size_t i = 0; i < n; i++) {
        if (!chunks[i].past || !chunks[i].tokens)
            continue;
        double past = chunks[i].past;
        double alone = kvc_token_table_at(&m->waves, chunks[i].tokens) * past;
        all += kvc_token_table_at(&m->past, chunks[i].tokens) * past;
        longest = alone > longest ? alone : longest;
    }
    return all > longest ? all : longest;
}

static uint64_t tokens_of(const struct kvc_chunk *chunks, size_t n_chunks, uint32_t n_decode)
{
    uint64_t tokens = n_decode;

    for (size_t i = 0; i < n_chunks; i++)
        tokens += chunks[i].tokens;
    return tokens;
}

/* FlashAttention 2 has decodes beside prompts in one call, in which each takes a tile of 64 queries
 * for every head, half of the 128 that a past is counted in, and reads its keys as often. */
static double joint_decodes(const struct kvc_step_model *m, uint32_t n, uint64_t context)
{
    double each = (double)context / n;
    double capped = each < (double)m->cap_tokens ? each : (double)m->cap_tokens;
    double tiles = kvc_token_table_at(&m->past, 1) * (double)context +
                   (m->cap_tokens ? kvc_token_table_at(&m->capped, 1) * capped * n : 0);
    double apart = decode_attention(m, n, context);

    return tiles / 2 > apart ? tiles / 2 : apart;
}

double kvc_step_attention(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                          size_t n_chunks, uint32_t n_decode, uint64_t decode_context)
{
    uint64_t tokens = tokens_of(chunks, n_chunks, 0);
    double ns = 0;

    if (n_chunks) {
        ns = m->prefill_fixed;
        for (size_t i = 0; i < n_chunks; i++)
            if (chunks[i].tokens)
                ns += prefill_attention(m, &chunks[i], tokens);
        ns += past_attention(m, chunks, n_chunks);
    }
    if (n_decode && n_chunks && m->joint_attention)
        ns += joint_decodes(m, n_decode, decode_context);
    else if (n_decode)
        ns += decode_attention(m, n_decode, decode_context);
    return ns;
}

/* All layers but attention of a rank's tokens, and of those that all ranks have. */
static double layers_ns(const struct kvc_step_model *m, uint64_t tokens, uint64_t tokens_of_all)
{
    return kvc_token_table_at(&m->layers, tokens) +
           (m->dp > 1 ? kvc_token_table_at(&m->shared, tokens_of_all) : 0);
}

/* config/vllm.py, _set_cudagraph_sizes */
uint64_t kvc_step_graph_tokens(uint64_t tokens)
{
    uint64_t step = tokens <= 2 ? 1 : tokens <= 4 ? 2 : tokens <= 8 ? 4 : tokens <= 256 ? 8 : 16;

    return (tokens + step - 1) / step * step;
}

/* vLLM's ranks agree on a graph before each step, and all launch without one where the busiest has
 * more tokens than were captured (v1/worker/dp_utils.py). */
uint64_t kvc_step_tokens_of_all(const struct kvc_step_model *model, uint64_t sum, uint64_t most)
{
    uint64_t padded = kvc_step_graph_tokens(most);

    return padded <= model->captured_tokens ? model->dp * padded : sum;
}

static uint64_t tokens_if_alike(const struct kvc_step_model *m, uint64_t tokens)
{
    return m->dp > 1 ? kvc_step_tokens_of_all(m, m->dp * tokens, tokens) : tokens;
}

uint64_t kvc_step_ns(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                     size_t n_chunks, uint32_t n_decode, uint64_t decode_context,
                     uint32_t n_sampled, uint64_t *host_ns)
{
    uint64_t tokens_of_all = tokens_if_alike(model, tokens_of(chunks, n_chunks, n_decode));

    return kvc_step_rank_ns(model, chunks, n_chunks, n_decode, decode_context, n_sampled,
                            tokens_of_all, host_ns);
}

uint64_t kvc_step_rank_ns(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                          size_t n_chunks, uint32_t n_decode, uint64_t decode_context,
                          uint32_t n_sampled, uint64_t tokens_of_all, uint64_t *host_ns)
{
    uint64_t tokens = tokens_of(chunks, n_chunks, n_decode);
    double ns, host;

    if (host_ns)
        *host_ns = 0;
    if (n_chunks == 0 && n_decode == 0)
        return 0;
    if (model->stages > 1)
        return kvc_pipeline_step_ns(model, chunks, n_chunks, n_decode, decode_context, n_sampled,
                                    host_ns);
    host = model->host_step + model->host_sequence * ((double)n_decode + (double)n_chunks);
    if (n_chunks)
        host += model->host_prefill;
    ns = kvc_step_attention(model, chunks, n_chunks, n_decode, decode_context);
    ns += layers_ns(model, tokens, tokens_of_all) + kvc_token_table_at(&model->head, n_sampled);
    if (n_chunks && n_decode)
        ns *= model->mixed_factor;
    if (n_chunks && tokens > model->captured_tokens && ns < model->eager_ns)
        ns = model->eager_ns;
    if (host_ns)
        *host_ns = (uint64_t)(host + 0.5);
    return (uint64_t)(ns + host + 0.5);
}

void kvc_decode_cost_set(struct kvc_decode_cost *out, double c0, double c1, uint64_t context_end,
                         double host)
{
    out->c0_q16 = (int64_t)(c0 * Q16 + (c0 < 0 ? -0.5 : 0.5));
    out->c1_q40 = (int64_t)(c1 * Q40 + 0.5);
    out->context_end = context_end;
    out->host_ns = (uint64_t)(host + 0.5);
}

void kvc_step_decode(const struct kvc_step_model *model, uint32_t n_decode, uint64_t context,
                     struct kvc_decode_cost *out)
{
    double host = model->host_step + model->host_sequence * (double)n_decode, c0, c1;
    uint64_t end;

    if (model->stages > 1) {
        kvc_pipeline_decode(model, n_decode, context, out);
        return;
    }
    end = kvc_decode_line(&model->decode, n_decode, context, &c0, &c1);
    c0 += layers_ns(model, n_decode, tokens_if_alike(model, n_decode)) +
          kvc_token_table_at(&model->head, n_decode) +
          model->decode_per_sequence * (double)n_decode + host;
    kvc_decode_cost_set(out, c0, c1, end, host);
}

uint64_t kvc_step_front_ns(const struct kvc_step_model *model)
{
    return (uint64_t)(model->engine.front_end_ns.value + 0.5);
}

/* Activations of the largest step, as the engine's profiling run would meet them: the residual
 * stream and its copies, the widest feed-forward tensors, queries, keys and values in bf16, and the
 * logits of a full batch with two float copies for sampling. */
static double activation_bytes(const struct kvc_step_model *m, uint32_t max_batched_tokens)
{
    const struct kvc_llm *l = &m->llm;
    double feed = 3.0 * l->intermediate / m->tp;
    double experts = 3.0 * l->top_k * l->expert_intermediate / m->ranks;
    double attention = (double)(l->heads + 2 * l->kv_heads) * l->head_dim / m->tp;
    double batch = m->gpu.memory_bytes.value >= 70e9 ? 1024 : 256; /* vLLM's default max_num_seqs */

    if (feed < experts)
        feed = experts;
    return 2.0 * max_batched_tokens * (6.0 * l->hidden + feed + attention) +
           12.0 * batch * l->vocab;
}

uint64_t kvc_step_kv_capacity_bytes(const struct kvc_step_model *model,
                                    double gpu_memory_utilization, uint32_t max_batched_tokens)
{
    const char *backend = model->engine.backend;
    double all_bytes = model->gpu.memory_bytes.value, u = gpu_memory_utilization;
    double overhead = model->engine.memory_overhead_bytes.value;
    double beside = activation_bytes(model, max_batched_tokens) + overhead, least = HUGE_VAL;

    /* as many blocks on every stage as the fullest has room for. TensorRT-LLM: a share of what is
     * free. SGLang: activations are in the share that is left (mem_fraction_static). */
    for (uint32_t s = 0; s < model->stages; s++) {
        double layers = kvc_stage_layers(model->llm.layers, model->stages, s);
        double weights = kvc_step_weight_bytes(model, s);
        double free_bytes = strcmp(backend, "trtllm") == 0   ? (all_bytes - weights - beside) * u
                            : strcmp(backend, "sglang") == 0 ? (all_bytes - overhead) * u - weights
                                                             : all_bytes * u - weights - beside;
        double all = free_bytes * (model->llm.layers / layers);
        least = all < least ? all : least;
    }
    return least > 0 ? (uint64_t)least * model->tp : 0;
}

const struct kvc_step_range *kvc_step_range(const struct kvc_step_model *model)
{
    return &model->range;
}

bool kvc_step_collectives_measured(const struct kvc_step_model *model)
{
    return model->ranks > 1 && (model->allreduce_measured || model->exchange_measured);
}

/* Whether all kernels were measured as they are used: this engine, GPU, format and shape. */
static bool kernels_known(const struct kvc_step_model *m)
{
    return m->products_exact && m->attention_exact && m->allreduce_measured &&
           !m->llm.sparse_tokens && (!m->llm.linear_layers || m->linear_measured) &&
           (!m->llm.experts || m->moe_measured);
}

/* Rows that are left out at the small end are told about as well as others (docs/models.md):
 * nothing is said of less than this share below the first. */
#define BELOW 4
#define FAR 2 /* times beyond the last one, no engine row tells of it either */

static uint32_t outside(uint64_t x, uint64_t least, uint64_t most)
{
    return x / FAR > most                         ? KVC_STEP_OUTSIDE | KVC_STEP_FAR
           : x && (x > most || x * BELOW < least) ? KVC_STEP_OUTSIDE
                                                  : 0;
}

uint32_t kvc_step_beyond(uint64_t x, uint64_t most)
{
    return outside(x, 0, most);
}

uint32_t kvc_step_flags(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                        size_t n_chunks, uint32_t n_decode, uint64_t decode_context)
{
    const struct kvc_step_range *least = &model->least, *most = &model->range;
    uint64_t tokens = tokens_of(chunks, n_chunks, n_decode), stages = model->stages;
    uint32_t flags =
        outside(tokens, least->tokens, most->tokens * stages) |
        outside(n_decode, least->sequences, most->sequences * stages) |
        outside(decode_context, n_decode * least->context, n_decode * most->context) |
        outside(decode_context / stages, 0, most->contexts);

    for (size_t i = 0; i < n_chunks; i++) {
        if (chunks[i].past)
            flags |= KVC_STEP_PAST;
        flags |= outside(chunks[i].tokens, least->chunk, most->chunk * stages);
    }
    if (!model->measured || model->borrowed)
        flags |= KVC_STEP_BORROWED;
    if (!kernels_known(model))
        flags |= KVC_STEP_SHAPE;
    return flags;
}

static void widen(struct kvc_time_band *b, double ttft, double tpot, const char *why)
{
    b->ttft_low /= ttft;
    b->ttft_high *= ttft;
    b->tpot_low /= tpot;
    b->tpot_high *= tpot;
    size_t n = strlen(b->widened);
    snprintf(b->widened + n, sizeof(b->widened) - n, "%s%s", n ? "; " : "", why);
}

/* Whether the rows behind the band have borrowed kernels on this GPU. */
static bool borrows_as_rows(const struct kvc_step_model *m)
{
    char name[64];

    snprintf(name, sizeof name, " %s ", m->gpu.id);
    return strstr(m->engine.band_gpus, name) != NULL;
}

#define TABLES_OFF 10 /* percent; what tables miss up to there is in the bands of served runs */

#define PAST_OFF 1.1    /* assumed: the form misses 6 to 10 % of attention on RTX PRO 6000 */
#define END_OFF 1.05    /* 4.1 % is the mean error of last rows left out (docs/models.md) */
#define BEYOND_OFF 1.25 /* assumed: nothing is known there */

/* Rows behind the band have no cached prefix, only chunks of a prompt behind their own. Where they
 * lie beyond their tables themselves, the band widens by what an end is worth alone. */
void kvc_step_band(const struct kvc_step_model *model, uint32_t flags, struct kvc_time_band *out)
{
    uint32_t carried = model->engine.band_flags;

    *out = model->engine.band;
    if ((!model->measured || model->borrowed) && !borrows_as_rows(model))
        widen(out, 1.25, 1.25, "another GPU's kernels, as shares of this one's peaks");
    double off = kvc_kernels_users_off(model->kernels);
    if (off > TABLES_OFF)
        widen(out, 1 + off / 100, 1 + off / 100,
              "kernels of the profile, by what they miss of shapes left out");
    if (flags & KVC_STEP_OUTSIDE) {
        bool near = !(flags & KVC_STEP_FAR) && carried & KVC_STEP_OUTSIDE;
        double by = near ? END_OFF : BEYOND_OFF;
        widen(out, by, by, "tokens, sequences or context beyond the measured tables");
    }
    if (flags & KVC_STEP_PAST)
        widen(out, PAST_OFF, 1, "prefill behind cached tokens, which no kernel table covers");
    if (model->dp > 1)
        widen(out, 1.25, 1.25, "data-parallel ranks, which no row of the band has");
    if (model->stages > 1)
        widen(out, 1.25, 1.25, "pipeline stages, which no public run was found to be held against");
}

void kvc_step_model_destroy(struct kvc_step_model *model)
{
    if (!model)
        return;
    kvc_free(model->layers.ns);
    kvc_free(model->shared.ns);
    kvc_free(model->head.ns);
    kvc_free(model->alone.ns);
    kvc_free(model->eight.ns);
    kvc_free(model->past.ns);
    kvc_free(model->waves.ns);
    kvc_free(model->capped.ns);
    kvc_free(model->hop.ns);
    kvc_free(model->hops.ns);
    kvc_kernels_destroy(model->kernels);
    kvc_free(model);
}
