/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/recent.h"

#include "base/alloc.h"

#include <string.h>

static uint64_t bytes_of(const struct kvc_recent *r, const struct kvc_recent_part *p)
{
    return p->names.bytes_cap + p->names.at_cap * sizeof(*p->names.at) +
           (p->names.slots ? p->names.mask + 1 : 0) * sizeof(*p->names.slots) + p->cap * r->size;
}

static void clear_part(struct kvc_recent *r, struct kvc_recent_part *p)
{
    for (size_t i = 0; r->drop && i < p->names.n && p->record; i++)
        r->drop(p->record + i * r->size, r->user);
    if (r->clock)
        r->clock->bytes -= bytes_of(r, p);
    kvc_intern_clear(&p->names);
    kvc_free(p->record);
    memset(p, 0, sizeof(*p));
}

void kvc_recent_tick(struct kvc_recent_clock *clock, uint64_t time_ns)
{
    uint64_t window = clock->forget_ns ? time_ns / clock->forget_ns : 0;
    clock->window = window > clock->window ? window : clock->window;
}

static void catch_up(struct kvc_recent *r)
{
    if (!r->clock || r->clock->window <= r->window)
        return;
    clear_part(r, &r->before);
    r->before = r->now;
    memset(&r->now, 0, sizeof(r->now));
    if (r->clock->window > r->window + 1)
        clear_part(r, &r->before);
    r->window = r->clock->window;
}

void *kvc_recent_get(struct kvc_recent *r, const char *name, size_t n, bool *fresh)
{
    uint32_t i = 0, j;
    catch_up(r);
    struct kvc_recent_part *now = &r->now;
    uint64_t had = bytes_of(r, now);
    bool ok = kvc_grow((void **)&now->record, &now->cap, now->names.n + 1, r->size);
    size_t known = now->names.n;
    ok = ok && kvc_intern_get(&now->names, name, n, &i);
    if (r->clock)
        r->clock->bytes += bytes_of(r, now) - had;
    if (!ok)
        return NULL;
    unsigned char *record = now->record + i * r->size;
    *fresh = false;
    if (i < known)
        return record;
    *fresh = !r->before.names.n || !kvc_intern_find(&r->before.names, name, n, &j);
    if (*fresh) {
        memset(record, 0, r->size);
    } else {
        memcpy(record, r->before.record + j * r->size, r->size);
        memset(r->before.record + j * r->size, 0, r->size);
    }
    return record;
}

const void *kvc_recent_find(const struct kvc_recent *r, const char *name, size_t n)
{
    uint32_t i;
    uint64_t behind = r->clock ? r->clock->window - r->window : 0; /* windows not caught up with */
    if (behind < 2 && kvc_intern_find(&r->now.names, name, n, &i))
        return r->now.record + i * r->size;
    if (behind < 1 && kvc_intern_find(&r->before.names, name, n, &i))
        return r->before.record + i * r->size;
    return NULL;
}

size_t kvc_recent_count(const struct kvc_recent *r)
{
    return r->now.names.n + r->before.names.n;
}

const void *kvc_recent_at(const struct kvc_recent *r, size_t i)
{
    const struct kvc_intern *now = &r->now.names, *before = &r->before.names;
    uint32_t number;
    if (i < now->n)
        return r->now.record + i * r->size;
    i -= now->n;
    size_t end = i + 1 < before->n ? before->at[i + 1] : before->n_bytes;
    bool moved =
        kvc_intern_find(now, before->bytes + before->at[i], end - before->at[i] - 1, &number);
    return moved ? NULL : r->before.record + i * r->size;
}

void kvc_recent_clear(struct kvc_recent *r)
{
    clear_part(r, &r->now);
    clear_part(r, &r->before);
}
