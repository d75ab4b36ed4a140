/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/block_size.h"

#define LARGEST ((uint64_t)1 << 31)

void kvc_block_fit_init(struct kvc_block_fit *fit)
{
    fit->ceil = fit->floor = fit->either = (struct kvc_block_range){ 1, LARGEST };
}

/* low = max(low, ceil(l / n)) and high = min(high, floor(l / n)). Products tell first whether
 * anything changes: nearly all rows cost no division. */
static inline void raise_low(struct kvc_block_range *r, uint64_t l, uint64_t n)
{
    if (l > r->low * n)
        r->low = (l + n - 1) / n;
}

static inline void lower_high(struct kvc_block_range *r, uint64_t l, uint64_t n)
{
    if (l < r->high * n)
        r->high = l / n;
}

void kvc_block_fit_add(struct kvc_block_fit *fit, uint32_t tokens, size_t ids)
{
    uint64_t l = tokens, n = ids < LARGEST ? ids : LARGEST;
    /* ceil(l / B) = n:  ceil(l / n) <= B <= floor((l - 1) / (n - 1)), without limit for n = 1 */
    raise_low(&fit->ceil, l, n);
    lower_high(&fit->ceil, l - 1, n - 1);
    /* floor(l / B) = n:  ceil((l + 1) / (n + 1)) <= B <= floor(l / n) */
    raise_low(&fit->floor, l + 1, n + 1);
    lower_high(&fit->floor, l, n);
    /* The two meet, and the first reaches further up. */
    raise_low(&fit->either, l + 1, n + 1);
    lower_high(&fit->either, l - 1, n - 1);
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
