/* SPDX-License-Identifier: Apache-2.0
 * Requests as APIs take them, a JSON object a line: aiperf's traces with messages, text_input or
 * payload; bodies of chat completions, completions, Responses and Anthropic Messages, alone or
 * beside their answer. */
#include "base/alloc.h"
#include "base/error.h"
#include "traces/formats/message_row.h"
#include "traces/import/recent.h"
#include "traces/import/sniff.h"

#include <stdio.h>
#include <string.h>

#define SESSIONS_MAX ((size_t)1 << 30) /* bytes of text kept of sessions that come in deltas */

struct session { /* what its turns have added up to */
    struct kvc_prompt tools, messages;
    uint32_t turns, reply_tokens;
    bool delta;
};

struct kept {
    struct kvc_recent sessions; /* of struct session */
    size_t bytes;
};

struct reader {
    struct kvc_tape_rows rows;
    struct kvc_message_doc doc;
    struct kvc_prompt whole; /* of a turn in deltas */
    struct kept *kept;
};

/* ---- sessions in deltas ---- */

static void drop_session(void *record, void *user)
{
    struct session *s = record;
    struct kept *k = user;
    k->bytes -= s->messages.n + s->tools.n;
    kvc_prompt_clear(&s->tools);
    kvc_prompt_clear(&s->messages);
}

static void clear_kept(void *kept)
{
    kvc_recent_clear(&((struct kept *)kept)->sessions);
}

static struct kept *keep(struct kvc_import *im)
{
    struct kept *k = kvc_import_keep(im, sizeof(*k), clear_kept);
    if (k && !k->sessions.clock) {
        kvc_import_recent(im, &k->sessions, sizeof(struct session));
        k->sessions.drop = drop_session;
        k->sessions.user = k;
    }
    return k;
}

/* Whether a session's rows are all of one mode; what it is made of in memory. */
static enum kvc_status check_mode(struct kvc_import *im, struct reader *r,
                                  const struct kvc_message_doc *d, struct session **out,
                                  struct kvc_error *err)
{
    const char *file = kvc_import_file(im);
    uint64_t line = kvc_import_line_number(im);
    *out = NULL;
    if (!d->row.session.text)
        return d->delta ? kvc_fail_at(err, KVC_ERR_INPUT, file, line, "session_id",
                                      "missing: message_mode \"delta\" adds to a session")
                        : KVC_OK;
    if (!d->delta && !r->kept)
        return KVC_OK;
    bool fresh;
    if (!(r->kept = keep(im)))
        return kvc_fail_nomem(err);
    struct session *s = kvc_recent_get(&r->kept->sessions, d->row.session.text, d->row.session.n,
                                       &fresh);
    if (!s)
        return kvc_fail_nomem(err);
    if (s->turns && s->delta != d->delta)
        return kvc_fail_at(err, KVC_ERR_INPUT, file, line, "message_mode",
                           "a session is all \"delta\" or not at all; this one was %s before",
                           s->delta ? "delta" : "history");
    s->delta = d->delta;
    s->turns++;
    *out = s;
    return KVC_OK;
}

static size_t tools_end(const struct kvc_prompt *p)
{
    size_t n = 0;
    while (n + 1 < p->n_pieces && p->pieces[n + 1].kind == KVC_PIECE_TOOLS)
        n += 2;
    return n;
}

/* The reply to the turn before is not in the log; it is told apart by session and turn. */
static void add_reply(struct kvc_prompt *p, const struct kvc_span *session, uint32_t turn,
                      uint32_t tokens)
{
    char key[128];
    int n = snprintf(key, sizeof(key), "%u of %.*s", turn,
                     (int)(session->n < 100 ? session->n : 100), session->text);
    kvc_prompt_unknown(p, key, (size_t)n, tokens);
}

static enum kvc_status add_turn(struct reader *r, struct session *s, struct kvc_message_doc *d,
                                struct kvc_error *err)
{
    size_t tools = tools_end(&d->prompt), had = s->messages.n + s->tools.n;
    if (tools) {
        kvc_prompt_begin(&s->tools);
        kvc_prompt_append(&s->tools, &d->prompt, 0, tools);
    }
    if (s->turns > 1) {
        kvc_prompt_message(&s->messages, KVC_ROLE_ASSISTANT);
        add_reply(&s->messages, &d->row.session, s->turns - 1, s->reply_tokens);
    }
    kvc_prompt_append(&s->messages, &d->prompt, tools, d->n_new);
    s->reply_tokens = d->row.output_tokens;
    kvc_prompt_begin(&r->whole);
    kvc_prompt_append(&r->whole, &s->tools, 0, s->tools.n_pieces);
    kvc_prompt_append(&r->whole, &s->messages, 0, s->messages.n_pieces);
    kvc_prompt_answer(&r->whole);
    add_reply(&r->whole, &d->row.session, s->turns, s->reply_tokens);
    if (s->messages.failed || s->tools.failed || r->whole.failed)
        return kvc_fail_nomem(err);
    r->kept->bytes += s->messages.n + s->tools.n - had;
    if (r->kept->bytes > SESSIONS_MAX)
        return kvc_fail(err, KVC_ERR_LIMIT, "more than 1 GiB of sessions in message_mode delta; "
                        "import fewer at once");
    return KVC_OK;
}

/* ---- rows ---- */

static void count_chat(struct kvc_import *im, const struct kvc_message_doc *d)
{
    if (d->chat.continues)
        kvc_import_tally(im, "goes on from a conversation kept by the provider "
                             "(previous_response_id): reuse unknown");
    if (d->chat.thinking_left_out)
        kvc_import_tally(im, "holds thinking of earlier turns, which APIs and templates leave out "
                             "of the prompt; left out here too");
    if (d->chat.unknown_images && !d->facts.input_stated)
        kvc_import_tally(im, "holds images or files whose tokens neither the row nor a published "
                             "rule tells");
    if (d->chat.odd_parts)
        kvc_import_tally(im, "holds parts of a kind not known here; their JSON counts as text");
    if (d->chat.several)
        kvc_import_tally(im, "has several answers; which of them goes on is not known");
}

static enum kvc_status hand_on(struct kvc_import *im, struct reader *r, struct kvc_message_doc *d,
                               bool odd, struct kvc_error *err)
{
    struct session *s;
    struct kvc_error bad = { 0 };
    enum kvc_status status = check_mode(im, r, d, &s, &bad);
    if (status == KVC_ERR_INPUT)
        return kvc_import_bad(im, &bad, err);
    if (status == KVC_OK && d->delta) {
        status = add_turn(r, s, d, &bad);
        kvc_import_note(im, "message_mode delta: replies are not in the log; each is taken to be "
                        "output_length tokens long and part of the turns after it");
    }
    if (status != KVC_OK) {
        if (err)
            *err = bad;
        return status;
    }
    count_chat(im, d);
    d->facts.odd = odd;
    return kvc_text_row(im, d->delta ? &r->whole : &d->prompt, &d->row, &d->facts, err);
}

static enum kvc_status one_row(struct kvc_import *im, void *user, const char *text, size_t n,
                               struct kvc_error *err)
{
    struct reader *r = user;
    struct kvc_error bad = { 0 };
    const struct kvc_tape *t;
    bool odd;
    enum kvc_status status = kvc_tape_row(&r->rows, im, text, n, &t, &odd, &bad);
    if (status == KVC_OK)
        status = kvc_message_read(im, &r->rows, t, &r->doc, &bad);
    if (status == KVC_OK)
        return hand_on(im, r, &r->doc, odd, err);
    if (status != KVC_ERR_INTERNAL)
        return kvc_import_bad(im, &bad, err);
    if (err)
        *err = bad;
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .kept = kvc_import_kept(im) };
    enum kvc_status status = kvc_import_each_line(im, one_row, &r, err);
    kvc_tape_rows_clear(&r.rows);
    kvc_prompt_clear(&r.doc.prompt);
    kvc_prompt_clear(&r.whole);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    static const char *const any[][4] = {
        { "messages" },           { "request.messages" },  { "body.messages" },
        { "payload.messages" },   { "request.input" },     { "body.input" },
        { "payload.input" },      { "request.prompt" },    { "body.prompt" },
        { "payload.prompt" },     { "text_input" },        { "input", "model" },
        { "prompt", "model" },    { "prompt", "usage" },   { "prompt", "timestamp" },
    };
    for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
        if (kvc_sniff_row(head, n, any[i]))
            return true;
    return false;
}

const struct kvc_format kvc_format_openai_messages = {
    .name = "openai-messages",
    .summary = "requests with their text: aiperf messages, OpenAI and Anthropic bodies, usage",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
};
