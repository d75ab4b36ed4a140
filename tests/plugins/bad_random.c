/* SPDX-License-Identifier: Apache-2.0
 * Lets a global variable decide. */
#include <kvcast/policy.h>

static unsigned asked;

static kvc_piece moody(const struct kvc_host *host, void *state,
                       const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    kvc_piece oldest = host->oldest(host, 0), next = host->newer(host, oldest);
    (void)state, (void)newcomer, (void)blocks;
    return asked++ % 1013 == 1012 && next != KVC_PIECE_NONE ? next : oldest;
}

#define VICTIM moody
#define MORE .flags = KVC_EVICT_SINGLE,
#include "bad.h"
