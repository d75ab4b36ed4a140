/* SPDX-License-Identifier: Apache-2.0
 * Reads where there is nothing, once the cache is full. */
#include <kvcast/policy.h>

static kvc_piece fault(const struct kvc_host *host, void *state,
                       const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    volatile const uint32_t *nothing = state;
    (void)newcomer, (void)blocks;
    return host->oldest(host, *nothing);
}

#define VICTIM fault
#include "bad.h"
