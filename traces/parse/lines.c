/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/stream.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

#define FIRST_CAP ((size_t)1 << 18) /* stays in the second-level cache */

bool kvc_lines_init(struct kvc_lines *l, struct kvc_stream *stream)
{
    memset(l, 0, sizeof(*l));
    l->stream = stream;
    l->cap = FIRST_CAP;
    l->buf = kvc_calloc(l->cap + KVC_LINE_PAD, 1);
    return l->buf != NULL;
}

void kvc_lines_clear(struct kvc_lines *l)
{
    kvc_free(l->buf);
    l->buf = NULL;
}

static enum kvc_status grow(struct kvc_lines *l, struct kvc_error *err)
{
    size_t cap = l->cap * 2;
    char *p = kvc_realloc(l->buf, cap + KVC_LINE_PAD, 1);
    if (!p)
        return kvc_fail_nomem(err);
    memset(p + cap, 0, KVC_LINE_PAD);
    l->buf = p;
    l->cap = cap;
    return KVC_OK;
}

/* Moves what is left to the front and reads more behind it. */
static enum kvc_status refill(struct kvc_lines *l, struct kvc_error *err)
{
    if (l->begin) {
        memmove(l->buf, l->buf + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    size_t got = 0;
    enum kvc_status status = kvc_stream_read(l->stream, l->buf + l->end, l->cap - l->end, &got,
                                             err);
    if (status != KVC_OK)
        return status;
    if (l->tick && !l->tick(l->tick_user, kvc_stream_position(l->stream)))
        return kvc_fail(err, KVC_ERR_CANCELLED, "cancelled");
    l->eof = got == 0;
    l->end += got;
    l->buf[l->end] = '\n'; /* whoever reads on ahead stops there; there is room for it */
    l->bytes += got;
    return KVC_OK;
}

/* Drops the rest of a line that is too long. */
static enum kvc_status pass_over(struct kvc_lines *l, struct kvc_error *err)
{
    for (;;) {
        l->begin = l->end = 0;
        enum kvc_status status = refill(l, err);
        if (status != KVC_OK || l->eof)
            return status;
        char *newline = memchr(l->buf, '\n', l->end);
        if (newline) {
            l->begin = (size_t)(newline - l->buf) + 1;
            return KVC_OK;
        }
    }
}

enum kvc_status kvc_lines_next(struct kvc_lines *l, enum kvc_line_kind *kind, const char **text,
                               size_t *n, struct kvc_error *err)
{
    size_t seen = 0; /* bytes after begin known to hold no newline */
    enum kvc_status status;
    for (;;) {
        char *from = l->buf + l->begin;
        char *newline = memchr(from + seen, '\n', l->end - l->begin - seen);
        seen = newline ? (size_t)(newline - from) : l->end - l->begin;
        if (newline || (l->eof && seen)) {
            l->line++;
            l->begin += seen + (newline != NULL);
            from[seen] = '\n'; /* a last line may lack its own; there is room for one */
            *n = seen && from[seen - 1] == '\r' ? seen - 1 : seen;
            *text = from;
            *kind = KVC_LINE_TEXT;
            return KVC_OK;
        }
        if (l->eof) {
            *kind = KVC_LINE_END;
            return KVC_OK;
        }
        if (seen >= KVC_LINE_MAX) {
            l->line++;
            *kind = KVC_LINE_TOO_LONG;
            return pass_over(l, err);
        }
        if (seen == l->cap && (status = grow(l, err)) != KVC_OK)
            return status;
        if ((status = refill(l, err)) != KVC_OK)
            return status;
    }
}
