/* SPDX-License-Identifier: Apache-2.0
 * What 'kvcast ceiling' found, between the file that computes it and the one that prints it. */
#ifndef KVC_CLI_CEILING_H
#define KVC_CLI_CEILING_H

#include "base/json.h"
#include "cli/cli.h"

#define KVC_CEILING_CURVE_POINTS 2000

struct ceiling_point {
    uint64_t blocks, bytes; /* bytes 0: no model */
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
    struct kvc_trace_stats stats;
    struct kvc_hits content;
    struct kvc_curve curve; /* whole */
    uint64_t bytes_per_token; /* 0: no model */
    struct ceiling_point *point;
    size_t n_points;
    const char **policy;
    size_t n_policies;
    struct kvc_hits *hits; /* by policy, then by point */
    struct ceiling_proof *proof; /* by point; NULL: not asked for */
};

static inline uint64_t ceiling_block_bytes(const struct ceiling *c)
{
    return c->bytes_per_token * c->stats.block_tokens;
}

/* "capacity_blocks": a number or "inf". */
static inline void ceiling_json_capacity(struct kvc_json *j, uint64_t blocks)
{
    if (blocks == KVC_CAPACITY_INF)
        kvc_json_string(j, "capacity_blocks", "inf");
    else
        kvc_json_u64(j, "capacity_blocks", blocks);
}

/* Each does nothing when its option was not given. */
enum kvc_status kvc_ceiling_prove(struct ceiling *c, struct kvc_error *err);
void kvc_ceiling_proof_json(struct kvc_json *j, const struct ceiling *c);
void kvc_ceiling_proof_text(const struct ceiling *c);
void kvc_ceiling_proof_clear(struct ceiling *c);

enum kvc_status kvc_ceiling_print_json(const struct ceiling *c, struct kvc_error *err);
enum kvc_status kvc_ceiling_print_text(const struct ceiling *c, struct kvc_error *err);

#endif
