/* SPDX-License-Identifier: Apache-2.0
 * An order of requests at work on one queue: built in, or a plug-in whose every answer is
 * checked. */
#ifndef KVC_POLICIES_ORDERING_H
#define KVC_POLICIES_ORDERING_H

#include "policies/plugins/hosted.h"

struct kvc_ordering {
    struct kvc_hosted hosted; /* first */
    const struct kvc_ordering_ops *ops;
};

/* setup.kind need not be set. */
enum kvc_status kvc_ordering_create(struct kvc_ordering **out, struct kvc_hosted_setup setup,
                                    struct kvc_error *err);
void kvc_ordering_destroy(struct kvc_ordering *ordering); /* NULL is fine */
double kvc_ordering_rank(struct kvc_ordering *ordering, uint64_t now_ns,
                         const struct kvc_waiting *request);
/* hook: KVC_HOOK_ARRIVED, ADMITTED, SERVED (so many tokens) or ENDED. */
void kvc_ordering_tell(struct kvc_ordering *ordering, uint32_t hook, uint64_t now_ns,
                       const struct kvc_waiting *request, uint32_t tokens);

#endif
