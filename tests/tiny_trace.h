/* SPDX-License-Identifier: Apache-2.0
 * Small traces made by hand or at random, built without the library's own forest. */
#ifndef KVC_TESTS_TINY_TRACE_H
#define KVC_TESTS_TINY_TRACE_H

#include "traces/trace.h"

#define TINY_BLOCKS 64
#define TINY_TENANTS 4

struct tiny_row {
    uint64_t time_ns;
    uint32_t input_tokens, output_tokens;
    uint32_t session;            /* KVC_ID_NONE without */
    uint64_t think_ns;           /* KVC_TIME_NONE without */
    bool failed;                 /* got no answer in the log */
    uint32_t tenant;             /* below TINY_TENANTS */
    uint32_t n_ids, n_out;       /* n_out 0: output unknown */
    uint64_t ids[TINY_BLOCKS];   /* of the prompt's blocks, a partial last one included */
    uint64_t out[TINY_BLOCKS];   /* of the full blocks of prompt + output */
};

/* A prompt of blocks of 4 tokens, each named by a char; tokens beyond them are an own partial tail.
 * One token comes out. */
struct tiny_row tiny_row(uint64_t time_ns, uint32_t tokens, const char *blocks);

/* Rows in time order; a block is its id and all ids before it. With whole_segments the segments
 * are maximal, else each block is its own. Release with tiny_trace_free. */
struct kvc_trace *tiny_trace(const struct tiny_row *rows, uint32_t n, uint32_t block_tokens,
                             bool whole_segments);
/* Gives a trace the rows' tenants, "t0" and so on. */
void tiny_trace_tenants(struct kvc_trace *trace, const struct tiny_row *rows, uint32_t n);
void tiny_trace_free(struct kvc_trace *trace);

#endif
