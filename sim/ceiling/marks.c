/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling/marks.h"

#include "base/alloc.h"

#include <string.h>

bool kvc_marks_init(struct kvc_marks *m, uint32_t n_segments)
{
    memset(m, 0, sizeof(*m));
    m->free = KVC_MARK_NONE;
    m->first = kvc_malloc(n_segments, sizeof(*m->first));
    if (m->first)
        memset(m->first, 0xff, n_segments * sizeof(*m->first));
    return m->first != NULL;
}

void kvc_marks_clear(struct kvc_marks *m)
{
    kvc_free(m->first);
    kvc_free(m->mark);
    memset(m, 0, sizeof(*m));
}

/* A new stretch after the one at *after, which may be the head of a list; where links move with
 * the array, so the place is given as segment and predecessor. */
static uint32_t insert(struct kvc_marks *m, uint32_t seg, uint32_t after, struct kvc_mark mark)
{
    uint32_t i = m->free;
    if (i != KVC_MARK_NONE) {
        m->free = m->mark[i].next;
    } else {
        if (m->n >= KVC_MARK_NONE - 1 ||
            !kvc_grow((void **)&m->mark, &m->room, m->n + 1, sizeof(*m->mark))) {
            m->failed = true;
            return after;
        }
        i = (uint32_t)m->n++;
    }
    uint32_t *link = after == KVC_MARK_NONE ? &m->first[seg] : &m->mark[after].next;
    mark.next = *link;
    m->mark[i] = mark;
    *link = i;
    return i;
}

void kvc_marks_set(struct kvc_marks *m, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t who)
{
    uint32_t before = KVC_MARK_NONE, i = m->first[seg];
    if (lo == hi)
        return;
    for (; i != KVC_MARK_NONE && m->mark[i].hi < lo; i = m->mark[i].next)
        before = i;
    while (i != KVC_MARK_NONE && m->mark[i].lo <= hi) { /* overlaps or touches [lo, hi) */
        struct kvc_mark old = m->mark[i];
        uint32_t *link = before == KVC_MARK_NONE ? &m->first[seg] : &m->mark[before].next;
        *link = old.next;
        m->mark[i].next = m->free;
        m->free = i;
        if (old.who == who) {
            lo = old.lo < lo ? old.lo : lo;
            hi = old.hi > hi ? old.hi : hi;
        } else {
            if (old.lo < lo)
                before = insert(m, seg, before, (struct kvc_mark){old.lo, lo, old.who, 0});
            if (old.hi > hi) {
                insert(m, seg, before, (struct kvc_mark){hi, old.hi, old.who, 0});
                break;
            }
        }
        i = before == KVC_MARK_NONE ? m->first[seg] : m->mark[before].next;
    }
    insert(m, seg, before, (struct kvc_mark){lo, hi, who, 0});
}

uint32_t kvc_marks_at(const struct kvc_marks *m, uint32_t seg, uint32_t lo, uint32_t hi,
                      uint32_t *end)
{
    uint32_t i = m->first[seg];
    while (i != KVC_MARK_NONE && m->mark[i].hi <= lo)
        i = m->mark[i].next;
    bool in = i != KVC_MARK_NONE && m->mark[i].lo <= lo;
    uint32_t to = i == KVC_MARK_NONE ? hi : in ? m->mark[i].hi : m->mark[i].lo;
    *end = to < hi ? to : hi;
    return in ? m->mark[i].who : KVC_MARK_NONE;
}
