/* SPDX-License-Identifier: Apache-2.0
 * Policies without time, by runs of segments (policies/eviction/runs.h): one cache per capacity. */
#include "base/alloc.h"
#include "base/error.h"
#include "sim/ceiling/ceiling.h"

struct kvc_runs *kvc_ceiling_cache(const struct kvc_ceiling_view *v, const char *policy,
                                   uint64_t capacity_blocks,
                                   void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi,
                                                bool expired), void *user)
{
    const struct kvc_runs_setup setup = {
        .policy = policy, .capacity = capacity_blocks, .n_segments = v->n_segments,
        .seg_len = v->seg_len, .seg_depth = v->seg_depth, .seg_parent = v->seg_parent,
        .block_tokens = v->block_tokens, .left = left, .left_user = user,
    };
    return kvc_runs_create(&setup);
}

static enum kvc_status one_capacity(const struct kvc_ceiling_view *v, const char *policy,
                                    uint64_t capacity, struct kvc_hits *hits, uint32_t *runs,
                                    struct kvc_error *err)
{
    struct kvc_runs *cache = kvc_ceiling_cache(v, policy, capacity, NULL, NULL);
    uint32_t *next = NULL;
    uint64_t touches = 0; /* of segments */
    if (!cache)
        return kvc_fail_nomem(err);
    if (kvc_runs_wants_next(cache) && kvc_ceiling_next_uses(v, &next, err) != KVC_OK) {
        kvc_runs_destroy(cache);
        return KVC_ERR_NOMEM;
    }
    for (uint64_t r = 0; r < v->n_requests; r++) {
        struct kvc_runs_request request = kvc_ceiling_request(v, r);
        if (next) {
            request.next = next + touches;
            for (uint32_t s = request.seg; s != KVC_SEG_NONE; s = v->seg_parent[s])
                touches++;
        }
        if (r + KVC_RUNS_AHEAD < v->n_requests)
            kvc_runs_expect(cache, v->prompt_seg + r);
        uint64_t run = kvc_runs_arrive(cache, &request);
        kvc_hits_count(v, r, run, hits);
        if (runs)
            runs[r] = (uint32_t)run;
        kvc_runs_touch(cache);
    }
    enum kvc_status status = kvc_runs_error(cache, err);
    kvc_runs_destroy(cache);
    kvc_free(next);
    return status;
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
