/* SPDX-License-Identifier: Apache-2.0
 * The passes that kvc_profile_trace is made of. Each fills its part of the profile and returns
 * false when memory runs out. */
#ifndef KVC_TRACES_PROFILE_PARTS_H
#define KVC_TRACES_PROFILE_PARTS_H

#include "traces/profile/profile.h"

#define KVC_NS_PER_S 1000000000ull

/* Of each segment; arrays of n_segments. */
struct kvc_segment_use {
    uint64_t *passes;       /* requests */
    uint32_t *sessions;     /* distinct; a request without one is one of its own. NULL: no
                               request has one */
    uint32_t *tenants;      /* distinct, NULL without tenants */
    uint32_t *system_end;   /* depth, in blocks, to which its path is a system prompt .. */
    uint32_t *shared_end;   /* .. and to which several sessions share it */
    uint64_t *seen_blocks;  /* full ones that an earlier request had, of all requests */
};

bool kvc_segment_use_make(struct kvc_segment_use *use, const struct kvc_trace *t);
void kvc_segment_use_clear(struct kvc_segment_use *use);

/* Requests grouped by a column (those of group 0 first, trace order kept), those without a group
 * last; *n_grouped have one. NULL when memory runs out. */
uint64_t *kvc_profile_group(const uint32_t *column, uint32_t n_groups, uint64_t n_requests,
                            uint64_t *n_grouped);

void kvc_profile_arrivals(const struct kvc_trace *t, struct kvc_profile *p);
bool kvc_profile_lengths(const struct kvc_trace *t, struct kvc_profile *p);
bool kvc_profile_sharing(const struct kvc_trace *t, struct kvc_segment_use *use,
                         struct kvc_profile *p);
/* Fills use->seen_blocks. */
bool kvc_profile_reuse(const struct kvc_trace *t, struct kvc_segment_use *use,
                       struct kvc_profile *p);
void kvc_profile_hot(const struct kvc_trace *t, const struct kvc_segment_use *use,
                     struct kvc_profile *p);
bool kvc_profile_tenants(const struct kvc_trace *t, struct kvc_profile *p);
bool kvc_profile_offered(const struct kvc_trace *t, struct kvc_profile *p);

#endif
