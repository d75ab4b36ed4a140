/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tiny_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct node {
    uint64_t id;
    uint32_t parent, depth, children, only_child;
    bool ends; /* a prompt or an output ends here */
    uint32_t seg;
};

struct builder {
    struct node *nodes;
    uint32_t n;
};

static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

static uint32_t walk(struct builder *b, const uint64_t *ids, uint32_t n)
{
    uint32_t at = KVC_SEG_NONE;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;

        while (k < b->n && (b->nodes[k].parent != at || b->nodes[k].id != ids[i]))
            k++;
        if (k == b->n) {
            b->nodes[b->n++] = (struct node){.id = ids[i], .parent = at, .depth = i};
            if (at != KVC_SEG_NONE) {
                b->nodes[at].children++;
                b->nodes[at].only_child = k;
            }
        }
        at = k;
    }
    if (at != KVC_SEG_NONE)
        b->nodes[at].ends = true;
    return at;
}

/* Parents have smaller numbers than children, so one pass in order does. */
static void cut_segments(struct builder *b, struct kvc_trace *t, bool whole)
{
    t->seg_parent = must(calloc(b->n + 1, sizeof *t->seg_parent));
    t->seg_len = must(calloc(b->n + 1, sizeof *t->seg_len));
    t->seg_depth = must(calloc(b->n + 1, sizeof *t->seg_depth));
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t parent = b->nodes[i].parent;
        struct node *up = parent == KVC_SEG_NONE ? NULL : &b->nodes[parent];

        if (whole && up && up->children == 1 && !up->ends) {
            b->nodes[i].seg = up->seg;
            t->seg_len[up->seg]++;
            continue;
        }
        b->nodes[i].seg = t->n_segments;
        t->seg_parent[t->n_segments] = up ? up->seg : KVC_SEG_NONE;
        t->seg_depth[t->n_segments] = b->nodes[i].depth;
        t->seg_len[t->n_segments++] = 1;
    }
}

static void columns(struct kvc_trace *t, uint32_t n)
{
    t->arrival_ns = must(calloc(n + 1, sizeof *t->arrival_ns));
    t->input_tokens = must(calloc(n + 1, sizeof *t->input_tokens));
    t->output_tokens = must(calloc(n + 1, sizeof *t->output_tokens));
    t->prompt_seg = must(calloc(n + 1, sizeof *t->prompt_seg));
    t->output_seg = must(calloc(n + 1, sizeof *t->output_seg));
    t->session = must(calloc(n + 1, sizeof *t->session));
    t->think_ns = must(calloc(n + 1, sizeof *t->think_ns));
    t->row_status = must(calloc(n + 1, sizeof *t->row_status));
}

struct tiny_row tiny_row(uint64_t time_ns, uint32_t tokens, const char *blocks)
{
    struct tiny_row r = {.time_ns = time_ns, .input_tokens = tokens, .output_tokens = 1,
                         .session = KVC_ID_NONE, .think_ns = KVC_TIME_NONE};

    for (; *blocks; blocks++)
        r.ids[r.n_ids++] = (uint64_t)(unsigned char)*blocks;
    if (r.n_ids * 4 < tokens)
        r.ids[r.n_ids++] = 1000 + time_ns;
    return r;
}

struct kvc_trace *tiny_trace(const struct tiny_row *rows, uint32_t n, uint32_t block_tokens,
                             bool whole_segments)
{
    struct kvc_trace *t = must(calloc(1, sizeof *t));
    struct builder b = {must(calloc((size_t)n * 2 * TINY_BLOCKS + 1, sizeof(struct node))), 0};
    uint32_t *prompt = must(calloc(n + 1, sizeof *prompt));
    uint32_t *output = must(calloc(n + 1, sizeof *output));

    columns(t, n);
    t->block_tokens = block_tokens;
    t->n_requests = n;
    for (uint32_t i = 0; i < n; i++) {
        prompt[i] = walk(&b, rows[i].ids, rows[i].n_ids);
        output[i] = rows[i].n_out ? walk(&b, rows[i].out, rows[i].n_out) : KVC_SEG_NONE;
        t->arrival_ns[i] = rows[i].time_ns;
        t->input_tokens[i] = rows[i].input_tokens;
        t->output_tokens[i] = rows[i].output_tokens;
        t->session[i] = rows[i].session;
        t->think_ns[i] = rows[i].think_ns;
        t->row_status[i] = rows[i].failed ? KVC_ROW_FAILED : KVC_ROW_OK;
        if (rows[i].session != KVC_ID_NONE && rows[i].session >= t->n_sessions)
            t->n_sessions = rows[i].session + 1;
    }
    cut_segments(&b, t, whole_segments);
    for (uint32_t i = 0; i < n; i++) {
        t->prompt_seg[i] = prompt[i] == KVC_SEG_NONE ? KVC_SEG_NONE : b.nodes[prompt[i]].seg;
        t->output_seg[i] = output[i] == KVC_SEG_NONE ? KVC_SEG_NONE : b.nodes[output[i]].seg;
    }
    t->n_tenants = 1;
    memcpy(t->digest, "tiny", 5);
    free(b.nodes);
    free(prompt);
    free(output);
    return t;
}

void tiny_trace_tenants(struct kvc_trace *t, const struct tiny_row *rows, uint32_t n)
{
    static const char *const names[TINY_TENANTS] = {"t0", "t1", "t2", "t3"};

    t->tenant = must(kvc_calloc(n + 1, sizeof *t->tenant));
    t->tenant_names = must(kvc_calloc(TINY_TENANTS, sizeof *t->tenant_names));
    t->n_tenants = TINY_TENANTS;
    for (uint32_t i = 0; i < n; i++)
        t->tenant[i] = rows[i].tenant;
    for (uint32_t i = 0; i < TINY_TENANTS; i++)
        t->tenant_names[i] = must(kvc_strdup(names[i]));
}

void tiny_trace_free(struct kvc_trace *t)
{
    for (uint32_t i = 0; t->tenant_names && i < t->n_tenants; i++)
        kvc_free(t->tenant_names[i]);
    kvc_free(t->tenant_names);
    kvc_free(t->tenant);
    free(t->arrival_ns);
    free(t->input_tokens);
    free(t->output_tokens);
    free(t->prompt_seg);
    free(t->output_seg);
    free(t->session);
    free(t->think_ns);
    free(t->row_status);
    free(t->seg_parent);
    free(t->seg_len);
    free(t->seg_depth);
    free(t);
}
