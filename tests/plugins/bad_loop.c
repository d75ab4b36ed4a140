/* SPDX-License-Identifier: Apache-2.0
 * Never answers. */
#include <kvcast/policy.h>

static kvc_piece endless(const struct kvc_host *host, void *state,
                         const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)state, (void)newcomer;
    while (host->oldest(host, 0) != KVC_PIECE_NONE)
        *blocks = 1;
    return KVC_PIECE_NONE;
}

#define VICTIM endless
#include "bad.h"
