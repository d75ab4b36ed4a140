/* SPDX-License-Identifier: Apache-2.0
 * Leaves a process behind, and prints where the verdict goes. */
#define _POSIX_C_SOURCE 200809L
#include <kvcast/policy.h>
#include <stdio.h>
#include <unistd.h>

static kvc_piece forks(const struct kvc_host *host, void *state,
                       const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    static int once;
    (void)state, (void)newcomer, (void)blocks;
    if (!once++ && fork() == 0)
        pause();
    printf("{\n");
    fflush(stdout);
    return host->oldest(host, 0);
}

#define VICTIM forks
#include "bad.h"
