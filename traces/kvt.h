/* SPDX-License-Identifier: Apache-2.0
 * The .kvt file: a trace as checksummed columns.
 *
 *   magic (8 bytes), version u32, zero u32
 *   columns, each one zstd frame with a content checksum
 *   index: one 64-byte entry a column
 *   footer: offset and entries of the index u64 u64, digest of header and index u64, magic
 *
 * All numbers little-endian. Readers skip columns whose names they don't know, so that later
 * versions may add some without a new version number; the version changes when an old reader
 * would get a wrong result. Columns of version 1 (absent: no row has one):
 *   meta                 u64   block_tokens, requests, segments, sessions, tenants, models,
 *                              objects
 *   request.arrival_ns   u64 as differences; request.think_ns u64
 *   request.input_tokens, output_tokens, prompt_segment, output_segment, session, namespace,
 *   model, cached_tokens u32;  request.status, output_unknown u8
 *   segment.parent, segment.length u32
 *   segment.draw         u32   hash of the first block; of a sample, its number or 2^32 - 1
 *   sample               u64   one in so many, seed, requests, input and output tokens, block
 *                              touches, their tokens, blocks below the cuts and their squares:
 *                              where the rows are a sample
 *   text.breaks          u64   as of break_column.h
 *   import.numbers       u64   as of report_column.h; import.texts u8 with it
 *   names.namespace, names.model  bytes, each name ending in NUL
 *   forgotten            u64   forget_ns, blocks forgotten, tokens that can't be judged: where
 *                              prefixes were forgotten
 *   digest               bytes, 16 hex digits
 * Names kept for later: request.parent (the turn before), request.service_class. */
#ifndef KVC_TRACES_KVT_H
#define KVC_TRACES_KVT_H

#include "traces/parse/stream.h"
#include "traces/trace.h"

#define KVC_KVT_VERSION 1
#define KVC_KVT_HEADER 16
#define KVC_KVT_ENTRY 64
#define KVC_KVT_FOOTER 32
#define KVC_KVT_NAME 24

enum kvc_kvt_type { KVC_KVT_U8 = 1, KVC_KVT_U32 = 2, KVC_KVT_U64 = 3, KVC_KVT_U64_DELTA = 4 };

/* Reads the whole of an open .kvt. */
enum kvc_status kvc_kvt_read(struct kvc_trace **out, struct kvc_stream *stream, const char *path,
                             struct kvc_error *err);

/* Little-endian numbers in memory. Without loops, so that compilers see one load or store. */
static inline void kvc_put_u32(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
    p[2] = (unsigned char)(v >> 16);
    p[3] = (unsigned char)(v >> 24);
}

static inline uint32_t kvc_get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void kvc_put_u64(unsigned char *p, uint64_t v)
{
    kvc_put_u32(p, (uint32_t)v);
    kvc_put_u32(p + 4, (uint32_t)(v >> 32));
}

static inline uint64_t kvc_get_u64(const unsigned char *p)
{
    return kvc_get_u32(p) | (uint64_t)kvc_get_u32(p + 4) << 32;
}

#endif
