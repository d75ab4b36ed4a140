/* SPDX-License-Identifier: Apache-2.0
 * One prompt's blocks: text by weight, marks, and what is known of lengths from the log. */
#include "traces/text/text_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/import/alignment.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

#define LONGEST ((uint32_t)1 << 24) /* tokens; no model's context comes near */

/* Tags of marks. A frame's value is its role, a kind's is the kind. */
enum { TAG_FRAME = 1, TAG_KIND, TAG_MEDIA, TAG_UNKNOWN, TAG_GAP, TAG_AROUND };

struct cutter {
    struct kvc_import *im;
    struct kvc_text_import *t;
    struct kvc_text_chain *c;
    uint64_t gaps;     /* units known from lengths stated earlier, not estimated */
    uint64_t text_end; /* position where the prompt's text ended */
    bool open_answer;  /* the last assistant's message began where an earlier prompt ended .. */
    uint64_t answer_begin, answer_end; /* .. here; and ended here, 0 = it didn't yet */
    struct kvc_text_end earlier;       /* .. that prompt */
};

/* ---- ends of prompts ---- */

static struct kvc_text_end *slot_of(struct kvc_text_end *table, size_t mask, uint64_t state)
{
    size_t i = (size_t)state & mask;
    while (table[i].used && table[i].state != state)
        i = (i + 1) & mask;
    return &table[i];
}

static const struct kvc_text_end *find_end(const struct kvc_text_ends *e, uint64_t state)
{
    const struct kvc_text_end *end = e->young ? slot_of(e->young, e->mask, state) : NULL;
    if (end && end->used)
        return end;
    end = e->old ? slot_of(e->old, e->old_mask, state) : NULL;
    return end && end->used ? end : NULL;
}

static bool grow_ends(struct kvc_text_ends *e)
{
    size_t mask = e->young ? e->mask * 2 + 1 : 1023;
    struct kvc_text_end *bigger = kvc_calloc(mask + 1, sizeof(*bigger));
    if (!bigger)
        return false;
    for (size_t i = 0; e->young && i <= e->mask; i++)
        if (e->young[i].used)
            *slot_of(bigger, mask, e->young[i].state) = e->young[i];
    kvc_free(e->young);
    e->young = bigger;
    e->mask = mask;
    return true;
}

/* False: no memory. */
static bool put_end(struct kvc_text_ends *e, const struct kvc_text_end *end)
{
    if (e->n == KVC_TEXT_ENDS) {
        kvc_free(e->old);
        e->old = e->young;
        e->old_mask = e->mask;
        e->young = NULL;
        e->n = 0;
    }
    if ((!e->young || e->n * 2 > e->mask) && !grow_ends(e))
        return false;
    struct kvc_text_end *slot = slot_of(e->young, e->mask, end->state);
    e->n += !slot->used;
    *slot = *end;
    slot->used = true;
    return true;
}

/* ---- pieces ---- */

static uint64_t digest_word(const struct kvc_prompt *p, const struct kvc_piece *piece, size_t at)
{
    uint64_t w = 0;
    memcpy(&w, p->text + piece->at + at, sizeof(w));
    return w;
}

static enum kvc_status add_text(struct cutter *k, const char *text, size_t n,
                                struct kvc_error *err)
{
    struct kvc_text_import *t = k->t;
    if (!t->encoder) {
        kvc_chain_bytes(k->c, text, n);
        return KVC_OK;
    }
    t->tokens.n = 0;
    enum kvc_status status = kvc_encode(t->encoder, text, n, &t->tokens, NULL, err);
    if (status == KVC_OK)
        kvc_chain_bytes(k->c, (const char *)t->tokens.v, t->tokens.n * sizeof(*t->tokens.v));
    return status;
}

/* What a tokenizer puts before a text that no chat template frames: "<s>", say. */
static void add_around(struct cutter *k)
{
    const uint32_t *before, *after;
    size_t n_before, n_after;
    kvc_tokenizer_around(k->t->tokenizer, &before, &n_before, &after, &n_after);
    if (n_before)
        kvc_chain_mark(k->c, TAG_AROUND, before[0], n_before * KVC_TOKEN_UNIT);
}

/* The tokens the serving system counted beyond the estimate come where the text ends. */
static void add_gap(struct cutter *k, uint64_t tokens)
{
    uint64_t end = tokens * KVC_TOKEN_UNIT;
    if (end <= k->c->at)
        return;
    k->gaps += end - k->c->at;
    kvc_chain_mark(k->c, TAG_GAP, 0, end - k->c->at);
}

/* A message begins. Where an assistant's message follows a prompt seen earlier, that prompt's
 * stated length corrects the position. */
static void add_frame(struct cutter *k, const struct kvc_piece *piece, bool last)
{
    if (k->open_answer && !k->answer_end)
        k->answer_end = k->c->at;
    kvc_chain_mark(k->c, TAG_FRAME, piece->role, piece->tokens * KVC_TOKEN_UNIT);
    if (piece->role != KVC_ROLE_ASSISTANT || last)
        return;
    const struct kvc_text_end *end = find_end(&k->t->ends, kvc_chain_state(k->c));
    if (!end)
        return;
    if (end->exact)
        add_gap(k, end->tokens);
    k->open_answer = true;
    k->answer_end = 0;
    k->answer_begin = k->c->at;
    k->earlier = *end;
}

static enum kvc_status add_piece(struct cutter *k, const struct kvc_prompt *p, size_t i,
                                 size_t n, struct kvc_error *err)
{
    const struct kvc_piece *piece = &p->pieces[i];
    uint64_t units = piece->tokens * KVC_TOKEN_UNIT;
    switch (piece->kind) {
    case KVC_PIECE_FRAME:
        add_frame(k, piece, i + 1 == n);
        return KVC_OK;
    case KVC_PIECE_MEDIA:
    case KVC_PIECE_UNKNOWN:
        kvc_chain_mark(k->c, piece->kind == KVC_PIECE_MEDIA ? TAG_MEDIA : TAG_UNKNOWN,
                       digest_word(p, piece, 0), 0);
        kvc_chain_mark(k->c, TAG_KIND, digest_word(p, piece, 8), units);
        return KVC_OK;
    case KVC_PIECE_TEXT:
        if (i == 0 || p->pieces[i - 1].kind == KVC_PIECE_FRAME)
            return add_text(k, p->text + piece->at, piece->n, err);
        break;
    default:
        break;
    }
    kvc_chain_mark(k->c, TAG_KIND, piece->kind, units);
    return add_text(k, p->text + piece->at, piece->n, err);
}

static enum kvc_status add_pieces(struct cutter *k, const struct kvc_prompt *p, size_t from,
                                  size_t to, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    for (size_t i = from; i < to && status == KVC_OK; i++)
        status = add_piece(k, p, i, to, err);
    return status == KVC_OK && k->c->failed ? kvc_fail_nomem(err) : status;
}

/* ---- lengths ---- */

static uint32_t whole_tokens(uint64_t units)
{
    uint64_t tokens = units / KVC_TOKEN_UNIT;
    return tokens > KVC_TOKENS_MAX ? KVC_TOKENS_MAX : (uint32_t)tokens;
}

static void count_error(struct kvc_text_import *t, const struct kvc_log_row *row, uint64_t estimate)
{
    uint64_t stated = row->input_tokens * KVC_TOKEN_UNIT;
    uint64_t off = stated > estimate ? stated - estimate : estimate - stated;
    double share = (double)off / (double)stated * KVC_TEXT_ERROR_STEPS;
    t->error[share < KVC_TEXT_ERROR_STEPS ? (size_t)share : KVC_TEXT_ERROR_STEPS]++;
    t->stated_rows++;
    t->input_tokens += row->input_tokens;
}

static void reconcile(struct cutter *k, struct kvc_log_row *row)
{
    struct kvc_text_import *t = k->t;
    uint64_t stated = row->input_tokens * KVC_TOKEN_UNIT;
    count_error(t, row, k->c->at - k->gaps);
    if (stated > k->c->at) {
        uint64_t missing = (stated - k->c->at + KVC_TOKEN_UNIT / 2) / KVC_TOKEN_UNIT;
        t->padded_tokens += missing;
        t->padded_rows += missing > 0;
        t->short_rows += missing > row->input_tokens / 2;
        add_gap(k, row->input_tokens);
    } else {
        uint64_t beyond = (k->c->at - stated + KVC_TOKEN_UNIT / 2) / KVC_TOKEN_UNIT;
        t->cut_tokens += beyond;
        t->cut_rows += beyond > 0;
    }
}

/* ---- answers ---- */

/* Whether an answer of that many shown tokens is all of what was generated: thinking that isn't
 * shown makes the count much larger than the text. */
static bool whole_answer(uint64_t shown_units, uint32_t generated)
{
    return generated == KVC_ID_NONE ||
           generated * KVC_TOKEN_UNIT <= 2 * shown_units + 16 * KVC_TOKEN_UNIT;
}

/* The first bytes of a prompt without messages; where a tokenizer cuts, their share of it. */
static uint64_t shown_units(const struct cutter *k, const struct kvc_prompt *p, size_t bytes)
{
    uint64_t all = 0;
    for (size_t i = 0; i < p->n_input; i++)
        all += p->pieces[i].n;
    if (!k->t->encoder || !all)
        return bytes * k->c->cut.byte_weight;
    return (uint64_t)((double)k->text_end * ((double)bytes / (double)all));
}

/* Up to where the prompt shows what the session's turn before generated; 0 = it doesn't. */
static void note_shown(struct cutter *k, const struct kvc_prompt *p, struct kvc_log_row *row,
                       const struct kvc_text_facts *facts)
{
    row->shown_tokens = 0;
    if (!p->chat && facts->shown_bytes) {
        uint32_t shown = whole_tokens(shown_units(k, p, facts->shown_bytes));
        row->shown_tokens = shown < row->input_tokens ? shown : row->input_tokens;
        k->t->answers_carried++;
    }
    if (!k->open_answer)
        return;
    uint64_t end = k->answer_end ? k->answer_end : k->text_end;
    if (!whole_answer(end - k->answer_begin, k->earlier.output)) {
        k->t->answers_stripped++;
        return;
    }
    uint32_t shown = whole_tokens(end);
    k->t->answers_carried++;
    row->shown_tokens = shown < row->input_tokens ? shown : row->input_tokens;
}

static enum kvc_status add_answer(struct cutter *k, const struct kvc_prompt *p,
                                  struct kvc_log_row *row, const struct kvc_text_facts *facts,
                                  bool *known, struct kvc_error *err)
{
    uint64_t from = k->c->at;
    bool hidden = facts->thinking_tokens && facts->thinking_tokens != KVC_ID_NONE;
    for (size_t i = p->n_input; i < p->n_pieces; i++)
        hidden = hidden || p->pieces[i].kind == KVC_PIECE_THINKING;
    enum kvc_status status = add_pieces(k, p, p->n_input, p->n_pieces, err);
    if (status != KVC_OK || p->n_pieces == p->n_input)
        return status;
    if (!facts->output_stated && !facts->output_limit)
        row->output_tokens = whole_tokens(k->c->at - from);
    *known = p->chat && !hidden && row->output_tokens &&
             whole_answer(k->c->at - from, facts->output_stated ? row->output_tokens : KVC_ID_NONE);
    k->t->answers_shown += *known;
    return KVC_OK;
}

/* ---- the row ---- */

/* How much prompts share to the token, whatever the block. What a tokenizer refuses was refused
 * before. */
static bool watch_alignment(const struct cutter *row_cutter, const struct kvc_prompt *p,
                            const struct kvc_log_row *row, bool answer_known)
{
    struct kvc_text_import *t = row_cutter->t;
    struct cutter k = { .im = row_cutter->im, .t = t, .c = &t->fine };
    struct kvc_text_cut cut = row_cutter->c->cut;
    size_t tokens = (size_t)(row_cutter->c->at / KVC_TOKEN_UNIT) + 1, prompt;
    if (!kvc_alignment_wants(k.im, tokens))
        return true;
    cut.block_tokens = 1;
    kvc_chain_start(k.c, &cut);
    if (t->encoder && !p->chat)
        add_around(&k);
    enum kvc_status status = add_pieces(&k, p, 0, p->n_input, NULL);
    prompt = k.c->n_ids;
    if (status == KVC_OK && answer_known)
        status = add_pieces(&k, p, p->n_input, p->n_pieces, NULL);
    return !k.c->failed && (status != KVC_OK ||
                            kvc_alignment_row(k.im, row, k.c->ids, prompt, k.c->n_ids));
}

/* The prompt's ids, and behind them those of prompt and answer where that is known. full: blocks
 * of the prompt that are whole; partial: the chain's state at the end of its input. */
static bool set_ids(struct kvc_text_import *t, struct kvc_log_row *row, uint64_t partial,
                    size_t at_end, bool answer_known)
{
    const struct kvc_text_chain *c = &t->chain;
    size_t full = row->input_tokens / c->cut.block_tokens;
    uint32_t rest = row->input_tokens % c->cut.block_tokens;
    size_t known = answer_known ? (size_t)(((uint64_t)row->input_tokens + row->output_tokens - 1) /
                                           c->cut.block_tokens)
                                : 0;
    known = known < c->n_ids ? known : c->n_ids;
    size_t n = full + (rest != 0);
    if (!kvc_grow((void **)&t->path, &t->path_cap, n + known + 1, sizeof(*t->path)))
        return false;
    if (full)
        memcpy(t->path, c->ids, full * sizeof(*t->path));
    if (rest)
        t->path[full] = kvc_chain_tail(&c->cut, full < at_end ? c->ids[full] : partial, rest);
    row->ids = t->path;
    row->n_ids = n;
    row->hashed = true;
    if (known > full) {
        memcpy(t->path + n, c->ids, known * sizeof(*t->path));
        row->output_ids = t->path + n;
        row->n_output_ids = known;
    }
    return true;
}

static enum kvc_status too_long(struct kvc_import *im, const struct kvc_log_row *row,
                                struct kvc_error *err)
{
    struct kvc_error bad;
    kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), kvc_import_line_number(im), NULL,
                "a prompt of %u tokens; no model takes more than %u", row->input_tokens, LONGEST);
    return kvc_import_bad(im, &bad, err);
}

/* A tokenizer may give up on a text; that is one row's fault. */
static enum kvc_status not_cut(struct kvc_import *im, enum kvc_status status,
                               const struct kvc_error *why, struct kvc_error *err)
{
    struct kvc_error bad;
    if (status == KVC_ERR_LIMIT) {
        kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), kvc_import_line_number(im), NULL,
                    "%.400s", why->text);
        return kvc_import_bad(im, &bad, err);
    }
    if (err)
        *err = *why;
    return status;
}

/* A row whose prompt is not in the log. */
static enum kvc_status without_text(struct kvc_import *im, const struct kvc_log_row *row,
                                    const struct kvc_text_facts *facts, struct kvc_error *err)
{
    struct kvc_error bad;
    if (row->input_tokens)
        return kvc_import_row(im, row, facts->odd, err);
    kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), kvc_import_line_number(im), NULL,
                "neither a prompt's text nor its length is in the row");
    return kvc_import_bad(im, &bad, err);
}

enum kvc_status kvc_text_cut_row(struct kvc_import *im, struct kvc_text_import *t,
                                 const struct kvc_prompt *p, struct kvc_log_row *row,
                                 const struct kvc_text_facts *facts, uint64_t byte_weight,
                                 struct kvc_error *err)
{
    struct cutter k = { .im = im, .t = t, .c = &t->chain };
    struct kvc_text_cut cut = { t->key[0], t->key[1], byte_weight, kvc_import_block_tokens(im) };
    struct kvc_error why = { 0 };
    bool answer_known = false;
    if (p->n_pieces == p->n_input && !facts->output_stated && !facts->output_limit &&
        row->status != KVC_ROW_FAILED)
        row->output_tokens = KVC_TOKENS_UNKNOWN;
    if (!p->n)
        return without_text(im, row, facts, err);
    kvc_chain_start(k.c, &cut);
    if (t->encoder && !p->chat)
        add_around(&k);
    enum kvc_status status = add_pieces(&k, p, 0, p->n_input, &why);
    if (status != KVC_OK)
        return not_cut(im, status, &why, err);
    k.text_end = k.c->at;
    uint64_t state = kvc_chain_state(k.c);
    if (!facts->input_stated) {
        row->input_tokens = whole_tokens(k.c->at);
        if (!row->input_tokens) { /* less than one: the chain must reach as far as the length */
            row->input_tokens = 1;
            add_gap(&k, 1);
        }
        t->estimated_rows++;
        t->media_rows += p->media_unknown;
    }
    if (row->input_tokens > LONGEST)
        return too_long(im, row, err);
    if (facts->input_stated && row->input_tokens)
        reconcile(&k, row);
    note_shown(&k, p, row, facts);
    uint64_t partial = kvc_chain_state(k.c);
    size_t at_end = k.c->n_ids;
    if (status == KVC_OK)
        status = add_answer(&k, p, row, facts, &answer_known, &why);
    if (status != KVC_OK)
        return not_cut(im, status, &why, err);
    if (p->chat && !put_end(&t->ends, &(struct kvc_text_end){
                       .state = state, .tokens = row->input_tokens, .exact = facts->input_stated,
                       .output = facts->output_stated ? row->output_tokens : KVC_ID_NONE }))
        return kvc_fail_nomem(err);
    t->chats += p->chat;
    t->texts += !p->chat;
    if (!set_ids(t, row, partial, at_end, answer_known) ||
        !watch_alignment(&k, p, row, answer_known))
        return kvc_fail_nomem(err);
    return kvc_import_row(im, row, facts->odd, err);
}
