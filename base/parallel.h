/* SPDX-License-Identifier: Apache-2.0
 * Independent pieces of work on several threads. */
#ifndef KVC_BASE_PARALLEL_H
#define KVC_BASE_PARALLEL_H

#include <kvcast/kvcast.h>

/* work(user, i, err) for each i below n, dealt in order to this thread and at most threads - 1
 * others. Once one has failed no more are dealt; the error is that of the first by number, as if
 * they had come one after the other. */
enum kvc_status kvc_parallel(uint32_t threads, size_t n,
                             enum kvc_status (*work)(void *user, size_t i, struct kvc_error *err),
                             void *user, struct kvc_error *err);

#endif
