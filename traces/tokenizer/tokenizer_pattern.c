/* SPDX-License-Identifier: Apache-2.0
 * Matching, and the wall around PCRE2.
 *
 * A search never sees the whole text: it gets a window, and asks for a partial match, which PCRE2
 * reports as soon as a match would need to look beyond. Only then is more shown, and only to a
 * match that begins there. So the cost of a search is bounded by its window, what is shown again
 * can be counted against a budget, and an answer without "partial" holds whatever follows. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#define WINDOW ((size_t)4096)
#define WINDOW_STEPS 250000u /* steps back in a window; people's patterns take a tenth */
#define STEPS_A_BYTE 64u     /* and in a look that grows */
#define JIT_STACK_BYTES ((size_t)1 << 20)

struct kvc_pattern {
    pcre2_code *code[2]; /* searching; in place, which compiled code can't be told as an option */
    bool jit;
};

struct kvc_matcher {
    pcre2_general_context *general;
    pcre2_match_context *context;
    pcre2_match_data *data;
    pcre2_jit_stack *stack;
    uint64_t budget;
};

static void *allocate(size_t n, void *user)
{
    (void)user;
    return kvc_malloc(n, 1);
}

static void release(void *p, void *user)
{
    (void)user;
    kvc_free(p);
}

static enum kvc_status refuse_code(int code, size_t at, const char *regex, char *why)
{
    PCRE2_UCHAR text[120] = "";
    if (code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY)
        return KVC_ERR_NOMEM;
    pcre2_get_error_message(code, text, sizeof(text));
    snprintf(why, 256, "%s (at byte %zu of \"%.100s\")", (const char *)text, at, regex);
    return KVC_ERR_INPUT;
}

static enum kvc_status compile_one(pcre2_code **out, const char *regex, uint32_t options,
                                   pcre2_compile_context *context, char *why)
{
    int code;
    size_t at;
    *out = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                         PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | options, &code, &at,
                         context);
    return *out ? KVC_OK : refuse_code(code, at, regex, why);
}

/* A match of nothing would not move on. */
static enum kvc_status compile(struct kvc_pattern *p, const char *regex,
                               pcre2_compile_context *context, char *why)
{
    uint32_t empty = 1;
    enum kvc_status st = compile_one(&p->code[0], regex, 0, context, why);
    if (st == KVC_OK)
        st = compile_one(&p->code[1], regex, PCRE2_ANCHORED, context, why);
    if (st != KVC_OK)
        return st;
    pcre2_pattern_info(p->code[0], PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty) {
        snprintf(why, 256, "it matches an empty text too, which is not supported");
        return KVC_ERR_UNSUPPORTED;
    }
    /* without JIT (not on this processor, say) the same matches are found, slower */
    p->jit = true;
    for (int i = 0; i < 2; i++)
        p->jit = !pcre2_jit_compile(p->code[i], PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) &&
                 p->jit;
    return KVC_OK;
}

static enum kvc_status compile_own(struct kvc_pattern **out, const char *regex, char *why)
{
    enum kvc_status st = KVC_ERR_NOMEM;
    pcre2_general_context *general = pcre2_general_context_create(allocate, release, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    struct kvc_pattern *p = kvc_calloc(1, sizeof(*p));
    if (context && p) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF); /* what "." stops at */
        st = compile(p, regex, context, why);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    if (st == KVC_OK)
        *out = p;
    else
        kvc_pattern_free(p);
    return st;
}

enum kvc_status kvc_pattern_compile(struct kvc_pattern **out, const char *regex, char *why)
{
    struct kvc_text text = {0};
    enum kvc_status st = KVC_ERR_UNSUPPORTED;
    if (kvc_pattern_translate(&text, regex, why))
        st = text.failed || !text.buf ? KVC_ERR_NOMEM : compile_own(out, text.buf, why);
    kvc_text_clear(&text);
    return st;
}

enum kvc_status kvc_pattern_literal(struct kvc_pattern **out, const char *literal, char *why)
{
    struct kvc_text text = {0};
    enum kvc_status st = KVC_ERR_NOMEM;
    for (const char *s = literal; *s; s++) {
        if ((unsigned char)*s < 0x80)
            kvc_text_addf(&text, "\\x{%x}", (unsigned)*s);
        else
            kvc_text_addn(&text, s, 1);
    }
    kvc_text_add(&text, "");
    if (!text.failed)
        st = compile_own(out, text.buf, why);
    kvc_text_clear(&text);
    return st;
}

void kvc_pattern_free(struct kvc_pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code[0]);
    pcre2_code_free(p->code[1]);
    kvc_free(p);
}

struct kvc_matcher *kvc_matcher_create(void)
{
    struct kvc_matcher *m = kvc_calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->general = pcre2_general_context_create(allocate, release, NULL);
    if (m->general) {
        m->context = pcre2_match_context_create(m->general);
        m->data = pcre2_match_data_create(1, m->general);
        m->stack = pcre2_jit_stack_create(JIT_STACK_BYTES / 32, JIT_STACK_BYTES, m->general);
    }
    if (!m->context || !m->data) {
        kvc_matcher_free(m);
        return NULL;
    }
    pcre2_set_match_limit(m->context, WINDOW_STEPS);
    if (m->stack) /* none where there is no JIT */
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    return m;
}

void kvc_matcher_free(struct kvc_matcher *m)
{
    if (!m)
        return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    pcre2_general_context_free(m->general);
    kvc_free(m);
}

void kvc_matcher_allow(struct kvc_matcher *m, uint64_t budget)
{
    m->budget = budget;
}

/* One look at s[0..end): the text ends there unless more. */
static enum kvc_match look(const struct kvc_pattern *p, struct kvc_matcher *m, const char *s,
                           size_t end, size_t at, bool more, bool in_place, size_t *from,
                           size_t *to)
{
    const pcre2_code *code = p->code[in_place];
    uint32_t options = more ? PCRE2_NO_UTF_CHECK | PCRE2_PARTIAL_HARD : PCRE2_NO_UTF_CHECK;
    int rc;
    if (p->jit)
        rc = pcre2_jit_match(code, (PCRE2_SPTR)s, end, at, options, m->data, m->context);
    else
        rc = pcre2_match(code, (PCRE2_SPTR)s, end, at, options, m->data, m->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return KVC_MATCH_NONE;
    if (rc < 0 && rc != PCRE2_ERROR_PARTIAL)
        return KVC_MATCH_LIMIT;
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(m->data);
    *from = place[0];
    *to = place[1];
    return rc == PCRE2_ERROR_PARTIAL ? KVC_MATCH_PARTIAL : KVC_MATCH_FOUND;
}

static size_t window_end(const char *s, size_t n, size_t at, size_t width)
{
    size_t end = n - at > width ? at + width : n;
    while (end < n && (s[end] & 0xc0) == 0x80) /* not within a character */
        end++;
    return end;
}

/* The match that begins at at, seeing as much as it wants. */
static enum kvc_match grow(const struct kvc_pattern *p, struct kvc_matcher *m, const char *s,
                           size_t n, size_t at, bool open, size_t *to)
{
    size_t from;
    for (size_t width = 4 * WINDOW;; width *= 4) {
        size_t end = window_end(s, n, at, width);
        if (end - at > m->budget)
            return KVC_MATCH_LIMIT;
        m->budget -= end - at;
        uint64_t steps = WINDOW_STEPS + (uint64_t)(end - at) * STEPS_A_BYTE;
        pcre2_set_match_limit(m->context, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
        enum kvc_match found = look(p, m, s, end, at, end < n || open, true, &from, to);
        if (found != KVC_MATCH_PARTIAL || end == n)
            return found;
    }
}

enum kvc_match kvc_pattern_next(const struct kvc_pattern *p, struct kvc_matcher *m, const char *s,
                                size_t n, size_t at, bool open, size_t *from, size_t *to)
{
    while (at < n) {
        size_t end = window_end(s, n, at, WINDOW);
        enum kvc_match found = look(p, m, s, end, at, end < n || open, false, from, to);
        if (found == KVC_MATCH_PARTIAL) {
            if (end == n)
                return found;
            size_t len;
            found = grow(p, m, s, n, *from, open, to);
            pcre2_set_match_limit(m->context, WINDOW_STEPS);
            at = *from;
            kvc_utf8_get(s + at, &len);
            end = at + len;
        }
        if (found != KVC_MATCH_NONE)
            return found;
        at = end;
    }
    return KVC_MATCH_NONE;
}
