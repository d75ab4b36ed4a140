/* SPDX-License-Identifier: Apache-2.0
 * libCacheSim's oracleGeneral: 24 bytes a reference, one reference a block, root first. */
#include "traces/export/export.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

#define RECORD 24
#define NEVER UINT64_MAX

static void little(char *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (char)(unsigned char)(v >> (8 * i));
}

/* The first reference of each request. */
static uint64_t *number_references(const struct kvc_trace *t)
{
    uint64_t *first = kvc_malloc((size_t)t->n_requests, sizeof(*first)), next = 0;
    for (uint64_t r = 0; first && r < t->n_requests; r++) {
        first[r] = next;
        next += kvc_trace_blocks(t, r);
    }
    return first;
}

/* A segment's blocks are always referenced together, so the next request through it tells the
 * next reference of each. Requests backwards; one entry a segment touched, in that order. */
static bool find_next(const struct kvc_trace *t, const uint64_t *first, uint64_t **out, size_t *n)
{
    size_t cap = 0;
    uint64_t *next = kvc_malloc(t->n_segments, sizeof(*next));
    *out = NULL;
    *n = 0;
    if (!next)
        return false;
    memset(next, 0xff, (size_t)t->n_segments * sizeof(*next));
    for (uint64_t r = t->n_requests; r-- > 0;) {
        for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s]) {
            if (!kvc_grow((void **)out, &cap, *n + 1, sizeof(**out))) {
                kvc_free(next);
                return false;
            }
            (*out)[(*n)++] = next[s];
            next[s] = first[r] + t->seg_depth[s];
        }
    }
    kvc_free(next);
    return true;
}

static void put_request(struct kvc_export *x, uint64_t r, const uint64_t *next, size_t *at)
{
    const struct kvc_trace *t = x->t;
    char record[RECORD];
    uint32_t n = kvc_trace_path(t, t->prompt_seg[r], x->path), tail = t->input_tokens[r];
    uint32_t last = kvc_trace_blocks(t, r) - 1;
    tail = tail / t->block_tokens > last ? t->block_tokens : tail - last * t->block_tokens;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = x->path[i];
        uint64_t then = next[--*at];
        for (uint32_t b = 0; b < t->seg_len[s]; b++) {
            bool end = t->seg_depth[s] + b == last;
            little(record, t->arrival_ns[r] / 1000000000, 4);
            little(record + 4, x->first_block[s] + b + 1, 8);
            little(record + 12, end ? tail : t->block_tokens, 4);
            /* libCacheSim counts references from 1; -1 is never. */
            little(record + 16, then == NEVER ? NEVER : then + b + 1, 8);
            kvc_export_put(x, record, RECORD);
            x->report->rows++;
        }
    }
}

static enum kvc_status write_log(struct kvc_export *x, struct kvc_error *err)
{
    const struct kvc_trace *t = x->t;
    uint64_t *first = NULL, *next = NULL;
    size_t at = 0;
    if (!t->n_segments)
        return kvc_fail(err, KVC_ERR_INPUT, "the trace has no block ids, and oracleGeneral is "
                        "nothing but block ids; export to mooncake or csv");
    if (t->n_requests && t->arrival_ns[t->n_requests - 1] / 1000000000 > UINT32_MAX)
        return kvc_fail(err, KVC_ERR_INPUT, "the trace lasts longer than the 136 years that "
                        "oracleGeneral can count");
    first = number_references(t);
    bool ok = first && find_next(t, first, &next, &at);
    for (uint64_t r = 0; ok && r < t->n_requests && kvc_packfile_ok(x->file); r++) {
        if (t->prompt_seg[r] == KVC_SEG_NONE)
            x->report->left_out++;
        else
            put_request(x, r, next, &at);
    }
    kvc_free(first);
    kvc_free(next);
    if (!ok)
        return kvc_fail_nomem(err);
    kvc_export_note(x, "one record a block reference: object sizes are tokens of a block, times "
                    "whole seconds; lengths of answers, sessions, tenants and models are not in "
                    "the format");
    if (x->report->left_out)
        kvc_export_note(x, "%llu requests without block ids left out",
                        (unsigned long long)x->report->left_out);
    return KVC_OK;
}

const struct kvc_exporter kvc_exporter_oraclegeneral = { "oraclegeneral", write_log };
