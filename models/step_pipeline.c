/* SPDX-License-Identifier: Apache-2.0
 * The time of a step over pipeline stages: a round in which each batch in flight passes every stage
 * once. A round lasts as long as one batch takes through all stages, or as long as the busiest
 * stage, or the host, takes for all batches, whichever is longer: for batches in order through
 * stages in order these are the only circuits that can be critical. */
#include "models/step_model.h"

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

/* What bounds a round, as c0 + c1 context. */
struct line {
    double c0, c1;
};

enum { THROUGH, MOST, LAST, HOST, BOUNDS };

struct round {
    struct line bound[BOUNDS];
    bool any;
};

/* A batch: its layers' time, the rows that the head sees, its tokens, its host time. */
struct batch {
    struct line layers;
    uint32_t sampled, tokens;
    double host;
};

static void add_batches(const struct kvc_step_model *m, struct round *r, const struct batch *b,
                        double count)
{
    double head = kvc_token_table_at(&m->head, b->sampled);
    double through = b->layers.c0 + head + kvc_token_table_at(&m->hops, b->tokens) + b->host;

    if (!r->any) /* the largest batch is added first, and none is slower */
        r->bound[THROUGH] = (struct line){through, b->layers.c1};
    r->any = true;
    r->bound[MOST].c0 += count * (m->most_share * b->layers.c0 +
                                  kvc_token_table_at(&m->hop, b->tokens));
    r->bound[MOST].c1 += count * m->most_share * b->layers.c1;
    r->bound[LAST].c0 += count * (m->last_share * b->layers.c0 + head);
    r->bound[LAST].c1 += count * m->last_share * b->layers.c1;
    r->bound[HOST].c0 += count * b->host;
}

static double at(const struct line *l, double context)
{
    return l->c0 + l->c1 * context;
}

/* Which bound is longest is anybody's guess, so that these go without branches. */
static double greater(double a, double b)
{
    return a > b ? a : b;
}

static double round_ns(const struct round *r, double context)
{
    return greater(greater(at(&r->bound[THROUGH], context), at(&r->bound[MOST], context)),
                   greater(at(&r->bound[LAST], context), at(&r->bound[HOST], context)));
}

/* The longest bound at a context, and up to which one it stays so. */
static struct line longest(const struct round *r, double context, double *until)
{
    double most = at(&r->bound[0], context);
    size_t best = 0;

    for (size_t i = 1; i < BOUNDS; i++) {
        double ns = at(&r->bound[i], context);
        best = ns > most ? i : best;
        most = greater(ns, most);
    }
    *until = HUGE_VAL;
    for (size_t i = 0; i < BOUNDS; i++) {
        double steeper = r->bound[i].c1 - r->bound[best].c1;
        double meet = (r->bound[best].c0 - r->bound[i].c0) / steeper;
        *until = steeper > 0 && meet < *until ? meet : *until;
    }
    return r->bound[best];
}

/* n decoding sequences dealt evenly to the batches; *end: how far the lines hold. */
static double decode_round(const struct kvc_step_model *m, uint32_t n, uint64_t context,
                           struct round *r, uint64_t *end)
{
    uint32_t batches = n < m->stages ? n : m->stages;
    uint32_t few = n / batches, more = n % batches;
    const uint32_t size[] = {few + 1, few}, count[] = {more, batches - more};

    *r = (struct round){.any = false};
    *end = UINT64_MAX;
    for (size_t i = 0; i < 2; i++) {
        double share = (double)size[i] / n;
        uint64_t own = (context * size[i] + n - 1) / n, until;
        struct batch b = {.sampled = size[i], .tokens = size[i],
                          .host = m->host_step + m->host_sequence * size[i]};
        if (!count[i])
            continue;
        kvc_step_line(m, size[i], own, &b.layers.c0, &b.layers.c1, &until);
        b.layers.c0 += kvc_token_table_at(&m->layers, size[i]) + m->decode_per_sequence * size[i];
        b.layers.c1 *= share;
        add_batches(m, r, &b, count[i]);
        if (until != UINT64_MAX && until * n / size[i] < *end)
            *end = until * n / size[i];
    }
    return m->host_step + m->host_sequence * (more ? few + 1 : few);
}

void kvc_pipeline_decode(const struct kvc_step_model *m, uint32_t n, uint64_t context,
                         struct kvc_decode_cost *out)
{
    struct round r;
    uint64_t end;
    double until, host = decode_round(m, n, context, &r, &end);
    struct line line = longest(&r, (double)context, &until);

    if (until < (double)end)
        end = until > (double)context ? (uint64_t)until : context;
    *out = kvc_decode_cost_of(line.c0, line.c1, end, host);
}

/* Prefill in as many batches as it fills beside their decoding sequences, at most one a stage. */
static uint32_t prefill_batches(const struct kvc_step_model *m, uint64_t tokens, uint32_t n_decode)
{
    uint64_t decodes = n_decode / m->stages;
    uint64_t room = m->batch_tokens > decodes ? m->batch_tokens - decodes : 1;
    uint64_t batches = (tokens + room - 1) / room;

    return batches > m->stages ? m->stages : batches ? (uint32_t)batches : 1;
}

static uint32_t share_of(uint64_t all, uint32_t among)
{
    return (uint32_t)((all + among - 1) / among);
}

/* Batches of a round with prefill: *prefills like *with, the others of the round like *without. */
struct mixed {
    struct batch with, without;
    uint32_t prefills, others;
};

static struct mixed mixed_round(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                                size_t n_chunks, uint32_t n_decode, uint64_t context,
                                uint32_t n_sampled)
{
    struct mixed x = {.prefills = 1};
    uint64_t tokens = 0;

    for (size_t i = 0; i < n_chunks; i++)
        tokens += chunks[i].tokens;
    x.prefills = prefill_batches(m, tokens, n_decode);
    uint32_t batches = n_decode < m->stages ? n_decode : m->stages;
    batches = batches > x.prefills ? batches : x.prefills;
    x.others = batches - x.prefills;
    uint32_t each = share_of(n_decode, batches), new_tokens = share_of(tokens, x.prefills);
    uint64_t own = n_decode ? context * each / n_decode : 0;
    double decode = each ? kvc_step_attention(m, NULL, 0, each, own) : 0;
    double prefill = kvc_step_attention(m, chunks, n_chunks, 0, 0) - m->prefill_fixed;

    x.with = (struct batch){
        .layers.c0 = kvc_token_table_at(&m->layers, new_tokens + each) + m->prefill_fixed +
                     prefill / x.prefills + decode,
        .sampled = each + share_of(n_sampled > n_decode ? n_sampled - n_decode : 0, x.prefills),
        .tokens = new_tokens + each,
        .host = m->host_step + m->host_prefill +
                m->host_sequence * (each + share_of(n_chunks, x.prefills))};
    if (each)
        x.with.layers.c0 *= m->mixed_factor;
    if (x.with.layers.c0 < m->eager_ns)
        x.with.layers.c0 = m->eager_ns;
    x.without = (struct batch){.layers.c0 = kvc_token_table_at(&m->layers, each) + decode,
                               .sampled = each, .tokens = each,
                               .host = m->host_step + m->host_sequence * each};
    return x;
}

uint64_t kvc_pipeline_step_ns(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                              size_t n_chunks, uint32_t n_decode, uint64_t context,
                              uint32_t n_sampled, uint64_t *host_ns)
{
    struct round r = {.any = false};
    double host;
    uint64_t end;

    if (!n_chunks) {
        host = decode_round(m, n_decode, context, &r, &end);
    } else {
        struct mixed x = mixed_round(m, chunks, n_chunks, n_decode, context, n_sampled);
        add_batches(m, &r, &x.with, x.prefills);
        if (x.others)
            add_batches(m, &r, &x.without, x.others);
        host = x.with.host;
    }
    if (host_ns)
        *host_ns = (uint64_t)(host + 0.5);
    return (uint64_t)(round_ns(&r, n_chunks ? 0 : (double)context) + 0.5);
}

uint64_t kvc_step_spacing_ns(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                             size_t n_chunks, uint32_t n_decode, uint64_t decode_context,
                             uint32_t n_sampled, uint32_t *batches)
{
    struct round r = {.any = false};

    *batches = 1;
    if (model->stages == 1 || !n_chunks)
        return 0;
    struct mixed x = mixed_round(model, chunks, n_chunks, n_decode, decode_context, n_sampled);
    add_batches(model, &r, &x.with, 1);
    r.bound[THROUGH].c0 = 0; /* they go one behind the other, not one after the other */
    *batches = x.prefills;
    return (uint64_t)(round_ns(&r, 0) + 0.5);
}
