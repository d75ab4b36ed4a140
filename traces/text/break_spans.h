/* SPDX-License-Identifier: Apache-2.0
 * Two texts behind the first place where they differ: how far the difference goes, and what the
 * text that differs looks like. */
#ifndef KVC_TRACES_BREAK_SPANS_H
#define KVC_TRACES_BREAK_SPANS_H

#include "traces/trace.h"

struct kvc_break_spans {
    const char *text, *old;
    size_t n, old_n;
    size_t at, old_at; /* where they differ */
};

struct kvc_break_value { /* whole words, the part of them in front of the difference included */
    const char *text, *old_text;
    size_t n, old_n;
};

/* Looks for where both go on alike for KVC_BREAK_ALIKE bytes, or to the end of both, within a few
 * words. Returns for how many bytes they do and moves on to the next difference; 0: they don't. */
#define KVC_BREAK_ALIKE 16 /* some three words: chance alone hardly makes them alike */
size_t kvc_break_pass(struct kvc_break_spans *s, struct kvc_break_value *value);
enum kvc_break_kind kvc_break_classify(const char *text, size_t n);

#endif
