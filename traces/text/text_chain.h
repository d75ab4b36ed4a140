/* SPDX-License-Identifier: Apache-2.0
 * Cuts a stream of text and marks into blocks of tokens and gives each block an id that stands
 * for all from the stream's start to the block's end (docs/text.md). Texts that begin alike have
 * equal ids up to the block before the first difference, and no others. */
#ifndef KVC_TRACES_TEXT_CHAIN_H
#define KVC_TRACES_TEXT_CHAIN_H

#include "base/siphash.h"

#include <stdbool.h>

#define KVC_TOKEN_UNIT ((uint64_t)1 << 32) /* positions count in these parts of a token */

struct kvc_text_cut {
    uint64_t k0, k1;
    uint64_t byte_weight; /* of one byte, in KVC_TOKEN_UNIT; at least 1 */
    uint32_t block_tokens;
};

struct kvc_text_chain { /* all zero = empty; kvc_free(ids) at the end */
    struct kvc_text_cut cut;
    uint64_t at, block_end; /* positions */
    uint64_t state;         /* stands for all up to the open run of text */
    struct kvc_sip run;
    bool open, moved;       /* a run is open; something came since the last block's end */
    bool failed;            /* no memory: ids are not to be used */
    uint64_t *ids;          /* of the blocks that are complete */
    size_t n_ids, cap;
};

/* Bytes for one token: below 2^-10 and beyond 2^20 are cut off. */
uint64_t kvc_text_byte_weight(double bytes_per_token);
void kvc_chain_start(struct kvc_text_chain *c, const struct kvc_text_cut *cut);
/* How text is split over calls makes no difference. */
void kvc_chain_bytes(struct kvc_text_chain *c, const char *text, size_t n);
/* Something that is not text, told apart by tag and value, and weighs units. */
void kvc_chain_mark(struct kvc_text_chain *c, uint64_t tag, uint64_t value, uint64_t units);
/* Stands for all so far; changes nothing. */
uint64_t kvc_chain_state(const struct kvc_text_chain *c);
/* Id of a last block of which only the first tokens (at least 1, not all) are in a prompt. of is
 * the id of the whole block, or the chain's state where the block isn't complete. */
uint64_t kvc_chain_tail(const struct kvc_text_cut *cut, uint64_t of, uint32_t tokens);

#endif
