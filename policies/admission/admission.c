/* SPDX-License-Identifier: Apache-2.0
 * An admission policy at work on one cache, built in or from a shared object. */
#include "policies/plugins/guest.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <string.h>

struct kvc_admission {
    struct kvc_admission_host host; /* first: services find the rest behind it */
    struct kvc_guest guest;
    const struct kvc_admission_ops *ops;
    struct kvc_policy_choice choice;
    void *state;
    bool failed;
};

static enum kvc_status choose(const char *spec, struct kvc_policy_choice *out,
                              struct kvc_error *err)
{
    if (kvc_policy_admission(spec))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "admission",
                           "\"%.64s\" is more than one; a policy takes one admission policy", spec);
    return kvc_policy_choose(out, spec, KVC_POLICY_ADMISSION, err);
}

enum kvc_status kvc_admission_check(const char *spec, uint32_t *flags, struct kvc_error *err)
{
    struct kvc_policy_choice choice = {0};
    enum kvc_status st = choose(spec, &choice, err);
    if (st == KVC_OK && flags)
        *flags = ((const struct kvc_admission_ops *)choice.ops)->flags;
    kvc_policy_drop(&choice);
    return st;
}

/* ---- services ---- */

static struct kvc_admission *of(const struct kvc_admission_host *host)
{
    return (struct kvc_admission *)(uintptr_t)host; /* it is that struct's first field */
}

static uint64_t random_word(const struct kvc_admission_host *host)
{
    struct kvc_admission *a = of(host);
    if (a->guest.place->hook == KVC_HOOK_ADMITS)
        kvc_guest_breach(&a->guest, "random was called in admits, which is asked as often as it "
                                    "happens: draw in request, and remember");
    return kvc_rng_next(&a->guest.rng);
}

static void *alloc(const struct kvc_admission_host *host, size_t n, size_t size)
{
    return kvc_guest_alloc(&of(host)->guest, n, size);
}

static void give_back(const struct kvc_admission_host *host, void *memory)
{
    kvc_guest_free(&of(host)->guest, memory);
}

static void fail(const struct kvc_admission_host *host, const char *why)
{
    kvc_guest_breach(&of(host)->guest, "%s", why ? why : "(no words)");
}

/* ---- a run ---- */

static enum kvc_status open(struct kvc_admission *a, const struct kvc_admission_setup *setup,
                            struct kvc_error *err)
{
    struct kvc_plugged_trial *trial = setup->trial;
    enum kvc_status st = trial ? kvc_guest_choose(&a->choice, trial, setup->spec, err)
                               : choose(setup->spec, &a->choice, err);
    if (st != KVC_OK)
        return st;
    a->ops = a->choice.ops;
    kvc_guest_begin(&a->guest, &a->choice, trial, &a->failed);
    return KVC_OK;
}

static enum kvc_status create(struct kvc_admission *a, struct kvc_error *err)
{
    if (!a->ops->create)
        return KVC_OK;
    bool defaults = a->guest.trial && a->guest.trial->null_options;
    uint32_t before = kvc_guest_enter(&a->guest, KVC_HOOK_CREATE);
    a->state = a->ops->create(&a->host, defaults ? NULL : a->choice.option);
    kvc_guest_leave(&a->guest, before);
    return a->failed ? kvc_admission_error(a, err) : a->state ? KVC_OK : kvc_fail_nomem(err);
}

enum kvc_status kvc_admission_create(struct kvc_admission **out,
                                     const struct kvc_admission_setup *setup, struct kvc_error *err)
{
    struct kvc_admission *a = kvc_calloc(1, sizeof(*a));
    if (!a)
        return kvc_fail_nomem(err);
    a->host = (struct kvc_admission_host){
        .struct_size = sizeof(a->host), .capacity_blocks = setup->capacity,
        .block_tokens = setup->block_tokens ? setup->block_tokens : 1,
        .n_segments = setup->n_segments, .seg_blocks = setup->seg_len,
        .seg_depth = setup->seg_depth, .seg_parent = setup->seg_parent,
        .random = random_word, .alloc = alloc, .free = give_back, .fail = fail,
    };
    enum kvc_status st = open(a, setup, err);
    if (st == KVC_OK && !kvc_guest_lend(&a->guest, setup->n_segments, &a->host.seg_blocks,
                                        &a->host.seg_depth, &a->host.seg_parent))
        st = kvc_fail_nomem(err);
    if (st == KVC_OK)
        st = create(a, err);
    if (st == KVC_OK)
        *out = a;
    else
        kvc_admission_destroy(a);
    return st;
}

void kvc_admission_destroy(struct kvc_admission *a)
{
    if (!a)
        return;
    if (a->state) {
        kvc_guest_enter(&a->guest, KVC_HOOK_DESTROY);
        a->ops->destroy(&a->host, a->state);
        kvc_guest_leave(&a->guest, KVC_HOOK_NONE);
    }
    kvc_guest_end(&a->guest);
    kvc_policy_drop(&a->choice);
    kvc_free(a);
}

bool kvc_admission_failed(const struct kvc_admission *a)
{
    return a->failed;
}

enum kvc_status kvc_admission_error(struct kvc_admission *a, struct kvc_error *err)
{
    kvc_guest_look(&a->guest);
    if (a->failed && err)
        *err = a->guest.error;
    return a->failed ? a->guest.error.status : KVC_OK;
}

/* Blocks come by themselves. */
static const struct kvc_policy_request nobody = {.index = KVC_NEVER, .segment = KVC_NO_ID,
                                                 .session = KVC_NO_ID, .tenant = KVC_NO_ID};

/* Leading blocks of a segment that may be stored. */
static uint32_t admitted(struct kvc_admission *a, const struct kvc_policy_request *request,
                         uint32_t seg)
{
    uint32_t len = a->host.seg_blocks[seg];
    if (a->failed)
        return len;
    uint32_t before = kvc_guest_enter(&a->guest, KVC_HOOK_ADMITS);
    uint32_t n = a->ops->admits(&a->host, a->state, request, seg);
    if (n > len)
        kvc_guest_breach(&a->guest, "it admits %u blocks of segment %u, which has %u", n, seg, len);
    if (a->guest.trial && a->ops->admits(&a->host, a->state, request, seg) != n)
        kvc_guest_breach(&a->guest, "asked twice about segment %u it gave two answers: admits must "
                                    "change nothing; what changes does so in request", seg);
    kvc_guest_leave(&a->guest, before);
    return n > len ? len : n;
}

bool kvc_admission_ask(struct kvc_admission *a, const struct kvc_policy_request *request)
{
    a->guest.place->request = request->index;
    if (a->ops->request && !a->failed) {
        uint32_t before = kvc_guest_enter(&a->guest, KVC_HOOK_REQUEST);
        a->ops->request(&a->host, a->state, request);
        kvc_guest_leave(&a->guest, before);
    }
    bool alone = a->guest.trial && !(a->ops->flags & KVC_ADMISSION_REQUEST);
    if (alone && request->segment != KVC_NO_ID)
        admitted(a, &nobody, request->segment); /* the kit: it must know what to say */
    return !a->failed;
}

uint64_t kvc_admission_limit(struct kvc_admission *a, const struct kvc_policy_request *request,
                             uint32_t leaf, uint32_t (*held)(const void *user, uint32_t seg),
                             const void *user)
{
    uint64_t limit = UINT64_MAX;
    for (uint32_t s = leaf; s != UINT32_MAX; s = a->host.seg_parent[s]) {
        uint32_t lead = admitted(a, request, s), len = a->host.seg_blocks[s];
        if (lead < len) {
            uint32_t there = held(user, s);
            lead = there > lead ? there : lead;
        }
        if (lead < len && a->host.seg_depth[s] + lead < limit)
            limit = a->host.seg_depth[s] + lead;
    }
    return limit;
}

uint64_t kvc_admission_alone(struct kvc_admission *a, uint32_t seg, uint64_t now_ns)
{
    struct kvc_policy_request none = nobody;
    none.time_ns = now_ns;
    uint32_t n = admitted(a, &none, seg);
    return n < a->host.seg_blocks[seg] ? a->host.seg_depth[seg] + n : UINT64_MAX;
}
