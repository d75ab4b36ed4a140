/* SPDX-License-Identifier: Apache-2.0
 * The hash table of starts, by what leads to them: eight bytes a slot, open addressing. A slot's
 * place is its hash, scaled, so that a larger table holds the same entries in about the same order:
 * it is filled from front to back while the smaller one is given back, and both are never whole. */
#include "traces/forest/forest_nodes.h"

#include "base/alloc.h"

#include <string.h>

#define FIRST_SLOTS ((size_t)512)
#define PAGED_SLOTS (KVC_PAGES / sizeof(struct kvc_slot)) /* from here on in pages of its own */
#define DOUBLES ((size_t)1 << 20) /* slots; beyond, growth by a quarter costs less memory */

struct kvc_slot *kvc_table_probe(const struct kvc_table *t, uint32_t hash)
{
    struct kvc_slot *s = kvc_table_home(t, hash);
    while (s->start && s->hash != hash)
        s = s + 1 == t->slots + t->n_slots ? t->slots : s + 1;
    return s;
}

struct kvc_slot *kvc_forest_slot(const struct kvc_forest *f, struct kvc_spot parent,
                                 uint32_t depth, uint64_t id)
{
    const struct kvc_table *t = &f->table;
    uint32_t hash = kvc_forest_hash(parent, depth, id);
    struct kvc_slot *s = kvc_table_home(t, hash);
    for (; s->start; s = s + 1 == t->slots + t->n_slots ? t->slots : s + 1) {
        const struct kvc_start *start = &f->starts[s->start - 1];
        if (s->hash == hash && kvc_forest_is_child(f, start, parent, depth) &&
            f->id[start->node] == id)
            break;
    }
    s->hash = hash; /* of an empty one as well */
    return s;
}

static struct kvc_slot *new_slots(size_t n)
{
    return n >= PAGED_SLOTS ? kvc_pages_grow(NULL, 0, n * sizeof(struct kvc_slot))
                            : kvc_calloc(n, sizeof(struct kvc_slot));
}

void kvc_table_free(struct kvc_table *t)
{
    if (t->n_slots >= PAGED_SLOTS)
        kvc_pages_free(t->slots, t->n_slots * sizeof(*t->slots));
    else
        kvc_free(t->slots);
    *t = (struct kvc_table){ 0 };
}

static bool resize(struct kvc_table *t, size_t n)
{
    struct kvc_table fresh = { .slots = new_slots(n), .n_slots = n, .used = t->used };
    bool paged = t->n_slots >= PAGED_SLOTS;
    if (!fresh.slots)
        return false;
    for (size_t i = 0; i < t->n_slots; i++) {
        struct kvc_slot old = t->slots[i];
        if (old.start) {
            struct kvc_slot *s = kvc_table_home(&fresh, old.hash);
            while (s->start)
                s = s + 1 == fresh.slots + n ? fresh.slots : s + 1;
            *s = old;
        }
        if (paged && (i + 1) % PAGED_SLOTS == 0)
            kvc_pages_free(t->slots + i + 1 - PAGED_SLOTS, KVC_PAGES);
    }
    if (!paged)
        kvc_free(t->slots);
    *t = fresh;
    return true;
}

static size_t larger(size_t n)
{
    size_t next = n < DOUBLES ? 2 * n : n + n / 4;
    return next < PAGED_SLOTS ? next : (next + PAGED_SLOTS - 1) / PAGED_SLOTS * PAGED_SLOTS;
}

/* Empties the slots of chains of which nothing is left. */
static void sweep(struct kvc_forest *f)
{
    struct kvc_table *t = &f->table;
    for (size_t i = 0; i < t->n_slots; i++) {
        struct kvc_slot *s = &t->slots[i];
        if (s->start && !kvc_forget_trim(f, s->start - 1)) {
            s->start = 0; /* the table is rebuilt next: no probing past this */
            t->used--;
        }
    }
}

bool kvc_table_enlarge(struct kvc_forest *f)
{
    struct kvc_table *t = &f->table;
    if (!t->slots)
        return resize(t, FIRST_SLOTS);
    if (f->forgetting)
        sweep(f);
    return resize(t, t->used * 2 < t->n_slots ? t->n_slots : larger(t->n_slots));
}
