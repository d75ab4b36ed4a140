/* SPDX-License-Identifier: Apache-2.0
 * The checks on orders of requests: a queue with random traffic, where whoever has the least rank
 * is served. */
#include "studies/policies/trials.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/units.h"
#include "policies/ordering/ordering.h"

#include <stdio.h>

#define WAITING 24
#define EVENTS 1500

struct queue {
    struct kvc_ordering *order;
    struct kvc_waiting at[WAITING], running;
    uint32_t n, tenants;
    bool busy;
    uint64_t next, now_ns, rng, digest;
};

static void arrive(struct queue *q)
{
    struct kvc_waiting w = {
        .index = q->next++, .arrived_ns = q->now_ns, .session = KVC_NO_ID, .segment = KVC_NO_ID,
        .tenant = (uint32_t)kvc_rng_below(&q->rng, q->tenants), .waiting = q->n, .waits = true,
        .input_tokens = 1 + (uint32_t)kvc_rng_below(&q->rng, 1 << 15)};
    uint32_t flags = q->order->ops->flags;
    if (kvc_rng_below(&q->rng, 3))
        w.session = (uint32_t)kvc_rng_below(&q->rng, 9);
    w.output_tokens = flags & KVC_ORDERING_ORACLE ? 64 : 0;
    kvc_ordering_tell(q->order, KVC_HOOK_ARRIVED, q->now_ns, &w, 0);
    q->at[q->n++] = w;
}

static uint32_t front(struct queue *q)
{
    bool prefix = q->order->ops->flags & KVC_ORDERING_PREFIX;
    uint32_t best = 0;
    double least = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        struct kvc_waiting *w = &q->at[i];
        w->waiting = q->n;
        w->hit_tokens = prefix ? (uint32_t)kvc_rng_below(&q->rng, w->input_tokens) : 0;
        w->hit_tokens_any = prefix ? w->hit_tokens + (w->input_tokens - w->hit_tokens) / 2 : 0;
        double rank = kvc_ordering_rank(q->order, q->now_ns, w);
        if (!i || rank < least) {
            least = rank;
            best = i;
        }
    }
    return best;
}

static struct kvc_waiting leave(struct queue *q, uint32_t i)
{
    struct kvc_waiting w = q->at[i];
    q->n--;
    for (; i < q->n; i++)
        q->at[i] = q->at[i + 1];
    return w;
}

/* The one that runs ends, or is preempted; and the next one runs, or is given up. */
static void go_on(struct queue *q)
{
    struct kvc_waiting w = q->running;
    if (q->busy) {
        uint32_t tokens = 1 + (uint32_t)kvc_rng_below(&q->rng, 40);
        bool back = q->n < WAITING && !kvc_rng_below(&q->rng, 6);
        w.generated_tokens += tokens;
        kvc_ordering_tell(q->order, KVC_HOOK_SERVED, q->now_ns, &w, tokens);
        w.again = w.waits = back;
        kvc_ordering_tell(q->order, back ? KVC_HOOK_ARRIVED : KVC_HOOK_ENDED, q->now_ns, &w, 0);
        if (back)
            q->at[q->n++] = w;
    }
    q->busy = false;
    if (!q->n)
        return;
    w = leave(q, front(q));
    q->digest = kvc_mix64(q->digest ^ w.index) + 1;
    q->busy = w.again || kvc_rng_below(&q->rng, 12) != 0;
    w.waits = !q->busy;
    kvc_ordering_tell(q->order, q->busy ? KVC_HOOK_ADMITTED : KVC_HOOK_ENDED, q->now_ns, &w, 0);
    q->running = w;
}

struct order_run {
    const char *spec;
    struct kvc_plugged_trial trial;
    uint64_t digest;
    struct kvc_error error;
};

/* KVC_ERR_NOMEM where it had none; else false is a finding. */
static enum kvc_status run(struct kvc_trials *t, struct order_run *r, uint32_t tenants)
{
    static const uint32_t one = 1, none = KVC_NO_ID, zero = 0;
    struct queue q = {.tenants = tenants, .rng = kvc_rng_stream(tenants, "queue")};
    const struct kvc_hosted_setup setup = {
        .spec = r->spec, .capacity = 1000, .n_tenants = tenants, .n_segments = 1,
        .block_tokens = 16, .seg_len = &one, .seg_depth = &zero, .seg_parent = &none,
        .trial = &r->trial};
    r->trial.leaks = 0;
    r->error = r->trial.error = (struct kvc_error){0};
    enum kvc_status st = kvc_ordering_create(&q.order, setup, &r->error);
    for (uint32_t i = 0; st == KVC_OK && i < EVENTS && !q.order->hosted.failed; i++) {
        kvc_trial_stage(t, "a queue of %u tenants", tenants);
        q.now_ns += kvc_rng_below(&q.rng, 1000000);
        if (q.n < WAITING && kvc_rng_below(&q.rng, 20) < 9)
            arrive(&q);
        else
            go_on(&q);
    }
    if (st == KVC_OK) {
        st = kvc_hosted_error(&q.order->hosted, &r->error);
        kvc_ordering_destroy(q.order);
    }
    if (st == KVC_OK && r->trial.error.status != KVC_OK) { /* found in destroy */
        r->error = r->trial.error;
        st = r->error.status;
    }
    r->digest = q.digest;
    return st;
}

static bool fine(struct kvc_trials *t, struct order_run *r, uint32_t tenants)
{
    enum kvc_status st = run(t, r, tenants);
    if (st != KVC_OK)
        kvc_trial_fails(t, "%s (%s)", r->error.text, t->board->stage);
    else if (r->trial.leaks)
        kvc_trial_fails(t, "destroy left %llu allocations behind: free all that alloc gave",
                        (unsigned long long)r->trial.leaks);
    return st == KVC_OK && !r->trial.leaks;
}

static uint64_t everywhere(struct kvc_trials *t)
{
    static const uint32_t tenants[] = {1, 2, 3, 17};
    struct order_run r = {.spec = t->spec, .trial = {.place = &t->board->place}};
    struct kvc_plugin *p;
    uint64_t digest = 0;
    bool good = true;
    if (!kvc_trial_open(t, &p))
        return 0;
    r.trial.plugin = p;
    for (size_t i = 0; i < sizeof(tenants) / sizeof(tenants[0]) && good; i++) {
        good = fine(t, &r, tenants[i]);
        digest = kvc_mix64(digest ^ r.digest) + 1;
    }
    kvc_plugin_close(p);
    return digest;
}

void kvc_trial_order_rules(struct kvc_trials *t)
{
    t->board->digest = everywhere(t);
}

void kvc_trial_order_repeats(struct kvc_trials *t)
{
    uint64_t first = t->board->digest;
    for (int i = 0; i < 2 && t->board->verdict == KVC_CHECK_PASSED; i++)
        if (everywhere(t) != first && t->board->verdict == KVC_CHECK_PASSED)
            kvc_trial_fails(t, "the same queue was served in another order %s: let nothing decide "
                               "but what the hooks are given",
                            i ? "a second time in one process" : "in another process");
}

void kvc_trial_order_options(struct kvc_trials *t)
{
    struct order_run r = {.spec = t->spec, .trial = {.place = &t->board->place,
                                                     .null_options = true}};
    struct kvc_plugin *p;
    if (!kvc_trial_open(t, &p))
        return;
    r.trial.plugin = p;
    bool good = fine(t, &r, 3);
    r.trial.null_options = false;
    for (uint32_t i = 0; i < 2 * p->policy.n_options && good; i++) {
        char spec[400];
        const struct kvc_policy_option *o = &p->policy.options[i / 2];
        r.spec = kvc_trial_with_option(t, p, o, i % 2 ? o->max : o->min, "", spec, sizeof(spec));
        good = r.spec && fine(t, &r, 3);
    }
    kvc_plugin_close(p);
}

/* Makes the k-th allocation of a run fail, for every k until the run needs no more. */
void kvc_trial_order_memory(struct kvc_trials *t)
{
    struct order_run r = {.spec = t->spec, .trial = {.place = &t->board->place}};
    struct kvc_plugin *p;
    bool last = false;
    if (!kvc_trial_open(t, &p))
        return;
    r.trial.plugin = p;
    for (uint64_t k = 1; !last && k < 100000 && t->board->verdict == KVC_CHECK_PASSED; k++) {
        kvc_alloc_fail_after(k);
        last = run(t, &r, 3) == KVC_OK;
        kvc_alloc_fail_after(0);
        if (r.trial.leaks)
            kvc_trial_fails(t, "%llu allocations are left behind where allocation %llu fails: "
                               "destroy and a create that gives up free all that alloc gave",
                            (unsigned long long)r.trial.leaks, (unsigned long long)k);
    }
    kvc_plugin_close(p);
}
