/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling_stack.h"

#include "base/alloc.h"

#include <string.h>

#define FIRST_SLOTS 1024u

/* Entries of a level, whole groups of 16. */
static size_t level_size(uint32_t n_slots, uint32_t level)
{
    size_t units = ((size_t)n_slots + ((size_t)1 << 4 * level) - 1) >> 4 * level;
    return (units + 15) & ~(size_t)15;
}

/* Fresh arrays for n_slots, everything else as it was; false leaves the stack whole. */
static bool resize(struct kvc_stack *s, uint32_t n_slots)
{
    uint32_t levels = 1;
    while (level_size(n_slots, levels - 1) > 16)
        levels++;
    uint32_t *seg_at = kvc_malloc(n_slots, sizeof(*seg_at)), *above[KVC_STACK_LEVELS] = {NULL};
    bool ok = seg_at != NULL;
    for (uint32_t l = 0; l < levels; l++) {
        above[l] = kvc_malloc(level_size(n_slots, l), sizeof(**above));
        ok &= above[l] != NULL;
    }
    if (!ok) {
        kvc_free(seg_at);
        for (uint32_t l = 0; l < levels; l++)
            kvc_free(above[l]);
        return false;
    }
    uint32_t grown = n_slots - s->n_slots; /* the old slots go to the upper end: oldest last */
    for (uint32_t i = 0; i < grown; i++)
        seg_at[i] = KVC_SLOT_NONE;
    if (s->n_slots)
        memcpy(seg_at + grown, s->seg_at, s->n_slots * sizeof(*seg_at));
    kvc_free(s->seg_at);
    s->seg_at = seg_at;
    for (uint32_t l = 0; l < levels; l++) {
        kvc_free(s->above[l]);
        s->above[l] = above[l];
    }
    s->levels = levels;
    s->n_slots = n_slots;
    return true;
}

static void pack(struct kvc_stack *s)
{
    uint32_t to = s->n_slots;
    for (uint32_t from = s->n_slots; from-- > 0;) {
        uint32_t seg = s->seg_at[from];
        if (seg == KVC_SLOT_NONE)
            continue;
        s->seg_at[--to] = seg;
        s->slot_of[seg] = to;
    }
    for (uint32_t i = 0; i < to; i++)
        s->seg_at[i] = KVC_SLOT_NONE;
    s->next = to;
}

static void recount(struct kvc_stack *s)
{
    for (uint32_t l = 0; l < s->levels; l++)
        memset(s->above[l], 0, level_size(s->n_slots, l) * sizeof(**s->above));
    /* totals of the units first, each in its own entry .. */
    for (uint32_t i = s->next; i < s->n_slots; i++)
        s->above[0][i] = s->seg_len[s->seg_at[i]];
    for (uint32_t l = 1; l < s->levels; l++)
        for (size_t i = 0, n = level_size(s->n_slots, l - 1); i < n; i++)
            s->above[l][i >> 4] += s->above[l - 1][i];
    /* .. then what lies before each within its group */
    for (uint32_t l = 0; l < s->levels; l++)
        for (size_t i = 0, n = level_size(s->n_slots, l); i < n; i += 16) {
            uint32_t sum = 0;
            for (size_t j = i; j < i + 16; j++) {
                uint32_t own = s->above[l][j];
                s->above[l][j] = sum;
                sum += own;
            }
        }
}

bool kvc_stack_make_room(struct kvc_stack *s)
{
    if (s->live > s->n_slots / 2 && (s->n_slots > UINT32_MAX / 2 || !resize(s, s->n_slots * 2)))
        return false;
    pack(s);
    recount(s);
    return true;
}

bool kvc_stack_init(struct kvc_stack *s, uint32_t n_segments, const uint32_t *seg_len)
{
    memset(s, 0, sizeof(*s));
    s->seg_len = seg_len;
    s->slot_of = kvc_malloc(n_segments, sizeof(*s->slot_of));
    if (!s->slot_of || !resize(s, FIRST_SLOTS)) {
        kvc_stack_clear(s);
        return false;
    }
    memset(s->slot_of, 0xff, n_segments * sizeof(*s->slot_of));
    pack(s);
    recount(s);
    return true;
}

void kvc_stack_clear(struct kvc_stack *s)
{
    for (uint32_t l = 0; l < KVC_STACK_LEVELS; l++)
        kvc_free(s->above[l]);
    kvc_free(s->seg_at);
    kvc_free(s->slot_of);
    memset(s, 0, sizeof(*s));
}
