/* SPDX-License-Identifier: Apache-2.0
 * Which block sizes agree with the lengths and id counts of a log's rows.
 *
 * A row of L tokens with n ids means ceil(L / B) = n (the partial last block has an id) or
 * floor(L / B) = n (it has none); each leaves an interval of B. */
#ifndef KVC_TRACES_BLOCK_SIZE_H
#define KVC_TRACES_BLOCK_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kvc_block_range {
    uint64_t low, high; /* empty when low > high */
};

struct kvc_block_fit {
    struct kvc_block_range ceil, floor, either; /* that all rows so far allow */
};

void kvc_block_fit_init(struct kvc_block_fit *fit);
void kvc_block_fit_add(struct kvc_block_fit *fit, uint32_t tokens, size_t ids); /* both > 0 */
bool kvc_block_fits_row(uint32_t block, uint32_t tokens, size_t ids);
/* The one size to believe: the only one in the first non-empty interval (ceil, floor, either), or
 * the only power of two in it. 0: none; *range is that interval. */
uint32_t kvc_block_fit_choose(const struct kvc_block_fit *fit, struct kvc_block_range *range);

#endif
