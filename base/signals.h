/* SPDX-License-Identifier: Apache-2.0
 * Holds back the signals that ask a program to end (INT, TERM, HUP) while a file or folder is made
 * that must be whole, or gone, before it ends. */
#ifndef KVC_BASE_SIGNALS_H
#define KVC_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* In this thread; what comes meanwhile comes at kvc_signals_release with what hold left. */
void kvc_signals_hold(sigset_t *before);
void kvc_signals_release(const sigset_t *before);
/* One of them is held back now. */
bool kvc_signals_waiting(void);

#endif
