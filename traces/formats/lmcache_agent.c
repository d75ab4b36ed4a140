/* SPDX-License-Identifier: Apache-2.0
 * lmcache-agent-trace JSON lines (LMCache/lmcache-agent-trace): timestamp in microseconds, input,
 * the whole prompt as one text, output, session_id; mostly a file a session. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/siphash.h"
#include "traces/import/recent.h"
#include "traces/import/sniff.h"
#include "traces/parse/tape_rows.h"
#include "traces/text/text_blocks.h"

#include <string.h>

#define LABEL_MAX 64 /* bytes of a speaker's label between a prompt and its answer */

struct turn { /* the latest of a session: what stands for its input, and its answer */
    uint64_t input_hash[2], input_bytes;
    char *output;
    size_t n_output, cap;
};

struct kept {
    struct kvc_recent sessions; /* of struct turn */
    uint64_t continued, answered; /* inputs that go on from the session's before; with its answer */
};

struct reader {
    struct kvc_import *im;
    struct kvc_tape_rows rows;
    struct kvc_prompt prompt;
    struct kept *kept;
};

static void drop_turn(void *record, void *user)
{
    (void)user;
    kvc_free(((struct turn *)record)->output);
}

static void clear_kept(void *kept)
{
    kvc_recent_clear(&((struct kept *)kept)->sessions);
}

static void hash_text(const char *text, size_t n, uint64_t out[2])
{
    for (uint64_t i = 0; i < 2; i++) {
        struct kvc_sip s;
        kvc_sip_start(&s, i, i);
        kvc_sip_bytes(&s, text, n);
        out[i] = kvc_sip_end(&s);
    }
}

/* Where in the prompt the answer of the turn before ends; 0: it isn't there. */
static size_t shown(struct kept *kept, const struct turn *before, const char *text, size_t n)
{
    uint64_t hash[2];
    size_t from = (size_t)before->input_bytes;
    if (!before->n_output || before->input_bytes >= n)
        return 0;
    hash_text(text, from, hash);
    if (memcmp(hash, before->input_hash, sizeof(hash)) != 0)
        return 0;
    kept->continued++;
    size_t look = n - from < before->n_output + LABEL_MAX ? n - from : before->n_output + LABEL_MAX;
    const char *at = memmem(text + from, look, before->output, before->n_output);
    kept->answered += at != NULL;
    return at ? (size_t)(at - text) + before->n_output : 0;
}

static bool remember(struct turn *turn, const struct kvc_prompt *p, size_t input)
{
    size_t n = p->n - input;
    if (!kvc_grow((void **)&turn->output, &turn->cap, n + 1, 1))
        return false;
    if (n)
        memcpy(turn->output, p->text + input, n);
    turn->n_output = n;
    turn->input_bytes = input;
    hash_text(p->text, input, turn->input_hash);
    return true;
}

static void add(struct kvc_prompt *p, const struct kvc_tape *t, uint32_t at)
{
    char *room = kvc_prompt_room(p, (size_t)t->v[at].n + 16);
    if (room)
        kvc_prompt_wrote(p, KVC_PIECE_TEXT, kvc_tape_decode(t, at, room));
}

static enum kvc_status read_row(struct reader *r, const char *text, size_t n,
                                struct kvc_log_row *row, struct kvc_text_facts *facts,
                                size_t *input, struct kvc_error *err)
{
    struct kvc_place at = { kvc_import_file(r->im), kvc_import_line_number(r->im) };
    const struct kvc_tape *t;
    bool odd;
    enum kvc_status status = kvc_tape_row(&r->rows, r->im, text, n, &t, &odd, err);
    if (status == KVC_OK)
        status = kvc_tape_when(r->im, t, kvc_tape_member(t, 0, "timestamp"), "timestamp",
                               KVC_UNIT_US, &at, &row->time_ns, err);
    if (status == KVC_OK)
        status = kvc_tape_name(&r->rows, t, kvc_tape_member(t, 0, "session_id"), "session_id", &at,
                               &row->session, err);
    if (status == KVC_OK)
        status = kvc_tape_name(&r->rows, t, kvc_tape_member(t, 0, "model"), "model", &at,
                               &row->model, err);
    uint32_t in = status == KVC_OK ? kvc_tape_text(t, 0, "input", &at, err) : 0;
    uint32_t out = in ? kvc_tape_member(t, 0, "output") : 0;
    if (!in)
        return status == KVC_OK ? KVC_ERR_INPUT : status;
    if (out && kvc_tape_kind(t, out) != KVC_JSTRING)
        return kvc_fail_at(err, KVC_ERR_INPUT, at.file, at.line, "output", "a text is expected");
    kvc_prompt_begin(&r->prompt);
    add(&r->prompt, t, in);
    *input = r->prompt.n;
    kvc_prompt_answer(&r->prompt);
    if (out)
        add(&r->prompt, t, out);
    facts->output_limit = out && !t->v[out].n; /* an answer without text, as of a tool call */
    facts->odd = odd;
    return r->prompt.failed ? kvc_fail_nomem(err) : KVC_OK;
}

static enum kvc_status one_row(struct kvc_import *im, void *user, const char *text, size_t n,
                               struct kvc_error *err)
{
    struct reader *r = user;
    struct kvc_log_row row = { .time_ns = KVC_TIME_NONE, .think_ns = KVC_TIME_NONE };
    struct kvc_text_facts facts = { .thinking_tokens = KVC_ID_NONE };
    struct kvc_error bad = { 0 };
    size_t input = 0;
    enum kvc_status status = read_row(r, text, n, &row, &facts, &input, &bad);
    if (status == KVC_ERR_INTERNAL && err)
        *err = bad;
    if (status != KVC_OK)
        return status == KVC_ERR_INTERNAL ? status : kvc_import_bad(im, &bad, err);
    if (!input) {
        kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), kvc_import_line_number(im),
                    "input", "empty: a request without a prompt");
        return kvc_import_bad(im, &bad, err);
    }
    if (row.session.text) {
        bool fresh;
        struct turn *turn = kvc_recent_get(&r->kept->sessions, row.session.text, row.session.n,
                                           &fresh);
        if (!turn)
            return kvc_fail_nomem(err);
        facts.shown_bytes = shown(r->kept, turn, r->prompt.text, input);
        if (!remember(turn, &r->prompt, input))
            return kvc_fail_nomem(err);
    }
    return kvc_text_row(im, &r->prompt, &row, &facts, err);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .im = im, .kept = kvc_import_keep(im, sizeof(*r.kept), clear_kept) };
    if (!r.kept)
        return kvc_fail_nomem(err);
    if (!r.kept->sessions.clock) {
        kvc_import_recent(im, &r.kept->sessions, sizeof(struct turn));
        r.kept->sessions.drop = drop_turn;
    }
    enum kvc_status status = kvc_import_each_line(im, one_row, &r, err);
    kvc_tape_rows_clear(&r.rows);
    kvc_prompt_clear(&r.prompt);
    return status;
}

static enum kvc_status end(struct kvc_import *im, struct kvc_error *err)
{
    const struct kept *k = kvc_import_kept(im);
    (void)err;
    if (k && k->continued && !k->answered)
        kvc_import_note(im, "%llu inputs go on from the session's input before, none with the "
                        "answer to that: this log leaves answers out of the inputs, so that real "
                        "prompts were longer", (unsigned long long)k->continued);
    return KVC_OK;
}

static bool sniff(const char *head, size_t n)
{
    static const char *const keys[] = { "timestamp", "input", NULL };
    static const char *const other[] = { "model", NULL };
    return kvc_sniff_row(head, n, keys) && !kvc_sniff_row(head, n, other);
}

const struct kvc_format kvc_format_lmcache_agent = {
    .name = "lmcache-agent",
    .summary = "lmcache-agent-trace JSON lines: timestamp (us), input and output as text",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
    .end = end,
};
