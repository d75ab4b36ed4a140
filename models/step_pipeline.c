/* SPDX-License-Identifier: Apache-2.0
 * The time of a step over pipeline stages: a round in which each batch in flight passes every stage
 * once. A round lasts as long as one batch takes through all stages, or as long as the busiest
 * stage, or the host, takes for all batches, whichever is longer: for batches in order through
 * stages in order these are the only circuits that can be critical. */
#include "models/step_model.h"

#include "base/whole.h"

#include <math.h>

uint32_t kvc_stage_layers(uint32_t layers, uint32_t stages, uint32_t stage)
{
    uint32_t left = layers % stages;

    return layers / stages + (stage + 1 < stages && stage + 1 + left >= stages);
}

bool kvc_stage_leaves_node(uint32_t tp, uint32_t gpus_per_node, uint32_t stage)
{
    return gpus_per_node && stage * tp / gpus_per_node != (stage + 1) * tp / gpus_per_node;
}

/* What bounds a round, each as c0 + c1 context. */
enum { THROUGH, MOST, LAST, HOST, BOUNDS };

struct round {
    double c0[BOUNDS], c1[BOUNDS];
};

/* A batch: its layers' time, the rows that the head sees, its tokens, its host time. */
struct batch {
    double layers, host;
    uint32_t sampled, tokens;
};

/* The largest are added last, and none is slower through all stages. */
static inline void add_batches(const struct kvc_step_model *m, struct round *r,
                               const struct batch *b, double count)
{
    double head = kvc_token_table_at(&m->head, b->sampled);

    r->c0[THROUGH] = b->layers + head + kvc_token_table_at(&m->hops, b->tokens) + b->host;
    r->c0[MOST] += count * (m->most_share * b->layers + kvc_token_table_at(&m->hop, b->tokens));
    r->c0[LAST] += count * (m->last_share * b->layers + head);
    r->c0[HOST] += count * b->host;
}

/* Which bound is longest is anybody's guess, so that these go without branches. */
static double greater(double a, double b)
{
    return a > b ? a : b;
}

static double at(const struct round *r, size_t bound, double context)
{
    return r->c0[bound] + r->c1[bound] * context;
}

static double round_ns(const struct round *r, double context)
{
    return greater(greater(at(r, THROUGH, context), at(r, MOST, context)),
                   greater(at(r, LAST, context), at(r, HOST, context)));
}

/* The longest bound at a context, and up to which one it stays so. */
static size_t longest(const struct round *r, double context, double *until)
{
    double most = at(r, 0, context);
    size_t best = 0;

    for (size_t i = 1; i < BOUNDS; i++) {
        double ns = at(r, i, context);
        best = ns > most ? i : best;
        most = greater(ns, most);
    }
    *until = HUGE_VAL;
    for (size_t i = 0; i < BOUNDS; i++) {
        double steeper = r->c1[i] - r->c1[best];
        double meet = (r->c0[best] - r->c0[i]) / steeper;
        *until = steeper > 0 && meet < *until ? meet : *until;
    }
    return best;
}

/* n decoding sequences dealt evenly to the batches; *end: how far the lines hold. */
static double decode_round(const struct kvc_step_model *m, uint32_t n, uint64_t context,
                           struct round *r, uint64_t *end)
{
    uint32_t batches = n < m->stages ? n : m->stages;
    uint32_t few = n / batches, more = n % batches;
    const uint32_t size[] = {few, few + 1}, count[] = {batches - more, more};
    uint64_t least = UINT64_MAX;

    *r = (struct round){0};
    for (size_t i = 0; i < 1 + (more > 0); i++) {
        uint64_t own = kvc_div_up(context * size[i], n);
        double c0, c1;
        uint64_t until = kvc_decode_line(&m->decode, size[i], own, &c0, &c1);
        c0 += kvc_token_table_at(&m->layers, size[i]) + m->decode_per_sequence * size[i];
        c1 *= (double)size[i] / n;
        const struct batch b = {c0, m->host_step + m->host_sequence * size[i], size[i], size[i]};
        add_batches(m, r, &b, count[i]);
        r->c1[THROUGH] = c1;
        r->c1[MOST] += count[i] * m->most_share * c1;
        r->c1[LAST] += count[i] * m->last_share * c1;
        until = until == UINT64_MAX ? until : until * n / size[i];
        least = until < least ? until : least;
    }
    *end = least;
    return m->host_step + m->host_sequence * (more ? few + 1 : few);
}

void kvc_pipeline_decode(const struct kvc_step_model *m, uint32_t n, uint64_t context,
                         struct kvc_decode_cost *out)
{
    struct round r;
    uint64_t end;
    double until, host = decode_round(m, n, context, &r, &end);
    size_t best = longest(&r, (double)context, &until);

    if (until < (double)end)
        end = until > (double)context ? (uint64_t)until : context;
    kvc_decode_cost_set(out, r.c0[best], r.c1[best], end, host);
}

static uint32_t share_of(uint64_t all, uint32_t among)
{
    return (uint32_t)kvc_div_up(all, among);
}

/* Prefill fills one batch after the other beside their decoding sequences, at most one a stage:
 * tokens of all but the last, which has what is left. */
static uint32_t batch_tokens(const struct kvc_step_model *m, uint64_t tokens, uint32_t n_decode)
{
    uint64_t decodes = n_decode / m->stages;
    uint64_t room = m->batch_tokens > decodes ? m->batch_tokens - decodes : 1;
    uint32_t least = share_of(tokens, m->stages);

    room = tokens < room ? tokens : room;
    return room > least ? (uint32_t)room : least > 0 ? least : 1;
}

/* Batches of a round with prefill: so many like with, the others of the round like without. The
 * last one with prefill is taken to be part of each, as full as it is. */
struct mixed {
    struct batch with, without;
    double prefills, others;
    uint32_t tokens; /* of prefill in a full one */
};

static struct mixed mixed_round(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                                size_t n_chunks, uint32_t n_decode, uint64_t context,
                                uint32_t n_sampled)
{
    struct mixed x;
    uint64_t tokens = 0;

    for (size_t i = 0; i < n_chunks; i++)
        tokens += chunks[i].tokens;
    x.tokens = batch_tokens(m, tokens, n_decode);
    uint32_t prefills = tokens ? share_of(tokens, x.tokens) : 1;
    uint32_t batches = n_decode < m->stages ? n_decode : m->stages;
    batches = batches > prefills ? batches : prefills;
    uint32_t each = share_of(n_decode, batches);
    x.prefills = tokens ? (double)tokens / x.tokens : 1;
    x.others = each ? batches - x.prefills : 0;
    uint64_t own = n_decode ? context * each / n_decode : 0;
    double c0 = 0, c1 = 0;
    if (each)
        kvc_decode_line(&m->decode, each, own, &c0, &c1);
    double decode = c0 + c1 * (double)own + m->decode_per_sequence * each;
    double prefill = kvc_step_attention(m, chunks, n_chunks, 0, 0) - m->prefill_fixed;

    x.with = (struct batch){
        .layers = kvc_token_table_at(&m->layers, x.tokens + each) + m->prefill_fixed +
                  prefill / x.prefills + decode,
        .sampled = each + share_of(n_sampled > n_decode ? n_sampled - n_decode : 0, prefills),
        .tokens = x.tokens + each,
        .host = m->host_step + m->host_prefill +
                m->host_sequence * (each + share_of(n_chunks, prefills))};
    if (each)
        x.with.layers *= m->mixed_factor;
    if (x.with.layers < m->eager_ns)
        x.with.layers = m->eager_ns;
    x.without = (struct batch){.layers = kvc_token_table_at(&m->layers, each) + decode,
                               .sampled = each, .tokens = each,
                               .host = m->host_step + m->host_sequence * each};
    return x;
}

uint64_t kvc_pipeline_step_ns(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                              size_t n_chunks, uint32_t n_decode, uint64_t context,
                              uint32_t n_sampled, uint64_t *host_ns)
{
    struct round r = {0};
    double host;
    uint64_t end;

    if (!n_chunks) {
        host = decode_round(m, n_decode, context, &r, &end);
    } else {
        struct mixed x = mixed_round(m, chunks, n_chunks, n_decode, context, n_sampled);
        if (x.others > 0)
            add_batches(m, &r, &x.without, x.others);
        add_batches(m, &r, &x.with, x.prefills);
        host = x.with.host;
    }
    if (host_ns)
        *host_ns = (uint64_t)(host + 0.5);
    return (uint64_t)(round_ns(&r, n_chunks ? 0 : (double)context) + 0.5);
}

uint64_t kvc_step_spacing_ns(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                             size_t n_chunks, uint32_t n_decode, uint64_t decode_context,
                             uint32_t n_sampled, uint32_t *batch)
{
    struct round r = {0};

    *batch = 1;
    if (model->stages == 1 || !n_chunks)
        return 0;
    struct mixed x = mixed_round(model, chunks, n_chunks, n_decode, decode_context, n_sampled);
    add_batches(model, &r, &x.with, 1);
    r.c0[THROUGH] = 0; /* they go one behind the other, not one after the other */
    *batch = x.tokens;
    return (uint64_t)(round_ns(&r, 0) + 0.5);
}
