/* SPDX-License-Identifier: Apache-2.0
 * What the slow replay's tiers refuse: the rules block by block that the ceilings are held against
 * (block_admission.c), over the requests that an instance has seen. */
#include "tests/twins/twin_tiers.h"

#include <stdio.h>

#include "tests/twins/block_internal.h"

#define OPTIONS 4

struct twin_admission {
    struct block_cache cache;
    struct block_log log;
    struct block_option options[OPTIONS];
    uint32_t *length, *session, *path;
    uint64_t *now_ns;
    char text[KVC_NAME_MAX];
};

/* NAME[:OPTION=VALUE]..; times in ms. */
static void parse(struct twin_admission *a, const char *spec)
{
    char *save;

    snprintf(a->text, sizeof a->text, "%s", spec);
    a->log.admission = strtok_r(a->text, ":", &save);
    for (char *o; (o = strtok_r(NULL, ":", &save));) {
        struct block_option *out = &a->options[a->log.n_admission_options++];
        char *value = strchr(o, '='), *unit;

        *value++ = '\0';
        out->name = o;
        out->value = strtod(value, &unit);
        if (!strcmp(unit, "ms"))
            out->value *= 1e6;
    }
}

struct twin_admission *twin_admission_create(const struct twin *tw, const char *spec,
                                             uint64_t capacity)
{
    struct twin_admission *a;

    if (!spec[0] || !strcmp(spec, "always"))
        return NULL;
    a = array(1, sizeof *a);
    parse(a, spec);
    a->log.block_tokens = tw->B;
    a->length = array(tw->n_req, sizeof *a->length);
    a->session = array(tw->n_req, sizeof *a->session);
    a->now_ns = array(tw->n_req, sizeof *a->now_ns);
    a->path = array(tw->n_nodes, sizeof *a->path);
    a->cache.path = a->path;
    a->log.length = a->length;
    a->log.session = a->session;
    a->log.now_ns = a->now_ns;
    a->log.admission_option = a->options;
    a->cache.log = &a->log;
    a->cache.capacity = capacity;
    a->cache.n_blocks = tw->n_nodes;
    a->cache.asks = array(tw->n_nodes, sizeof *a->cache.asks);
    a->cache.gap = array(tw->n_nodes, sizeof *a->cache.gap);
    a->cache.asked_at = array(tw->n_nodes, sizeof *a->cache.asked_at);
    return a;
}

void twin_admission_destroy(struct twin_admission *a)
{
    if (!a)
        return;
    free(a->length);
    free(a->session);
    free(a->path);
    free(a->now_ns);
    free(a->cache.asks);
    free(a->cache.gap);
    free(a->cache.asked_at);
    free(a);
}

/* The request in hand: its prompt's named blocks, a partial one at its end among them. */
static void take_up(struct twin_admission *a, const struct twin *tw, const struct req *r)
{
    const struct kvc_trace *t = tw->trace;
    uint32_t seg = r ? t->prompt_seg[r->index] : KVC_SEG_NONE, node = NONE;

    a->cache.session = r && t->session ? t->session[r->index] : NONE;
    a->cache.now_ns = tw->now;
    a->cache.tokens = r ? t->input_tokens[r->index] : 0;
    a->cache.length = 0;
    if (seg == KVC_SEG_NONE)
        return;
    node = tw->seg_base[seg] + t->seg_len[seg] - 1;
    a->cache.length = tw->node_depth[node] + 1;
    for (uint32_t i = a->cache.length; i-- > 0; node = tw->node_parent[node])
        a->path[i] = node;
}

void twin_admission_ask(struct twin_admission *a, const struct twin *tw, const struct req *r)
{
    if (!a)
        return;
    take_up(a, tw, r);
    if (!a->cache.length)
        return;
    a->length[a->cache.request] = a->cache.length;
    a->session[a->cache.request] = a->cache.session;
    a->now_ns[a->cache.request++] = tw->now;
    block_asks(&a->cache);
}

static bool admits(struct twin_admission *a, const struct twin *tw, const struct req *r,
                   uint32_t node, uint32_t depth)
{
    if (!a)
        return true;
    take_up(a, tw, r);
    return block_admits(&a->cache, node, depth);
}

struct batch twin_lacking(struct twin *tw, int k, const struct instance *inst,
                          const struct batch *batch, const struct req *r)
{
    struct batch lack = batch_new(batch->n);
    uint32_t limit = 0;

    while (r && limit < r->n_path &&
           (find(inst, r->path[limit]) ||
            admits(inst->admission, tw, r, r->path[limit], limit)))
        limit++;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t node = batch->nodes[i], depth = batch->depths[i];

        if (find(inst, node))
            continue;
        if (r ? depth < limit : admits(inst->admission, tw, NULL, node, depth))
            batch_add(&lack, node, depth, batch->tenants[i]);
        else
            tw->out->tier_refused_blocks[k]++;
    }
    return lack;
}
