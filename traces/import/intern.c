/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/intern.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <string.h>

static uint64_t hash(const char *s, size_t n)
{
    uint64_t h = n;
    for (; n >= 8; s += 8, n -= 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        h = kvc_mix64(h ^ w);
    }
    uint64_t w = 0;
    memcpy(&w, s, n);
    return kvc_mix64(h ^ w);
}

static size_t length_at(const struct kvc_intern *in, size_t number)
{
    size_t end = number + 1 < in->n ? in->at[number + 1] : in->n_bytes;
    return end - in->at[number] - 1;
}

static bool rehash(struct kvc_intern *in)
{
    if (in->slots && (in->n + 1) * 2 <= in->mask + 1)
        return true;
    size_t size = in->slots ? (in->mask + 1) * 2 : 64;
    uint32_t *slots = kvc_calloc(size, sizeof(*slots));
    if (!slots)
        return false;
    for (size_t i = 0; i < in->n; i++) {
        size_t slot = (size_t)hash(in->bytes + in->at[i], length_at(in, i)) & (size - 1);
        while (slots[slot])
            slot = (slot + 1) & (size - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    kvc_free(in->slots);
    in->slots = slots;
    in->mask = size - 1;
    return true;
}

/* The slot of the string, or the empty one where it belongs. There are slots. */
static size_t find_slot(const struct kvc_intern *in, const char *s, size_t n)
{
    size_t slot = (size_t)hash(s, n) & in->mask;
    for (; in->slots[slot]; slot = (slot + 1) & in->mask) {
        size_t i = in->slots[slot] - 1;
        if (length_at(in, i) == n && memcmp(in->bytes + in->at[i], s, n) == 0)
            break;
    }
    return slot;
}

bool kvc_intern_find(const struct kvc_intern *in, const char *s, size_t n, uint32_t *number)
{
    size_t slot = in->slots ? find_slot(in, s, n) : 0;
    if (!in->slots || !in->slots[slot])
        return false;
    *number = in->slots[slot] - 1;
    return true;
}

bool kvc_intern_get(struct kvc_intern *in, const char *s, size_t n, uint32_t *number)
{
    if (!rehash(in))
        return false;
    size_t slot = find_slot(in, s, n);
    if (in->slots[slot]) {
        *number = in->slots[slot] - 1;
        return true;
    }
    if (in->n >= UINT32_MAX - 1 ||
        !kvc_grow((void **)&in->at, &in->at_cap, in->n + 1, sizeof(*in->at)) ||
        !kvc_grow((void **)&in->bytes, &in->bytes_cap, in->n_bytes + n + 1, 1))
        return false;
    in->at[in->n] = in->n_bytes;
    memcpy(in->bytes + in->n_bytes, s, n);
    in->bytes[in->n_bytes + n] = '\0';
    in->n_bytes += n + 1;
    *number = (uint32_t)in->n++;
    in->slots[slot] = *number + 1;
    return true;
}

char **kvc_intern_names(const struct kvc_intern *in)
{
    char **names = in->n ? kvc_calloc(in->n, sizeof(*names)) : NULL;
    for (size_t i = 0; names && i < in->n; i++) {
        names[i] = kvc_strdup(in->bytes + in->at[i]);
        if (!names[i]) {
            while (i-- > 0)
                kvc_free(names[i]);
            kvc_free(names);
            return NULL;
        }
    }
    return names;
}

void kvc_intern_clear(struct kvc_intern *in)
{
    kvc_free(in->bytes);
    kvc_free(in->at);
    kvc_free(in->slots);
    memset(in, 0, sizeof(*in));
}
