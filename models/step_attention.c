/* SPDX-License-Identifier: Apache-2.0
 * Compiles the attention of a step model: kernel tables of one layer, summed over the layers and
 * tabled over what a step knows. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole.h"
#include "models/step_model.h"

/* A kind of layer: its kernels, how many there are, and the keys a query sees at most. */
struct kind {
    struct kvc_kernel_answer decode, prefill, twin;
    bool twice; /* another engine's rows of decode's kernel are there, too: twin */
    double layers, keys; /* keys HUGE_VAL: all */
    double cost;         /* of reading the KV's format, in decode */
    double key_bytes;    /* of a key and its value as the kernel reads them, one rank's layer */
    double byte_ns;      /* a byte of that from HBM, at least; 0: not known */
    double selected_ns;  /* of a query and a key that was selected for it, in prefill; 0: no such */
};

struct attention {
    struct kind kind[2];
    size_t n;
    struct kvc_linear decode, prefill; /* of the linear layers, where measured */
    double linear_layers;              /* 0: none, or not measured */
    /* sparse attention: what each key costs to be looked at, and each query with it, all layers */
    double index_ns_per_key, index_ns_per_pair;
};

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* ---- decode ---- */

static double linear_ns(const struct kvc_linear *l, double sequences, double tokens)
{
    return kvc_kernel_answer_ns(&l->convolution, sequences, tokens) +
           kvc_kernel_answer_ns(&l->recurrence, sequences, tokens);
}

static double linear_launch_ns(const struct kvc_linear *l)
{
    return l->convolution.curve.table->constants[0] + l->recurrence.curve.table->constants[0];
}

/* Where two engines' rows are of the same kernel, what slows one's is the measurement. Launches
 * differ with the benchmarks; compared is what context adds. */
static double rows_ns(const struct kind *k, double n, double keys)
{
    double ns = kvc_kernel_answer_ns(&k->decode, n, keys);

    if (!k->twice)
        return ns;
    return lesser(ns, kvc_kernel_answer_ns(&k->decode, n, 1) +
                          kvc_kernel_answer_ns(&k->twin, n, keys) -
                          kvc_kernel_answer_ns(&k->twin, n, 1));
}

/* Rows are of one kernel run again and again: KV that fits the last cache is read from there, which
 * a model can't do, with weights and other layers' KV between. No byte takes less than in the
 * fastest row that the cache can't hold, beyond what as many sequences take without context, nor
 * than at the memory's peak. */
static void find_byte_ns(struct kind *k, const struct kvc_gpu *gpu)
{
    const struct kvc_kernel_curve *c = &k->decode.curve;
    double least = HUGE_VAL, peak = 1e9 / gpu->hbm_bytes_per_s.value;

    for (double n = 1; n <= 4096 && n < c->last[0] + 0.5; n *= 2)
        for (double each = 64; each <= 1 << 20 && each < c->last[1] + 0.5 &&
                               n * each < c->product + 0.5; each *= 2) {
            double keys = lesser(each, k->keys), bytes = n * keys * k->key_bytes;
            if (bytes > gpu->l2_bytes.value)
                least = lesser(least, (rows_ns(k, n, keys) - rows_ns(k, n, 1)) / bytes);
        }
    k->byte_ns = !(gpu->l2_bytes.value > 0)                ? 0
                 : least > peak && least < HUGE_VAL ? least : peak;
}

static double cold_ns(const struct kind *k, double n, double keys)
{
    double hot = rows_ns(k, n, keys);
    double cold = rows_ns(k, n, 1) + n * keys * k->key_bytes * k->byte_ns;

    return k->byte_ns > 0 && cold > hot ? cold : hot;
}

static double decode_ns(const struct attention *a, double n, double context)
{
    double ns = a->index_ns_per_key * context, each = context / n > 1 ? context / n : 1;

    if (a->linear_layers > 0)
        ns += a->linear_layers * linear_ns(&a->decode, n, 1);
    for (size_t i = 0; i < a->n; i++)
        ns += a->kind[i].layers * a->kind[i].cost *
              cold_ns(&a->kind[i], n, lesser(each, a->kind[i].keys));
    return ns;
}

static double in_row(const struct kvc_decode_grid *g, size_t i, double context)
{
    size_t j = KVC_GRID_C - 2;

    while (j && (double)g->context[j].at > context)
        j--;
    double share = (context - (double)g->context[j].at) * g->context[j].per;
    return g->ns[i][j] + share * (g->ns[i][j + 1] - g->ns[i][j]);
}

/* Measured times dip where a better kernel is chosen; more context must not be faster, nor more
 * sequences of as much context each. Of the same context in all, more sequences may be: one by
 * itself leaves part of the machine idle. */
static bool grid_monotone(struct kvc_decode_grid *g)
{
    for (size_t i = 0; i < KVC_GRID_N; i++) {
        double fewer = i ? (double)g->sequences[i - 1].at / (double)g->sequences[i].at : 0;
        if (!kvc_make_monotone(g->ns[i], KVC_GRID_C))
            return false;
        for (size_t j = 0; i && j < KVC_GRID_C; j++) {
            double least = in_row(g, i - 1, fewer * (double)g->context[j].at);
            g->ns[i][j] = g->ns[i][j] < least ? least : g->ns[i][j];
        }
    }
    return true;
}

/* Knots at first, 2, 3, 4, 6 .. times scale. */
static void place_knots(struct kvc_grid_knot *knot, size_t n, int64_t first, int64_t scale)
{
    for (size_t i = 0; i < n; i++) {
        int64_t next = scale * (i % 2 ? 3 : 2) << i / 2;
        knot[i] = (struct kvc_grid_knot){first, 1.0 / (double)(next - first)};
        first = next;
    }
}

static bool fill_decode(struct kvc_step_model *m, struct attention *a)
{
    struct kvc_decode_grid *g = &m->decode;

    place_knots(g->sequences, KVC_GRID_N, 1, 1);
    place_knots(g->context, KVC_GRID_C, 0, 32);
    for (size_t i = 0; i < a->n; i++)
        find_byte_ns(&a->kind[i], &m->gpu);
    for (size_t i = 0; i < KVC_GRID_N; i++)
        for (size_t j = 0; j < KVC_GRID_C; j++)
            g->ns[i][j] = decode_ns(a, (double)g->sequences[i].at,
                                    (double)g->context[j].at * m->kv_resident);
    return grid_monotone(g);
}

/* ---- prefill ---- */

#define LONG 4096 /* tokens from which on a sequence's time is all products */

static double launch_ns(const struct kind *k)
{
    return k->prefill.curve.table->constants[0];
}

/* Time of a query and a key, from a sequence long enough. */
static double pair_ns(const struct kind *k, double tokens)
{
    double s = tokens > LONG ? tokens : LONG;

    return (kvc_kernel_answer_ns(&k->prefill, 1, s) - launch_ns(k)) / (s * (s / 2 + 64));
}

/* One of batch sequences of q new tokens without a past, launch apart. Windowed kernels that were
 * measured as such know their window; others are cut to it here. Queries that must select their
 * keys are all served by the sparse kernel, short sequences by the dense one. */
static double base_ns(const struct kind *k, double batch, double q)
{
    if (k->selected_ns > 0 && q > k->keys)
        return k->selected_ns * (q * k->keys - k->keys * k->keys / 2);
    bool cut = k->prefill.curve.params[2] <= 0 && q > k->keys;
    double ns = (kvc_kernel_answer_ns(&k->prefill, batch, q) - launch_ns(k)) / batch;
    double least = 0.25 * pair_ns(k, q) * q * (q / 2 + 64); /* little beside a launch: noise */

    ns = ns > least || k->keys < HUGE_VAL ? ns : least;
    if (cut)
        ns *= (q * k->keys - k->keys * k->keys / 2) / (q * q / 2);
    return ns > 0 ? ns : 0;
}

/* One of batch sequences of q new tokens in the linear layers, launches apart. */
static double linear_chunk_ns(const struct attention *a, double batch, double q)
{
    double ns = linear_ns(&a->prefill, batch, q) - linear_launch_ns(&a->prefill);

    return ns > 0 ? a->linear_layers * ns / batch : 0;
}

static double tiles(double q)
{
    return ceil(q / 128) * 128;
}

/* A key of the past, all heads, as tiles of 64 queries go over the multiprocessors wave by wave:
 * what RTX PRO 6000 measures from 16 to 2048 queries (LLMServingSim @5daddb2), and H20 at 16. */
static double wave_ns(const struct kvc_step_model *m, const struct kind *k, double q)
{
    double processors = m->gpu.multiprocessors.value, heads = (double)m->llm.heads / m->tp;
    double waves = processors > 0 ? ceil(heads * ceil(q / 64) / processors) : 0;

    return m->llm.kv_lora_rank ? 0 : pair_ns(k, q) * 64 * waves * processors / heads;
}

/* What a past of as many tokens as the window adds: a chunk no longer begins with few keys, and
 * where keys are selected, the sparse kernel serves it whole, however short. */
static double window_ns(const struct kind *k, double q)
{
    double missing = q < k->keys ? q * (k->keys - q / 2) : k->keys * k->keys / 2;

    if (k->selected_ns > 0 && q <= k->keys)
        return k->selected_ns * q * k->keys - base_ns(k, 1, q);
    return (k->selected_ns > 0 ? k->selected_ns : pair_ns(k, 0)) * missing;
}

static bool fill_prefill(struct kvc_step_model *m, const struct attention *a)
{
    struct kvc_token_table *const table[] = {&m->alone, &m->eight, &m->past, &m->waves,
                                             &m->capped};
    const size_t tables = sizeof table / sizeof table[0];
    const size_t knots = 17 + (KVC_MAX_STEP_TOKENS - 16) / 16;

    for (size_t i = 0; i < tables; i++)
        if (!kvc_token_table_init(table[i], KVC_MAX_STEP_TOKENS))
            return false;
    for (size_t i = 1; i < knots; i++) {
        double q = kvc_token_table_knot(i);
        for (size_t j = 0; j < a->n; j++) {
            const struct kind *k = &a->kind[j];
            double alone = base_ns(k, 1, q), eight = base_ns(k, 8, q);
            m->alone.ns[i] += k->layers * alone;
            /* eight together take no less than one */
            m->eight.ns[i] += k->layers * (eight > alone / 8 ? eight : alone / 8);
            if (k->keys < HUGE_VAL)
                m->capped.ns[i] += k->layers * window_ns(k, q) / k->keys;
            else {
                m->past.ns[i] += k->layers * pair_ns(k, q) * tiles(q);
                m->waves.ns[i] += k->layers * wave_ns(m, k, q);
            }
        }
        if (a->linear_layers > 0) {
            double alone = linear_chunk_ns(a, 1, q), eight = linear_chunk_ns(a, 8, q);
            m->alone.ns[i] += alone;
            m->eight.ns[i] += eight > alone / 8 ? eight : alone / 8;
        }
        m->alone.ns[i] += a->index_ns_per_pair * q * q / 2;
        m->eight.ns[i] += a->index_ns_per_pair * q * q / 2;
        m->past.ns[i] += a->index_ns_per_pair * q;
    }
    /* Only with what a chunk takes by itself does what a window's past adds never fall. */
    for (size_t i = 0; i < tables; i++)
        if (!kvc_token_table_finish(table[i], table[i] == &m->capped ? knots - 1 : 0))
            return false;
    if (a->linear_layers > 0)
        m->prefill_fixed += a->linear_layers * linear_launch_ns(&a->prefill);
    for (size_t j = 0; j < a->n; j++) {
        m->prefill_fixed += a->kind[j].layers * launch_ns(&a->kind[j]);
        if (a->kind[j].keys < HUGE_VAL)
            m->cap_tokens = (uint64_t)a->kind[j].keys;
    }
    return true;
}

/* ---- kinds of layers ---- */

/* Every key is indexed, a bounded number attended. In prefill all heads of a rank, 64 at least, go
 * over the latent of each query's own keys at 0.4 of the bf16 peak: within 18 % of
 * aiconfigurator's dsa_context_module tables @095f58a from 3,072 to 12,288 tokens (H200, vLLM,
 * bf16 KV; B200, TensorRT-LLM, fp8 KV). The same share is assumed of the indexer's fp8 products,
 * 0.8 of the bandwidth of its decode. */
static void sparse_costs(const struct kvc_step_model *m, struct attention *a, struct kind *k)
{
    const struct kvc_llm *l = &m->llm;
    double heads = (double)l->heads / m->tp, narrow = m->gpu.fp8_flops.value;
    double peak = m->gpu.bf16_flops.value;

    k->keys = l->sparse_tokens;
    k->selected_ns = 1e9 * 2.0 * (heads < 64 ? 64 : heads) *
                     (2.0 * l->kv_lora_rank + l->qk_rope_dim) / (0.4 * peak);
    a->index_ns_per_pair = 1e9 * k->layers * 2.0 * l->index_heads * l->indexer_dim /
                           (0.4 * (narrow > 0 ? narrow : peak));
    a->index_ns_per_key = 1e9 * k->layers * l->indexer_dim *
                          kvc_kv_element_bytes(m->kv, l->indexer_dim) /
                          (0.8 * m->gpu.hbm_bytes_per_s.value);
}

static bool latent_kind(struct kvc_step_model *m, struct attention *a)
{
    const struct kvc_llm *l = &m->llm;
    struct kind *k = &a->kind[a->n++];
    uint32_t heads = l->heads / m->tp;

    k->layers = l->layers - l->linear_layers;
    k->cost = kvc_kv_format(m->kv)->decode_cost.value;
    k->keys = HUGE_VAL;
    if (l->sparse_tokens)
        sparse_costs(m, a, k);
    enum kvc_dtype kernel = kvc_kv_format(m->kv)->kernel;
    k->key_bytes = (l->kv_lora_rank + l->qk_rope_dim) * kvc_dtype_bytes(kernel);
    return kvc_kernels_mla_decode(m->kernels, kernel, heads, &k->decode) &&
           kvc_kernels_mla_prefill(m->kernels, kernel, heads, &k->prefill);
}

static bool plain_kind(struct kvc_step_model *m, struct attention *a, double layers,
                       const struct kvc_heads *h)
{
    const struct kvc_kv_format *f = kvc_kv_format(m->kv);
    double plain = lesser(f->plain_layers, layers);
    struct kind *k = &a->kind[a->n++];

    k->layers = layers;
    k->cost = (plain + (layers - plain) * f->decode_cost.value) / layers;
    k->keys = h->window ? h->window : HUGE_VAL;
    k->key_bytes = 2.0 * h->dim * h->kv_heads * kvc_dtype_bytes(h->kv);
    if (!kvc_kernels_decode(m->kernels, h, &k->decode))
        return false;
    k->twice = kvc_kernels_decode_twin(m->kernels, &k->decode, &k->twin);
    return kvc_kernels_prefill(m->kernels, h, &k->prefill);
}

static bool find_kinds(struct kvc_step_model *m, struct attention *a)
{
    const struct kvc_llm *l = &m->llm;
    uint32_t heads = l->heads / m->tp, full = l->layers - l->linear_layers - l->window_layers;
    enum kvc_dtype kernel = kvc_kv_format(m->kv)->kernel;
    uint32_t kv_heads = (uint32_t)kvc_div_up(l->kv_heads, m->tp);
    uint32_t window_kv_heads = (uint32_t)kvc_div_up(l->window_kv_heads, m->tp);
    const struct kvc_heads plain = {l->head_dim, heads, kv_heads, 0, kernel};
    const struct kvc_heads window = {l->window_head_dim, heads, window_kv_heads,
                                     l->window_tokens, kernel};

    if (l->kv_lora_rank)
        return latent_kind(m, a);
    return (full == 0 || plain_kind(m, a, full, &plain)) &&
           (l->window_layers == 0 || plain_kind(m, a, l->window_layers, &window));
}

/* Whether just that was measured, at a shape within an octave. */
static bool known(struct kvc_step_model *m, const struct kvc_kernel_answer *a)
{
    m->borrowed |= a->borrowed;
    return a->exact && !a->borrowed && !a->foreign && a->curve.octaves <= 1.01;
}

enum kvc_status kvc_step_build_attention(struct kvc_step_model *m, struct kvc_error *err)
{
    struct attention a = {.n = 0};

    if (!find_kinds(m, &a))
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "cluster.gpu",
                           "attention like that of %s was measured neither on %s nor on a GPU like "
                           "it; take another ('kvcast show hardware' lists them)",
                           m->llm.name, m->gpu.id);
    m->linear_measured = m->llm.linear_layers &&
                         kvc_kernels_linear(m->kernels, &m->llm, m->tp, false, &a.decode) &&
                         kvc_kernels_linear(m->kernels, &m->llm, m->tp, true, &a.prefill);
    a.linear_layers = m->linear_measured ? m->llm.linear_layers : 0;
    if (!fill_decode(m, &a) || !fill_prefill(m, &a))
        return kvc_fail_nomem(err);
    m->attention_exact = m->kv_resident == 1 &&
                         strcmp(kvc_kv_format(m->kv)->decode_cost.kind, "measured") == 0;
    for (size_t i = 0; i < a.n; i++) {
        m->attention_exact &= known(m, &a.kind[i].decode);
        m->attention_exact &= known(m, &a.kind[i].prefill);
        const struct kvc_kernel_curve *decode = &a.kind[i].decode.curve;
        kvc_step_ends(decode, 0, &m->least.sequences, &m->range.sequences);
        if (a.kind[i].keys == HUGE_VAL) { /* others see no more than their keys */
            kvc_step_ends(decode, 1, &m->least.context, &m->range.context);
            if (decode->product + 0.5 < (double)m->range.contexts)
                m->range.contexts = (uint64_t)(decode->product + 0.5);
        }
        kvc_step_ends(&a.kind[i].prefill.curve, 1, &m->least.chunk, &m->range.chunk);
    }
    if (m->linear_measured)
        m->attention_exact &= known(m, &a.decode.recurrence);
    /* read and write each sequence's state; 0.8 of the rate is assumed */
    if (m->llm.linear_layers && !m->linear_measured)
        m->decode_per_sequence += 1e9 * 2.0 * (double)m->llm.linear_state_bytes / m->tp /
                                  (0.8 * m->gpu.hbm_bytes_per_s.value);
    return KVC_OK;
}
