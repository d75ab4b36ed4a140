/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include "base/error.h"

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

struct turn {
    struct dealing *dealing;
    size_t i;
};

static void note(struct dealing *d, size_t i, enum kvc_status status, const struct kvc_error *err)
{
    pthread_mutex_lock(&d->lock);
    if (status != KVC_OK && i < d->failed) {
        d->failed = i;
        d->status = status;
        d->err = *err;
    }
    pthread_mutex_unlock(&d->lock);
}

/* Foreign code in a piece ended its thread, which takes no other turn: without this the piece would
 * pass for done. */
static void ended(void *user)
{
    const struct turn *t = user;
    struct kvc_error err = {0};
    kvc_fail(&err, KVC_ERR_PLUGIN, "a thread was ended within its work, most likely by a plug-in "
                                   "(pthread_exit?); 'kvcast policy check' tells in which hook");
    note(t->dealing, t->i, KVC_ERR_PLUGIN, &err);
}

static void take_turn(struct turn turn)
{
    struct kvc_error err = {0};
    enum kvc_status status;
    pthread_cleanup_push(ended, &turn);
    status = turn.dealing->work(turn.dealing->user, turn.i, &err);
    pthread_cleanup_pop(0);
    note(turn.dealing, turn.i, status, &err);
}

static void *take_turns(void *user)
{
    struct dealing *d = user;
    for (;;) {
        pthread_mutex_lock(&d->lock);
        size_t i = d->failed < d->n ? d->n : d->next;
        d->next += i < d->n;
        pthread_mutex_unlock(&d->lock);
        if (i >= d->n)
            return NULL;
        take_turn((struct turn){.dealing = d, .i = i});
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
