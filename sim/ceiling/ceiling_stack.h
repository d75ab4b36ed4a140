/* SPDX-License-Identifier: Apache-2.0
 * The LRU recency stack by segment, with the number of blocks above a segment in O(log16).
 *
 * Each touched segment sits in a slot; newer ones in lower slots. Level l of the counting tree
 * holds, for every unit of 16^l slots, the blocks in the units before it within its group of 16,
 * so a sum is one load a level and a change is one cache line a level. There are twice as many
 * slots as segments; when they run out the segments are packed again, O(1) a touch. Bound: with
 * 32,768 slots there are 4 levels, so a touch reads 4 words and changes 8 cache lines of a tree
 * of 140 KB, and the newest slots, where half of the changes fall, share theirs. */
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
    uint32_t levels;
};

bool kvc_stack_init(struct kvc_stack *s, uint32_t n_segments, const uint32_t *seg_len);
void kvc_stack_clear(struct kvc_stack *s);
void kvc_stack_pack(struct kvc_stack *s); /* when next is 0 */

static inline uint32_t kvc_stack_above(const struct kvc_stack *s, uint32_t slot)
{
    uint32_t sum = 0;
    for (uint32_t l = 0; l < s->levels; l++, slot >>= 4)
        sum += s->above[l][slot];
    return sum;
}

/* 16 words at once: SSE2 code from gcc and clang at any level of optimisation. */
__extension__ typedef uint32_t kvc_u32x16
    __attribute__((vector_size(64), aligned(4), may_alias));

static inline void kvc_stack_add(struct kvc_stack *s, uint32_t slot, uint32_t blocks)
{
    static const uint32_t after[31] = {
        0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,  0,
        ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
    };
    for (uint32_t l = 0; l < s->levels; l++, slot >>= 4) {
        kvc_u32x16 *group = (kvc_u32x16 *)(s->above[l] + (slot & ~15u));
        *group += *(const kvc_u32x16 *)(after + 15 - (slot & 15u)) & blocks;
    }
}

/* Makes the segment the most recent. True when it had been touched before; then *above is the
 * number of blocks that were more recent than its first. */
static inline bool kvc_stack_touch(struct kvc_stack *s, uint32_t seg, uint32_t *above)
{
    if (s->next == 0)
        kvc_stack_pack(s);
    uint32_t len = s->seg_len[seg], slot = s->slot_of[seg];
    bool seen = slot != KVC_SLOT_NONE;
    if (seen) {
        *above = kvc_stack_above(s, slot);
        s->seg_at[slot] = KVC_SLOT_NONE;
        kvc_stack_add(s, slot, 0u - len);
    }
    slot = --s->next;
    s->seg_at[slot] = seg;
    s->slot_of[seg] = slot;
    kvc_stack_add(s, slot, len);
    return seen;
}

#endif
