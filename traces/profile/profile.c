/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/profile/profile.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/profile/profile_parts.h"

#include <string.h>

static bool count_groups(const uint32_t *column, uint32_t n, uint64_t requests, uint64_t **out)
{
    if (!n)
        return true;
    if (!(*out = kvc_calloc(n, sizeof(**out))))
        return false;
    for (uint64_t r = 0; column && r < requests; r++)
        if (column[r] < n)
            (*out)[column[r]]++;
    return true;
}

enum kvc_status kvc_profile_trace(const struct kvc_trace *t, struct kvc_profile *out,
                                  struct kvc_error *err)
{
    struct kvc_segment_use use = {0};
    struct kvc_profile *p = kvc_calloc(1, sizeof(*p));
    bool ok = p && kvc_segment_use_make(&use, t);
    if (ok) {
        p->by_session = use.sessions != NULL;
        kvc_profile_arrivals(t, p);
        ok = kvc_profile_lengths(t, p) && kvc_profile_sharing(t, &use, p) &&
             kvc_profile_reuse(t, &use, p) && kvc_profile_tenants(t, p) &&
             kvc_profile_offered(t, p) &&
             count_groups(t->tenant, t->n_tenants, t->n_requests, &p->tenant_requests) &&
             count_groups(t->model, t->n_models, t->n_requests, &p->model_requests);
    }
    if (ok) {
        kvc_profile_hot(t, &use, p);
        *out = *p;
    } else if (p) {
        kvc_profile_clear(p);
    }
    kvc_segment_use_clear(&use);
    kvc_free(p);
    return ok ? KVC_OK : kvc_fail_nomem(err);
}

void kvc_profile_clear(struct kvc_profile *p)
{
    kvc_free(p->tenant_requests);
    kvc_free(p->model_requests);
    kvc_free(p->tenants);
    p->tenant_requests = p->model_requests = NULL;
    p->tenants = NULL;
}
