/* SPDX-License-Identifier: Apache-2.0
 * Figures that others published, each beside what the models and a replay say under the published
 * conditions; what they leave open is said instead of guessed. */
#ifndef KVC_STUDIES_HEADLINES_H
#define KVC_STUDIES_HEADLINES_H

#include <kvcast/kvcast.h>

#define KVC_HEADLINE_VALUES 5

enum kvc_headline_verdict {
    KVC_HEADLINE_MET,
    KVC_HEADLINE_ORDER,  /* within a factor of two, or only the direction is claimed */
    KVC_HEADLINE_MISSED,
    KVC_HEADLINE_UNKNOWN /* the conditions are not stated well enough, or no replay has them */
};

enum kvc_headline_rule {
    KVC_HEADLINE_NOT_TRIED,
    KVC_HEADLINE_EACH,      /* each value within its tolerance */
    KVC_HEADLINE_AT_LEAST,  /* the published value is a lower bound */
    KVC_HEADLINE_RANGE,     /* the prediction lies between the two published values */
    KVC_HEADLINE_DIRECTION, /* the values keep their order */
};

struct kvc_headline {
    const char *id, *claim, *unit, *source;
    const char *reason; /* how it is predicted, or why not */
    double published[KVC_HEADLINE_VALUES];
    size_t values;
    enum kvc_headline_rule rule;
    double tolerance; /* share of the published value */
    enum kvc_status (*predict)(double *values, struct kvc_error *err);
};

struct kvc_headline_result {
    const struct kvc_headline *headline;
    double predicted[KVC_HEADLINE_VALUES];
    size_t predictions; /* 0: not tried */
    double ratio;       /* of the value that is farthest off; NAN: not tried */
    enum kvc_headline_verdict verdict;
};

typedef enum kvc_status (*kvc_headline_fn)(void *user, const struct kvc_headline_result *result);

/* Those of the n ids, or all where n is 0, in the table's order. KVC_ERR_USAGE: an unknown id. */
enum kvc_status kvc_headlines_run(const char *const *ids, size_t n, kvc_headline_fn fn, void *user,
                                  struct kvc_error *err);
const char *kvc_headline_verdict_name(enum kvc_headline_verdict verdict);

/* table.c */
const struct kvc_headline *kvc_headline_table(size_t *n);

/* forms.c: closed forms and step times. replay.c: replays. */
typedef enum kvc_status kvc_headline_predictor(double *values, struct kvc_error *err);
kvc_headline_predictor kvc_headline_sessions, kvc_headline_request, kvc_headline_fp8_share,
    kvc_headline_reload, kvc_headline_page, kvc_headline_break_even, kvc_headline_break_even_b200,
    kvc_headline_slopes,
    kvc_headline_quantised, kvc_headline_agent_reuse, kvc_headline_deepseek_cost,
    kvc_headline_deepseek_revenue, kvc_headline_deepseek_hits, kvc_headline_store;
kvc_headline_predictor kvc_headline_offline, kvc_headline_turboquant, kvc_headline_offload,
    kvc_headline_throughput, kvc_headline_signs;

#endif
