/* SPDX-License-Identifier: Apache-2.0
 * The trace in memory: request columns and the prefix forest of segments.
 * Immutable once built. sim/ reads the fields; only traces/ writes them.
 *
 * Blocks are numbered at first appearance (nodes); a segment is a maximal range of nodes that
 * the same requests pass through, so every prompt is a whole number of segments: the path from
 * a root to the segment at whose end the prompt's identified blocks end.
 */
#ifndef KVC_TRACES_TRACE_H
#define KVC_TRACES_TRACE_H

#include "base/rng.h"

#include <kvcast/kvcast.h>

#define KVC_SEG_NONE UINT32_MAX

enum kvc_row_status {
    KVC_ROW_OK = 0,
    KVC_ROW_FAILED = 1,   /* got no answer; imported without ids, and never replayed */
    KVC_ROW_CANCELLED = 2 /* given up by the client; what it got is its output */
};

/* ---- samples of prefix trees, see sim/ceiling/ceiling_sample.c ---- */

#define KVC_SAMPLES 8 /* disjoint ones */
#define KVC_SAMPLE_TRUNK UINT32_MAX
/* Where the trees are cut shows in the first requests with ids, so that it can be told while a log
 * streams by: above the cuts, these requests' blocks come to more than this share of a sample. */
#define KVC_SAMPLE_ROWS ((uint64_t)1 << 16)
#define KVC_SAMPLE_UNIT_SHARE 0.05

/* What draws the block id below depth others; root tells whose ids they are. */
static inline uint32_t kvc_sample_hash(uint64_t root, uint32_t depth, uint64_t id)
{
    return (uint32_t)(kvc_mix64(kvc_mix64(kvc_mix64(root) ^ depth) ^ id) >> 32);
}

/* Which of weight disjoint samples that is in. */
static inline uint32_t kvc_sample_number(uint64_t seed, uint32_t hash, uint32_t weight)
{
    return (uint32_t)(kvc_mix64(kvc_mix64(seed + 1) ^ hash) % weight);
}

/* A column that is a file's pages, see base/spill.h. */
struct kvc_mapped_column {
    void *p;
    size_t bytes;
};
#define KVC_TRACE_COLUMNS 20

/* What a piece of text that differs looks like. */
enum kvc_break_kind {
    KVC_BREAK_CONTENT, /* prompts just differ from there on */
    KVC_BREAK_CLOCK,   /* a time or a date */
    KVC_BREAK_ID,      /* hexadecimal, or letters and digits mixed */
    KVC_BREAK_COUNTER, /* a number */
    KVC_BREAK_TOGGLE,  /* one of a few words */
    KVC_BREAK_WORD,    /* words that differ */
    KVC_BREAK_KINDS
};

#define KVC_BREAK_MESSAGES 8 /* a place's message is its number, or this for all later ones */

/* A place where prompts part from the one before and, unless they just differ, go on alike. */
struct kvc_break {
    uint8_t kind, role, part; /* enum kvc_break_kind, kvc_role, kvc_piece_kind */
    uint32_t message;         /* of the prompt, from 0 */
    uint32_t offset;          /* bytes of the message in front of it */
    uint64_t prompts;         /* how many parted here */
    uint64_t values;          /* different texts seen there, 9 = more than 8 */
    uint64_t lost_tokens;     /* behind it and alike, estimated from bytes */
};

struct kvc_trace {
    uint32_t block_tokens; /* 0 when nothing carries ids */
    uint32_t n_segments;
    uint64_t n_requests;
    bool objects; /* a cache log: each request is one object, its tokens mean nothing */

    /* Requests, arrival ascending, input order kept among equals. First arrival is 0. */
    uint64_t *arrival_ns;
    uint32_t *input_tokens;
    uint32_t *output_tokens; /* 0 where unknown */
    uint32_t *prompt_seg; /* KVC_SEG_NONE: no ids, reuse unknown (or shorter than a block) */
    uint32_t *output_seg; /* end of the known output's path, prompt_seg or NONE when unknown.
                             Its full blocks extend those of the prompt. NULL: none known */
    uint32_t *session;    /* dense, KVC_ID_NONE without; NULL: no row has one */
    uint64_t *think_ns;   /* pause after the session's previous turn ended; KVC_TIME_NONE; NULL */
    uint32_t *tenant;     /* index into tenant_names; NULL: one tenant */
    uint32_t *model;      /* index into model_names; NULL: not stated */
    uint8_t *output_unknown; /* 1: the log doesn't say how much; NULL: it always does */
    uint8_t *row_status;  /* enum kvc_row_status; NULL: all fine */
    uint32_t *cached_tokens; /* of the prompt, as the serving system stated; KVC_ID_NONE without;
                                NULL: no row says so. For comparison only */

    /* Segments in node order: parents come before children. */
    uint32_t *seg_parent; /* KVC_SEG_NONE = root */
    uint32_t *seg_len;    /* blocks */
    uint32_t *seg_depth;  /* blocks above it on its path */
    uint32_t *seg_draw;   /* hash of its first block, by which a sample draws it; in a sample the
                             number of the sample it is in, or KVC_SAMPLE_TRUNK. NULL: not kept */
    struct kvc_sample_totals sample; /* all 0 where the trace is all of a log */

    uint32_t n_breaks; /* where texts part, most lost tokens first */
    struct kvc_break *breaks;
    uint64_t compared_prompts; /* with a text to compare with; 0: the log held no texts */

    uint32_t n_sessions, n_tenants, n_models;
    char **tenant_names, **model_names;
    char digest[24];

    struct kvc_import_report *report; /* of its import, without shown[]; NULL: not known */

    /* Where the import forgot prefixes (docs/import.md); all 0 where it did not. */
    uint64_t forget_ns, forgotten_blocks, unjudged_tokens;

    struct kvc_mapped_column mapped[KVC_TRACE_COLUMNS];
    uint32_t n_mapped;
};

/* The time between arrivals that come in batches, 0 where they don't. distinct: arrival times. */
uint64_t kvc_trace_batch_period(const struct kvc_trace *t, uint64_t distinct);

/* Blocks a request brings ids for, and how many of them are full (the rest, at most one, is a
 * partial tail). */
static inline uint32_t kvc_trace_blocks(const struct kvc_trace *t, uint64_t request)
{
    uint32_t s = t->prompt_seg[request];
    return s == KVC_SEG_NONE ? 0 : t->seg_depth[s] + t->seg_len[s];
}

static inline uint32_t kvc_trace_full_blocks(const struct kvc_trace *t, uint64_t request)
{
    uint32_t n = kvc_trace_blocks(t, request);
    uint32_t full = t->block_tokens ? t->input_tokens[request] / t->block_tokens : 0;
    return n < full ? n : full;
}

static inline bool kvc_trace_output_known(const struct kvc_trace *t, uint64_t request)
{
    return !t->output_unknown || !t->output_unknown[request];
}

/* Segments on the path that ends at seg, and the path itself root first into path[], which must
 * have room for that many. */
uint32_t kvc_trace_path_length(const struct kvc_trace *t, uint32_t seg);
uint32_t kvc_trace_path(const struct kvc_trace *t, uint32_t seg, uint32_t *path);

/* The column (a pointer in t, already set) is mapped bytes long; 0: it is memory. */
void kvc_trace_keep(struct kvc_trace *t, void *column, size_t mapped);
/* Frees a column (a T **) and sets it to NULL. */
void kvc_trace_drop(struct kvc_trace *t, void *column);

/* Whether a regular file is a .kvt, an archive, or begins like a log of a known format. */
bool kvc_trace_recognised(const char *path);

#endif
