/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include <pthread.h>

#define THREADS_MOST 64

struct dealing {
    enum kvc_status (*work)(void *user, size_t i, struct kvc_error *err);
    void *user;
    size_t n;
    pthread_mutex_t lock; /* of what follows */
    size_t next, failed;  /* failed: the first by number, n while there is none */
    enum kvc_status status;
    struct kvc_error err;
};

static void *take_turns(void *user)
{
    struct dealing *d = user;
    for (;;) {
        struct kvc_error err = {0};
        pthread_mutex_lock(&d->lock);
        size_t i = d->failed < d->n ? d->n : d->next;
        d->next += i < d->n;
        pthread_mutex_unlock(&d->lock);
        if (i >= d->n)
            return NULL;
        enum kvc_status status = d->work(d->user, i, &err);
        pthread_mutex_lock(&d->lock);
        if (status != KVC_OK && i < d->failed) {
            d->failed = i;
            d->status = status;
            d->err = err;
        }
        pthread_mutex_unlock(&d->lock);
    }
}

enum kvc_status kvc_parallel(uint32_t threads, size_t n,
                             enum kvc_status (*work)(void *user, size_t i, struct kvc_error *err),
                             void *user, struct kvc_error *err)
{
    pthread_t helper[THREADS_MOST];
    struct dealing d = {.work = work, .user = user, .n = n, .failed = n, .status = KVC_OK};
    uint32_t helpers = 0;
    pthread_mutex_init(&d.lock, NULL);
    while (helpers + 1 < threads && helpers + 1 < n && helpers < THREADS_MOST &&
           pthread_create(&helper[helpers], NULL, take_turns, &d) == 0)
        helpers++;
    take_turns(&d);
    while (helpers > 0)
        pthread_join(helper[--helpers], NULL);
    pthread_mutex_destroy(&d.lock);
    if (d.status != KVC_OK && err)
        *err = d.err;
    return d.status;
}
