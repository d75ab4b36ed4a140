/* SPDX-License-Identifier: Apache-2.0
 * Many policies at many capacities over one shared trace, on several threads. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/parallel.h"
#include "sim/ceiling/ceiling.h"

#include <string.h>

struct grid_job {
    const struct kvc_trace *trace;
    const char *policy;
    const uint64_t *capacity;
    size_t n; /* capacities */
    struct kvc_hits *out;
};

static enum kvc_status work(void *user, size_t i, struct kvc_error *err)
{
    const struct grid_job *j = (const struct grid_job *)user + i;
    return kvc_ceiling_policy(j->trace, j->policy, j->capacity, j->n, j->out, err);
}

enum kvc_status kvc_ceiling_grid(const struct kvc_trace *trace, const char *const *policies,
                                 size_t n_policies, const uint64_t *capacity_blocks, size_t n,
                                 uint32_t threads, struct kvc_hits *out, struct kvc_error *err)
{
    struct grid_job *job = kvc_calloc(n_policies * n, sizeof(*job));
    size_t n_jobs = 0;
    if (!job)
        return kvc_fail_nomem(err);
    for (size_t p = 0; p < n_policies; p++) {
        bool together = strcmp(policies[p], "lru") == 0; /* one pass gives all */
        for (size_t i = 0; i < (together && n ? 1 : n); i++)
            job[n_jobs++] = (struct grid_job){
                .trace = trace, .policy = policies[p], .capacity = capacity_blocks + i,
                .n = together ? n : 1, .out = out + p * n + i };
    }
    enum kvc_status status = kvc_parallel(threads, n_jobs, work, job, err);
    kvc_free(job);
    return status;
}
