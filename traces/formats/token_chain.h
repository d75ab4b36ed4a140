/* SPDX-License-Identifier: Apache-2.0
 * Block ids of a prompt of which every token is known, exactly: an id stands for all tokens from
 * the prompt's start to the block's end. */
#ifndef KVC_TRACES_TOKEN_CHAIN_H
#define KVC_TRACES_TOKEN_CHAIN_H

#include "base/rng.h"

#include <stddef.h>

/* A state that takes in one token after the other. Ids are told apart only among blocks that
 * follow the same block, so k of them that differ are mixed up with odds of about b k^2 / 2^65 for
 * blocks of b tokens: one in two million for a million prompts that begin alike, at 16. */
struct kvc_token_chain { /* all zero but block at the start */
    uint64_t state;
    uint32_t block;    /* tokens of one */
    uint32_t in_block; /* tokens of the one that is not complete */
    size_t blocks;     /* complete ones */
};

static inline void kvc_token_chain_add(struct kvc_token_chain *c, uint64_t token, uint64_t *ids)
{
    c->state = kvc_mix64(c->state ^ kvc_mix64(token + 1));
    if (++c->in_block == c->block) {
        ids[c->blocks++] = c->state;
        c->in_block = 0;
    }
}

/* The id of the last block, which is not complete: never that of a full one. */
static inline uint64_t kvc_token_chain_tail(const struct kvc_token_chain *c)
{
    return kvc_mix64(c->state + c->in_block);
}

#endif
