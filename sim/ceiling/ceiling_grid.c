/* SPDX-License-Identifier: Apache-2.0
 * Many policies at many capacities over one shared trace, on several threads. */
#include "base/alloc.h"
#include "base/error.h"
#include "sim/ceiling/ceiling.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct grid_job {
    const char *policy;
    const uint64_t *capacity;
    size_t n; /* capacities */
    struct kvc_hits *out;
    enum kvc_status status;
    struct kvc_error err;
};

struct grid {
    const struct kvc_trace *trace;
    struct grid_job *job;
    size_t n_jobs;
    atomic_size_t next;
};

static void *work(void *user)
{
    struct grid *g = user;
    for (size_t i; (i = atomic_fetch_add(&g->next, 1)) < g->n_jobs;) {
        struct grid_job *j = &g->job[i];
        j->status = kvc_ceiling_policy(g->trace, j->policy, j->capacity, j->n, j->out, &j->err);
    }
    return NULL;
}

static void run(struct grid *g, uint32_t threads)
{
    pthread_t helper[64];
    uint32_t n = 0;
    threads = threads > g->n_jobs ? (uint32_t)g->n_jobs : threads;
    while (n + 1 < threads && n < 64 && pthread_create(&helper[n], NULL, work, g) == 0)
        n++;
    work(g);
    while (n > 0)
        pthread_join(helper[--n], NULL);
}

enum kvc_status kvc_ceiling_grid(const struct kvc_trace *trace, const char *const *policies,
                                 size_t n_policies, const uint64_t *capacity_blocks, size_t n,
                                 uint32_t threads, struct kvc_hits *out, struct kvc_error *err)
{
    struct grid g = {.trace = trace};
    enum kvc_status status = KVC_OK;
    g.job = kvc_calloc(n_policies * n, sizeof(*g.job));
    if (!g.job)
        return kvc_fail_nomem(err);
    for (size_t p = 0; p < n_policies; p++) {
        bool together = strcmp(policies[p], "lru") == 0; /* one pass gives all */
        for (size_t i = 0; i < (together && n ? 1 : n); i++)
            g.job[g.n_jobs++] = (struct grid_job){
                .policy = policies[p], .capacity = capacity_blocks + i, .n = together ? n : 1,
                .out = out + p * n + i };
    }
    atomic_init(&g.next, 0);
    run(&g, threads);
    for (size_t i = 0; i < g.n_jobs && status == KVC_OK; i++) {
        status = g.job[i].status;
        if (status != KVC_OK && err)
            *err = g.job[i].err;
    }
    kvc_free(g.job);
    return status;
}
