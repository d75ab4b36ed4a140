/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/sharing.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "traces/import/import_state.h"

#include <stdio.h>
#include <string.h>

static uint64_t *slot_of(uint64_t *slots, size_t mask, uint64_t key)
{
    size_t i = (size_t)kvc_mix64(key) & mask;
    while (slots[i] && slots[i] != key)
        i = (i + 1) & mask;
    return &slots[i];
}

static bool reserve(struct kvc_sharing *s, size_t more)
{
    size_t room = s->slots ? s->mask + 1 : 0, want = room ? room : 1024;
    while (want / 2 < s->n + more)
        want *= 2;
    if (want == room)
        return true;
    uint64_t *slots = kvc_calloc(want, sizeof(*slots));
    if (!slots)
        return false;
    for (size_t i = 0; i < room; i++)
        if (s->slots[i])
            *slot_of(slots, want - 1, s->slots[i]) = s->slots[i];
    kvc_free(s->slots);
    s->slots = slots;
    s->mask = want - 1;
    return true;
}

/* Whether the key was there; it is now. */
static bool had(struct kvc_sharing *s, uint64_t key)
{
    uint64_t *slot = slot_of(s->slots, s->mask, key | 1);
    bool there = *slot != 0;
    *slot = key | 1;
    s->n += !there;
    return there;
}

static uint64_t at_instance(uint64_t content, uint32_t instance)
{
    return kvc_mix64(content + (uint64_t)(instance + 1) * 0x9e3779b97f4a7c15u);
}

bool kvc_sharing_block(struct kvc_sharing *s, uint32_t instance, uint64_t content, bool *copy)
{
    *copy = false;
    if (s->full || s->n + 2 > KVC_SHARING_KEYS) {
        s->full = true;
        return true;
    }
    if (!reserve(s, 2))
        return false;
    bool known = had(s, kvc_mix64(content));
    bool own = had(s, at_instance(content, instance));
    s->once += !known;
    s->apart += !own;
    *copy = known && !own;
    return true;
}

bool kvc_sharing_row(struct kvc_sharing *s, const struct kvc_span *instance, uint64_t content,
                     const uint64_t *ids, size_t n, size_t full)
{
    uint32_t number;
    bool own = true, any = true;
    if (s->full || s->n + 2 * n > KVC_SHARING_KEYS) {
        s->full = true;
        return true;
    }
    if (!kvc_intern_get(&s->instances, instance->text, instance->n, &number))
        return false;
    s->rows++;
    for (size_t i = 0; i < n; i++) {
        uint64_t apart = s->apart, once = s->once;
        bool copy;
        content = kvc_mix64(content ^ kvc_mix64(ids[i] + 1));
        if (!kvc_sharing_block(s, number, content, &copy))
            return false;
        own = own && s->apart == apart;
        any = any && s->once == once;
        s->hits_apart += own && i < full;
        s->hits_shared += any && i < full;
    }
    return true;
}

void kvc_sharing_clear(struct kvc_sharing *s)
{
    kvc_intern_clear(&s->instances);
    kvc_free(s->slots);
    memset(s, 0, sizeof(*s));
}

void kvc_import_keys(struct kvc_import *im, uint64_t instances, uint64_t stored, uint64_t copied)
{
    im->report.key_instances = instances;
    im->report.key_stored_blocks = stored;
    im->report.key_copied_blocks = copied;
    im->report.key_hit_blocks_shared = im->report.key_hit_blocks_apart = UINT64_MAX;
}

void kvc_import_tell_sharing(struct kvc_import *im)
{
    const struct kvc_sharing *s = &im->sharing;
    const char *key = im->options->key_field;
    struct kvc_import_report *r = &im->report;
    char rows[64] = "";
    if (s->instances.n < 2 || !s->apart)
        return;
    kvc_import_keys(im, s->instances.n, s->apart, s->apart - s->once);
    r->key_hit_blocks_apart = s->hits_apart;
    r->key_hit_blocks_shared = s->hits_shared;
    if (s->full)
        snprintf(rows, sizeof(rows), " (first %llu rows)", (unsigned long long)s->rows);
    kvc_import_note(im, "%zu instances%s: %llu hit blocks if all read one another's, %llu if keys "
                    "are salted per process, when %llu of %llu stored blocks can't be read by the "
                    "other; %s", s->instances.n, rows, (unsigned long long)s->hits_shared,
                    (unsigned long long)s->hits_apart, (unsigned long long)(s->apart - s->once),
                    (unsigned long long)s->apart,
                    key ? "the latter here; one PYTHONHASHSEED for all is the cure"
                        : "the former here, --key-field for the latter");
}
