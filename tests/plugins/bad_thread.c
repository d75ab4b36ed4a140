/* SPDX-License-Identifier: Apache-2.0
 * Ends the thread that asks it, as if its work were done. */
#include <kvcast/policy.h>

#include <pthread.h>

static kvc_piece leave(const struct kvc_host *host, void *state,
                       const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)host, (void)state, (void)newcomer, (void)blocks;
    pthread_exit(NULL);
}

#define VICTIM leave
#include "bad.h"
