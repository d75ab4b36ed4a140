/* SPDX-License-Identifier: Apache-2.0
 * AIBrix workloads (vllm-project/aibrix), JSON lines: a timestamp in milliseconds and the requests
 * that arrive then, each with "Prompt Length", "Output Length" in tokens and its prompt as text. */
#include "base/error.h"
#include "traces/import/sniff.h"
#include "traces/parse/tape_rows.h"
#include "traces/text/text_blocks.h"

#include <stdio.h>
#include <string.h>

struct reader {
    struct kvc_import *im;
    struct kvc_tape_rows rows;
    struct kvc_prompt prompt;
};

static enum kvc_status read_request(struct reader *r, const struct kvc_tape *t, uint32_t at,
                                    struct kvc_log_row *row, struct kvc_text_facts *facts,
                                    struct kvc_error *err)
{
    struct kvc_place place = { kvc_import_file(r->im), kvc_import_line_number(r->im) };
    if (kvc_tape_kind(t, at) != KVC_JOBJECT)
        return kvc_fail_at(err, KVC_ERR_INPUT, place.file, place.line, "requests",
                           "each request must be an object");
    uint32_t input = kvc_tape_member(t, at, "Prompt Length");
    uint32_t output = kvc_tape_member(t, at, "Output Length");
    uint32_t session = kvc_tape_member(t, at, "session_id");
    uint32_t model = kvc_tape_member(t, at, "model"), text = kvc_tape_member(t, at, "prompt");
    enum kvc_status status = kvc_tape_tokens(t, input, "Prompt Length", &place,
                                             &row->input_tokens, &facts->input_stated, err);
    if (status == KVC_OK)
        status = kvc_tape_tokens(t, output, "Output Length", &place, &row->output_tokens,
                                 &facts->output_stated, err);
    if (status == KVC_OK)
        status = kvc_tape_name(&r->rows, t, session, "session_id", &place, &row->session, err);
    if (status == KVC_OK)
        status = kvc_tape_name(&r->rows, t, model, "model", &place, &row->model, err);
    if (status != KVC_OK)
        return status;
    facts->input_stated = facts->input_stated && row->input_tokens;
    kvc_prompt_begin(&r->prompt);
    if (text && !kvc_tape_text(t, at, "prompt", &place, err))
        return KVC_ERR_INPUT;
    if (!text && !facts->input_stated)
        return kvc_fail_at(err, KVC_ERR_INPUT, place.file, place.line, "prompt",
                           "missing, and no Prompt Length either");
    char *room = text ? kvc_prompt_room(&r->prompt, (size_t)t->v[text].n + 16) : NULL;
    if (room)
        kvc_prompt_wrote(&r->prompt, KVC_PIECE_TEXT, kvc_tape_decode(t, text, room));
    kvc_prompt_answer(&r->prompt);
    return r->prompt.failed ? kvc_fail_nomem(err) : KVC_OK;
}

static enum kvc_status one_request(struct reader *r, const struct kvc_tape *t, uint32_t at,
                                   uint64_t time_ns, bool odd, struct kvc_error *err)
{
    struct kvc_log_row row = { .time_ns = time_ns, .think_ns = KVC_TIME_NONE };
    struct kvc_text_facts facts = { .thinking_tokens = KVC_ID_NONE, .odd = odd };
    struct kvc_error bad = { 0 };
    if (read_request(r, t, at, &row, &facts, &bad) != KVC_OK)
        return kvc_import_bad(r->im, &bad, err);
    return kvc_text_row(r->im, &r->prompt, &row, &facts, err);
}

static enum kvc_status one_line(struct kvc_import *im, void *user, const char *text, size_t n,
                                struct kvc_error *err)
{
    struct reader *r = user;
    struct kvc_place place = { kvc_import_file(im), kvc_import_line_number(im) };
    const struct kvc_tape *t;
    struct kvc_error bad = { 0 };
    uint64_t time_ns = KVC_TIME_NONE;
    char where[32];
    bool odd;
    enum kvc_status status = kvc_tape_row(&r->rows, im, text, n, &t, &odd, &bad);
    if (status == KVC_ERR_INTERNAL) {
        if (err)
            *err = bad;
        return status;
    }
    if (status == KVC_OK)
        status = kvc_tape_when(im, t, kvc_tape_member(t, 0, "timestamp"), "timestamp",
                               KVC_UNIT_MS, &place, &time_ns, &bad);
    uint32_t list = status == KVC_OK ? kvc_tape_member(t, 0, "requests") : 0;
    if (status == KVC_OK && (!list || kvc_tape_kind(t, list) != KVC_JARRAY))
        status = kvc_fail_at(&bad, KVC_ERR_INPUT, place.file, place.line, "requests",
                             "a list of requests is expected");
    if (status != KVC_OK)
        return kvc_import_bad(im, &bad, err);
    if (kvc_tape_end(t, list) == list + 1)
        kvc_import_tally(im, "a time at which no request arrives");
    unsigned k = 0;
    for (uint32_t i = list + 1; i < kvc_tape_end(t, list) && status == KVC_OK;
         i = kvc_tape_next(t, i), k++) {
        snprintf(where, sizeof(where), "requests[%u]", k);
        if (k) /* the line itself counts for the first */
            kvc_import_begin_row(im, place.line, where);
        status = one_request(r, t, i, time_ns, odd, err);
    }
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .im = im };
    enum kvc_status status = kvc_import_each_line(im, one_line, &r, err);
    kvc_tape_rows_clear(&r.rows);
    kvc_prompt_clear(&r.prompt);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    static const char *const keys[] = { "timestamp", "requests", NULL };
    return kvc_sniff_row(head, n, keys) &&
           (memmem(head, n, "\"Prompt Length\"", 15) || memmem(head, n, "\"prompt\"", 8));
}

const struct kvc_format kvc_format_aibrix = {
    .name = "aibrix",
    .summary = "AIBrix workloads: timestamp (ms) and requests with prompt and lengths",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
};
