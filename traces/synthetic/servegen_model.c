/* SPDX-License-Identifier: Apache-2.0
 * The files of ServeGen's models (alibaba/ServeGen). chunk-N-trace.csv, without a header: start of
 * the window (s), requests per second, CV of the gaps, Gamma or Weibull, shape, scale; no law where
 * the rate is 0. chunk-N-dataset.json: by window start, {field: "{length: probability, ..}"}, the
 * inner text being a Python dict. */
#include "traces/synthetic/servegen.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of what is drawn in one go; more is a slip of the pen. */
#define LONGEST_S ((uint64_t)1000 * 86400)
#define MOST_PER_S 1e6

static const char *const fields[KVC_SG_FIELDS] = {
    "input_tokens", "text_tokens", "output_tokens", "image_count", "image_tokens", "audio_count",
    "audio_tokens", "video_count", "video_tokens"
};

/* ---- clients ---- */

static struct kvc_servegen_client *client_of(struct kvc_servegen *m, uint32_t number)
{
    size_t at = 0;
    while (at < m->n && m->client[at].number < number)
        at++;
    if (at < m->n && m->client[at].number == number)
        return &m->client[at];
    if (!kvc_grow((void **)&m->client, &m->cap, m->n + 1, sizeof(*m->client)))
        return NULL;
    memmove(m->client + at + 1, m->client + at, (m->n - at) * sizeof(*m->client));
    m->client[at] = (struct kvc_servegen_client){ .number = number };
    m->n++;
    return &m->client[at];
}

static void clear_client(struct kvc_servegen_client *c)
{
    for (size_t i = 0; i < c->n_lengths; i++) {
        for (size_t f = 0; f < KVC_SG_FIELDS; f++) {
            kvc_free(c->lengths[i].field[f].value);
            kvc_free(c->lengths[i].field[f].cumulative);
        }
    }
    kvc_free(c->lengths);
    kvc_free(c->window);
}

void kvc_servegen_clear(struct kvc_servegen *m)
{
    for (size_t i = 0; i < m->n; i++)
        clear_client(&m->client[i]);
    kvc_free(m->client);
    *m = (struct kvc_servegen){ 0 };
}

/* ---- windows ---- */

static enum kvc_status wrong_window(const char *name, uint64_t line, const char *field,
                                    const char *rule, struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, name, line, field, "%s", rule);
}

/* One field up to the comma or the end, as a number; an empty one is *given false. */
static bool number(const char *p, bool *given, double *out)
{
    char *end;
    *given = *p && *p != ',';
    *out = 0;
    if (!*given)
        return true;
    *out = strtod(p, &end);
    return (*end == ',' || !*end) && isfinite(*out) && *out >= 0 && !strchr("+- \t", *p);
}

static enum kvc_status window(const char *name, uint64_t line, char *text,
                              struct kvc_servegen_window *out, struct kvc_error *err)
{
    const char *column[6] = { text };
    double start, rate, cv, shape, scale;
    bool given[6];
    size_t n = 1;
    for (char *p = text; (p = strchr(p, ',')); n++) {
        if (n == 6)
            return wrong_window(name, line, NULL, "more than 6 columns", err);
        column[n] = ++p;
    }
    if (n != 6)
        return wrong_window(name, line, NULL, "6 columns are expected: window start (s), requests "
                            "per second, CV, law, shape, scale", err);
    if (!number(column[0], &given[0], &start) || !given[0] || start != floor(start) ||
        start > (double)LONGEST_S)
        return wrong_window(name, line, "1", "the start of a window in whole seconds, at most 1000 "
                            "days, is expected", err);
    if (!number(column[1], &given[1], &rate) || rate > MOST_PER_S)
        return wrong_window(name, line, "2", "requests per second from 0 to a million are expected",
                            err);
    *out = (struct kvc_servegen_window){ .start_s = (uint64_t)start, .per_s = rate };
    if (rate == 0)
        return KVC_OK;
    out->law = strncmp(column[3], "Gamma,", 6) == 0     ? KVC_GAPS_GAMMA
               : strncmp(column[3], "Weibull,", 8) == 0 ? KVC_GAPS_WEIBULL
                                                        : KVC_GAPS_NONE;
    if (out->law == KVC_GAPS_NONE)
        return wrong_window(name, line, "4", "the law of gaps is Gamma or Weibull", err);
    if (!number(column[2], &given[2], &cv) || !number(column[4], &given[4], &shape) ||
        !number(column[5], &given[5], &scale) || !given[4] || shape < 1e-4 || shape > 1e6)
        return wrong_window(name, line, "5", "a shape from 0.0001 to a million is expected, and "
                            "numbers around it", err);
    out->shape = shape;
    return KVC_OK;
}

static enum kvc_status take_windows(struct kvc_servegen_client *c, const char *name,
                                    const char *text, size_t n, struct kvc_error *err)
{
    const char *end = text + n;
    uint64_t line = 0;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((stop ? stop : end) - text);
        char row[256];
        line++;
        if (len && text[len - 1] == '\r')
            len--;
        if (len >= sizeof(row) || (len && memchr(text, 0, len)))
            return wrong_window(name, line, NULL, "no row of rates is that long, or binary", err);
        memcpy(row, text, len);
        row[len] = '\0';
        text = stop ? stop + 1 : end;
        if (!row[strspn(row, " \t")])
            continue;
        if (!kvc_grow((void **)&c->window, &c->windows_cap, c->n_windows + 1, sizeof(*c->window)))
            return kvc_fail_nomem(err);
        struct kvc_servegen_window *w = &c->window[c->n_windows];
        enum kvc_status status = window(name, line, row, w, err);
        if (status != KVC_OK)
            return status;
        if (c->n_windows && w->start_s <= w[-1].start_s)
            return wrong_window(name, line, "1", "windows in ascending order are expected", err);
        c->n_windows++;
    }
    return KVC_OK;
}

/* ---- lengths ---- */

/* "{102: 0.00119, 103: 0.0119}" */
static bool parse_pmf(const char *p, struct kvc_servegen_pmf *out)
{
    size_t cap = 0, cap2 = 0;
    double sum = 0;
    char *end;
    p += strspn(p, " ");
    if (*p++ != '{')
        return false;
    for (p += strspn(p, " "); *p != '}'; p += strspn(p, " ")) {
        unsigned long long value = strtoull(p, &end, 10);
        if (end == p || !strchr("0123456789", *p) || value > INT32_MAX || *end != ':')
            return false;
        p = end + 1 + strspn(end + 1, " ");
        double share = strtod(p, &end);
        if (end == p || !strchr("0123456789.", *p) || !(share >= 0 && share <= 1))
            return false;
        p = end + strspn(end, " ");
        if (*p == ',')
            p++;
        else if (*p != '}')
            return false;
        if (share == 0)
            continue;
        if (!kvc_grow((void **)&out->value, &cap, out->n + 1, sizeof(*out->value)) ||
            !kvc_grow((void **)&out->cumulative, &cap2, out->n + 1, sizeof(*out->cumulative)))
            return false;
        out->value[out->n] = (uint32_t)value;
        out->cumulative[out->n++] = sum += share;
    }
    return !out->n || (sum > 0.999 && sum < 1.001);
}

static bool second_of(const char *key, uint64_t *out)
{
    char *end;
    *out = strtoull(key, &end, 10);
    return end > key && !*end && strchr("0123456789", *key) && *out <= LONGEST_S;
}

static enum kvc_status take_fields(struct kvc_servegen_lengths *l, const struct kvc_jval *object,
                                   const char *name, struct kvc_error *err)
{
    for (const struct kvc_jval *v = kvc_jval_first(object); v; v = kvc_jval_next(v)) {
        const char *key = kvc_jval_key(v), *text = kvc_jval_string(v);
        size_t f = 0;
        while (f < KVC_SG_FIELDS && strcmp(fields[f], key) != 0)
            f++;
        if (f == KVC_SG_FIELDS)
            continue;
        if (!text || !parse_pmf(text, &l->field[f]))
            return kvc_fail_at(err, KVC_ERR_INPUT, name, kvc_jval_line(v), key, "a text "
                               "\"{length: probability, ..}\" is expected, the probabilities "
                               "adding up to 1 within 0.001");
    }
    return KVC_OK;
}

static enum kvc_status take_lengths(struct kvc_servegen_client *c, const char *name,
                                    const char *text, size_t n, struct kvc_error *err)
{
    struct kvc_jval *root = NULL;
    enum kvc_status status = kvc_json_parse(&root, text, n, false, name, 1, err);
    if (status == KVC_OK && kvc_jval_kind(root) != KVC_JOBJECT)
        status = kvc_fail_at(err, KVC_ERR_INPUT, name, 1, NULL,
                             "an object with windows is expected");
    for (const struct kvc_jval *v = status == KVC_OK ? kvc_jval_first(root) : NULL;
         v && status == KVC_OK; v = kvc_jval_next(v)) {
        uint64_t start;
        if (!second_of(kvc_jval_key(v), &start) || kvc_jval_kind(v) != KVC_JOBJECT) {
            status = kvc_fail_at(err, KVC_ERR_INPUT, name, kvc_jval_line(v), kvc_jval_key(v),
                                 "an object under the start of its window in seconds is expected");
            break;
        }
        if (!kvc_grow((void **)&c->lengths, &c->lengths_cap, c->n_lengths + 1,
                      sizeof(*c->lengths))) {
            status = kvc_fail_nomem(err);
            break;
        }
        c->lengths[c->n_lengths] = (struct kvc_servegen_lengths){ .start_s = start };
        status = take_fields(&c->lengths[c->n_lengths++], v, name, err);
    }
    kvc_json_free(root);
    return status;
}

/* ---- files ---- */

/* Whether the name is chunk-N-trace.csv or chunk-N-dataset.json, folders aside. */
static bool chunk_name(const char *name, uint32_t *number, bool *dataset)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    char *end;
    if (strncmp(base, "chunk-", 6) != 0 || !strchr("0123456789", base[6]))
        return false;
    unsigned long n = strtoul(base + 6, &end, 10);
    *number = (uint32_t)n;
    *dataset = strcmp(end, "-dataset.json") == 0;
    return n < UINT32_MAX && (*dataset || strcmp(end, "-trace.csv") == 0);
}

enum kvc_status kvc_servegen_take(struct kvc_servegen *m, const char *name, const char *text,
                                  size_t n, struct kvc_error *err)
{
    uint32_t number_;
    bool dataset;
    if (!chunk_name(name, &number_, &dataset))
        return KVC_OK;
    struct kvc_servegen_client *c = client_of(m, number_);
    if (!c)
        return kvc_fail_nomem(err);
    bool *has = dataset ? &c->has_dataset : &c->has_trace;
    if (*has)
        return kvc_fail_at(err, KVC_ERR_INPUT, name, 0, NULL, "chunk-%u is there twice: name one "
                           "model of ServeGen, not several", number_);
    *has = true;
    return dataset ? take_lengths(c, name, text, n, err) : take_windows(c, name, text, n, err);
}

static int by_start(const void *a, const void *b)
{
    const struct kvc_servegen_lengths *x = a, *y = b;
    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

enum kvc_status kvc_servegen_settle(struct kvc_servegen *m, const char *path, struct kvc_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct kvc_servegen_client *c = &m->client[i];
        if (!c->n_windows) {
            clear_client(c);
            continue;
        }
        if (c->n_lengths)
            qsort(c->lengths, c->n_lengths, sizeof(*c->lengths), by_start);
        if (!m->window_s && c->n_windows > 1)
            m->window_s = c->window[1].start_s - c->window[0].start_s;
        m->client[kept++] = *c;
    }
    m->n = kept;
    if (!m->window_s)
        m->window_s = 600;
    if (!kept)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "no model of ServeGen in it: files "
                           "named chunk-N-trace.csv and chunk-N-dataset.json are expected");
    for (size_t i = 0; i < kept; i++)
        for (size_t w = 1; w < m->client[i].n_windows; w++)
            if (m->client[i].window[w].start_s - m->client[i].window[w - 1].start_s !=
                m->window_s)
                return kvc_fail_at(err, KVC_ERR_INPUT, path, w + 1, "1", "chunk-%u: windows of "
                                   "%llu s are expected, as in the others", m->client[i].number,
                                   (unsigned long long)m->window_s);
    return KVC_OK;
}

const struct kvc_servegen_lengths *kvc_servegen_lengths_at(const struct kvc_servegen_client *c,
                                                           uint64_t second)
{
    size_t lo = 0, hi = c->n_lengths;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->lengths[mid].start_s <= second)
            lo = mid + 1;
        else
            hi = mid;
    }
    const struct kvc_servegen_lengths *l = lo ? &c->lengths[lo - 1] : NULL;
    bool input = l && (l->field[KVC_SG_INPUT].n || l->field[KVC_SG_TEXT].n);
    return input && l->field[KVC_SG_OUTPUT].n ? l : NULL;
}
