/* SPDX-License-Identifier: Apache-2.0
 * The conformance kit for plug-ins: whether one keeps the rules of kvcast/policy.h, what it costs,
 * and how far from the optimum it stays. Plug-in code runs in child processes only, so that a crash
 * or an endless loop is a finding. */
#ifndef KVC_STUDIES_POLICY_CHECK_H
#define KVC_STUDIES_POLICY_CHECK_H

#include <kvcast/kvcast.h>

enum kvc_check_verdict { KVC_CHECK_PASSED, KVC_CHECK_FAILED, KVC_CHECK_SKIPPED };

#define KVC_CHECK_ROWS 12
#define KVC_CHECK_SCORES 32

struct kvc_check_row {
    const char *name, *what; /* "twin", "pieces give what single blocks give" */
    enum kvc_check_verdict verdict;
    char text[700];          /* what was found and where, what to do; "" when there is nothing to
                                say */
};

/* Hits in blocks, of all touched; the best of all built-in policies by its name. */
struct kvc_check_score {
    char workload[24];
    const char *what;
    uint64_t capacity_blocks, blocks;
    uint64_t touches, hits, lru, fifo, best, opt;
    char best_name[24];
};

struct kvc_policy_check {
    char path[256], name[32], summary[160];
    uint32_t kind;      /* 0: it could not be loaded, rows[0] says why */
    bool closed;        /* it claims to be */
    struct kvc_check_row row[KVC_CHECK_ROWS];
    size_t n_rows;
    struct kvc_check_score score[KVC_CHECK_SCORES];
    size_t n_scores;    /* 0 where a check failed, or for a kind without scores */
    double ns_per_touch, lru_ns_per_touch; /* of blocks, the same log and capacity; 0: not
                                              measured */
    double regret, lru_regret, fifo_regret, best_regret; /* means over scores of 1 - hits / opt */
    bool passed;
};

/* Checks PATH[:options]; only: rules and this check alone, NULL: all, with scores. Each check may
 * take limit_s seconds of CPU time (0: 30). KVC_OK also where checks fail. */
enum kvc_status kvc_policy_check(const char *spec, const char *only, double limit_s,
                                 struct kvc_policy_check *out, struct kvc_error *err);

#endif
