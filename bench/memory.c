/* SPDX-License-Identifier: Apache-2.0
 * Memory copies: how many bytes a second threads of one NUMA node copy within the memory of a node.
 * A copied byte is read once and written once. */
#include "bench/measure.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define MOST_THREADS 256
#define BYTES ((size_t)512 << 20)       /* of all threads, source and target each: beyond caches */
#define QUICK_BYTES ((size_t)128 << 20)

struct crew {
    pthread_mutex_t gate; /* closed until it is known how many there are */
    pthread_barrier_t barrier;
    char *from, *to;
    size_t bytes;        /* of one thread */
    uint32_t threads, repeats;
    int cpu[MOST_THREADS], home; /* where they run; where the memory is */
    double begin[KVC_BENCH_REPEATS + 1], end[KVC_BENCH_REPEATS + 1];
};

struct member {
    struct crew *crew;
    uint32_t index;
};

/* The first copy is not counted: it warms up. Memory lies where it is first touched. */
static void *copy(void *argument)
{
    const struct member *m = argument;
    struct crew *c = m->crew;
    char *from = c->from + m->index * c->bytes, *to = c->to + m->index * c->bytes;

    pthread_mutex_lock(&c->gate);
    pthread_mutex_unlock(&c->gate);
    kvc_bench_pin(c->home);
    memset(from, 1 + (int)m->index, c->bytes);
    memset(to, 0, c->bytes);
    kvc_bench_pin(c->cpu[m->index]);
    for (uint32_t i = 0; i <= c->repeats; i++) {
        pthread_barrier_wait(&c->barrier);
        if (m->index == 0)
            c->begin[i] = kvc_bench_now_s();
        memcpy(to, from, c->bytes);
        from[i] = to[c->bytes - 1 - i]; /* so that no copy is left out */
        pthread_barrier_wait(&c->barrier);
        if (m->index == 0)
            c->end[i] = kvc_bench_now_s();
    }
    return NULL;
}

/* Threads that can't be started are done without. */
static bool run_crew(struct crew *c)
{
    struct member member[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    uint32_t started = 0;

    pthread_mutex_init(&c->gate, NULL);
    pthread_mutex_lock(&c->gate);
    for (; started < c->threads; started++) {
        member[started] = (struct member){c, started};
        if (pthread_create(&thread[started], NULL, copy, &member[started]) != 0)
            break;
    }
    c->threads = started;
    pthread_barrier_init(&c->barrier, NULL, started ? started : 1);
    pthread_mutex_unlock(&c->gate);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&c->barrier);
    pthread_mutex_destroy(&c->gate);
    return started > 0;
}

static enum kvc_status measure(struct crew *c, size_t bytes, uint32_t node, uint32_t memory,
                               const struct kvc_bench_sink *sink, struct kvc_error *err)
{
    struct kvc_bench_row row = {.what = "memory copy"};
    double rate[KVC_BENCH_REPEATS];

    c->bytes = bytes / c->threads / 4096 * 4096;
    c->from = kvc_malloc(c->bytes, c->threads);
    c->to = kvc_malloc(c->bytes, c->threads);
    enum kvc_status status = c->from && c->to ? KVC_OK : kvc_fail_nomem(err);
    if (status == KVC_OK && !run_crew(c))
        status = kvc_fail(err, KVC_ERR_LIMIT, "no thread can be started");
    if (status == KVC_OK) {
        for (uint32_t i = 0; i < c->repeats; i++)
            rate[i] = (double)(c->bytes * c->threads) / (c->end[i + 1] - c->begin[i + 1]);
        kvc_bench_settle(rate, c->repeats, &row.rate, &row);
        snprintf(row.how, sizeof row.how, "%u thread%s of node %u, memory of node %u", c->threads,
                 c->threads == 1 ? "" : "s", node, memory);
        if (!sink->row(sink->user, &row))
            status = kvc_fail(err, KVC_ERR_CANCELLED, "the measuring was cancelled");
    }
    kvc_free(c->from);
    kvc_free(c->to);
    return status;
}

enum kvc_status kvc_bench_memory(const struct kvc_bench_options *o,
                                 const struct kvc_bench_sink *sink, struct kvc_error *err)
{
    struct kvc_bench_machine machine;
    struct crew c = {.repeats = o->quick ? 5 : 11};
    int home[MOST_THREADS];
    enum kvc_status status = KVC_OK;

    kvc_bench_machine(&machine);
    for (uint32_t node = 0; node < machine.nodes && status == KVC_OK; node++)
        for (uint32_t memory = 0; memory < machine.nodes && status == KVC_OK; memory++) {
            uint32_t cpus = kvc_bench_node_cpus(node, c.cpu, MOST_THREADS), threads = 1;
            kvc_bench_node_cpus(memory, home, MOST_THREADS);
            c.home = home[0];
            while (status == KVC_OK) {
                c.threads = threads < cpus ? threads : cpus;
                status = measure(&c, o->quick ? QUICK_BYTES : BYTES, node, memory, sink, err);
                if (threads >= cpus || (node != memory && threads > 1))
                    break;
                threads = node == memory ? threads * 2 : cpus;
            }
        }
    return status;
}
