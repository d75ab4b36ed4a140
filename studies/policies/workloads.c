/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/policies/workloads.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_TOKENS 64
#define SECOND 1000000000ull
#define PAGE_TOKENS 1024 /* of a document behind a shared prompt */

/* ---- forests made by hand ---- */

struct maker {
    struct kvc_workload *w;
    uint64_t rng, now_ns;
    bool failed;
};

static uint32_t segment(struct maker *m, uint32_t parent, uint32_t blocks)
{
    struct kvc_workload *w = m->w;
    struct kvc_ceiling_view *v = &w->view;
    size_t need = (size_t)v->n_segments + 1, room[3] = {w->seg_room, w->seg_room, w->seg_room};
    if (m->failed || !kvc_grow((void **)&w->seg_parent, &room[0], need, sizeof(uint32_t)) ||
        !kvc_grow((void **)&w->seg_len, &room[1], need, sizeof(uint32_t)) ||
        !kvc_grow((void **)&w->seg_depth, &room[2], need, sizeof(uint32_t))) {
        m->failed = true;
        return 0;
    }
    w->seg_room = room[0];
    uint32_t s = v->n_segments++;
    w->seg_parent[s] = parent;
    w->seg_len[s] = blocks;
    w->seg_depth[s] = parent == KVC_SEG_NONE ? 0 : w->seg_depth[parent] + w->seg_len[parent];
    w->blocks += blocks;
    return s;
}

static void request(struct maker *m, uint32_t seg, uint64_t gap_ns)
{
    struct kvc_workload *w = m->w;
    size_t need = (size_t)w->view.n_requests + 1;
    size_t room[3] = {w->request_room, w->request_room, w->request_room};
    if (m->failed || !kvc_grow((void **)&w->prompt_seg, &room[0], need, sizeof(uint32_t)) ||
        !kvc_grow((void **)&w->input_tokens, &room[1], need, sizeof(uint32_t)) ||
        !kvc_grow((void **)&w->arrival_ns, &room[2], need, sizeof(uint64_t))) {
        m->failed = true;
        return;
    }
    w->request_room = room[0];
    uint64_t r = w->view.n_requests++;
    m->now_ns += gap_ns;
    w->prompt_seg[r] = seg;
    w->input_tokens[r] = seg == KVC_SEG_NONE ? BLOCK_TOKENS
                                             : (w->seg_depth[seg] + w->seg_len[seg]) * BLOCK_TOKENS;
    w->arrival_ns[r] = m->now_ns;
}

static uint32_t below(struct maker *m, uint32_t n)
{
    return (uint32_t)kvc_rng_below(&m->rng, n);
}

static enum kvc_status finish(struct maker *m, struct kvc_error *err)
{
    struct kvc_workload *w = m->w;
    w->view.block_tokens = BLOCK_TOKENS;
    w->view.seg_parent = w->seg_parent;
    w->view.seg_len = w->seg_len;
    w->view.seg_depth = w->seg_depth;
    w->view.prompt_seg = w->prompt_seg;
    w->view.input_tokens = w->input_tokens;
    w->view.arrival_ns = w->arrival_ns;
    return m->failed ? kvc_fail_nomem(err) : KVC_OK;
}

/* Prompts of few users come again and again, between prompts that come once. */
static void scan(struct maker *m)
{
    uint32_t hot[16];
    for (uint32_t i = 0; i < 16; i++)
        hot[i] = segment(m, KVC_SEG_NONE, 8 + below(m, 24));
    for (uint32_t i = 0; i < 1500; i++) {
        bool once = below(m, 3) > 0;
        request(m, once ? segment(m, KVC_SEG_NONE, 10 + below(m, 60)) : hot[below(m, 16)],
                SECOND / 10);
    }
}

/* The same prompts in the same order, more of them than there is room for. */
static void loop(struct maker *m)
{
    uint32_t all[60], system = segment(m, KVC_SEG_NONE, 12);
    for (uint32_t i = 0; i < 60; i++)
        all[i] = segment(m, system, 20 + below(m, 20));
    for (uint32_t i = 0; i < 1500; i++)
        request(m, all[i % 60], SECOND / 10);
}

/* Prompts that go on where others end, asked for long before short: it matters what of a path is
 * left, and in which order. */
static void ladder(struct maker *m)
{
    uint32_t rung[8][40];
    for (uint32_t k = 0; k < 8; k++)
        for (uint32_t i = 0; i < 40; i++)
            rung[k][i] = segment(m, i ? rung[k][i - 1] : KVC_SEG_NONE, 1 + below(m, 9));
    for (uint32_t i = 0; i < 1500; i++) {
        uint32_t k = below(m, 8), high = 39 - below(m, 40) * below(m, 40) / 40;
        request(m, rung[k][high], SECOND / 10);
    }
}

/* Each prompt comes again just when LRU at a quarter of all blocks has dropped it, and what was
 * used often never comes back: recency and frequency both mislead. */
static void turncoat(struct maker *m)
{
    for (uint32_t phase = 0; phase < 6; phase++) {
        uint32_t often[4], seldom[24];
        for (uint32_t i = 0; i < 4; i++)
            often[i] = segment(m, KVC_SEG_NONE, 20);
        for (uint32_t i = 0; i < 24; i++)
            seldom[i] = segment(m, KVC_SEG_NONE, 24);
        for (uint32_t i = 0; i < 80; i++)
            request(m, often[below(m, 4)], SECOND / 10);
        for (uint32_t i = 0; i < 170; i++)
            request(m, seldom[i % 24], SECOND / 10);
    }
}

enum kvc_status kvc_workload_random(struct kvc_workload *out, uint64_t *rng, struct kvc_error *err)
{
    struct kvc_workload w = {.name = "random"};
    struct maker m = {.w = &w, .rng = *rng};
    uint32_t longest = 1 + below(&m, below(&m, 4) ? 12 : 60), n = 1 + below(&m, 24);
    uint32_t requests = 1 + below(&m, 80);
    for (uint32_t s = 0; s < n; s++) {
        uint32_t parent = below(&m, 4) ? below(&m, s + 1) : s;
        segment(&m, parent == s ? KVC_SEG_NONE : parent, 1 + below(&m, longest));
    }
    for (uint32_t r = 0; r < requests; r++)
        request(&m, below(&m, 30) ? below(&m, n) : KVC_SEG_NONE, below(&m, 4) * SECOND / 4);
    *rng = m.rng;
    enum kvc_status st = finish(&m, err);
    if (st == KVC_OK)
        *out = w;
    else
        kvc_workload_clear(&w);
    return st;
}

/* ---- traffic from 'kvcast gen' ---- */

static enum kvc_status generate(struct kvc_workload *w, const char *kind, double hours,
                                uint32_t documents, struct kvc_error *err)
{
    char path[256];
    const char *folder = getenv("TMPDIR");
    struct kvc_gen_config config = {.struct_size = sizeof(config)};
    struct kvc_import_options import = {.struct_size = sizeof(import), .format = "mooncake"};
    snprintf(path, sizeof(path), "%s/kvcast-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        return kvc_fail_errno(err, path, "making a temporary file");
    close(fd);
    kvc_gen_defaults(&config, kind);
    config.seed = 1;
    if (documents) {
        config.documents = documents;
        config.context_tokens = PAGE_TOKENS;
    }
    config.duration_ns = (uint64_t)(hours * 3600e9);
    import.block_tokens = config.block_tokens;
    enum kvc_status st = kvc_gen_write(&config, path, err);
    if (st == KVC_OK)
        st = kvc_trace_open(&w->trace, path, &import, NULL, err);
    unlink(path);
    if (st == KVC_OK)
        st = kvc_ceiling_view(&w->view, w->trace, err);
    for (uint32_t s = 0; st == KVC_OK && s < w->view.n_segments; s++)
        w->blocks += w->view.seg_len[s];
    return st;
}

/* ---- the table ---- */

static const struct {
    const char *name, *what;
    const char *kind; /* of kvcast gen, or */
    void (*make)(struct maker *m);
    double hours;
    uint32_t documents; /* 0: as the kind has them */
} table[] = {
    {"rag-chat", "documents and a conversation behind each", "rag-chat", NULL, 0.1, 0},
    {"agent", "long sessions with tool calls", "agent", NULL, 0.1, 0},
    {"shared-prompt",
     "one system prompt, short questions on pages of which some are asked about often",
     "shared-prompt", NULL, 0.05, 200},
    {"scan", "few prompts that come again, between many that come once", NULL, scan, 0, 0},
    {"loop", "more prompts than fit, always in the same order", NULL, loop, 0, 0},
    {"ladder", "prompts that go on where others end", NULL, ladder, 0, 0},
    {"turncoat", "what was popular never returns", NULL, turncoat, 0, 0},
};

size_t kvc_workloads(void)
{
    return sizeof(table) / sizeof(table[0]);
}

enum kvc_status kvc_workload_make(struct kvc_workload *out, size_t i, struct kvc_error *err)
{
    struct kvc_workload w = {.what = table[i].what};
    struct maker m = {.w = &w, .rng = kvc_rng_stream(1, table[i].name)};
    enum kvc_status st;
    snprintf(w.name, sizeof(w.name), "%s", table[i].name);
    if (table[i].kind) {
        st = generate(&w, table[i].kind, table[i].hours, table[i].documents, err);
    } else {
        table[i].make(&m);
        st = finish(&m, err);
    }
    if (st == KVC_OK)
        *out = w;
    else
        kvc_workload_clear(&w);
    return st;
}

void kvc_workload_clear(struct kvc_workload *w)
{
    if (w->trace)
        kvc_trace_destroy(w->trace);
    kvc_free(w->seg_parent);
    kvc_free(w->seg_len);
    kvc_free(w->seg_depth);
    kvc_free(w->prompt_seg);
    kvc_free(w->input_tokens);
    kvc_free(w->arrival_ns);
    memset(w, 0, sizeof(*w));
}
