/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/session_names.h"

#include "base/alloc.h"

#include <string.h>

struct kvc_session_entry *kvc_session_name(struct kvc_session_names *s, const char *name, size_t n)
{
    uint32_t i = 0, j;
    size_t known = s->now.names.n;
    if (s->n == UINT32_MAX - 1 || !kvc_intern_get(&s->now.names, name, n, &i) ||
        !kvc_grow((void **)&s->now.entry, &s->now.cap, (size_t)i + 1, sizeof(*s->now.entry)))
        return NULL;
    if (i < known)
        return &s->now.entry[i];
    s->now.entry[i] = (struct kvc_session_entry){ s->n, KVC_TIME_NONE, 0 };
    if (s->before.names.n && kvc_intern_find(&s->before.names, name, n, &j))
        s->now.entry[i] = s->before.entry[j];
    else
        s->n++;
    return &s->now.entry[i];
}

static void drop_before(struct kvc_session_names *s)
{
    kvc_intern_clear(&s->before.names);
    kvc_free(s->before.entry);
    memset(&s->before, 0, sizeof(s->before));
}

void kvc_session_clock(struct kvc_session_names *s, uint64_t time_ns)
{
    uint64_t window = s->forget_ns ? time_ns / s->forget_ns : 0;
    if (window <= s->window)
        return;
    drop_before(s);
    s->before = s->now;
    memset(&s->now, 0, sizeof(s->now));
    if (window > s->window + 1)
        drop_before(s);
    s->window = window;
}

void kvc_session_names_clear(struct kvc_session_names *s)
{
    drop_before(s);
    s->before = s->now;
    memset(&s->now, 0, sizeof(s->now));
    drop_before(s);
}
