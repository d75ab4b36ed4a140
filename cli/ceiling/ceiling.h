/* SPDX-License-Identifier: Apache-2.0
 * What 'kvcast ceiling' found, between the file that computes it and the one that prints it. */
#ifndef KVC_CLI_CEILING_H
#define KVC_CLI_CEILING_H

#include "base/json.h"
#include "cli/cli.h"
#include "reports/ladder.h"
#include "reports/out.h"

#define KVC_CEILING_CURVE_POINTS 2000

struct ceiling_point {
    uint64_t blocks, bytes; /* bytes 0: no model */
};

struct ceiling_tier {
    char name[24];
    struct ceiling_point capacity;
    struct kvc_hits hits; /* in this tier and all faster ones */
};

struct ceiling_proof {
    struct kvc_certificate certificate;
    struct kvc_certificate_check check;
};

struct ceiling {
    struct kvc_cli *cli;
    const char *path;
    struct kvc_import_options import;
    struct kvc_trace *trace;
    const struct kvc_trace *seen; /* the same, as its namespaces see it */
    struct kvc_trace_stats stats;
    struct kvc_hits content;
    struct kvc_curve curve; /* whole */
    uint64_t bytes_per_token; /* 0: no model */
    struct ceiling_point *point;
    size_t n_points;
    const char **policy;
    size_t n_policies;
    struct kvc_hits *hits; /* by policy, then by point */
    struct kvc_hits *optimum; /* by point; NULL: a policy is opt, or the replicas have it */
    struct ceiling_proof *proof; /* by point; NULL: not asked for */
    struct ceiling_tier tier[KVC_MAX_TIERS];
    size_t n_tiers;
    struct ceiling_closeups *closeups; /* NULL: none of its options was given */
    struct kvc_cost_bound *cost; /* by point; NULL: not asked for */
    double *saved;               /* by policy, then by point, beside the bounds */
    uint32_t sample_weight;      /* 0: exact */
};

static inline uint64_t ceiling_block_bytes(const struct ceiling *c)
{
    return c->bytes_per_token * c->stats.block_tokens;
}

/* parts.c: "capacity_blocks" and "capacity_bytes", the figures of hits, and how wide the column of
 * policies is. */
void kvc_ceiling_json_capacity(struct kvc_json *j, const struct ceiling *c,
                               const struct ceiling_point *p);
void kvc_ceiling_json_hits(struct kvc_json *j, const struct kvc_hits *h,
                           const struct kvc_trace_stats *s);
int kvc_ceiling_name_width(const struct ceiling *c);
/* A capacity as a line of the tables has it. */
static inline struct kvc_str ceiling_blocks_text(uint64_t blocks)
{
    return blocks == KVC_CAPACITY_INF ? (struct kvc_str){"inf"} : kvc_fmt_count(blocks);
}

/* Each does nothing when its option was not given. */
enum kvc_status kvc_ceiling_prove(struct ceiling *c, struct kvc_error *err);
void kvc_ceiling_proof_json(struct kvc_json *j, const struct ceiling *c);
void kvc_ceiling_proof_text(const struct ceiling *c);
void kvc_ceiling_proof_clear(struct ceiling *c);
enum kvc_status kvc_ceiling_fill_tiers(struct ceiling *c, struct kvc_error *err);
void kvc_ceiling_tiers_json(struct kvc_json *j, const struct ceiling *c);
void kvc_ceiling_tiers_text(const struct ceiling *c);
enum kvc_status kvc_ceiling_fill_cost(struct ceiling *c, struct kvc_error *err);
void kvc_ceiling_cost_json(struct kvc_json *j, const struct ceiling *c);
void kvc_ceiling_cost_text(const struct ceiling *c);

/* Checks the words before the trace is read; then computes and prints estimates. */
enum kvc_status kvc_ceiling_sample_words(struct ceiling *c, struct kvc_error *err);
/* The trace may be samples itself. */
enum kvc_status kvc_ceiling_sample_opened(struct ceiling *c, struct kvc_error *err);
enum kvc_status kvc_ceiling_sample_run(struct ceiling *c, struct kvc_error *err);

/* Checks the words before the trace is read; then take_router for each router. */
enum kvc_status kvc_ceiling_closeup_words(struct ceiling *c, struct kvc_error *err);
enum kvc_status kvc_ceiling_take_router(struct ceiling *c, const char *word, struct kvc_error *err);
/* Sets seen, and makes each policy behind each router one of c's policies. */
enum kvc_status kvc_ceiling_closeup_start(struct ceiling *c, struct kvc_error *err);
/* Fills hits. */
enum kvc_status kvc_ceiling_closeup_run(struct ceiling *c, struct kvc_error *err);
const char *kvc_ceiling_label(const struct ceiling *c, size_t policy);
uint32_t kvc_ceiling_replicas(const struct ceiling *c);
void kvc_ceiling_closeup_ladder(const struct ceiling *c, size_t policy, size_t point,
                                struct kvc_ladder *ladder);
void kvc_ceiling_closeup_json_content(struct kvc_json *j, const struct ceiling *c);
void kvc_ceiling_closeup_json_point(struct kvc_json *j, const struct ceiling *c, size_t policy,
                                    size_t point);
void kvc_ceiling_closeup_json(struct kvc_json *j, const struct ceiling *c);
enum kvc_status kvc_ceiling_closeup_text(const struct ceiling *c, struct kvc_error *err);
void kvc_ceiling_closeup_clear(struct ceiling *c);

void kvc_ceiling_print_head(const struct ceiling *c);
enum kvc_status kvc_ceiling_print_json(const struct ceiling *c, struct kvc_error *err);
enum kvc_status kvc_ceiling_print_text(const struct ceiling *c, struct kvc_error *err);

#endif
