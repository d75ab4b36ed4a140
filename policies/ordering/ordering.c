/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/ordering/ordering.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>

enum kvc_status kvc_ordering_create(struct kvc_ordering **out, struct kvc_hosted_setup setup,
                                    struct kvc_error *err)
{
    struct kvc_ordering *o = kvc_calloc(1, sizeof(*o));
    if (!o)
        return kvc_fail_nomem(err);
    setup.kind = KVC_POLICY_ORDERING;
    enum kvc_status st = kvc_hosted_open(&o->hosted, &setup, err);
    o->ops = o->hosted.choice.ops;
    if (st == KVC_OK)
        *out = o;
    else
        kvc_ordering_destroy(o);
    return st;
}

void kvc_ordering_destroy(struct kvc_ordering *o)
{
    if (!o)
        return;
    kvc_hosted_close(&o->hosted);
    kvc_free(o);
}

static uint32_t enter(struct kvc_ordering *o, uint32_t hook, uint64_t now_ns, uint64_t request)
{
    o->hosted.host.now_ns = now_ns;
    o->hosted.guest.place->request = request;
    return kvc_guest_enter(&o->hosted.guest, hook);
}

double kvc_ordering_rank(struct kvc_ordering *o, uint64_t now_ns, const struct kvc_waiting *request)
{
    const struct kvc_policy_host *host = &o->hosted.host;
    if (o->hosted.failed)
        return 0;
    uint32_t before = enter(o, KVC_HOOK_RANK, now_ns, request->index);
    double rank = o->ops->rank(host, o->hosted.state, request);
    if (isnan(rank))
        kvc_guest_breach(&o->hosted.guest, "a rank is NaN, which is neither before nor behind any "
                                           "other");
    else if (o->hosted.guest.trial && o->ops->rank(host, o->hosted.state, request) != rank)
        kvc_guest_breach(&o->hosted.guest, "asked twice about one request it gave two ranks: rank "
                                           "must change nothing; what changes does so in other "
                                           "hooks");
    kvc_guest_leave(&o->hosted.guest, before);
    return rank;
}

void kvc_ordering_tell(struct kvc_ordering *o, uint32_t hook, uint64_t now_ns,
                       const struct kvc_waiting *request, uint32_t tokens)
{
    const struct kvc_ordering_ops *ops = o->ops;
    const struct kvc_policy_host *host = &o->hosted.host;
    void (*const tell)(const struct kvc_policy_host *, void *, const struct kvc_waiting *) =
        hook == KVC_HOOK_ARRIVED    ? ops->arrived
        : hook == KVC_HOOK_ADMITTED ? ops->admitted
                                    : ops->ended;
    if (o->hosted.failed || (hook == KVC_HOOK_SERVED ? !ops->served : !tell))
        return;
    uint32_t before = enter(o, hook, now_ns, request->index);
    if (hook == KVC_HOOK_SERVED)
        ops->served(host, o->hosted.state, request, tokens);
    else
        tell(host, o->hosted.state, request);
    kvc_guest_leave(&o->hosted.guest, before);
}
