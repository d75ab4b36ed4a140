/* SPDX-License-Identifier: Apache-2.0
 * A number for every block of a segment, as stretches of blocks with the same number: here, whose
 * request a block left the cache for last. */
#ifndef KVC_SIM_MARKS_H
#define KVC_SIM_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVC_MARK_NONE UINT32_MAX

struct kvc_mark {
    uint32_t lo, hi, who, next; /* blocks [lo, hi); next: further on in the segment, or free */
};

struct kvc_marks {
    uint32_t *first; /* by segment */
    struct kvc_mark *mark;
    size_t n, room;
    uint32_t free;
    bool failed; /* out of memory: what follows is worthless */
};

bool kvc_marks_init(struct kvc_marks *m, uint32_t n_segments);
void kvc_marks_clear(struct kvc_marks *m);
void kvc_marks_set(struct kvc_marks *m, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t who);
/* The number of block lo, and in *end up to where before hi it holds. */
uint32_t kvc_marks_at(const struct kvc_marks *m, uint32_t seg, uint32_t lo, uint32_t hi,
                      uint32_t *end);

#endif
