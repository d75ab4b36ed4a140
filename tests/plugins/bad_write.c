/* SPDX-License-Identifier: Apache-2.0
 * Writes to what it may only read, and what other policies' runs read too. */
#include <kvcast/policy.h>

#include <stdint.h>

static void scribble(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    uint32_t *depth = (uint32_t *)(uintptr_t)host->seg_depth;
    (void)state, (void)ghost;
    depth[0]++;
    host->put(host, 0, piece);
}

#define STORED scribble
#include "bad.h"
