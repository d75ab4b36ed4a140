/* SPDX-License-Identifier: Apache-2.0
 * A text under construction: appended to until done, with one look at failed at the end. */
#ifndef KVC_BASE_TEXT_H
#define KVC_BASE_TEXT_H

#include <kvcast/kvcast.h>

struct kvc_text { /* all zero = empty */
    char *buf; /* NUL-terminated once something was added; kvc_free, or kvc_text_clear */
    size_t len, cap;
    bool failed; /* out of memory: later calls do nothing */
};

void kvc_text_add(struct kvc_text *t, const char *s);
void kvc_text_addn(struct kvc_text *t, const char *s, size_t n);
KVC_PRINTF(2, 3)
void kvc_text_addf(struct kvc_text *t, const char *fmt, ...);
void kvc_text_clear(struct kvc_text *t);

#endif
