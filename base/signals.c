/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signals.h"

#include <stddef.h>

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
#define N_ENDING (sizeof(ending) / sizeof(ending[0]))

void kvc_signals_hold(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < N_ENDING; i++)
        sigaddset(&set, ending[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

void kvc_signals_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

bool kvc_signals_waiting(void)
{
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return false;
    for (size_t i = 0; i < N_ENDING; i++)
        if (sigismember(&pending, ending[i]) == 1)
            return true;
    return false;
}
