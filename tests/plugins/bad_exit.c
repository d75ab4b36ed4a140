/* SPDX-License-Identifier: Apache-2.0
 * Ends the program as if all were well. */
#include <kvcast/policy.h>

#include <stdlib.h>

static kvc_piece leave(const struct kvc_host *host, void *state,
                       const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)host, (void)state, (void)newcomer, (void)blocks;
    exit(0);
}

#define VICTIM leave
#include "bad.h"
