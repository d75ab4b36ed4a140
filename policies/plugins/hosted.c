/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/plugins/hosted.h"

#include "base/error.h"

/* ---- services ---- */

static struct kvc_hosted *of(const struct kvc_policy_host *host)
{
    return (struct kvc_hosted *)(uintptr_t)host; /* it is that struct's first field */
}

static uint64_t random_word(const struct kvc_policy_host *host)
{
    struct kvc_hosted *h = of(host);
    if (kvc_hook_changes_nothing(h->guest.place->hook))
        kvc_guest_breach(&h->guest, "random was called in %s, which is asked as often as it "
                                    "happens: draw in another hook, and remember",
                         kvc_hook_name(h->guest.place->hook));
    return kvc_rng_next(&h->guest.rng);
}

static void *alloc(const struct kvc_policy_host *host, size_t n, size_t size)
{
    return kvc_guest_alloc(&of(host)->guest, n, size);
}

static void give_back(const struct kvc_policy_host *host, void *memory)
{
    kvc_guest_free(&of(host)->guest, memory);
}

static void fail(const struct kvc_policy_host *host, const char *why)
{
    kvc_guest_breach(&of(host)->guest, "%s", why ? why : "(no words)");
}

/* ---- a run ---- */

static enum kvc_status create(struct kvc_hosted *h, struct kvc_error *err)
{
    const struct kvc_hosted_ops *ops = h->choice.ops;
    if (!ops->create)
        return KVC_OK;
    bool defaults = h->guest.trial && h->guest.trial->null_options;
    uint32_t before = kvc_guest_enter(&h->guest, KVC_HOOK_CREATE);
    h->state = ops->create(&h->host, defaults ? NULL : h->choice.option);
    kvc_guest_leave(&h->guest, before);
    return h->failed ? kvc_hosted_error(h, err) : h->state ? KVC_OK : kvc_fail_nomem(err);
}

enum kvc_status kvc_hosted_open(struct kvc_hosted *h, const struct kvc_hosted_setup *setup,
                                struct kvc_error *err)
{
    *h = (struct kvc_hosted){.host = {
        .struct_size = sizeof(h->host), .capacity_blocks = setup->capacity,
        .block_tokens = setup->block_tokens ? setup->block_tokens : 1,
        .n_tenants = setup->n_tenants, .n_segments = setup->n_segments,
        .seg_blocks = setup->seg_len, .seg_depth = setup->seg_depth,
        .seg_parent = setup->seg_parent,
        .random = random_word, .alloc = alloc, .free = give_back, .fail = fail,
    }};
    enum kvc_status st =
        setup->trial ? kvc_guest_choose(&h->choice, setup->trial, setup->spec, err)
                     : kvc_policy_choose(&h->choice, setup->spec, setup->kind, err);
    if (st != KVC_OK)
        return st;
    kvc_guest_begin(&h->guest, &h->choice, setup->trial, &h->failed);
    if (!kvc_guest_lend(&h->guest, setup->n_segments, &h->host.seg_blocks, &h->host.seg_depth,
                        &h->host.seg_parent))
        return kvc_fail_nomem(err);
    return create(h, err);
}

void kvc_hosted_close(struct kvc_hosted *h)
{
    const struct kvc_hosted_ops *ops = h->choice.ops;
    if (h->state) {
        kvc_guest_enter(&h->guest, KVC_HOOK_DESTROY);
        ops->destroy(&h->host, h->state);
        kvc_guest_leave(&h->guest, KVC_HOOK_NONE);
    }
    kvc_guest_end(&h->guest);
    kvc_policy_drop(&h->choice);
    *h = (struct kvc_hosted){0};
}

enum kvc_status kvc_hosted_error(struct kvc_hosted *h, struct kvc_error *err)
{
    kvc_guest_look(&h->guest);
    if (h->failed && err)
        *err = h->guest.error;
    return h->failed ? h->guest.error.status : KVC_OK;
}
