/* SPDX-License-Identifier: Apache-2.0
 * What is in a trace, beyond the sums of kvc_trace_stats: arrivals, lengths, what prompts share and
 * with whom, ages of reuse, working sets, tenants. docs/inspect.md defines every figure.
 *
 * "Seen" tokens are those of full blocks that an earlier request had: what an infinite cache
 * serves, hit_tokens of kvc_ceiling_content. */
#ifndef KVC_TRACES_PROFILE_H
#define KVC_TRACES_PROFILE_H

#include "traces/trace.h"

#define KVC_PROFILE_DEPTHS 24
#define KVC_PROFILE_AGES 20
#define KVC_PROFILE_WINDOWS 6
#define KVC_PROFILE_COUNTS 3
#define KVC_PROFILE_RATES 120
#define KVC_PROFILE_LENGTHS 32
#define KVC_PROFILE_HOT 10
#define KVC_PROFILE_TENANTS 10 /* with an overlap of their own; the others are one group */
#define KVC_PROFILE_OFFERED 9

/* What a prompt token is. The first three were seen before, the next was not, the last two no
 * cache of whole blocks can serve or nothing is known of. They add up to all input tokens. */
enum kvc_content {
    KVC_CONTENT_SYSTEM,   /* shared by many sessions from the root on */
    KVC_CONTENT_DOCUMENT, /* by several; without sessions: document or history */
    KVC_CONTENT_HISTORY,  /* by requests of one session */
    KVC_CONTENT_NEW,
    KVC_CONTENT_PARTIAL,  /* behind the last full block with an id */
    KVC_CONTENT_UNKNOWN,  /* of a prompt without ids */
    KVC_CONTENTS
};

struct kvc_hot_prefix { /* a segment: the stretch of prompts from one depth to another */
    uint32_t from_block, blocks;
    uint64_t requests, sessions, tenants; /* sessions 0: the trace has none */
    uint64_t seen_tokens;
    enum kvc_content kind;
};

struct kvc_tenant_profile {
    uint64_t requests, input_tokens, seen_tokens;
    uint64_t own_seen_tokens; /* seen in an earlier request of its own */
    uint64_t unknown_tokens;  /* of prompts without ids */
};

struct kvc_offered { /* what would be seen before if .. */
    uint32_t shared_tokens; /* every prompt of a model began with the same so many tokens */
    enum kvc_carry { KVC_CARRY_NONE, KVC_CARRY_PROMPT, KVC_CARRY_ANSWER } carry; /* turns go on */
    uint64_t seen_tokens;
    uint64_t covered; /* requests whose prompt is no longer than what all share */
};

struct kvc_profile {
    struct kvc_dist input_tokens, output_tokens, turns, think_s;

    /* ---- arrivals ---- */
    double requests_per_s;      /* over the span; 0 when there is none */
    double peak_requests_per_s; /* in the busiest minute, side by side from 0 */
    uint64_t peak_minute;       /* which, from 0 */
    double gap_cv; /* standard deviation of arrival gaps over their mean; Poisson 1 */
    struct {
        uint64_t window_ns;
        uint64_t windows;    /* whole ones in the span */
        double dispersion;   /* variance of counts over their mean; Poisson 1; NAN: too few */
    } counts[KVC_PROFILE_COUNTS];
    uint64_t rate_window_ns; /* of requests_in[]; the last one is cut short by the end */
    uint32_t n_rates;
    uint64_t requests_in[KVC_PROFILE_RATES];
    double start_per_s, steady_per_s; /* first tenth, median of the second half; NAN: too short */
    bool slow_start; /* the second is 3 times the first or more, of 1,000 requests at least */

    /* ---- lengths: [2^(i-1), 2^i) tokens, first: 0 ---- */
    uint64_t input_requests[KVC_PROFILE_LENGTHS], output_requests[KVC_PROFILE_LENGTHS];
    uint64_t input_sum[KVC_PROFILE_LENGTHS]; /* tokens of those requests */
    uint64_t zero_output, failed, cancelled;
    uint64_t unknown_output; /* requests in none of output_requests[]: the log doesn't say */
    uint64_t outputs_known; /* requests whose output the log shows, or a later turn */
    uint64_t in_sessions, shrunken_turns; /* requests; turns shorter than prompt + answer before */
    uint64_t cached_rows, cached_of_tokens, cached_tokens; /* as the serving system stated */

    /* ---- sharing ---- */
    bool by_session;         /* documents and history are told apart */
    uint64_t content_tokens[KVC_CONTENTS];
    uint64_t seen_tokens;    /* the first three of them */
    uint32_t system_roots;   /* trees that begin with a system prompt */
    uint64_t one_hit_blocks; /* touched by one request only */
    uint64_t touched_blocks; /* by any prompt */
    uint64_t reused_touches; /* of blocks an earlier request had, partial tails counted */
    /* Touches at depths [2^(i-1), 2^i) blocks (first: depth 0), those seen before, and the tokens
     * of full blocks there by kind. */
    uint32_t n_depths;
    uint64_t depth_touches[KVC_PROFILE_DEPTHS], depth_reused[KVC_PROFILE_DEPTHS];
    uint64_t depth_tokens[KVC_PROFILE_DEPTHS][KVC_CONTENT_PARTIAL];
    uint32_t n_hot;
    struct kvc_hot_prefix hot[KVC_PROFILE_HOT]; /* most seen tokens first */

    /* ---- time ---- */
    /* Touches whose previous touch was no longer ago than age_limit_ns, and what a sliding TTL of
     * that length keeps: blocks held, partial ones too. */
    uint64_t age_limit_ns[KVC_PROFILE_AGES], age_touches[KVC_PROFILE_AGES];
    uint64_t age_tokens[KVC_PROFILE_AGES];
    double held_mean_blocks[KVC_PROFILE_AGES]; /* over the span; NAN without one */
    uint64_t held_peak_blocks[KVC_PROFILE_AGES];
    /* Distinct blocks touched within windows of this length, side by side from 0. */
    struct {
        uint64_t window_ns;
        double mean_blocks;
        uint64_t peak_blocks;
    } working_set[KVC_PROFILE_WINDOWS];

    /* ---- groups ---- */
    uint64_t *tenant_requests; /* [n_tenants], NULL without tenants */
    uint64_t *model_requests;  /* [n_models], NULL without models */
    struct kvc_tenant_profile *tenants; /* [n_tenants], NULL without tenants */
    uint32_t n_top;            /* largest tenants by input tokens */
    uint32_t top[KVC_PROFILE_TENANTS];
    /* Blocks that both touch; the diagonal is all of one's own. Index n_top: all the others. */
    uint64_t both_blocks[KVC_PROFILE_TENANTS + 1][KVC_PROFILE_TENANTS + 1];
    /* Tokens seen before by i's request, not by i, by whom it was touched last. */
    uint64_t from_tokens[KVC_PROFILE_TENANTS][KVC_PROFILE_TENANTS + 1];

    /* ---- without any prefix information; what would serve nothing is not offered ---- */
    uint32_t n_offered;
    struct kvc_offered offered[KVC_PROFILE_OFFERED];
};

enum kvc_status kvc_profile_trace(const struct kvc_trace *trace, struct kvc_profile *out,
                                  struct kvc_error *err);
void kvc_profile_clear(struct kvc_profile *profile);

/* Of arrivals alone, into a zeroed profile: rates, and whether the log begins before its load. */
bool kvc_profile_slow_start(const struct kvc_trace *t, struct kvc_profile *p);

#endif
