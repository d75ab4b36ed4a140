/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/break_column.h"

#include "base/alloc.h"

uint64_t *kvc_breaks_pack(const struct kvc_trace *t, size_t *n)
{
    *n = t->compared_prompts || t->n_breaks ? 1 + (size_t)t->n_breaks * KVC_BREAK_NUMBERS : 0;
    uint64_t *all = *n ? kvc_malloc(*n, sizeof(*all)) : NULL;
    if (!all)
        return NULL;
    all[0] = t->compared_prompts;
    for (uint32_t i = 0; i < t->n_breaks; i++) {
        const struct kvc_break *b = &t->breaks[i];
        uint64_t *p = all + 1 + (size_t)i * KVC_BREAK_NUMBERS;
        p[0] = b->kind;
        p[1] = b->role;
        p[2] = b->part;
        p[3] = b->message;
        p[4] = b->offset;
        p[5] = b->prompts;
        p[6] = b->values;
        p[7] = b->lost_tokens;
    }
    return all;
}

bool kvc_breaks_unpack(const uint64_t *all, uint64_t n, struct kvc_trace *t)
{
    if (n == 0)
        return true;
    uint64_t count = (n - 1) / KVC_BREAK_NUMBERS;
    if (n - 1 != count * KVC_BREAK_NUMBERS || count > UINT32_MAX ||
        !(t->breaks = kvc_malloc((size_t)count, sizeof(*t->breaks))))
        return false;
    t->compared_prompts = all[0];
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t *p = all + 1 + i * KVC_BREAK_NUMBERS;
        if (p[0] >= KVC_BREAK_KINDS || p[1] > UINT8_MAX || p[2] > UINT8_MAX ||
            p[3] > UINT32_MAX || p[4] > UINT32_MAX)
            return false;
        t->breaks[t->n_breaks++] = (struct kvc_break){
            .kind = (uint8_t)p[0], .role = (uint8_t)p[1], .part = (uint8_t)p[2],
            .message = (uint32_t)p[3], .offset = (uint32_t)p[4], .prompts = p[5], .values = p[6],
            .lost_tokens = p[7] };
    }
    return true;
}
