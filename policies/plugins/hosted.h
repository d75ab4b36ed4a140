/* SPDX-License-Identifier: Apache-2.0
 * A policy at work that is made of hooks around one struct kvc_policy_host: its state, what it may
 * ask for, and the first rule that it broke. The kinds add their hooks. */
#ifndef KVC_POLICIES_HOSTED_H
#define KVC_POLICIES_HOSTED_H

#include "policies/plugins/guest.h"

struct kvc_hosted_ops { /* what the ops of all those kinds begin with */
    KVC_POLICY_OPS_HEAD;
};

struct kvc_hosted {
    struct kvc_policy_host host; /* first: services find the rest behind it */
    struct kvc_guest guest;
    struct kvc_policy_choice choice;
    void *state;
    bool failed;
};

/* Arrays by segment, borrowed; capacity in blocks. */
struct kvc_hosted_setup {
    const char *spec;
    uint32_t kind;
    uint64_t capacity;
    uint32_t n_tenants, n_segments, block_tokens;
    const uint32_t *seg_len, *seg_depth, *seg_parent;
    struct kvc_plugged_trial *trial; /* of the conformance kit, or NULL */
};

/* To be closed, also when it failed. */
enum kvc_status kvc_hosted_open(struct kvc_hosted *h, const struct kvc_hosted_setup *setup,
                                struct kvc_error *err);
void kvc_hosted_close(struct kvc_hosted *h);
/* Out of memory, or a plug-in that broke the rules: results are worthless. To be asked at the end,
 * when it also looks whether memory was left alone. */
enum kvc_status kvc_hosted_error(struct kvc_hosted *h, struct kvc_error *err);

#endif
