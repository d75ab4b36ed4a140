/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/block_size.h"

#define LARGEST ((uint64_t)1 << 31)

void kvc_block_fit_init(struct kvc_block_fit *fit)
{
    fit->ceil = fit->floor = fit->either = (struct kvc_block_range){ 1, LARGEST };
}

static void narrow(struct kvc_block_range *r, uint64_t low, uint64_t high)
{
    r->low = low > r->low ? low : r->low;
    r->high = high < r->high ? high : r->high;
}

void kvc_block_fit_add(struct kvc_block_fit *fit, uint32_t tokens, size_t ids)
{
    uint64_t l = tokens, n = ids;
    uint64_t ceil_low = (l + n - 1) / n, ceil_high = n > 1 ? (l - 1) / (n - 1) : LARGEST;
    uint64_t floor_low = l / (n + 1) + 1, floor_high = l / n;
    narrow(&fit->ceil, ceil_low, ceil_high);
    narrow(&fit->floor, floor_low, floor_high);
    /* The two meet: floor_high is ceil_low or one less. */
    narrow(&fit->either, floor_low, ceil_high > floor_high ? ceil_high : floor_high);
}

bool kvc_block_fits_row(uint32_t block, uint32_t tokens, size_t ids)
{
    uint32_t full = tokens / block;
    return ids == full || (ids == (size_t)full + 1 && tokens % block);
}

uint32_t kvc_block_fit_choose(const struct kvc_block_fit *fit, struct kvc_block_range *range)
{
    *range = fit->ceil;
    if (range->low > range->high)
        *range = fit->floor;
    if (range->low > range->high)
        *range = fit->either;
    if (range->low > range->high)
        return 0;
    if (range->low == range->high)
        return (uint32_t)range->low;
    uint64_t found = 0;
    for (uint64_t b = 1; b <= range->high; b *= 2) {
        if (b >= range->low) {
            if (found)
                return 0;
            found = b;
        }
    }
    return (uint32_t)found;
}
