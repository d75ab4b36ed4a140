/* SPDX-License-Identifier: Apache-2.0
 * Pre-tokenizer steps. Each passes its pieces on to the next one at once, so that no list of them
 * is ever held. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/error.h"

#include <string.h>

static enum kvc_status to_bpe(struct kvc_encoder *e, const char *s, size_t n, size_t limit)
{
    size_t before = e->out->n, certain = 0;
    enum kvc_status st = kvc_bpe_encode(&e->tok->bpe, e->work, s, n, limit, e->out, &certain);
    e->at_start = false;
    if (st == KVC_ERR_NOMEM)
        return kvc_fail_nomem(e->err);
    if (e->settled)
        e->stable += certain;
    e->settled = e->settled && certain == e->out->n - before;
    return st;
}

/* ---- splitting ---- */

struct splitter {
    struct kvc_encoder *e;
    size_t k; /* the step */
    const struct kvc_step *step;
    const char *s;
    size_t limit;   /* of the whole */
    size_t certain; /* up to here the matches are certain */
    bool pending, pending_match;
    size_t from, to; /* of what is pending */
};

static enum kvc_status pass_on(struct splitter *sp, size_t from, size_t to, bool match)
{
    size_t limit = KVC_FINAL;
    bool alone = sp->step->behavior == KVC_ISOLATED || sp->step->behavior == KVC_REMOVED;
    /* a piece that ends before what is certain does is settled; so is a match that joins nothing */
    if (sp->limit != KVC_FINAL && to >= sp->certain && !(alone && match && to == sp->certain))
        limit = sp->certain > from ? sp->certain - from : 0;
    if (from > 0)
        sp->e->at_start = false;
    return kvc_steps_run(sp->e, sp->k + 1, sp->s + from, to - from, limit);
}

static enum kvc_status flush(struct splitter *sp)
{
    if (!sp->pending)
        return KVC_OK;
    sp->pending = false;
    return pass_on(sp, sp->from, sp->to, false);
}

/* A match, or what lies between two. */
static enum kvc_status span(struct splitter *sp, size_t from, size_t to, bool match)
{
    bool counts = match != sp->step->invert, joins = false;
    switch (sp->step->behavior) {
    case KVC_ISOLATED:
        return pass_on(sp, from, to, match);
    case KVC_REMOVED:
        return counts ? KVC_OK : pass_on(sp, from, to, match);
    case KVC_CONTIGUOUS:
        joins = sp->pending_match == counts;
        break;
    case KVC_WITH_PREVIOUS:
        joins = counts && !sp->pending_match;
        break;
    case KVC_WITH_NEXT:
        joins = !counts && sp->pending_match;
        break;
    }
    if (sp->pending && joins) {
        sp->to = to;
        sp->pending_match = counts;
        return KVC_OK;
    }
    enum kvc_status st = flush(sp);
    sp->pending = true;
    sp->pending_match = counts;
    sp->from = from;
    sp->to = to;
    return st;
}

/* The next match; while *open, by what is certain only. */
static enum kvc_match next_match(struct splitter *sp, size_t n, size_t at, bool *open,
                                 size_t *from, size_t *to)
{
    const struct kvc_pattern *p = sp->step->pattern;
    if (*open) {
        enum kvc_match found = kvc_pattern_next(p, sp->e->matcher, sp->s, sp->limit, at, true,
                                                from, to);
        if (found == KVC_MATCH_FOUND)
            sp->certain = *to;
        if (found == KVC_MATCH_FOUND || found == KVC_MATCH_LIMIT)
            return found;
        sp->certain = found == KVC_MATCH_PARTIAL ? *from : sp->limit;
        *open = false;
    }
    return kvc_pattern_next(p, sp->e->matcher, sp->s, n, at, false, from, to);
}

static enum kvc_status split(struct kvc_encoder *e, size_t k, const char *s, size_t n,
                             size_t limit)
{
    struct splitter sp = {.e = e, .k = k, .step = &e->tok->steps[k], .s = s, .limit = limit};
    enum kvc_status st = KVC_OK;
    bool open = limit != KVC_FINAL;
    for (size_t at = 0; at < n && st == KVC_OK;) {
        size_t from = n, to = n;
        enum kvc_match found = next_match(&sp, n, at, &open, &from, &to);
        if (found == KVC_MATCH_LIMIT)
            return kvc_fail(e->err, KVC_ERR_LIMIT,
                            "%s: the pattern of pre-tokenizer step %zu takes too many steps on "
                            "this text", e->tok->file, k + 1);
        if (found == KVC_MATCH_NONE)
            from = to = n;
        if (from > at)
            st = span(&sp, at, from, false);
        if (st == KVC_OK && to > from)
            st = span(&sp, from, to, true);
        at = to;
    }
    return st == KVC_OK ? flush(&sp) : st;
}

/* ---- rewriting ---- */

static bool rewrite(struct kvc_encoder *e, struct kvc_text *out, const struct kvc_step *step,
                    const char *s, size_t n, size_t *limit)
{
    const char *blank = step->kind == KVC_STEP_METASPACE ? step->replacement : " ";
    bool prepend = step->kind == KVC_STEP_SPACE || step->prepend == KVC_PREPEND_ALWAYS ||
                   (step->prepend == KVC_PREPEND_FIRST && e->at_start);
    size_t width = strlen(blank), certain = 0;
    out->len = 0;
    if (prepend && s[0] != ' ' && (n < width || memcmp(s, blank, width) != 0))
        kvc_text_addn(out, blank, width);
    if (step->kind == KVC_STEP_SPACE) {
        if (*limit != KVC_FINAL && *limit)
            *limit += out->len;
        kvc_text_addn(out, s, n);
        return !out->failed;
    }
    for (size_t from = 0, to; from < n; from = to + (to < n)) {
        const char *hit = memchr(s + from, ' ', n - from);
        to = hit ? (size_t)(hit - s) : n;
        if (from < *limit)
            certain = out->len + (to < *limit ? to : *limit) - from;
        kvc_text_addn(out, s + from, to - from);
        if (to < n)
            kvc_text_addn(out, blank, width);
        if (to < n && to < *limit)
            certain = out->len;
    }
    if (*limit != KVC_FINAL)
        *limit = certain;
    return !out->failed;
}

enum kvc_status kvc_steps_run(struct kvc_encoder *e, size_t k, const char *s, size_t n,
                              size_t limit)
{
    if (n == 0)
        return KVC_OK;
    if (k == e->tok->n_steps)
        return to_bpe(e, s, n, limit);
    const struct kvc_step *step = &e->tok->steps[k];
    if (step->kind == KVC_STEP_SPLIT)
        return split(e, k, s, n, limit);
    struct kvc_text *out = &e->step[k];
    if (!rewrite(e, out, step, s, n, &limit))
        return kvc_fail_nomem(e->err);
    return kvc_steps_run(e, k + 1, out->buf, out->len, limit);
}
