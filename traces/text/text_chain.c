/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/text/text_chain.h"

#include "base/alloc.h"

/* What a hash is of; part of its key, so that no text can pass for a mark. */
enum { OF_TEXT, OF_MARK, OF_STEP, OF_TAIL };

static uint64_t hash_words(const struct kvc_text_cut *cut, uint64_t what, uint64_t a, uint64_t b,
                           uint64_t c)
{
    struct kvc_sip s;
    kvc_sip_start(&s, cut->k0, cut->k1 ^ what);
    kvc_sip_absorb(&s, a);
    kvc_sip_absorb(&s, b);
    kvc_sip_absorb(&s, c);
    s.n = 24;
    return kvc_sip_end(&s);
}

uint64_t kvc_text_byte_weight(double bytes_per_token)
{
    double r = !(bytes_per_token > 0x1p-10) ? 0x1p-10
               : bytes_per_token > 0x1p20   ? 0x1p20
                                            : bytes_per_token;
    /* Rounded up: R bytes are a token, not a hair less. */
    double weight = (double)KVC_TOKEN_UNIT / r;
    uint64_t whole = (uint64_t)weight;
    return whole + ((double)whole < weight);
}

void kvc_chain_start(struct kvc_text_chain *c, const struct kvc_text_cut *cut)
{
    c->cut = *cut;
    c->at = 0;
    c->block_end = cut->block_tokens * KVC_TOKEN_UNIT;
    c->state = hash_words(cut, OF_STEP, cut->block_tokens, cut->byte_weight, 0);
    c->open = c->moved = c->failed = false;
    c->n_ids = 0;
}

static void open_run(struct kvc_text_chain *c)
{
    kvc_sip_start(&c->run, c->cut.k0, c->cut.k1 ^ OF_TEXT);
    kvc_sip_absorb(&c->run, c->state);
    c->run.n = 8;
    c->open = c->moved = true;
}

static void close_run(struct kvc_text_chain *c)
{
    if (c->open)
        c->state = kvc_sip_end(&c->run);
    c->open = false;
}

/* A block is complete: the state so far is its id. */
static void close_block(struct kvc_text_chain *c)
{
    close_run(c);
    if (!c->moved) /* in the middle of a mark */
        c->state = hash_words(&c->cut, OF_STEP, c->state, c->n_ids, 1);
    c->moved = false;
    c->block_end += c->cut.block_tokens * KVC_TOKEN_UNIT;
    if (c->failed || !kvc_grow((void **)&c->ids, &c->cap, c->n_ids + 1, sizeof(*c->ids))) {
        c->failed = true;
        return;
    }
    c->ids[c->n_ids++] = c->state;
}

void kvc_chain_bytes(struct kvc_text_chain *c, const char *text, size_t n)
{
    uint64_t weight = c->cut.byte_weight;
    while (n) {
        if (!c->open)
            open_run(c);
        uint64_t fit = (c->block_end - c->at + weight - 1) / weight;
        size_t take = fit < n ? (size_t)fit : n;
        kvc_sip_bytes(&c->run, text, take);
        c->at += take * weight;
        text += take;
        n -= take;
        while (c->at >= c->block_end) /* more than once where a byte weighs more than a block */
            close_block(c);
    }
}

void kvc_chain_mark(struct kvc_text_chain *c, uint64_t tag, uint64_t value, uint64_t units)
{
    close_run(c);
    c->state = hash_words(&c->cut, OF_MARK, c->state, tag, value);
    c->moved = true;
    c->at += units;
    while (c->at >= c->block_end && !c->failed)
        close_block(c);
}

uint64_t kvc_chain_state(const struct kvc_text_chain *c)
{
    return c->open ? kvc_sip_end(&c->run) : c->state;
}

uint64_t kvc_chain_tail(const struct kvc_text_cut *cut, uint64_t of, uint32_t tokens)
{
    return hash_words(cut, OF_TAIL, of, tokens, 2);
}
