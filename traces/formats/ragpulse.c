/* SPDX-License-Identifier: Apache-2.0
 * RAGPulse JSON lines (flashserve/RAGPulse): requests of which each id names a piece of the prompt,
 * in five lists, and the files that state how many tokens each piece has. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "traces/formats/token_chain.h"
#include "traces/import/recent.h"
#include "traces/import/sniff.h"
#include "traces/parse/fields.h"

#include <stdio.h>
#include <string.h>

#define LISTS 5

/* In the order in which they stand in the prompt. */
static const struct {
    const char *list, *length_id;
} lists[LISTS] = {
    { "sys_prompt", "sys_prompt_id" },
    { "passages_ids", "passage_id" },
    { "history", "history_id" },
    { "web_search", "web_search_id" },
    { "user_input", "user_input_id" },
};

struct piece {
    uint64_t list, id;
};

struct pieces { /* kept over the files */
    struct kvc_intern lengths_of; /* pieces with a length */
    uint32_t *tokens;
    size_t cap;
    struct kvc_recent paths; /* of uint64_t: pieces behind the pieces before, numbered from 1, for
                                logs without lengths */
    uint64_t n_paths, rows, met, again;
};

struct reader {
    struct pieces *kept;
    struct kvc_id_buffer ids, blocks;
    struct piece *prompt;
    size_t n_prompt, prompt_cap;
};

static void clear_pieces(void *kept)
{
    struct pieces *p = kept;
    kvc_intern_clear(&p->lengths_of);
    kvc_recent_clear(&p->paths);
    kvc_free(p->tokens);
}

/* ---- lengths of pieces ---- */

/* Whose length a row of the other files states; LISTS: it is a request. */
static size_t length_list(const struct kvc_jval *root)
{
    size_t k = 0;
    if (!kvc_field_member(root, "token_length"))
        return LISTS;
    while (k < LISTS && !kvc_field_member(root, lists[k].length_id))
        k++;
    return k;
}

static enum kvc_status read_length(const struct kvc_place *at, const struct kvc_jval *root,
                                   size_t list, struct kvc_import *im, struct pieces *kept,
                                   struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_field_member(root, lists[list].length_id);
    struct piece piece = { .list = list };
    uint32_t tokens, number;
    enum kvc_status status = kvc_field_tokens(at, "token_length", root, 0, &tokens, err);
    if (status != KVC_OK)
        return status;
    if (!kvc_jval_u64(v, &piece.id))
        return kvc_field_wrong(at, lists[list].length_id, v, "a whole number is expected", err);
    size_t had = kept->lengths_of.n;
    if (!kvc_intern_get(&kept->lengths_of, (const char *)&piece, sizeof(piece), &number) ||
        !kvc_grow((void **)&kept->tokens, &kept->cap, kept->lengths_of.n, sizeof(*kept->tokens)))
        return kvc_fail_nomem(err);
    if (kept->lengths_of.n == had && kept->tokens[number] != tokens)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, "token_length",
                           "%u tokens, where an earlier row gives this piece %u", tokens,
                           kept->tokens[number]);
    kept->tokens[number] = tokens;
    kvc_import_tally(im, "rows that state the length of a piece");
    return KVC_OK;
}

/* ---- requests ---- */

static enum kvc_status read_prompt(const struct kvc_place *at, const struct kvc_jval *root,
                                   struct reader *r, struct kvc_error *err)
{
    const struct kvc_jval *object = kvc_field_member(root, "hash_ids");
    char field[40];
    size_t n;
    bool text = false;
    r->n_prompt = 0;
    if (!object)
        return KVC_OK;
    if (kvc_jval_kind(object) != KVC_JOBJECT)
        return kvc_field_wrong(at, "hash_ids", object, "an object of five lists is expected", err);
    for (size_t k = 0; k < LISTS; k++) {
        const struct kvc_jval *list = kvc_field_member(object, lists[k].list);
        if (!list)
            continue;
        snprintf(field, sizeof(field), "hash_ids.%s", lists[k].list);
        enum kvc_status status = kvc_field_ids(at, field, list, NULL, &r->ids, 0, &n, &text, err);
        if (status != KVC_OK)
            return status;
        if (!kvc_grow((void **)&r->prompt, &r->prompt_cap, r->n_prompt + n, sizeof(*r->prompt)))
            return kvc_fail_nomem(err);
        for (size_t i = 0; i < n; i++)
            r->prompt[r->n_prompt++] = (struct piece){ k, r->ids.v[i] };
    }
    return KVC_OK;
}

static enum kvc_status read_request(const struct kvc_place *at, const struct kvc_jval *root,
                                    struct kvc_import *im, struct reader *r,
                                    struct kvc_log_row *row, char number[3][24],
                                    struct kvc_error *err)
{
    const struct kvc_jval *time = kvc_field_member(root, "timestamp");
    enum kvc_status status = time ? KVC_OK : kvc_field_missing(at, "timestamp", err);
    if (status == KVC_OK)
        status = kvc_field_when(im, at, "timestamp", time, KVC_UNIT_S, &row->time_ns, err);
    if (status == KVC_OK)
        status = kvc_field_tokens(at, "input_length", root, 1, &row->input_tokens, err);
    if (status == KVC_OK)
        status = kvc_field_tokens(at, "output_length", root, 0, &row->output_tokens, err);
    if (status == KVC_OK)
        status = kvc_field_name(at, "session_id", root, number[0], &row->session, err);
    if (status == KVC_OK)
        status = kvc_field_chosen(im, at, root, number + 1, row, err);
    if (status == KVC_OK)
        status = read_prompt(at, root, r, err);
    return status;
}

/* ---- blocks ---- */

static uint64_t piece_key(const struct piece *p)
{
    return kvc_mix64(p->id ^ kvc_mix64(p->list + 0x72616770));
}

/* n tokens that seed and their number name. */
static void take(struct kvc_token_chain *c, uint64_t seed, uint64_t n, uint64_t *ids)
{
    for (uint64_t i = 0; i < n; i++)
        kvc_token_chain_add(c, seed + i, ids);
}

/* Cuts the prompt into blocks, every token of which is known by its piece and place in it. What the
 * pieces leave over of the prompt is taken as nobody else's. */
static enum kvc_status cut_blocks(const struct kvc_place *at, struct kvc_import *im,
                                  struct reader *r, struct kvc_log_row *row, struct kvc_error *err)
{
    struct kvc_token_chain c = { .block = kvc_import_block_tokens(im) };
    uint64_t taken = 0;
    size_t n = row->input_tokens / c.block + (row->input_tokens % c.block != 0);
    if (!kvc_grow((void **)&r->blocks.v, &r->blocks.cap, n, sizeof(*r->blocks.v)))
        return kvc_fail_nomem(err);
    for (size_t k = 0; k < r->n_prompt; k++) {
        uint32_t number;
        if (!kvc_intern_find(&r->kept->lengths_of, (const char *)&r->prompt[k],
                             sizeof(struct piece), &number)) {
            kvc_import_tally(im, "prompts with a piece of unknown length: from there on taken as "
                                 "never shared");
            break;
        }
        uint32_t tokens = r->kept->tokens[number];
        if (taken + tokens > row->input_tokens)
            return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, "input_length",
                               "%u tokens, fewer than its pieces have: %llu to the end of %s id "
                               "%llu", row->input_tokens, (unsigned long long)(taken + tokens),
                               lists[r->prompt[k].list].list,
                               (unsigned long long)r->prompt[k].id);
        take(&c, piece_key(&r->prompt[k]), tokens, r->blocks.v);
        taken += tokens;
    }
    if (taken < row->input_tokens) {
        kvc_import_tally(im, "prompts longer than their pieces together: the rest is taken as "
                             "never shared");
        take(&c, kvc_mix64(r->kept->rows ^ 0x6f776e), row->input_tokens - taken, r->blocks.v);
    }
    if (c.in_block)
        r->blocks.v[n - 1] = kvc_token_chain_tail(&c);
    row->ids = r->blocks.v;
    row->n_ids = n;
    return KVC_OK;
}

/* Without lengths: how many pieces come behind the same pieces as before. */
static bool count_pieces(struct reader *r)
{
    struct {
        uint64_t behind;
        struct piece piece;
    } step = { 0 };
    for (size_t k = 0; k < r->n_prompt; k++) {
        bool fresh;
        step.piece = r->prompt[k];
        uint64_t *number = kvc_recent_get(&r->kept->paths, (const char *)&step, sizeof(step),
                                          &fresh);
        if (!number)
            return false;
        if (fresh)
            *number = ++r->kept->n_paths;
        r->kept->met++;
        r->kept->again += !fresh;
        step.behind = *number;
    }
    return true;
}

static bool ids_of_pieces(struct reader *r, struct kvc_log_row *row)
{
    if (!kvc_grow((void **)&r->blocks.v, &r->blocks.cap, r->n_prompt, sizeof(*r->blocks.v)))
        return false;
    for (size_t k = 0; k < r->n_prompt; k++)
        r->blocks.v[k] = piece_key(&r->prompt[k]);
    row->ids = r->blocks.v;
    row->n_ids = r->n_prompt;
    return true;
}

static enum kvc_status identify(const struct kvc_place *at, struct kvc_import *im,
                                struct reader *r, struct kvc_log_row *row, struct kvc_error *err)
{
    row->unchained = true;
    if (r->kept->lengths_of.n)
        return cut_blocks(at, im, r, row, err);
    if (!count_pieces(r))
        return kvc_fail_nomem(err);
    if (!kvc_import_options_of(im)->block_tokens || !r->n_prompt)
        return KVC_OK;
    kvc_import_note(im, "each piece taken as one block of %u tokens, as --block-tokens says",
                    kvc_import_block_tokens(im));
    return ids_of_pieces(r, row) ? KVC_OK : kvc_fail_nomem(err);
}

/* ---- the format ---- */

static enum kvc_status one_row(struct kvc_import *im, void *user, const char *text, size_t n,
                               struct kvc_error *err)
{
    struct reader *r = user;
    struct kvc_place at = { kvc_import_file(im), kvc_import_line_number(im) };
    struct kvc_jval *root = NULL;
    struct kvc_log_row row = { .think_ns = KVC_TIME_NONE };
    struct kvc_error bad;
    char number[3][24];
    enum kvc_status status = kvc_row_parse(&root, text, n, &at, &bad);
    size_t list = status == KVC_OK ? length_list(root) : LISTS;
    bool request = status == KVC_OK && list == LISTS;
    if (list < LISTS && r->kept->rows) {
        kvc_json_free(root);
        return kvc_fail_at(err, KVC_ERR_INPUT, at.file, at.line, NULL,
                           "lengths of pieces behind the requests: name 1_sys_prompt.jsonl, "
                           "2_passages.jsonl and the like before 0_trace.jsonl");
    }
    if (list < LISTS)
        status = read_length(&at, root, list, im, r->kept, &bad);
    if (request)
        status = read_request(&at, root, im, r, &row, number, &bad);
    if (request && status == KVC_OK)
        status = identify(&at, im, r, &row, &bad);
    r->kept->rows += request;
    if (status != KVC_OK)
        status = kvc_import_bad(im, &bad, err);
    else if (request)
        status = kvc_import_row(im, &row, false, err);
    kvc_json_free(root);
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .kept = kvc_import_keep(im, sizeof(*r.kept), clear_pieces) };
    if (!r.kept)
        return kvc_fail_nomem(err);
    if (!r.kept->paths.clock)
        kvc_import_recent(im, &r.kept->paths, sizeof(uint64_t));
    enum kvc_status status = kvc_import_each_line(im, one_row, &r, err);
    kvc_free(r.ids.v);
    kvc_free(r.blocks.v);
    kvc_free(r.prompt);
    return status;
}

static enum kvc_status end_log(struct kvc_import *im, struct kvc_error *err)
{
    const struct pieces *p = kvc_import_kept(im);
    (void)err;
    if (p->lengths_of.n || !p->met)
        return KVC_OK;
    kvc_import_note(im, "%llu of %llu pieces of prompts came behind the same pieces before "
                    "(%.1f %%): pieces, not tokens, whose number a piece has is in "
                    "1_sys_prompt.jsonl and the like; name those before the trace to have it",
                    (unsigned long long)p->again, (unsigned long long)p->met,
                    100.0 * (double)p->again / (double)p->met);
    return KVC_OK;
}

static bool sniff(const char *head, size_t n)
{
    bool found = kvc_sniff_row(head, n, (const char *const[]){ "hash_ids.sys_prompt",
                                                               "hash_ids.user_input", NULL });
    for (size_t k = 0; k < LISTS && !found; k++)
        found = kvc_sniff_row(head, n, (const char *const[]){ lists[k].length_id, "token_length",
                                                              NULL });
    return found;
}

const struct kvc_format kvc_format_ragpulse = {
    .name = "ragpulse",
    .summary = "RAGPulse JSON lines: timestamp (s), ids of system prompt, passages, history, web "
               "search and question; lengths of pieces in files of their own",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
    .end = end_log,
};
