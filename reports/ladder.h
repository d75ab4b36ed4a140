/* SPDX-License-Identifier: Apache-2.0
 * The ladder from what endless room would hit down to what a policy reaches, each gap with its
 * cause. The gaps add up: content minus all gaps is what is reached, whichever are looked at. */
#ifndef KVC_REPORTS_LADDER_H
#define KVC_REPORTS_LADDER_H

#include "base/json.h"
#include "base/text.h"

enum kvc_gap { /* in the order of the rungs */
    KVC_GAP_SHARING,  /* content that namespaces (salts, tenants) keep apart */
    KVC_GAP_CAPACITY, /* what even the optimum can't hold in one pool of that size */
    KVC_GAP_POLICY,   /* what the policy evicts and the optimum would not */
    KVC_GAP_ROUTING,  /* the same room and policy, cut in replicas behind a router */
    KVC_GAPS
};

struct kvc_ladder {
    const char *policy;
    uint64_t capacity_blocks;                 /* of all replicas together */
    const struct kvc_hits *content;           /* endless room, everything shared */
    const struct kvc_hits *below[KVC_GAPS];   /* what is left beneath each gap; NULL: not looked
                                                 at, and its loss is within the next gap */
};

enum kvc_ladder_rate { KVC_LADDER_TOKENS, KVC_LADDER_RAW_BLOCKS };

const char *kvc_gap_name(enum kvc_gap gap);
/* A gap in shares of all input tokens (usable hits) or of all touched blocks (raw hits); below 0
 * where the lower rung has more, as cut caches can. NAN: not looked at, or nothing to divide by. */
double kvc_ladder_gap(const struct kvc_ladder *l, enum kvc_gap gap, enum kvc_ladder_rate rate);
/* The lowest rung looked at. */
double kvc_ladder_reached(const struct kvc_ladder *l, enum kvc_ladder_rate rate);

/* "gaps": {"token_hit_rate": {"content", "sharing", .., "reached"}, "raw_block_hit_rate": {..}} */
void kvc_ladder_json(struct kvc_json *j, const struct kvc_ladder *l, bool has_tokens);
/* One table of n ladders, in points; a column for each cause that any of them looked at. */
void kvc_ladder_text(struct kvc_text *t, const struct kvc_ladder *l, size_t n, bool has_tokens);

#endif
