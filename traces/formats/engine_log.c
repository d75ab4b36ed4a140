/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/formats/engine_log.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/formats/token_chain.h"
#include "traces/import/import_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MOST ((size_t)1 << 17) /* requests behind one that doesn't end, whose end the log may
                                       have lost */

#define SHRINK_FROM 4096 /* requests handed on */

/* ---- lines ---- */

const char *kvc_line_after(const char *line, size_t n, const char *key, size_t *rest)
{
    size_t k = strlen(key);
    const char *p = memmem(line, n, key, k);
    if (!p)
        return NULL;
    *rest = n - (size_t)(p - line) - k;
    return p + k;
}

bool kvc_line_number(const char *line, size_t n, const char *key, double *out)
{
    char text[48], *behind;
    size_t rest, k = 0;
    const char *p = kvc_line_after(line, n, key, &rest);
    if (!p)
        return false;
    for (size_t i = 0; i < rest && k + 1 < sizeof(text); i++) {
        bool thousands = p[i] == ',' && i + 3 < rest && k && p[i + 1] >= '0' && p[i + 1] <= '9' &&
                         p[i + 2] >= '0' && p[i + 2] <= '9' && p[i + 3] >= '0' && p[i + 3] <= '9';
        if (thousands)
            continue;
        if ((p[i] < '0' || p[i] > '9') && p[i] != '.' && p[i] != '-')
            break;
        text[k++] = p[i];
    }
    text[k] = '\0';
    *out = strtod(text, &behind);
    return behind != text;
}

bool kvc_line_u64(const char *line, size_t n, const char *key, uint64_t *out)
{
    double v;
    if (!kvc_line_number(line, n, key, &v) || v < 0 || v >= 9e15)
        return false;
    *out = (uint64_t)v;
    return true;
}

/* ---- times ---- */

/* A full date that begins at p. */
static bool full_date(const char *p, size_t n, uint64_t *ns)
{
    size_t k = 0;
    while (k < n && k < 40 && p[k] && strchr("0123456789-:.,+TZ", p[k]))
        k++;
    if (k == 10 && n > 19 && p[10] == ' ') /* the clock stands behind a space */
        for (k = 11; k < n && k < 40 && p[k] && strchr("0123456789:.,+Z", p[k]);)
            k++;
    return k >= 19 && kvc_time_from_date(p, k, ns);
}

static bool two_digits(const char *p, unsigned *out)
{
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
        return false;
    *out = (unsigned)(p[0] - '0') * 10 + (unsigned)(p[1] - '0');
    return true;
}

/* MM-DD HH:MM:SS: years are counted from a leap year on, up when December turns January. */
static bool short_date(struct kvc_line_clock *c, const char *p, size_t n, uint64_t *ns)
{
    char text[32];
    unsigned month, day;
    if (n < 14 || !two_digits(p, &month) || p[2] != '-' || !two_digits(p + 3, &day) || p[5] != ' ')
        return false;
    unsigned year = c->year ? c->year : 2024;
    if (c->month > month + 6)
        year++;
    snprintf(text, sizeof(text), "%u-%.5s %.8s", year, p, p + 6);
    if (!kvc_time_from_date(text, strlen(text), ns))
        return false;
    c->year = year;
    c->month = month;
    c->yearless = true;
    return true;
}

uint64_t kvc_line_time(struct kvc_line_clock *c, const char *line, size_t n)
{
    static const char *const levels[] = { "INFO ", "DEBUG ", "WARNING ", "ERROR " };
    uint64_t ns;
    size_t rest, head = n < 160 ? n : 160;
    const char *bracket = memchr(line, '[', head);
    bool known = full_date(line, n, &ns) ||
                 (bracket && full_date(bracket + 1, n - (size_t)(bracket + 1 - line), &ns));
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]) && !known; i++) {
        const char *p = kvc_line_after(line, head, levels[i], &rest);
        known = p && (full_date(p, rest, &ns) || short_date(c, p, rest, &ns));
    }
    if (known)
        c->last_ns = ns;
    return c->last_ns;
}

/* ---- engines ---- */

struct kvc_engine_facts *kvc_import_engine(struct kvc_import *im, const char *name)
{
    struct kvc_import_report *r = &im->report;
    for (uint32_t i = 0; i < r->n_engines; i++)
        if (strncmp(r->engines[i].name, name, sizeof(r->engines[i].name) - 1) == 0)
            return &r->engines[i];
    if (r->n_engines == KVC_REPORT_ENGINES) {
        kvc_import_tally(im, "statements of engines beyond the 32nd, not shown");
        return NULL;
    }
    struct kvc_engine_facts *e = &r->engines[r->n_engines++];
    *e = (struct kvc_engine_facts){ .kv_used_peak = -1, .hit_rate_last = -1,
                                    .external_hit_rate_last = -1,
                                    .prompt_tokens_per_s_peak = -1,
                                    .output_tokens_per_s_peak = -1 };
    snprintf(e->name, sizeof(e->name), "%s", name);
    return e;
}

void kvc_peak_u64(uint64_t *peak, uint64_t v)
{
    *peak = v > *peak ? v : *peak;
}

void kvc_peak(double *peak, double v)
{
    *peak = v > *peak ? v : *peak;
}

enum kvc_status kvc_engine_log_end(struct kvc_import *im, const char *cure, struct kvc_error *err)
{
    uint64_t lines = 0;
    uint32_t sizes = 0, engines = im->report.n_engines;
    if (im->report.accepted || im->report.bad)
        return KVC_OK;
    for (uint32_t i = 0; i < engines; i++) {
        lines += im->report.engines[i].lines;
        sizes += im->report.engines[i].kv_cache_tokens != 0;
    }
    if (!engines)
        return KVC_OK;
    return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                       "no request can be made of this log: it holds %llu lines of statistics or "
                       "batches and %u sizes of KV caches, of %u engine%s, and `kvcast inspect` "
                       "shows them; sums over many requests don't tell one from another. %s",
                       (unsigned long long)lines, sizes, engines, engines == 1 ? "" : "s", cure);
}

/* ---- requests ---- */

struct kvc_open_request *kvc_open_request(struct kvc_open_requests *r, const char *id, size_t n,
                                          bool create, uint64_t time_ns, uint64_t line)
{
    uint32_t number;
    size_t had = r->index_cap;
    if (!create && !kvc_intern_find(&r->ids, id, n, &number))
        return NULL;
    if (create && (!kvc_intern_get(&r->ids, id, n, &number) ||
                   !kvc_grow((void **)&r->index, &r->index_cap, (size_t)number + 1,
                             sizeof(*r->index))))
        return NULL;
    if (r->index_cap > had)
        memset(r->index + had, 0xff, (r->index_cap - had) * sizeof(*r->index));
    size_t at = r->index[number];
    if (at != SIZE_MAX && at >= r->first && !r->all[at].gone)
        return &r->all[at];
    if (!create ||
        !kvc_grow((void **)&r->all, &r->cap, r->n + 1, sizeof(*r->all)))
        return NULL;
    r->index[number] = r->n;
    r->all[r->n] = (struct kvc_open_request){ .time_ns = time_ns, .line = line };
    return &r->all[r->n++];
}

static void forget(struct kvc_open_request *q)
{
    kvc_free(q->token_ids);
    kvc_free(q->text);
    kvc_free(q->adapter);
    kvc_free(q->salt);
    kvc_free(q->model);
    q->token_ids = NULL;
    q->text = q->adapter = q->salt = q->model = NULL;
    q->gone = true;
}

static struct kvc_span span_of(const char *s)
{
    return (struct kvc_span){ s, s ? strlen(s) : 0 };
}

static bool cut(struct kvc_open_requests *r, const struct kvc_open_request *q, uint32_t block,
                struct kvc_log_row *row)
{
    struct kvc_token_chain c = { .block = block };
    if (!kvc_grow((void **)&r->blocks.v, &r->blocks.cap, q->n_token_ids / block + 1,
                  sizeof(*r->blocks.v)))
        return false;
    for (size_t i = 0; i < q->n_token_ids; i++)
        kvc_token_chain_add(&c, q->token_ids[i], r->blocks.v);
    if (c.in_block)
        r->blocks.v[c.blocks++] = kvc_token_chain_tail(&c);
    row->ids = r->blocks.v;
    row->n_ids = c.blocks;
    return true;
}

static enum kvc_status hand_on(struct kvc_open_requests *r, const struct kvc_open_request *q,
                               struct kvc_import *im, struct kvc_error *err)
{
    struct kvc_log_row row = { .time_ns = q->time_ns, .think_ns = KVC_TIME_NONE,
                               .input_tokens = q->input_tokens,
                               .output_tokens = q->output_tokens, .status = q->status,
                               .model = span_of(q->model), .adapter = span_of(q->adapter),
                               .salt = span_of(q->salt) };
    struct kvc_text_facts facts = { .input_stated = q->input_stated,
                                    .output_stated = q->output_stated,
                                    .thinking_tokens = KVC_ID_NONE };
    if (q->token_ids)
        row.input_tokens = (uint32_t)q->n_token_ids;
    if (!row.input_tokens && !q->text) {
        if (q->status == KVC_ROW_FAILED)
            kvc_import_failed_unseen(im);
        else
            kvc_import_tally(im, q->cut ? "requests whose prompts the log cuts short; left out"
                                        : "requests without the length of the prompt; left out");
        return KVC_OK;
    }
    if (q->cached_stated && q->cached_tokens <= row.input_tokens) {
        row.cached_stated = true;
        row.cached_tokens = q->cached_tokens;
    }
    if (!q->output_stated && q->status != KVC_ROW_FAILED)
        row.output_tokens = KVC_TOKENS_UNKNOWN;
    if (q->token_ids) {
        if (!cut(r, q, kvc_import_block_tokens(im), &row))
            return kvc_fail_nomem(err);
        return kvc_import_row(im, &row, false, err);
    }
    kvc_prompt_begin(&r->prompt);
    if (q->text)
        kvc_prompt_add(&r->prompt, KVC_PIECE_TEXT, q->text, q->n_text);
    kvc_prompt_answer(&r->prompt);
    return kvc_text_row(im, &r->prompt, &row, &facts, err);
}

/* Leaves out the requests handed on, which nobody asks for again, once they are most. */
static bool shrink(struct kvc_open_requests *r)
{
    struct kvc_intern ids = { 0 };
    size_t room = r->n - r->first + 1;
    uint32_t number;
    if (r->first < SHRINK_FROM || r->first * 2 < r->n)
        return true;
    size_t *index = kvc_malloc(room, sizeof(*index));
    if (!index)
        return false;
    memset(index, 0xff, room * sizeof(*index));
    for (size_t i = 0; i < r->ids.n; i++) {
        const char *id = r->ids.bytes + r->ids.at[i];
        size_t end = i + 1 < r->ids.n ? r->ids.at[i + 1] : r->ids.n_bytes;
        if (r->index[i] == SIZE_MAX || r->index[i] < r->first)
            continue;
        if (!kvc_intern_get(&ids, id, end - r->ids.at[i] - 1, &number)) {
            kvc_intern_clear(&ids);
            kvc_free(index);
            return false;
        }
        index[number] = r->index[i] - r->first;
    }
    r->n -= r->first;
    memmove(r->all, r->all + r->first, r->n * sizeof(*r->all));
    r->first = 0;
    kvc_intern_clear(&r->ids);
    kvc_free(r->index);
    r->ids = ids;
    r->index = index;
    r->index_cap = room;
    return true;
}

enum kvc_status kvc_open_requests_hand_on(struct kvc_open_requests *r, struct kvc_import *im,
                                          bool all, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    uint64_t line = im->lines.line;
    while (r->first < r->n && status == KVC_OK) {
        struct kvc_open_request *q = &r->all[r->first];
        if (!all && !q->done && r->n - r->first < HELD_MOST)
            break;
        im->lines.line = q->line;
        status = hand_on(r, q, im, err);
        forget(q);
        r->first++;
    }
    im->lines.line = line;
    return status != KVC_OK || shrink(r) ? status : kvc_fail_nomem(err);
}

void kvc_open_requests_clear(struct kvc_open_requests *r)
{
    for (size_t i = r->first; i < r->n; i++)
        forget(&r->all[i]);
    kvc_free(r->all);
    kvc_free(r->index);
    kvc_free(r->blocks.v);
    kvc_prompt_clear(&r->prompt);
    kvc_intern_clear(&r->ids);
    memset(r, 0, sizeof(*r));
}

bool kvc_open_request_ids(struct kvc_open_request *q, const uint64_t *ids, size_t n)
{
    if (q->token_ids || q->text)
        return true;
    q->token_ids = kvc_malloc(n, sizeof(*q->token_ids));
    if (!q->token_ids)
        return false;
    if (n)
        memcpy(q->token_ids, ids, n * sizeof(*q->token_ids));
    q->n_token_ids = n;
    return true;
}

bool kvc_open_request_text(struct kvc_open_request *q, const char *text, size_t n)
{
    if (q->token_ids || q->text)
        return true;
    q->text = kvc_malloc(n, 1);
    if (!q->text)
        return false;
    if (n)
        memcpy(q->text, text, n);
    q->n_text = n;
    return true;
}

/* ---- reading ---- */

enum kvc_status kvc_engine_log_read(struct kvc_engine_log *l, kvc_engine_line_fn *line,
                                    struct kvc_error *err)
{
    uint64_t others = 0;
    bool known;
    enum kvc_status status;
    l->clock.last_ns = KVC_TIME_NONE;
    while ((status = kvc_import_line(l->im, &l->line, &l->n, err)) == KVC_OK && l->line) {
        status = line(l, &known, err);
        others += !known;
        if (status == KVC_OK)
            status = kvc_open_requests_hand_on(&l->requests, l->im, false, err);
        if (status != KVC_OK)
            break;
    }
    if (status == KVC_OK)
        status = kvc_open_requests_hand_on(&l->requests, l->im, true, err);
    if (others)
        kvc_import_tally_rows(l->im, "lines about other things", others);
    kvc_open_requests_clear(&l->requests);
    kvc_free(l->ids.v);
    kvc_text_clear(&l->text);
    return status;
}
