/* SPDX-License-Identifier: Apache-2.0
 * Rows with text on their way into an import: the rate of bytes a token, and the rows held back
 * until it is known. */
#include "traces/text/text_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "traces/import/import_state.h"
#include "traces/import/salt.h"
#include "traces/text/breaks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static enum kvc_status state_of(struct kvc_import *im, struct kvc_text_import **out,
                                struct kvc_error *err)
{
    if (!im->text) {
        if (!(im->text = kvc_calloc(1, sizeof(*im->text))))
            return kvc_fail_nomem(err);
        im->text->last_place = KVC_ID_NONE;
    }
    *out = im->text;
    return KVC_OK;
}

bool kvc_text_set_hook(struct kvc_import *im, const struct kvc_text_hook *hook)
{
    struct kvc_text_import *t = NULL;
    if (state_of(im, &t, NULL) != KVC_OK)
        return false;
    t->hook = *hook;
    return true;
}

/* R of bytes:R; 0 when the option says something else. */
static enum kvc_status parse_rate(const char *tokenizer, double *bytes_per_token,
                                  struct kvc_error *err)
{
    *bytes_per_token = 0;
    if (!tokenizer || strncmp(tokenizer, "bytes:", 6) != 0)
        return KVC_OK;
    if (kvc_parse_double(tokenizer + 6, "tokenizer", bytes_per_token, err) != KVC_OK ||
        !(*bytes_per_token >= 0.25 && *bytes_per_token <= 64))
        return kvc_fail(err, KVC_ERR_USAGE, "--tokenizer %.60s: bytes:R with R from 0.25 to 64 "
                        "bytes a token is expected, or the path of a tokenizer.json", tokenizer);
    return KVC_OK;
}

enum kvc_status kvc_text_check(const struct kvc_import_options *options, struct kvc_error *err)
{
    double rate;
    uint64_t key[2];
    enum kvc_status status = parse_rate(options->tokenizer, &rate, err);
    if (status == KVC_OK && options->tokenizer && rate <= 0 &&
        access(options->tokenizer, R_OK) != 0)
        return kvc_fail_at(err, KVC_ERR_INPUT, options->tokenizer, 0, "--tokenizer",
                           "can't be read: %s; bytes:R or a tokenizer.json is expected",
                           strerror(errno));
    if (status == KVC_OK && options->salt_file)
        status = kvc_salt_read(options->salt_file, key, err);
    return status;
}

/* What the options ask for, when the first text comes. */
static enum kvc_status start(struct kvc_import *im, struct kvc_text_import *t,
                             struct kvc_error *err)
{
    const char *tokenizer = im->options->tokenizer;
    enum kvc_status status = kvc_salt_read(im->options->salt_file, t->key, err);
    if (status == KVC_OK && !(im->breaks = kvc_breaks_create(im)))
        status = kvc_fail_nomem(err);
    if (status == KVC_OK)
        status = parse_rate(tokenizer, &t->given_rate, err);
    if (status == KVC_OK && tokenizer && t->given_rate <= 0) {
        status = kvc_tokenizer_open(&t->tokenizer, tokenizer, err);
        if (status == KVC_OK)
            status = kvc_encoder_create(&t->encoder, t->tokenizer, err);
    }
    t->fixed = tokenizer != NULL;
    t->started = status == KVC_OK;
    return status;
}

/* ---- rates ---- */

static struct kvc_text_rate *rate_of(struct kvc_import *im, struct kvc_text_import *t,
                                     const struct kvc_span *model)
{
    uint32_t number;
    bool merged = im->options->merge_models || !model->text;
    if (!kvc_intern_get(&t->models, merged ? "" : model->text, merged ? 0 : model->n, &number) ||
        !kvc_grow((void **)&t->rates, &t->rates_cap, (size_t)number + 1, sizeof(*t->rates)))
        return NULL;
    for (; t->n_rates <= number; t->n_rates++)
        t->rates[t->n_rates] = (struct kvc_text_rate){ 0 };
    return &t->rates[number];
}

static void settle_rate(struct kvc_text_rate *r, double fallback)
{
    double own = r->tokens ? (double)r->bytes / (double)r->tokens : 0;
    r->calibrated = own >= 0.5 && own <= 32; /* else the counts are not of these texts */
    r->bytes_per_token = r->calibrated ? own : fallback;
    r->weight = kvc_text_byte_weight(r->bytes_per_token);
}

static void fix_rates(struct kvc_text_import *t)
{
    for (size_t i = 0; i < t->n_rates; i++)
        settle_rate(&t->rates[i], KVC_TEXT_DEFAULT_RATE);
    settle_rate(&t->pooled, KVC_TEXT_DEFAULT_RATE);
    t->fixed = true;
}

/* A model's first row may come when the rates are fixed already. */
static uint64_t weight_of(struct kvc_text_import *t, struct kvc_text_rate *r)
{
    if (t->encoder)
        return KVC_TOKEN_UNIT / sizeof(uint32_t); /* ids of 4 bytes take the place of text */
    if (!r->weight && t->given_rate > 0) {
        r->bytes_per_token = t->given_rate;
        r->weight = kvc_text_byte_weight(t->given_rate);
    } else if (!r->weight) {
        settle_rate(r, t->pooled.bytes_per_token);
    }
    return r->weight;
}

/* What the row tells of bytes and tokens. */
static void learn(struct kvc_text_import *t, struct kvc_text_rate *r, const struct kvc_prompt *p,
                  const struct kvc_log_row *row, const struct kvc_text_facts *facts)
{
    uint64_t bytes = 0, beside = 0;
    for (size_t i = 0; i < p->n_input; i++) {
        const struct kvc_piece *piece = &p->pieces[i];
        bool text = piece->kind != KVC_PIECE_MEDIA && piece->kind != KVC_PIECE_UNKNOWN;
        bytes += text ? piece->n : 0;
        beside += piece->tokens;
    }
    if (!facts->input_stated || p->media_unknown || !bytes || row->input_tokens <= beside)
        return;
    r->bytes += bytes;
    r->tokens += row->input_tokens - beside;
    r->rows++;
    t->pooled.bytes += bytes;
    t->pooled.tokens += row->input_tokens - beside;
    t->pooled.rows++;
}

/* ---- rows ---- */

/* Rows held back of one file and then of another: its clock is another. */
static enum kvc_status next_source(struct kvc_import *im, struct kvc_text_import *t,
                                   struct kvc_error *err)
{
    if (im->file == t->last_file && im->place == t->last_place)
        return KVC_OK;
    struct kvc_clock units = im->clock;
    enum kvc_status status = kvc_import_clock_settle(im, err);
    kvc_import_clock_start(im);
    im->clock.numbers = units.numbers;
    im->clock.epoch = units.epoch;
    im->clock.unit = units.unit;
    t->last_file = im->file;
    t->last_place = im->place;
    return status;
}

static enum kvc_status hand_on(struct kvc_import *im, struct kvc_text_import *t,
                               const struct kvc_prompt *p, const struct kvc_log_row *row,
                               const struct kvc_text_facts *facts, struct kvc_error *err)
{
    struct kvc_log_row r = *row;
    struct kvc_text_rate *rate = rate_of(im, t, &row->model);
    if (!rate || (t->hook.prompt && !t->hook.prompt(t->hook.user, p, row, facts)))
        return kvc_fail_nomem(err);
    enum kvc_status status = next_source(im, t, err);
    if (status != KVC_OK)
        return status;
    return kvc_text_cut_row(im, t, p, &r, facts, weight_of(t, rate), err);
}

static void copy_span(struct kvc_span *span, char **at)
{
    if (!span->text)
        return;
    if (span->n)
        memcpy(*at, span->text, span->n);
    span->text = *at;
    *at += span->n;
}

static bool hold(struct kvc_import *im, struct kvc_text_import *t, const struct kvc_prompt *p,
                 const struct kvc_log_row *row, const struct kvc_text_facts *facts)
{
    struct kvc_text_held h = { .row = *row, .facts = *facts, .prompt = *p, .file = im->file,
                               .line = im->lines.line, .place = im->place };
    struct kvc_span *spans[] = { &h.row.session, &h.row.tenant, &h.row.model, &h.row.adapter,
                                 &h.row.salt, &h.row.instance };
    size_t n_names = 1;
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
        n_names += spans[i]->n;
    if (!kvc_grow((void **)&t->held, &t->held_cap, t->n_held + 1, sizeof(*t->held)))
        return false;
    h.names = kvc_malloc(n_names, 1);
    h.prompt.text = kvc_malloc(p->n + 1, 1);
    h.prompt.pieces = kvc_malloc(p->n_pieces + 1, sizeof(*p->pieces));
    if (!h.names || !h.prompt.text || !h.prompt.pieces) {
        kvc_free(h.names);
        kvc_free(h.prompt.text);
        kvc_free(h.prompt.pieces);
        return false;
    }
    char *at = h.names;
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
        copy_span(spans[i], &at);
    if (p->n)
        memcpy(h.prompt.text, p->text, p->n);
    if (p->n_pieces)
        memcpy(h.prompt.pieces, p->pieces, p->n_pieces * sizeof(*p->pieces));
    t->held[t->n_held++] = h;
    t->held_bytes += p->n + p->n_pieces * sizeof(*p->pieces);
    return true;
}

static void free_held(struct kvc_text_held *h)
{
    kvc_free(h->names);
    kvc_free(h->prompt.text);
    kvc_free(h->prompt.pieces);
}

/* Rows are handed on as if they were being read now, so that errors name their place. */
static enum kvc_status release(struct kvc_import *im, struct kvc_text_import *t,
                               struct kvc_error *err)
{
    uint64_t line = im->lines.line;
    size_t file = im->file;
    uint32_t place = im->place;
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < t->n_held; i++) {
        struct kvc_text_held *h = &t->held[i];
        im->lines.line = h->line;
        im->file = h->file;
        im->place = h->place;
        if (status == KVC_OK)
            status = hand_on(im, t, &h->prompt, &h->row, &h->facts, err);
        free_held(h);
    }
    im->lines.line = line;
    im->file = file;
    im->place = place;
    kvc_free(t->held);
    t->held = NULL;
    t->n_held = t->held_cap = t->held_bytes = 0;
    return status;
}

enum kvc_status kvc_text_row(struct kvc_import *im, const struct kvc_prompt *p,
                             const struct kvc_log_row *row, const struct kvc_text_facts *facts,
                             struct kvc_error *err)
{
    struct kvc_text_import *t = NULL;
    enum kvc_status status = p->failed ? kvc_fail_nomem(err) : state_of(im, &t, err);
    if (status == KVC_OK && !t->started)
        status = start(im, t, err);
    if (status != KVC_OK)
        return status;
    if (t->fixed)
        return hand_on(im, t, p, row, facts, err);
    struct kvc_text_rate *rate = rate_of(im, t, &row->model);
    if (!rate || !hold(im, t, p, row, facts))
        return kvc_fail_nomem(err);
    learn(t, rate, p, row, facts);
    if (t->held_bytes < KVC_TEXT_HOLD && t->n_held < KVC_TEXT_HOLD_ROWS)
        return KVC_OK;
    fix_rates(t);
    return release(im, t, err);
}

enum kvc_status kvc_text_finish(struct kvc_import *im, struct kvc_error *err)
{
    struct kvc_text_import *t = im->text;
    if (!t || !t->started) {
        if (im->options->tokenizer)
            kvc_import_note(im, "--tokenizer had nothing to do: the log holds no text");
        return KVC_OK;
    }
    if (!t->fixed)
        fix_rates(t);
    enum kvc_status status = release(im, t, err);
    if (status == KVC_OK)
        status = kvc_import_clock_settle(im, err);
    if (status == KVC_OK)
        kvc_text_notes(im, t);
    return status;
}

double kvc_text_rate(const struct kvc_import *im)
{
    const struct kvc_text_import *t = im->text;
    if (!t || !t->started)
        return 0;
    double rate = t->given_rate > 0 ? t->given_rate : t->pooled.bytes_per_token;
    return rate > 0 ? rate : KVC_TEXT_DEFAULT_RATE;
}

void kvc_text_destroy(struct kvc_import *im)
{
    struct kvc_text_import *t = im->text;
    if (!t)
        return;
    for (size_t i = 0; i < t->n_held; i++)
        free_held(&t->held[i]);
    kvc_free(t->held);
    kvc_encoder_destroy(t->encoder);
    kvc_tokenizer_close(t->tokenizer);
    kvc_free(t->tokens.v);
    kvc_intern_clear(&t->models);
    kvc_free(t->rates);
    kvc_free(t->chain.ids);
    kvc_free(t->fine.ids);
    kvc_free(t->ends.young);
    kvc_free(t->ends.old);
    kvc_free(t->path);
    kvc_free(t);
    im->text = NULL;
}
