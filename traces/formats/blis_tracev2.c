/* SPDX-License-Identifier: Apache-2.0
 * BLIS TraceV2 (inference-sim/inference-sim): a YAML header, in a file of its own or in front of
 * the rows, and CSV rows with times in microseconds.
 *
 * There are no block ids, but columns state what is shared: rows of a prefix_group begin with the
 * same prefix_length tokens, to which input_tokens come on top; with session_context_growth
 * "accumulate" a round's prompt is all of the round before, its answer, and input_tokens more.
 * BLIS makes the rest of each prompt up, so it is nobody else's. From that, ids are cut here. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "traces/import/recent.h"
#include "traces/parse/csv_rows.h"
#include "traces/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS ((uint64_t)86400 * 1000000000)
#define GROUP_KEYS ((uint64_t)1 << 40) /* names of groups and sessions apart */
#define SESSION_KEYS ((uint64_t)1 << 50)

enum column {
    TENANT, SESSION, ROUND, GROUP, PREFIX, INPUT, OUTPUT, IMAGE, AUDIO, VIDEO, MODEL, SERVER_INPUT,
    ARRIVAL, SEND, FIRST_CHUNK, STATUS, FINISH, ADAPTER, THINK, N_COLUMNS
};

static const struct {
    const char *name;
    bool needed;
} known[N_COLUMNS] = {
    [TENANT] = { "tenant_id", false },
    [SESSION] = { "session_id", false },
    [ROUND] = { "round_index", false },
    [GROUP] = { "prefix_group", false },
    [PREFIX] = { "prefix_length", false },
    [INPUT] = { "input_tokens", true },
    [OUTPUT] = { "output_tokens", true },
    [IMAGE] = { "image_tokens", false },
    [AUDIO] = { "audio_tokens", false },
    [VIDEO] = { "video_tokens", false },
    [MODEL] = { "model", false },
    [SERVER_INPUT] = { "server_input_tokens", false },
    [ARRIVAL] = { "arrival_time_us", true },
    [SEND] = { "send_time_us", false },
    [FIRST_CHUNK] = { "first_chunk_time_us", false },
    [STATUS] = { "status", false },
    [FINISH] = { "finish_reason", false },
    [ADAPTER] = { "adapter", false },
    [THINK] = { "think_time_us", false },
};

struct session { /* what its next round builds on */
    uint64_t tokens; /* prompt and answer of the last round; 0 before the first */
    uint64_t round;
    uint32_t shared;
    uint64_t group_key;
};

struct reader { /* kept from file to file, as the header may be one */
    bool header, accumulate, made_up; /* made_up: all prompts are BLIS's own */
    bool rows;                        /* some were read */
    enum kvc_time_unit unit; /* 0: not stated, microseconds */
    uint64_t warm_up;
    struct kvc_csv csv;
    size_t column[N_COLUMNS];
    struct kvc_recent sessions; /* of struct session */
    struct kvc_id_buffer ids;
    uint64_t row; /* number over all files, which makes its own blocks its own */
    uint64_t grouped, rounds, lone; /* rows in groups; rounds behind the first; rows that say
                                       nothing of what they share */
    uint64_t measured;
    double ttft_sum_s, ttft_least_s, ttft_most_s;
};

/* A row as its columns state it. */
struct stated {
    uint32_t shared, input, output, server_input;
    uint64_t round, arrival_ns, media;
    int64_t send_ns, first_chunk_ns; /* -1: not recorded */
    uint64_t think_ns;
};

static void clear(void *kept)
{
    struct reader *r = kept;
    kvc_csv_clear(&r->csv);
    kvc_recent_clear(&r->sessions);
    kvc_free(r->ids.v);
}

/* ---- the header ---- */

struct line {
    const char *key, *value;
    size_t n_key, n_value;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* "  key: 'value' # comment"; nesting is left out of account, as names are told apart anyway. */
static struct line split_line(const char *text, size_t n)
{
    struct line l = { 0 };
    const char *end = text + n, *colon;
    while (text < end && (is_blank(*text) || *text == '-'))
        text++;
    if (text == end || *text == '#' || !(colon = memchr(text, ':', (size_t)(end - text))))
        return l;
    l.key = text;
    l.n_key = (size_t)(colon - text);
    for (text = colon + 1; text < end && is_blank(*text); text++)
        ;
    char quote = text < end && (*text == '"' || *text == '\'') ? *text : 0;
    text += quote != 0;
    l.value = text;
    while (text < end && *text != quote && !(!quote && *text == '#' && is_blank(text[-1])))
        text++;
    while (!quote && text > l.value && is_blank(text[-1]))
        text--;
    l.n_value = (size_t)(text - l.value);
    return l;
}

static bool is(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(text, word, n) == 0;
}

static enum kvc_status wrong_header(struct kvc_import *im, const struct line *l, const char *rule,
                                    struct kvc_error *err)
{
    char key[40];
    snprintf(key, sizeof(key), "%.*s", (int)l->n_key, l->key);
    return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), kvc_import_line_number(im), key,
                       "\"%.*s\" is wrong: %s", (int)(l->n_value < 40 ? l->n_value : 40), l->value,
                       rule);
}

static bool header_count(const struct line *l, uint64_t most, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < l->n_value; i++) {
        unsigned d = (unsigned)(unsigned char)l->value[i] - '0';
        if (d > 9 || (v = v * 10 + d) > most)
            return false;
    }
    *out = v;
    return l->n_value > 0;
}

static bool time_unit(const struct line *l, enum kvc_time_unit *unit)
{
    static const struct {
        const char *name;
        enum kvc_time_unit unit;
    } all[] = { { "us", KVC_UNIT_US },           { "microseconds", KVC_UNIT_US },
                { "microsecond", KVC_UNIT_US },  { "\xc2\xb5s", KVC_UNIT_US },
                { "ms", KVC_UNIT_MS },           { "milliseconds", KVC_UNIT_MS },
                { "s", KVC_UNIT_S },             { "seconds", KVC_UNIT_S },
                { "ns", KVC_UNIT_NS },           { "nanoseconds", KVC_UNIT_NS } };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (is(l->value, l->n_value, all[i].name)) {
            *unit = all[i].unit;
            return true;
        }
    }
    return false;
}

static enum kvc_status take_header_line(struct kvc_import *im, struct reader *r, const char *text,
                                        size_t n, struct kvc_error *err)
{
    struct line l = split_line(text, n);
    uint64_t number;
    if (r->rows)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), kvc_import_line_number(im),
                           NULL, "the header comes behind rows it should explain; name its file "
                           "before theirs");
    r->header = true;
    if (is(l.key, l.n_key, "time_unit") && !time_unit(&l, &r->unit))
        return wrong_header(im, &l, "microseconds are expected, or us, ms, s or ns", err);
    if (is(l.key, l.n_key, "mode"))
        r->made_up = is(l.value, l.n_value, "generated") || is(l.value, l.n_value, "replayed");
    if (is(l.key, l.n_key, "warm_up_requests") && !header_count(&l, UINT32_MAX, &r->warm_up))
        return wrong_header(im, &l, "a number of requests is expected", err);
    if (is(l.key, l.n_key, "session_context_growth")) {
        r->accumulate = is(l.value, l.n_value, "accumulate");
        if (l.n_value && !r->accumulate)
            return wrong_header(im, &l, "accumulate, or nothing, is expected", err);
    }
    if (is(l.key, l.n_key, "block_size")) {
        if (!header_count(&l, INT32_MAX, &number))
            return wrong_header(im, &l, "a number of tokens is expected", err);
        if (number)
            return kvc_import_block_size(im, (uint32_t)number, err);
    }
    return KVC_OK;
}

static const char *const own_columns[] = { "request_id", "input_tokens", "output_tokens",
                                           "arrival_time_us", "send_time_us", NULL };

/* Up to the names of the columns; *rows false: the file is a header alone. */
static enum kvc_status read_header(struct kvc_import *im, struct reader *r, bool *rows,
                                   struct kvc_error *err)
{
    const char *text;
    size_t n;
    enum kvc_status status;
    *rows = false;
    while ((status = kvc_import_line_within(im, &text, &n, err)) == KVC_OK && text) {
        if (kvc_csv_sniff(text, n, own_columns)) {
            *rows = true;
            kvc_csv_clear(&r->csv);
            status = kvc_csv_header(&r->csv, text, n, kvc_import_file(im), err);
            r->csv.line = kvc_import_line_number(im);
            r->csv.hide = kvc_import_options_of(im)->anonymize;
            break;
        }
        if (n && (status = take_header_line(im, r, text, n, err)) != KVC_OK)
            break;
    }
    for (int c = 0; c < N_COLUMNS && *rows && status == KVC_OK; c++)
        status = c == TENANT ? kvc_csv_tenant(&r->csv, im, known[c].name, &r->column[c], err)
                             : kvc_csv_column(&r->csv, known[c].name, known[c].needed,
                                              &r->column[c], err);
    return status;
}

/* ---- the columns of a row ---- */

static enum kvc_status tokens_of(const struct reader *r, enum column c, uint32_t *out,
                                 struct kvc_error *err)
{
    *out = 0;
    return kvc_csv_absent(&r->csv, r->column[c])
               ? KVC_OK
               : kvc_csv_tokens(&r->csv, r->column[c], 0, out, err);
}

/* -1 when absent or negative, which stands for nothing recorded. */
static enum kvc_status time_of(const struct reader *r, enum column c, enum kvc_time_unit unit,
                               int64_t *ns, struct kvc_error *err)
{
    struct kvc_span s = kvc_csv_get(&r->csv, r->column[c]);
    struct kvc_decimal number;
    uint64_t v;
    *ns = -1;
    if (kvc_csv_absent(&r->csv, r->column[c]))
        return KVC_OK;
    if (kvc_decimal_parse(s.text, s.n, &number) != s.n)
        return kvc_csv_wrong(&r->csv, r->column[c], "a number is expected", err);
    if (number.negative && number.digits)
        return KVC_OK;
    if (!kvc_time_from_number(&number, unit, &v))
        return kvc_csv_wrong(&r->csv, r->column[c], "a time below 292 years is expected", err);
    *ns = (int64_t)v;
    return KVC_OK;
}

static enum kvc_status read_times(const struct reader *r, struct kvc_import *im, struct stated *s,
                                  struct kvc_error *err)
{
    enum kvc_time_unit unit = kvc_import_time_unit(im, r->unit ? r->unit : KVC_UNIT_US);
    int64_t arrival, think;
    enum kvc_status status = time_of(r, ARRIVAL, unit, &arrival, err);
    if (status == KVC_OK && arrival < 0)
        status = kvc_csv_wrong(&r->csv, r->column[ARRIVAL], "a time from 0 on is expected", err);
    if (status == KVC_OK)
        status = time_of(r, SEND, unit, &s->send_ns, err);
    if (status == KVC_OK)
        status = time_of(r, FIRST_CHUNK, unit, &s->first_chunk_ns, err);
    if (status == KVC_OK)
        status = time_of(r, THINK, unit, &think, err);
    if (status != KVC_OK)
        return status;
    s->arrival_ns = (uint64_t)arrival;
    s->think_ns = think > 0 ? (uint64_t)think : KVC_TIME_NONE;
    if (think == 0)
        kvc_import_tally(im, "a think_time_us of 0, which can mean not recorded: taken so");
    return KVC_OK;
}

static enum kvc_status read_row(const struct reader *r, struct kvc_import *im, struct stated *s,
                                struct kvc_error *err)
{
    uint32_t media[3];
    bool given;
    enum kvc_status status = read_times(r, im, s, err);
    if (status == KVC_OK)
        status = tokens_of(r, INPUT, &s->input, err);
    if (status == KVC_OK)
        status = tokens_of(r, OUTPUT, &s->output, err);
    if (status == KVC_OK)
        status = tokens_of(r, PREFIX, &s->shared, err);
    if (status == KVC_OK)
        status = tokens_of(r, SERVER_INPUT, &s->server_input, err);
    for (int k = 0; k < 3 && status == KVC_OK; k++)
        status = tokens_of(r, (enum column)(IMAGE + k), &media[k], err);
    if (status == KVC_OK)
        s->media = (uint64_t)media[0] + media[1] + media[2];
    if (status == KVC_OK)
        status = kvc_csv_u64(&r->csv, r->column[ROUND], &given, &s->round, err);
    return status;
}

static uint8_t status_of(const struct reader *r, struct kvc_import *im)
{
    struct kvc_span s = kvc_csv_get(&r->csv, r->column[STATUS]);
    struct kvc_span finish = kvc_csv_get(&r->csv, r->column[FINISH]);
    if (!s.n || is(s.text, s.n, "ok"))
        return is(finish.text, finish.n, "abort") ? KVC_ROW_CANCELLED : KVC_ROW_OK;
    if (is(s.text, s.n, "timeout"))
        return KVC_ROW_CANCELLED;
    if (!is(s.text, s.n, "error"))
        kvc_import_tally(im, "a status other than ok, error and timeout: taken as failed");
    return KVC_ROW_FAILED;
}

/* ---- what is shared ---- */

/* The session's state, NULL without; *ok false: no memory. */
static struct session *session_of(struct reader *r, const struct kvc_span *name, bool *ok)
{
    bool fresh;
    struct session *s = name->text ? kvc_recent_get(&r->sessions, name->text, name->n, &fresh)
                                   : NULL;
    *ok = s || !name->text;
    return s;
}

/* Tokens of the whole prompt; false: the columns contradict each other. */
static enum kvc_status whole_prompt(const struct reader *r, const struct stated *s,
                                    const struct session *before, uint32_t *tokens,
                                    struct kvc_error *err)
{
    const struct kvc_csv *c = &r->csv;
    bool grows = r->accumulate && before && before->tokens;
    uint64_t n = (grows ? before->tokens : s->shared) + (uint64_t)s->input;
    if (grows && s->round != before->round + 1)
        return kvc_fail_at(err, KVC_ERR_INPUT, c->file, c->line, "round_index",
                           "round %llu behind round %llu; the prompts of a session add up, so its "
                           "rounds must come one by one", (unsigned long long)s->round,
                           (unsigned long long)before->round);
    if (r->accumulate && before && !before->tokens && s->round)
        return kvc_fail_at(err, KVC_ERR_INPUT, c->file, c->line, "round_index",
                           "the session begins with round %llu; what its prompt builds on is not "
                           "in the log", (unsigned long long)s->round);
    if (s->server_input && s->server_input < s->shared)
        return kvc_fail_at(err, KVC_ERR_INPUT, c->file, c->line, "server_input_tokens",
                           "%u tokens, where prefix_length alone is %u", s->server_input,
                           s->shared);
    n = s->server_input ? s->server_input : n;
    if (!n || n > KVC_TOKENS_MAX)
        return kvc_fail_at(err, KVC_ERR_INPUT, c->file, c->line, "input_tokens",
                           "a prompt of %llu tokens; from 1 to 2^31-1 are expected",
                           (unsigned long long)n);
    *tokens = (uint32_t)n;
    return KVC_OK;
}

static uint64_t block_key(uint64_t whose, uint64_t index)
{
    return kvc_mix64(whose + kvc_mix64(index + 0x626c6973));
}

/* Blocks of a prompt: of its group as far as the prefix goes, then of its session when that
 * accumulates, else of its own; the partial last one is never part of a later prompt. */
static bool cut(struct reader *r, uint32_t block, uint32_t tokens, uint32_t shared,
                uint64_t group_key, uint64_t rest_key, struct kvc_log_row *row)
{
    size_t full = tokens / block, n = full + (tokens % block != 0);
    uint64_t own_key = kvc_mix64(r->row * 2 + 1);
    if (!kvc_grow((void **)&r->ids.v, &r->ids.cap, n, sizeof(*r->ids.v)))
        return false;
    for (size_t i = 0; i < full; i++)
        r->ids.v[i] = block_key((i + 1) * block <= shared ? group_key : rest_key, i);
    if (n > full)
        r->ids.v[full] = tokens <= shared ? block_key(group_key ^ tokens, full)
                                          : block_key(own_key, full);
    row->ids = r->ids.v;
    row->n_ids = n;
    return true;
}

static uint64_t find_group(const struct reader *r, struct stated *s)
{
    struct kvc_span name = kvc_csv_get(&r->csv, r->column[GROUP]);
    if (name.n && s->shared)
        return kvc_mix64(kvc_import_text_id(name.text, name.n) ^ GROUP_KEYS);
    s->shared = 0;
    return 0;
}

static enum kvc_status identify(struct reader *r, struct kvc_import *im, struct stated *s,
                                struct kvc_log_row *row, struct kvc_error *bad)
{
    uint64_t group_key = find_group(r, s), rest_key = kvc_mix64(r->row * 2);
    bool ok;
    struct session *session = session_of(r, &row->session, &ok);
    if (!ok)
        return kvc_fail_nomem(bad);
    enum kvc_status status = whole_prompt(r, s, session, &row->input_tokens, bad);
    if (status != KVC_OK)
        return status;
    bool later = session && session->tokens > 0;
    r->rounds += later;
    if (session && r->accumulate) {
        if (!later) {
            session->shared = s->shared;
            session->group_key = group_key;
        }
        rest_key = kvc_mix64(kvc_import_text_id(row->session.text, row->session.n) ^ SESSION_KEYS);
    }
    uint32_t shared = session && r->accumulate ? session->shared : s->shared;
    uint64_t shared_key = session && r->accumulate ? session->group_key : group_key;
    r->grouped += shared > 0;
    if (session) {
        session->tokens = (uint64_t)row->input_tokens + s->output;
        session->round = s->round;
    }
    if (!shared && !(session && r->accumulate) && !(r->made_up && !later)) {
        r->lone++;
        return KVC_OK;
    }
    return cut(r, kvc_import_block_tokens(im), row->input_tokens, shared, shared_key, rest_key,
               row) ? KVC_OK : kvc_fail_nomem(bad);
}

/* ---- measured times ---- */

/* The server sees a request when it was sent, which a client with a limit does later than it
 * arrived. */
static uint64_t choose_time(struct kvc_import *im, const struct stated *s)
{
    if (s->send_ns <= 0 || (uint64_t)s->send_ns == s->arrival_ns)
        return s->arrival_ns;
    if ((uint64_t)s->send_ns < s->arrival_ns || (uint64_t)s->send_ns - s->arrival_ns > DAY_NS) {
        kvc_import_tally(im, "sent before it arrived, or more than a day later: the clocks of the "
                         "two columns differ; arrival_time_us is used");
        return s->arrival_ns;
    }
    kvc_import_tally(im, "held back by the client: send_time_us is used, later than "
                     "arrival_time_us");
    return (uint64_t)s->send_ns;
}

static void measure(struct reader *r, struct kvc_import *im, const struct stated *s,
                    uint8_t status)
{
    if (status != KVC_ROW_OK || s->first_chunk_ns <= 0 || s->send_ns < 0)
        return;
    if (s->first_chunk_ns < s->send_ns) {
        kvc_import_tally(im, "a first chunk before the request was sent: the clocks of the two "
                         "columns differ; no TTFT is taken from it");
        return;
    }
    double ttft_s = (double)(s->first_chunk_ns - s->send_ns) * 1e-9;
    r->ttft_least_s = !r->measured || ttft_s < r->ttft_least_s ? ttft_s : r->ttft_least_s;
    r->ttft_most_s = ttft_s > r->ttft_most_s ? ttft_s : r->ttft_most_s;
    r->ttft_sum_s += ttft_s;
    r->measured++;
}

/* ---- the format ---- */

static enum kvc_status one_row(struct reader *r, struct kvc_import *im, struct kvc_error *err)
{
    const struct kvc_csv *c = &r->csv;
    struct kvc_log_row row = { .tenant = kvc_csv_get(c, r->column[TENANT]),
                               .session = kvc_csv_get(c, r->column[SESSION]),
                               .model = kvc_csv_get(c, r->column[MODEL]),
                               .adapter = kvc_csv_get(c, r->column[ADAPTER]) };
    struct stated s = { 0 };
    struct kvc_error bad;
    r->row++;
    enum kvc_status status = read_row(r, im, &s, &bad);
    if (status == KVC_OK)
        status = identify(r, im, &s, &row, &bad);
    if (status != KVC_OK)
        return kvc_import_bad(im, &bad, err);
    row.output_tokens = s.output;
    row.think_ns = s.think_ns;
    row.status = status_of(r, im);
    row.time_ns = choose_time(im, &s);
    measure(r, im, &s, row.status);
    if (s.media)
        kvc_import_tally(im, "with image, audio or video tokens, which count as input");
    return kvc_import_row(im, &row, false, err);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader *r = kvc_import_keep(im, sizeof(*r), clear);
    bool more;
    if (!r)
        return kvc_fail_nomem(err);
    if (!r->sessions.clock)
        kvc_import_recent(im, &r->sessions, sizeof(struct session));
    enum kvc_status status = read_header(im, r, &more, err);
    while (status == KVC_OK && more) {
        status = kvc_csv_next(&r->csv, im, &more, err);
        r->rows = true;
        if (status == KVC_OK && more)
            status = one_row(r, im, err);
    }
    return status;
}

static enum kvc_status end(struct kvc_import *im, struct kvc_error *err)
{
    const struct reader *r = kvc_import_kept(im);
    (void)err;
    if (!r)
        return KVC_OK;
    if (!r->header)
        kvc_import_note(im, "no header: the block size, and whether rounds of a session build on "
                        "each other, are in the YAML file beside this one; name it first");
    if (r->grouped)
        kvc_import_note(im, "rows of a prefix_group share its prefix_length tokens, to which "
                        "input_tokens come on top; the rest of each prompt is taken as its own");
    if (r->rounds)
        kvc_import_note(im, r->accumulate
                                ? "rounds of a session build on all before (accumulate)"
                                : "what later rounds of a session share with earlier ones is not "
                                  "in the log: hits are a lower bound");
    kvc_import_tally_rows(im, "no prefix_group: what they share is not in the log", r->lone);
    if (r->measured)
        kvc_import_note(im, "measured TTFT (first chunk - send) of %llu answers: mean %.1f ms, "
                            "from %.1f to %.1f", (unsigned long long)r->measured,
                        r->ttft_sum_s * 1e3 / (double)r->measured, r->ttft_least_s * 1e3,
                        r->ttft_most_s * 1e3);
    if (r->warm_up)
        kvc_import_note(im, "the header calls the first %llu requests warm-up; they are kept, "
                        "--warmup of a replay leaves them out of its figures",
                        (unsigned long long)r->warm_up);
    return KVC_OK;
}

static bool sniff(const char *head, size_t n)
{
    static const char word[] = "trace_version:";
    const char *at = memmem(head, n, word, strlen(word));
    return kvc_csv_sniff(head, n, own_columns) || (at && (at == head || at[-1] == '\n'));
}

const struct kvc_format kvc_format_blis_tracev2 = {
    .name = "blis-tracev2",
    .summary = "BLIS TraceV2: YAML header and CSV rows, prefix groups, sessions, measured times",
    .block_tokens = 16,
    .sniff = sniff,
    .read = read_log,
    .end = end,
};
