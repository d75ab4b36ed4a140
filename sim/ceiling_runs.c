/* SPDX-License-Identifier: Apache-2.0
 * Policies without time, by runs of segments (policies/runs.h): one cache per capacity. */
#include "base/error.h"
#include "policies/runs.h"
#include "sim/ceiling.h"

/* Blocks of the path that are resident, from its root to the first that isn't. */
static uint64_t leading_run(const struct kvc_runs *cache, const struct kvc_ceiling_view *v,
                            uint32_t seg)
{
    uint64_t run = 0;
    for (; seg != KVC_SEG_NONE; seg = v->seg_parent[seg]) {
        uint32_t lead = kvc_runs_lead(cache, seg);
        run = lead < v->seg_len[seg] ? lead : run + lead;
    }
    return run;
}

static enum kvc_status one_capacity(const struct kvc_ceiling_view *v, const char *policy,
                                    uint64_t capacity, struct kvc_hits *hits, uint32_t *runs,
                                    struct kvc_error *err)
{
    struct kvc_runs *cache = kvc_runs_create(policy, capacity, v->n_segments, v->seg_len,
                                             v->seg_depth);
    if (!cache)
        return kvc_fail_nomem(err);
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint64_t run = leading_run(cache, v, v->prompt_seg[r]);
        kvc_hits_count(v, r, run, hits);
        if (runs)
            runs[r] = (uint32_t)run;
        for (uint32_t s = v->prompt_seg[r]; s != KVC_SEG_NONE; s = v->seg_parent[s])
            kvc_runs_touch(cache, s);
    }
    bool failed = kvc_runs_failed(cache);
    kvc_runs_destroy(cache);
    return failed ? kvc_fail_nomem(err) : KVC_OK;
}

enum kvc_status kvc_ceiling_runs_of(const struct kvc_ceiling_view *v, const char *policy,
                                    const uint64_t *capacity_blocks, size_t n,
                                    struct kvc_hits *out, uint32_t *runs, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < n && status == KVC_OK; i++) {
        struct kvc_hits hits;
        kvc_hits_begin(v, &hits);
        status = one_capacity(v, policy, capacity_blocks[i], &hits, i ? NULL : runs, err);
        if (status == KVC_OK)
            out[i] = hits;
    }
    return status;
}
