/* SPDX-License-Identifier: Apache-2.0
 * Ranks by what is not a number. */
#include <kvcast/policy.h>

static void nowhere(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    double zero = 0.0 * (double)ghost;
    (void)state;
    host->rank(host, piece, zero / zero);
}

#define STORED nowhere
#include "bad.h"
