/* SPDX-License-Identifier: Apache-2.0
 * Requests drawn from ServeGen's models, as Mooncake JSON lines without block ids.
 *
 * A client's window of T seconds at rate r gets n = rT requests (r comes from counts, so that is
 * whole; a scaled rate is rounded at random, its mean kept). n + 1 gaps are drawn from the window's
 * law and scaled to fill T: the rate is the model's, and the gaps' spread is the law's. That takes
 * the gaps' sum beforehand: the stream is run through twice. Lengths are drawn from the window
 * of lengths, input and output independently, as the model has no more than that. */
#include "traces/synthetic/servegen.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "traces/parse/packfile.h"
#include "traces/synthetic/variates.h"

#include <stdio.h>
#include <string.h>

struct source { /* a client at work */
    const struct kvc_servegen_client *c;
    const struct kvc_servegen_lengths *lengths; /* of its current window */
    size_t window;
    uint64_t gaps, count, lengths_stream; /* gaps: stream of the window being drawn */
    uint64_t left;                        /* requests of the window still to come */
    double at, unit;                      /* seconds into the window; a gap of 1 in seconds */
    uint64_t ns;                          /* of its next request, from the beginning */
};

struct draw {
    const struct kvc_servegen_config *config;
    struct kvc_servegen models;
    struct source *source;
    struct source **heap; /* by time, then client */
    size_t n;
    uint64_t begin_s, end_s;
    double scale;
    struct kvc_packfile *file;
    struct kvc_servegen_report *report;
};

static double gap(uint64_t *stream, const struct kvc_servegen_window *w)
{
    return w->law == KVC_GAPS_GAMMA ? kvc_draw_gamma(stream, w->shape)
                                    : kvc_draw_weibull(stream, w->shape);
}

/* Each window has its own stream: what is drawn for it does not depend on where one begins. */
static uint64_t stream(const struct draw *d, const struct kvc_servegen_client *c,
                       const struct kvc_servegen_window *w, const char *what)
{
    uint64_t of = kvc_rng_stream(d->config->seed, what);
    return kvc_mix64(kvc_mix64(of ^ c->number) ^ w->start_s);
}

/* Makes ready the window's requests; false when there are none. */
static bool start_window(struct draw *d, struct source *s)
{
    const struct kvc_servegen_window *w = &s->c->window[s->window];
    double expected = w->per_s * d->scale * (double)d->models.window_s, sum = 0;
    uint64_t at;
    /* Counts divided by the window: rounding errors of the division are not fractions. */
    if (fabs(expected - floor(expected + 0.5)) < 1e-6)
        expected = floor(expected + 0.5);
    s->count = stream(d, s->c, w, "servegen.count");
    s->left = w->law == KVC_GAPS_NONE ? 0 : kvc_draw_round(&s->count, expected);
    s->lengths = kvc_servegen_lengths_at(s->c, w->start_s);
    if (!s->lengths) {
        d->report->without_lengths += s->left;
        s->left = 0;
    }
    if (!s->left)
        return false;
    at = s->gaps = stream(d, s->c, w, "servegen.gap");
    for (uint64_t i = 0; i <= s->left; i++)
        sum += gap(&at, w);
    s->lengths_stream = stream(d, s->c, w, "servegen.length");
    s->unit = sum > 0 ? (double)d->models.window_s / sum : 0;
    s->at = 0;
    return true;
}

/* The next request of the client, in this window or a later one; false: no more. */
static bool advance(struct draw *d, struct source *s)
{
    while (!s->left) {
        do
            if (++s->window >= s->c->n_windows)
                return false;
        while (s->c->window[s->window].start_s < d->begin_s);
        if (s->c->window[s->window].start_s >= d->end_s)
            return false;
        start_window(d, s);
    }
    const struct kvc_servegen_window *w = &s->c->window[s->window];
    s->left--;
    s->at += gap(&s->gaps, w) * s->unit;
    uint64_t us = (uint64_t)(s->at * 1e6), end = d->models.window_s * 1000000;
    us = us < end ? us : end - 1; /* the last gap may be nothing, or rounding's */
    s->ns = (w->start_s - d->begin_s) * 1000000000 + us * 1000;
    return s->ns < (d->end_s - d->begin_s) * 1000000000;
}

/* ---- the clients in order ---- */

static bool before(const struct source *a, const struct source *b)
{
    return a->ns != b->ns ? a->ns < b->ns : a->c->number < b->c->number;
}

static void sift_down(struct draw *d, size_t i)
{
    for (size_t k; (k = 2 * i + 1) < d->n; i = k) {
        if (k + 1 < d->n && before(d->heap[k + 1], d->heap[k]))
            k++;
        if (!before(d->heap[k], d->heap[i]))
            break;
        struct source *t = d->heap[i];
        d->heap[i] = d->heap[k];
        d->heap[k] = t;
    }
}

/* ---- rows ---- */

static uint32_t draw_length(uint64_t *rng, const struct kvc_servegen_pmf *p)
{
    uint32_t lo = 0, hi = p->n - 1;
    if (!p->n)
        return 0;
    double at = kvc_rng_unit(rng) * p->cumulative[p->n - 1];
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->cumulative[mid] > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return p->value[lo];
}

static uint64_t draw_items(uint64_t *rng, const struct kvc_servegen_lengths *l,
                           enum kvc_servegen_field count, enum kvc_servegen_field tokens)
{
    uint64_t sum = 0;
    for (uint32_t n = draw_length(rng, &l->field[count]); n && sum <= INT32_MAX; n--)
        sum += draw_length(rng, &l->field[tokens]);
    return sum;
}

static enum kvc_status put_row(struct draw *d, struct source *s, struct kvc_error *err)
{
    const struct kvc_servegen_lengths *l = s->lengths;
    uint64_t *rng = &s->lengths_stream;
    uint64_t input = draw_length(rng, &l->field[KVC_SG_INPUT]);
    char text[200];
    input += draw_length(rng, &l->field[KVC_SG_TEXT]);
    input += draw_items(rng, l, KVC_SG_IMAGE_COUNT, KVC_SG_IMAGE);
    input += draw_items(rng, l, KVC_SG_AUDIO_COUNT, KVC_SG_AUDIO);
    input += draw_items(rng, l, KVC_SG_VIDEO_COUNT, KVC_SG_VIDEO);
    uint32_t output = draw_length(rng, &l->field[KVC_SG_OUTPUT]);
    if (input > INT32_MAX)
        return kvc_fail(err, KVC_ERR_LIMIT, "a prompt of more than 2^31 tokens arose");
    d->report->empty_prompts += input == 0;
    int n = snprintf(text, sizeof(text), "{\"timestamp\": %llu.%03llu, \"input_length\": %llu, "
                     "\"output_length\": %u, \"tenant\": \"client-%u\"}\n",
                     (unsigned long long)(s->ns / 1000000),
                     (unsigned long long)(s->ns / 1000 % 1000),
                     (unsigned long long)(input ? input : 1), output, s->c->number);
    kvc_packfile_write(d->file, text, (size_t)n);
    d->report->requests++;
    return KVC_OK;
}

/* ---- the whole ---- */

/* Requests per second in the span, of clients with lengths and of all. */
static void mean_rates(const struct draw *d, double *with, double *all)
{
    double windows = (double)(d->end_s - d->begin_s) / (double)d->models.window_s;
    *with = *all = 0;
    for (size_t i = 0; i < d->models.n; i++) {
        const struct kvc_servegen_client *c = &d->models.client[i];
        for (size_t w = 0; w < c->n_windows; w++) {
            const struct kvc_servegen_window *x = &c->window[w];
            if (x->start_s < d->begin_s || x->start_s >= d->end_s)
                continue;
            double share = d->end_s - x->start_s < d->models.window_s
                               ? (double)(d->end_s - x->start_s) / (double)d->models.window_s : 1;
            *all += x->per_s * share / windows;
            *with += kvc_servegen_lengths_at(c, x->start_s) ? x->per_s * share / windows : 0;
        }
    }
}

static enum kvc_status span(struct draw *d, struct kvc_error *err)
{
    const struct kvc_servegen_config *c = d->config;
    uint64_t end = 0;
    for (size_t i = 0; i < d->models.n; i++) {
        const struct kvc_servegen_client *k = &d->models.client[i];
        uint64_t last = k->window[k->n_windows - 1].start_s + d->models.window_s;
        end = last > end ? last : end;
    }
    d->begin_s = c->from_ns / 1000000000;
    d->end_s = d->begin_s + (c->duration_ns + 999999999) / 1000000000;
    d->end_s = !c->duration_ns || d->end_s > end ? end : d->end_s;
    if (d->begin_s % d->models.window_s || c->from_ns % 1000000000)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "from", "the models have windows of %llu "
                           "s: begin at a multiple of that",
                           (unsigned long long)d->models.window_s);
    if (d->begin_s >= d->end_s)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "from", "the models end at %llu s",
                           (unsigned long long)end);
    return KVC_OK;
}

static enum kvc_status set_scale(struct draw *d, struct kvc_error *err)
{
    double with, all;
    mean_rates(d, &with, &all);
    d->report->model_requests_per_s = all;
    d->report->requests_per_s_without_lengths = all - with;
    if (with == 0)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "from", "no client with lengths has a "
                           "request in this span");
    d->scale = d->config->requests_per_s > 0 ? d->config->requests_per_s / with : 1;
    if (!(d->config->requests_per_s >= 0) || with * d->scale > 1e6)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "rate",
                           "requests per second must be above 0 and at most a million");
    d->report->clients = (uint32_t)d->models.n;
    for (size_t i = 0; i < d->models.n; i++)
        d->report->clients_without_lengths += !d->models.client[i].n_lengths;
    return KVC_OK;
}

static enum kvc_status write_rows(struct draw *d, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    d->source = kvc_calloc(d->models.n, sizeof(*d->source));
    d->heap = kvc_calloc(d->models.n, sizeof(struct source *));
    if (!d->source || !d->heap)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < d->models.n; i++) {
        struct source *s = &d->source[i];
        *s = (struct source){ .c = &d->models.client[i], .window = SIZE_MAX };
        if (advance(d, s))
            d->heap[d->n++] = s;
    }
    for (size_t i = d->n; i-- > 0;)
        sift_down(d, i);
    while (d->n && status == KVC_OK && kvc_packfile_ok(d->file)) {
        struct source *s = d->heap[0];
        status = put_row(d, s, err);
        if (!advance(d, s))
            d->heap[0] = d->heap[--d->n];
        sift_down(d, 0);
    }
    if (status == KVC_OK && !d->report->requests && kvc_packfile_ok(d->file))
        status = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "duration",
                             "no request falls into it; make it longer or the rate higher");
    return status;
}

enum kvc_status kvc_servegen_write(const struct kvc_servegen_config *config, const char *models,
                                   const char *path, struct kvc_servegen_report *report,
                                   struct kvc_error *err)
{
    struct kvc_servegen_report own;
    struct kvc_servegen_config c = { 0 };
    struct draw d = { .config = &c, .report = report ? report : &own };
    kvc_sized_copy(&c, sizeof(c), config);
    *d.report = (struct kvc_servegen_report){ 0 };
    enum kvc_status status = kvc_servegen_load(&d.models, models, err);
    if (status == KVC_OK)
        status = span(&d, err);
    if (status == KVC_OK)
        status = set_scale(&d, err);
    if (status == KVC_OK)
        status = kvc_packfile_open(&d.file, path, err);
    if (status == KVC_OK) {
        status = write_rows(&d, err);
        if (status == KVC_OK)
            status = kvc_packfile_close(d.file, err);
        else
            kvc_packfile_abandon(d.file);
    }
    kvc_servegen_clear(&d.models);
    kvc_free(d.source);
    kvc_free(d.heap);
    return status;
}
