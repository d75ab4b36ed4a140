/* SPDX-License-Identifier: Apache-2.0
 * Whole numbers. */
#ifndef KVC_BASE_WHOLE_H
#define KVC_BASE_WHOLE_H

#include <stdint.h>

/* a / b, rounded up; their sum must fit 64 bits. */
static inline uint64_t kvc_div_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

#endif
