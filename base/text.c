/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool room(struct kvc_text *t, size_t more)
{
    if (t->failed || more > SIZE_MAX - t->len - 1 ||
        !kvc_grow((void **)&t->buf, &t->cap, t->len + more + 1, 1))
        t->failed = true;
    return !t->failed;
}

void kvc_text_addn(struct kvc_text *t, const char *s, size_t n)
{
    if (!room(t, n))
        return;
    memcpy(t->buf + t->len, s, n);
    t->len += n;
    t->buf[t->len] = '\0';
}

void kvc_text_add(struct kvc_text *t, const char *s)
{
    kvc_text_addn(t, s, strlen(s));
}

void kvc_text_addf(struct kvc_text *t, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        t->failed = true;
    else if (room(t, (size_t)n)) {
        vsnprintf(t->buf + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

void kvc_text_clear(struct kvc_text *t)
{
    kvc_free(t->buf);
    memset(t, 0, sizeof(*t));
}
