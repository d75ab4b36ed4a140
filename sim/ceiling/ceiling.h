/* SPDX-License-Identifier: Apache-2.0
 * Hit-rate bounds and policies without time, by segment. The public functions are in
 * kvcast.h; here is what the rest of sim/ and the tests use beside them.
 *
 * Rows without ids bring tokens and a request to the denominators and never hit. */
#ifndef KVC_SIM_CEILING_H
#define KVC_SIM_CEILING_H

#include "policies/eviction/runs.h"
#include "traces/trace.h"

struct kvc_runs;

/* What the algorithms read of a trace: who touches which segments. */
struct kvc_ceiling_view {
    uint64_t n_requests;
    uint32_t n_segments, block_tokens;
    const uint32_t *prompt_seg, *input_tokens;
    const uint32_t *seg_parent, *seg_len, *seg_depth;
    const uint64_t *arrival_ns;
    const uint32_t *session, *tenant; /* as the trace's, NULL: none */
    uint32_t *owned[4]; /* arrays of a view that is not the trace's own */
};

/* Where attention takes as long as all else of a prefill: 2 x 8 G FLOP a token against 4 x 4096 x
 * 32 FLOP for each token before it, of an 8B model without sliding windows. Assumed. */
#define KVC_COST_TOKENS 32768

/* The trace as it is, unless it is a sample: no figure of it is one of the log. KVC_ERR_LIMIT
 * beyond 2^32 - 2 requests or distinct blocks. */
enum kvc_status kvc_ceiling_view(struct kvc_ceiling_view *out, const struct kvc_trace *trace,
                                 struct kvc_error *err);
/* The trace without partial tails: requests touch, and caches store, full blocks only, as engines
 * and tiers do. Segments that end in somebody's partial block are cut before it. */
enum kvc_status kvc_ceiling_view_full(struct kvc_ceiling_view *out, const struct kvc_trace *trace,
                                      struct kvc_error *err);
/* The same of samples as well. */
enum kvc_status kvc_ceiling_view_sampled(struct kvc_ceiling_view *out,
                                         const struct kvc_trace *trace, struct kvc_error *err);
void kvc_ceiling_view_clear(struct kvc_ceiling_view *view);

/* Leading runs may be asked for by request: runs[n_requests], or NULL; of the first capacity. */
enum kvc_status kvc_ceiling_content_of(const struct kvc_ceiling_view *view, struct kvc_hits *out,
                                       uint32_t *runs, struct kvc_error *err);
enum kvc_status kvc_ceiling_lru_of(const struct kvc_ceiling_view *view,
                                   const uint64_t *capacity_blocks, size_t n, struct kvc_hits *out,
                                   uint32_t *runs, struct kvc_error *err);
enum kvc_status kvc_ceiling_opt_of(const struct kvc_ceiling_view *view,
                                   const uint64_t *capacity_blocks, size_t n, struct kvc_hits *out,
                                   uint32_t *runs, struct kvc_error *err);
/* At one capacity, and which blocks were let go after each request: dropped[r] is the nearest next
 * use among them, UINT32_MAX when there were none. */
enum kvc_status kvc_ceiling_opt_drops(const struct kvc_ceiling_view *view,
                                      uint64_t capacity_blocks, struct kvc_hits *out,
                                      uint32_t *runs, uint32_t *dropped, struct kvc_error *err);
/* The optimum of one cache, request by request of the view: arrive tells the blocks found, touch
 * takes the request's path. What is not used again stays while there is room, those touched longest
 * ago go first. left (or NULL) is told of blocks that were there and make room. NULL: no memory. */
struct kvc_opt;
struct kvc_opt *kvc_opt_create(const struct kvc_ceiling_view *view, uint64_t capacity_blocks,
                               void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi,
                                            bool expired), void *user);
void kvc_opt_destroy(struct kvc_opt *opt); /* NULL is fine */
uint64_t kvc_opt_arrive(const struct kvc_opt *opt);
void kvc_opt_touch(struct kvc_opt *opt);
uint64_t kvc_opt_held(const struct kvc_opt *opt, uint32_t seg); /* leading blocks of that path */
/* By request and segment of its path, leaf first: the next request that touches the segment,
 * UINT32_MAX none. The caller frees it. */
enum kvc_status kvc_ceiling_next_uses(const struct kvc_ceiling_view *view, uint32_t **next,
                                      struct kvc_error *err);
/* policy: as kvc_runs_check finds it fine. */
enum kvc_status kvc_ceiling_runs_of(const struct kvc_ceiling_view *view, const char *policy,
                                    const uint64_t *capacity_blocks, size_t n,
                                    struct kvc_hits *out, uint32_t *runs, struct kvc_error *err);
/* The policy's name as kvc_ceiling_policies has it, or what was given, with options that are
 * fine. */
enum kvc_status kvc_ceiling_find_policy(const char **out, const char *spec, struct kvc_error *err);
/* An empty cache for the view's segments; left as in policies/eviction/runs.h. NULL: no memory. */
struct kvc_runs *kvc_ceiling_cache(const struct kvc_ceiling_view *view, const char *policy,
                                   uint64_t capacity_blocks,
                                   void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi,
                                                bool expired), void *user);
enum kvc_status kvc_ceiling_curve_of(const struct kvc_ceiling_view *view, struct kvc_curve *out,
                                     struct kvc_error *err);

/* What a cache of runs is told of a request. */
static inline struct kvc_runs_request kvc_ceiling_request(const struct kvc_ceiling_view *view,
                                                          uint64_t request)
{
    return (struct kvc_runs_request){
        .seg = view->prompt_seg[request],
        .session = view->session ? view->session[request] : KVC_ID_NONE,
        .tenant = view->tenant ? view->tenant[request] : KVC_ID_NONE,
        .now_ns = view->arrival_ns ? view->arrival_ns[request] : 0,
        .input_tokens = view->input_tokens[request],
    };
}

/* ---- counting, shared by the algorithms ---- */

/* Denominators; everything else 0. */
void kvc_hits_begin(const struct kvc_ceiling_view *view, struct kvc_hits *out);
/* Those of one more request. */
void kvc_hits_expect(const struct kvc_ceiling_view *view, uint64_t request, struct kvc_hits *hits);

static inline void kvc_hits_count(const struct kvc_ceiling_view *view, uint64_t request,
                                  uint64_t run, struct kvc_hits *hits)
{
    uint64_t tokens = view->input_tokens[request], size = view->block_tokens;
    if (run == 0)
        return;
    uint64_t full = tokens / size < run ? tokens / size : run;
    hits->raw_hit_blocks += run;
    hits->raw_hit_tokens += run * size < tokens ? run * size : tokens;
    hits->raw_hit_requests++;
    hits->hit_blocks += full;
    hits->hit_tokens += full * size;
    hits->hit_requests += full > 0;
}

#endif
