/* SPDX-License-Identifier: Apache-2.0
 * The LRU recency stack by segment, with the number of blocks above a segment in O(log16).
 *
 * Each touched segment sits in a slot; newer ones in lower slots. Level l of the counting tree
 * holds, for every unit of 16^l slots, the blocks in the units before it within its group of 16,
 * so a sum is one load a level and a change is one cache line a level. When the slots run out
 * the live segments are packed again (and the slots doubled when more than half were live), so
 * the whole stays as small as the set of live segments and in cache. */
#ifndef KVC_SIM_CEILING_STACK_H
#define KVC_SIM_CEILING_STACK_H

#include <kvcast/kvcast.h>

#define KVC_STACK_LEVELS 8
#define KVC_SLOT_NONE UINT32_MAX

struct kvc_stack {
    uint32_t *above[KVC_STACK_LEVELS];
    uint32_t *seg_at;  /* by slot */
    uint32_t *slot_of; /* by segment; KVC_SLOT_NONE: never touched */
    const uint32_t *seg_len;
    uint32_t n_slots, next; /* slots [next, n_slots) were handed out */
    uint32_t live, levels;
};

bool kvc_stack_init(struct kvc_stack *s, uint32_t n_segments, const uint32_t *seg_len);
void kvc_stack_clear(struct kvc_stack *s);
bool kvc_stack_make_room(struct kvc_stack *s); /* when next is 0 */

static inline uint32_t kvc_stack_above(const struct kvc_stack *s, uint32_t slot)
{
    uint32_t sum = 0;
    for (uint32_t l = 0; l < s->levels; l++, slot >>= 4)
        sum += s->above[l][slot];
    return sum;
}

static inline void kvc_stack_add(struct kvc_stack *s, uint32_t slot, uint32_t blocks)
{
    static const uint32_t after[31] = {
        0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,  0,
        ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
    };
    for (uint32_t l = 0; l < s->levels; l++, slot >>= 4) {
        uint32_t *group = s->above[l] + (slot & ~15u);
        const uint32_t *mask = after + 15 - (slot & 15u);
        for (uint32_t j = 0; j < 16; j++)
            group[j] += blocks & mask[j];
    }
}

/* Makes the segment the most recent. seen: it had been touched; then *above is the number of
 * blocks that were more recent than its first. False when out of memory. */
static inline bool kvc_stack_touch(struct kvc_stack *s, uint32_t seg, bool *seen, uint32_t *above)
{
    if (s->next == 0 && !kvc_stack_make_room(s))
        return false;
    uint32_t len = s->seg_len[seg], slot = s->slot_of[seg];
    *seen = slot != KVC_SLOT_NONE;
    if (*seen) {
        *above = kvc_stack_above(s, slot);
        s->seg_at[slot] = KVC_SLOT_NONE;
        kvc_stack_add(s, slot, 0u - len);
    } else {
        s->live++;
    }
    slot = --s->next;
    s->seg_at[slot] = seg;
    s->slot_of[seg] = slot;
    kvc_stack_add(s, slot, len);
    return true;
}

#endif
