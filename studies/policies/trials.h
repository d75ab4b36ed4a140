/* SPDX-License-Identifier: Apache-2.0
 * What the conformance kit's parent and children share. */
#ifndef KVC_STUDIES_POLICY_TRIALS_H
#define KVC_STUDIES_POLICY_TRIALS_H

#include "policies/plugins/plugged.h"
#include "studies/policies/check.h"
#include "studies/policies/workloads.h"

#define KVC_TRIAL_CAPACITIES 2

/* In memory of both processes. */
struct kvc_trial_board {
    struct kvc_plugged_place place;
    char stage[160];   /* what runs, in words */
    uint32_t finished; /* 1: the check came to its end */
    uint32_t verdict;
    char text[700];
    /* what the child found */
    uint32_t kind, flags, n_options;
    char path[256], name[32], summary[160];
    uint64_t digest; /* of all hits that rules saw */
    uint64_t hits[KVC_CHECK_SCORES], touches[KVC_CHECK_SCORES];
    double ns_per_touch, lru_ns_per_touch;
};

struct kvc_trials {
    const char *spec, *only;
    char policy[400]; /* what runs, once it is open: an admission policy stands behind lru */
    double limit_s;
    struct kvc_trial_board *board;
    struct kvc_workload *workload; /* the named ones */
    size_t n_workloads;
};

/* A check, in a child: fails by kvc_trial_fails. */
struct kvc_trial {
    const char *name, *what;
    void (*run)(struct kvc_trials *t);
    uint32_t kind; /* for plug-ins of this kind, 0: of any */
};
extern const struct kvc_trial kvc_trial_table[]; /* ends with a NULL name; the first one loads */

KVC_PRINTF(2, 3)
void kvc_trial_fails(struct kvc_trials *t, const char *fmt, ...);
KVC_PRINTF(2, 3)
void kvc_trial_skips(struct kvc_trials *t, const char *fmt, ...);
/* Says what runs now. */
KVC_PRINTF(2, 3)
void kvc_trial_stage(struct kvc_trials *t, const char *fmt, ...);

/* One run of the plug-in over a workload. */
struct kvc_trial_run {
    const struct kvc_workload *workload;
    const char *spec;
    uint64_t capacity;
    struct kvc_plugged_trial trial; /* plugin set */
    bool pin;                       /* the last requests' paths */
    uint32_t *runs;                 /* by request, or NULL */
    /* found */
    uint64_t hits, touches, orphans, digest;
    uint64_t digests; /* of all runs since it was 0 */
    enum kvc_status status;
    struct kvc_error error;
};
void kvc_trial_run(struct kvc_trial_run *run);
/* Loads the plug-in; false: the check has failed with the reason. */
bool kvc_trial_open(struct kvc_trials *t, struct kvc_plugin **out);

/* The plug-in with one of its options at a limit, as spec; NULL: the check has failed. */
const char *kvc_trial_with_option(struct kvc_trials *t, const struct kvc_plugin *p,
                                  const struct kvc_policy_option *o, double value,
                                  const char *before, char *spec, size_t size);

void kvc_trial_order_rules(struct kvc_trials *t);
void kvc_trial_order_repeats(struct kvc_trials *t);
void kvc_trial_order_options(struct kvc_trials *t);
void kvc_trial_order_memory(struct kvc_trials *t);

/* ---- measured beside the checks ---- */

void kvc_trial_scores(struct kvc_trials *t); /* both in a child */
void kvc_trial_cost(struct kvc_trials *t);
void kvc_trial_router_rules(struct kvc_trials *t);
void kvc_trial_router_repeats(struct kvc_trials *t);
/* The built-ins' part, and the sums, in the parent. */
enum kvc_status kvc_trial_compare(const struct kvc_trials *t, struct kvc_policy_check *out,
                                  struct kvc_error *err);
/* The capacities that scores are taken at. */
uint64_t kvc_trial_capacity(const struct kvc_workload *workload, size_t i);

#endif
