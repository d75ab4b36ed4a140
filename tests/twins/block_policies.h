/* SPDX-License-Identifier: Apache-2.0
 * Cache policies block by block, as published and nothing else: what the engine by segments is
 * held against. A request looks up its leading run, then touches each of its blocks once. */
#ifndef KVC_TESTS_BLOCK_POLICIES_H
#define KVC_TESTS_BLOCK_POLICIES_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_EXPIRED 0x80000000u

struct block_option {
    const char *name;
    double value;
};

struct block_log {
    uint32_t n_requests, n_blocks; /* blocks are numbered 0 .. n_blocks - 1 */
    const uint32_t *const *path;   /* by request, root first */
    const uint32_t *length;
    const uint64_t *now_ns;        /* by request; NULL: all 0 */
    const uint32_t *session, *tenant; /* by request */
    uint32_t n_options;
    const struct block_option *option; /* what is not given has its default */
    const char *admission; /* NULL: all is stored */
    uint32_t block_tokens; /* for the two that go by tokens; */
    const uint32_t *tokens; /* of prompts, by request */
    uint32_t n_admission_options;
    const struct block_option *admission_option;
    const uint32_t *segment_end; /* by block: how deep the last block of its segment is, + 1 */
    uint32_t *left_by; /* NULL, or by block, 0 at first: the request, from 1, that it left for last,
                          and BLOCK_EXPIRED more when it was too old */
    /* NULL, or called between a request's lookup and its touches. */
    void (*looked)(void *user, uint32_t request, uint32_t run);
    void *user;
};

struct block_counts {
    uint64_t set, access; /* resident anywhere at lookup; found at the moment of touching */
};

/* leaf_first: touch order; runs[n_requests] gets the leading runs. */
struct block_counts block_policy_run(const struct block_log *log, const char *policy,
                                     bool leaf_first, uint64_t capacity, uint32_t *runs);

#endif
