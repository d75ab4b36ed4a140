/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling/ceiling_stack.h"

#include "base/alloc.h"

#include <string.h>

/* Entries of a level, whole groups of 16. */
static size_t level_size(uint32_t n_slots, uint32_t level)
{
    size_t units = ((size_t)n_slots + ((size_t)1 << 4 * level) - 1) >> 4 * level;
    return (units + 15) & ~(size_t)15;
}

/* Works out the tree anew from the slots in use, which have no gaps. */
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

void kvc_stack_pack(struct kvc_stack *s)
{
    uint32_t to = s->n_slots;
    for (uint32_t from = s->n_slots; from-- > s->next;) {
        uint32_t seg = s->seg_at[from];
        if (seg == KVC_SLOT_NONE)
            continue;
        s->seg_at[--to] = seg;
        s->slot_of[seg] = to;
    }
    s->next = to;
    recount(s);
}

bool kvc_stack_init(struct kvc_stack *s, uint32_t n_segments, const uint32_t *seg_len)
{
    memset(s, 0, sizeof(*s));
    s->seg_len = seg_len;
    s->n_slots = n_segments < UINT32_MAX / 2 - 16 ? 2 * n_segments + 16 : UINT32_MAX;
    s->next = s->n_slots;
    s->slot_of = kvc_malloc(n_segments, sizeof(*s->slot_of));
    s->seg_at = kvc_malloc(s->n_slots, sizeof(*s->seg_at));
    bool ok = s->slot_of && s->seg_at;
    do {
        s->above[s->levels] = kvc_calloc(level_size(s->n_slots, s->levels), sizeof(**s->above));
        ok &= s->above[s->levels] != NULL;
    } while (level_size(s->n_slots, s->levels++) > 16);
    if (!ok) {
        kvc_stack_clear(s);
        return false;
    }
    memset(s->slot_of, 0xff, n_segments * sizeof(*s->slot_of));
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
