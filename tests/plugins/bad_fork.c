/* SPDX-License-Identifier: Apache-2.0
 * Leaves a process and that one's child behind, and prints where the verdict goes. */
#define _POSIX_C_SOURCE 200809L
#include <kvcast/policy.h>
#include <stdio.h>
#include <unistd.h>

static void leave_two(void)
{
    int ends[2];
    char c;
    if (pipe(ends) != 0)
        return;
    if (fork() == 0) {
        fork();
        (void)!write(ends[1], "", 1);
        for (;;)
            pause();
    }
    (void)!read(ends[0], &c, 1); /* both are there */
}

static kvc_piece forks(const struct kvc_host *host, void *state,
                       const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    static int once;
    (void)state, (void)newcomer, (void)blocks;
    if (!once++)
        leave_two();
    printf("{\n");
    fflush(stdout);
    return host->oldest(host, 0);
}

#define VICTIM forks
#include "bad.h"
