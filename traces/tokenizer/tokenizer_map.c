/* SPDX-License-Identifier: Apache-2.0
 * Hash tables with linear probing, at most half full. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <string.h>

#define FREE_KEY UINT64_MAX

/* ---- numbers ---- */

static size_t map64_slot(const struct kvc_map64 *m, uint64_t key)
{
    size_t i = (size_t)kvc_mix64(key) & m->mask;
    while (m->slots[i].key != FREE_KEY && m->slots[i].key != key)
        i = (i + 1) & m->mask;
    return i;
}

static bool map64_grow(struct kvc_map64 *m)
{
    size_t cap = m->slots ? 2 * (m->mask + 1) : 64;
    struct kvc_map64 bigger = {.mask = cap - 1, .n = m->n};
    bigger.slots = kvc_malloc(cap, sizeof(*bigger.slots));
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < cap; i++)
        bigger.slots[i].key = FREE_KEY;
    for (size_t i = 0; m->slots && i <= m->mask; i++) {
        if (m->slots[i].key != FREE_KEY)
            bigger.slots[map64_slot(&bigger, m->slots[i].key)] = m->slots[i];
    }
    kvc_free(m->slots);
    *m = bigger;
    return true;
}

bool kvc_map64_put(struct kvc_map64 *m, uint64_t key, uint64_t value)
{
    if ((!m->slots || 2 * (m->n + 1) > m->mask + 1) && !map64_grow(m))
        return false;
    size_t i = map64_slot(m, key);
    m->n += m->slots[i].key == FREE_KEY;
    m->slots[i] = (struct kvc_map64_slot){key, value};
    return true;
}

const uint64_t *kvc_map64_get(const struct kvc_map64 *m, uint64_t key)
{
    if (!m->slots)
        return NULL;
    size_t i = map64_slot(m, key);
    return m->slots[i].key == key ? &m->slots[i].value : NULL;
}

void kvc_map64_clear(struct kvc_map64 *m)
{
    kvc_free(m->slots);
    *m = (struct kvc_map64){0};
}

/* ---- strings ---- */

uint64_t kvc_hash_bytes(const char *s, size_t n)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ n, word;
    for (; n >= 8; s += 8, n -= 8) {
        memcpy(&word, s, 8);
        h = (h ^ word) * 0x9fb21c651e98df25u;
        h ^= h >> 32;
    }
    word = 0;
    for (size_t i = 0; i < n; i++)
        word = word << 8 | (unsigned char)s[i];
    return kvc_mix64(h ^ word);
}

static size_t strmap_slot(const struct kvc_strmap *m, uint64_t hash, const char *s, size_t n)
{
    size_t i = (size_t)hash & m->mask;
    for (; m->slots[i].id != KVC_ID_NONE; i = (i + 1) & m->mask) {
        const struct kvc_strmap_slot *slot = &m->slots[i];
        if (slot->hash == hash && slot->len == n && !memcmp(m->keys.buf + slot->at, s, n))
            break;
    }
    return i;
}

static bool strmap_grow(struct kvc_strmap *m)
{
    size_t cap = m->slots ? 2 * (m->mask + 1) : 64;
    struct kvc_strmap_slot *slots = kvc_malloc(cap, sizeof(*slots));
    if (!slots)
        return false;
    for (size_t i = 0; i < cap; i++)
        slots[i].id = KVC_ID_NONE;
    for (size_t i = 0; m->slots && i <= m->mask; i++) {
        size_t k = (size_t)m->slots[i].hash & (cap - 1);
        if (m->slots[i].id == KVC_ID_NONE)
            continue;
        while (slots[k].id != KVC_ID_NONE)
            k = (k + 1) & (cap - 1);
        slots[k] = m->slots[i];
    }
    kvc_free(m->slots);
    m->slots = slots;
    m->mask = cap - 1;
    return true;
}

bool kvc_strmap_put(struct kvc_strmap *m, const char *s, size_t n, uint32_t id, bool *fresh)
{
    if ((!m->slots || 2 * (m->n + 1) > m->mask + 1) && !strmap_grow(m))
        return false;
    uint64_t hash = kvc_hash_bytes(s, n);
    size_t i = strmap_slot(m, hash, s, n);
    *fresh = m->slots[i].id == KVC_ID_NONE;
    if (!*fresh)
        return true;
    size_t at = m->keys.len;
    kvc_text_addn(&m->keys, s, n);
    if (m->keys.failed || n > UINT32_MAX)
        return false;
    m->slots[i] = (struct kvc_strmap_slot){hash, at, (uint32_t)n, id};
    m->n++;
    return true;
}

uint32_t kvc_strmap_get(const struct kvc_strmap *m, const char *s, size_t n)
{
    return m->slots ? m->slots[strmap_slot(m, kvc_hash_bytes(s, n), s, n)].id : KVC_ID_NONE;
}

void kvc_strmap_clear(struct kvc_strmap *m)
{
    kvc_free(m->slots);
    kvc_text_clear(&m->keys);
    *m = (struct kvc_strmap){0};
}
