/* SPDX-License-Identifier: Apache-2.0
 * Qwen-Bailian JSON lines (alibaba-edu/qwen-bailian-usagetraces-anon): chat_id, parent_chat_id,
 * timestamp in seconds, lengths, and an id for each block of 16 tokens, made of that block's
 * tokens alone; the path through the blocks before it makes it a prefix here. */
#include "base/error.h"
#include "traces/import/recent.h"
#include "traces/import/sniff.h"
#include "traces/parse/fields.h"

#include <stdio.h>
#include <string.h>

struct chat {
    uint64_t session;  /* of its tree: the first chat's number from 1; 0 = not known yet */
    uint32_t tokens;   /* of prompt and answer, KVC_TOKENS_MAX at most */
    bool seen, continued;
};

struct chats {
    struct kvc_recent by_id; /* of struct chat */
    uint64_t sessions, session; /* so far; of the row at hand */
};

struct reader {
    struct kvc_id_buffer ids;
    struct chats *chats;
};

static void clear_chats(void *kept)
{
    kvc_recent_clear(&((struct chats *)kept)->by_id);
}

static struct chat *chat_of(struct chats *c, const struct kvc_span *id)
{
    bool fresh;
    struct chat *chat = kvc_recent_get(&c->by_id, id->text, id->n, &fresh);
    if (chat && !chat->session)
        chat->session = ++c->sessions;
    return chat;
}

static void tell_turn(struct kvc_import *im, struct chat *parent, const struct kvc_log_row *row)
{
    if (parent->continued)
        kvc_import_tally(im, "chats that continue one which another chat continued before: a "
                             "branch, in the same session");
    parent->continued = true;
    if (row->input_tokens < parent->tokens)
        kvc_import_tally(im, "turns too short to hold the turn before and its answer: the answer "
                             "was not carried over (thinking stripped, or history cut), its KV is "
                             "not reused");
    else
        kvc_import_tally(im, "turns long enough to hold the turn before and its answer");
}

/* The session is that of the chat tree's first chat. */
static bool place_chat(struct kvc_import *im, struct chats *c, const struct kvc_span *id,
                       const struct kvc_span *parent, struct kvc_log_row *row)
{
    uint64_t tokens = (uint64_t)row->input_tokens + row->output_tokens, above = 0;
    struct chat *before = parent->text ? chat_of(c, parent) : NULL;
    if (parent->text && !before)
        return false;
    if (before && before->seen)
        tell_turn(im, before, row);
    else if (before)
        kvc_import_tally(im, "chats whose parent is not among the rows before: whether its answer "
                             "was carried over is not known");
    above = before ? before->session : 0;
    struct chat *chat = chat_of(c, id);
    if (!chat)
        return false;
    if (chat->seen)
        kvc_import_tally(im, "rows whose chat_id an earlier row has: kept, in that chat's session");
    else if (above)
        chat->session = above;
    chat->seen = true;
    chat->tokens = tokens < KVC_TOKENS_MAX ? (uint32_t)tokens : KVC_TOKENS_MAX;
    c->session = chat->session;
    row->session = (struct kvc_span){ (const char *)&c->session, sizeof(c->session) };
    return true;
}

static enum kvc_status read_members(const struct kvc_place *at, const struct kvc_jval *root,
                                    struct kvc_import *im, struct reader *r,
                                    struct kvc_log_row *row, char number[4][24],
                                    struct kvc_span *id, struct kvc_span *parent,
                                    struct kvc_error *err)
{
    const struct kvc_jval *time = kvc_field_member(root, "timestamp");
    const struct kvc_jval *list = kvc_field_member(root, "hash_ids");
    enum kvc_status status = time ? KVC_OK : kvc_field_missing(at, "timestamp", err);
    if (status == KVC_OK)
        status = kvc_field_when(im, at, "timestamp", time, KVC_UNIT_S, &row->time_ns, err);
    if (status == KVC_OK)
        status = kvc_field_name(at, "chat_id", root, number[0], id, err);
    if (status == KVC_OK && !id->text)
        status = kvc_field_missing(at, "chat_id", err);
    if (status == KVC_OK)
        status = kvc_field_name(at, "parent_chat_id", root, number[1], parent, err);
    if (status == KVC_OK)
        status = kvc_field_tokens(at, "input_length", root, 1, &row->input_tokens, err);
    if (status == KVC_OK)
        status = kvc_field_tokens(at, "output_length", root, 0, &row->output_tokens, err);
    if (status == KVC_OK)
        status = kvc_field_chosen(im, at, root, number + 2, row, err);
    if (status == KVC_OK && list)
        status = kvc_field_ids(at, "hash_ids", list, im, &r->ids, 0, &row->n_ids, &row->text_ids,
                               err);
    row->ids = r->ids.v;
    if (parent->text && strcmp(parent->text, "-1") == 0)
        parent->text = NULL;
    return status;
}

static enum kvc_status one_row(struct kvc_import *im, void *user, const char *text, size_t n,
                               struct kvc_error *err)
{
    struct reader *r = user;
    struct kvc_place at = { kvc_import_file(im), kvc_import_line_number(im) };
    struct kvc_jval *root = NULL;
    struct kvc_log_row row = { .think_ns = KVC_TIME_NONE, .unchained = true };
    struct kvc_span id = { 0 }, parent = { 0 };
    struct kvc_error bad;
    char number[4][24];
    enum kvc_status status = kvc_row_parse(&root, text, n, &at, &bad);
    if (status == KVC_OK)
        status = read_members(&at, root, im, r, &row, number, &id, &parent, &bad);
    if (status != KVC_OK)
        status = kvc_import_bad(im, &bad, err);
    else if (!place_chat(im, r->chats, &id, &parent, &row))
        status = kvc_fail_nomem(err);
    else
        status = kvc_import_row(im, &row, false, err);
    kvc_json_free(root);
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .chats = kvc_import_keep(im, sizeof(*r.chats), clear_chats) };
    if (!r.chats)
        return kvc_fail_nomem(err);
    if (!r.chats->by_id.clock)
        kvc_import_recent(im, &r.chats->by_id, sizeof(struct chat));
    kvc_import_note(im, "Qwen-Bailian's ids name the tokens of one block each; here an id stands "
                    "for its block behind all blocks before it");
    enum kvc_status status = kvc_import_each_line(im, one_row, &r, err);
    kvc_free(r.ids.v);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    return kvc_sniff_row(head, n, (const char *const[]){ "chat_id", "parent_chat_id", "timestamp",
                                                         NULL });
}

const struct kvc_format kvc_format_qwen_bailian = {
    .name = "qwen-bailian",
    .summary = "Qwen-Bailian JSON lines: chat_id, parent_chat_id, timestamp (s), hash_ids of 16 "
               "tokens",
    .block_tokens = 16,
    .sniff = sniff,
    .read = read_log,
};
