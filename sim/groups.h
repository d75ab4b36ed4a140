/* SPDX-License-Identifier: Apache-2.0
 * Requests put into groups: by tenant, session, model, or family of prompts. */
#ifndef KVC_SIM_GROUPS_H
#define KVC_SIM_GROUPS_H

#include "traces/trace.h"

enum kvc_grouping { KVC_BY_TENANT, KVC_BY_SESSION, KVC_BY_MODEL, KVC_BY_PREFIX };

struct kvc_groups {
    enum kvc_grouping by;
    uint32_t n;
    uint32_t *of; /* by request */
    /* Of families, by group: the segment they begin with; KVC_SEG_NONE: the group has none. */
    uint32_t *seg;
    const struct kvc_trace *trace; /* borrowed */
};

/* What a name stands for; the error lists those there are. */
enum kvc_status kvc_grouping_parse(enum kvc_grouping *out, const char *name, const char *option,
                                   struct kvc_error *err);
/* Requests that state no tenant (session, model) are one group, the last. A family of prompts are
 * those that share the first segment on their path which fewer than 9 of 10 requests with ids
 * pass: what (nearly) all share parts nobody. Prompts that end before that are one family. */
enum kvc_status kvc_groups_create(struct kvc_groups *out, const struct kvc_trace *trace,
                                  enum kvc_grouping by, struct kvc_error *err);
/* The groups with most input tokens, at most so many: order[] gets which they are, rank[by group]
 * their place there, KVC_ID_NONE of others, tokens[by group] its input tokens. Groups without any
 * don't count. Returns how many were found. */
uint32_t kvc_groups_largest(const struct kvc_groups *groups, uint32_t most, uint32_t *order,
                            uint32_t *rank, uint64_t *tokens);
void kvc_groups_clear(struct kvc_groups *groups);
/* For people and JSON; always terminated. */
void kvc_groups_name(const struct kvc_groups *groups, uint32_t group, char *out, size_t size);

#endif
