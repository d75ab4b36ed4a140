/* SPDX-License-Identifier: Apache-2.0
 * The checks on eviction and admission policies. Each runs in a process of its own. */
#include "studies/policies/trials.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FORESTS 300
#define HANDY 12000 /* blocks of a workload that takes no time */
#define PINNED 3 /* requests that run at once */

/* ---- one run ---- */

/* Resident blocks of a path that lie behind one that is absent. */
static uint64_t orphans(const struct kvc_runs *c, uint32_t seg, uint64_t lead)
{
    uint64_t n = 0;
    for (seg = kvc_runs_leaf(c, seg); seg != KVC_RUN_NONE; seg = c->seg_parent[seg])
        for (uint32_t r = c->seg[seg].deepest; r != KVC_RUN_NONE; r = c->run[r].shallower)
            n += kvc_run_resident(c, r) ? kvc_run_blocks(c, r) : 0;
    return n - lead;
}

static void hold(struct kvc_trial_run *run, uint64_t request, uint32_t by)
{
    const struct kvc_ceiling_view *v = &run->workload->view;
    for (uint32_t s = v->prompt_seg[request]; s != KVC_SEG_NONE; s = v->seg_parent[s])
        run->trial.held_back[s] += by;
}

static void serve(struct kvc_trial_run *run, struct kvc_runs *c, const uint32_t *next)
{
    const struct kvc_ceiling_view *v = &run->workload->view;
    for (uint64_t r = 0; r < v->n_requests && !kvc_runs_failed(c); r++) {
        struct kvc_runs_request request = kvc_ceiling_request(v, r);
        uint32_t s = v->prompt_seg[r];
        request.next = next;
        for (uint32_t up = s; next && up != KVC_SEG_NONE; up = v->seg_parent[up])
            next++;
        uint64_t lead = kvc_runs_arrive(c, &request);
        if (kvc_runs_failed(c))
            return;
        run->hits += lead;
        run->touches += s == KVC_SEG_NONE ? 0 : v->seg_depth[s] + v->seg_len[s];
        run->orphans += orphans(c, s, lead);
        run->digest = kvc_mix64(run->digest ^ lead) + 0x9e3779b97f4a7c15u;
        if (run->runs)
            run->runs[r] = (uint32_t)lead;
        if (run->pin) {
            hold(run, r, 1);
            if (r >= PINNED)
                hold(run, r - PINNED, UINT32_MAX);
        }
        kvc_runs_touch(c);
    }
}

void kvc_trial_run(struct kvc_trial_run *run)
{
    const struct kvc_ceiling_view *v = &run->workload->view;
    uint32_t *next = NULL;
    const struct kvc_plugin *plugin = run->trial.plugin;
    struct kvc_plugged_trial *trial = plugin ? &run->trial : NULL; /* else a built-in policy */
    run->hits = run->touches = run->orphans = run->digest = 0;
    run->trial.leaks = 0;
    run->trial.error = (struct kvc_error){0};
    run->trial.held_back = NULL;
    run->status = KVC_OK;
    if (run->pin && !(run->trial.held_back = kvc_calloc(v->n_segments, sizeof(uint32_t))))
        run->status = kvc_fail_nomem(&run->error);
    const struct kvc_runs_setup setup = {
        .policy = run->spec, .capacity = run->capacity, .n_segments = v->n_segments,
        .seg_len = v->seg_len, .seg_depth = v->seg_depth, .seg_parent = v->seg_parent,
        .block_tokens = v->block_tokens, .trial = trial,
    };
    struct kvc_runs *c = run->status == KVC_OK ? kvc_runs_create(&setup) : NULL;
    if (c && kvc_runs_wants_next(c))
        run->status = kvc_ceiling_next_uses(v, &next, &run->error);
    if (c && run->status == KVC_OK) {
        serve(run, c, next);
        run->status = kvc_runs_error(c, &run->error);
    } else if (run->status == KVC_OK) {
        run->status = kvc_fail_nomem(&run->error);
    }
    kvc_runs_destroy(c);
    if (run->status == KVC_OK && run->trial.error.status != KVC_OK) { /* found in destroy */
        run->error = run->trial.error;
        run->status = run->error.status;
    }
    run->digests = kvc_mix64(run->digests ^ run->digest) + 0x9e3779b97f4a7c15u;
    kvc_free(run->trial.held_back);
    kvc_free(next);
}

/* Runs it; false: the check has failed, because the run has. */
static bool fine(struct kvc_trials *t, struct kvc_trial_run *run)
{
    kvc_trial_run(run);
    if (run->status == KVC_OK && run->trial.leaks)
        kvc_trial_fails(t, "destroy left %llu allocations behind, of %s: free all that alloc gave",
                        (unsigned long long)run->trial.leaks, t->board->stage);
    else if (run->status != KVC_OK)
        kvc_trial_fails(t, "%s (%s)", run->error.text, t->board->stage);
    return run->status == KVC_OK && !run->trial.leaks;
}

/* ---- loading ---- */

bool kvc_trial_open(struct kvc_trials *t, struct kvc_plugin **out)
{
    struct kvc_error err = {0};
    char text[700];
    t->board->place.hook = KVC_HOOK_NONE;
    if (kvc_plugin_open(out, t->spec, 0, &err) == KVC_OK) {
        bool admits = (*out)->policy.kind == KVC_POLICY_ADMISSION;
        snprintf(t->policy, sizeof(t->policy), "%s%s", admits ? "lru+" : "", t->spec);
        return true;
    }
    kvc_error_format(&err, text, sizeof(text));
    kvc_trial_fails(t, "%s", text);
    return false;
}

static void loads(struct kvc_trials *t)
{
    struct kvc_plugin *p;
    struct kvc_error err = {0};
    union kvc_option_value value[KVC_POLICY_OPTIONS];
    struct kvc_trial_board *b = t->board;
    if (!kvc_trial_open(t, &p))
        return;
    b->kind = p->policy.kind;
    b->flags = b->kind == KVC_POLICY_EVICTION ? p->ops.evict.flags : 0;
    b->n_options = p->policy.n_options;
    snprintf(b->path, sizeof(b->path), "%s", p->path);
    snprintf(b->name, sizeof(b->name), "%s", p->policy.name);
    snprintf(b->summary, sizeof(b->summary), "%s", p->policy.summary);
    if (kvc_policy_options(p->policy.name, kvc_plugin_options(t->spec), p->policy.options,
                           p->policy.n_options, value, &err) != KVC_OK)
        kvc_trial_fails(t, "%s: %s", err.field, err.text);
    kvc_plugin_close(p);
}

/* ---- workloads and capacities ---- */

uint64_t kvc_trial_capacity(const struct kvc_workload *w, size_t i)
{
    return w->blocks / (i ? 6 : 32) + 1;
}

/* Calls run for every workload, random ones first, at capacities from none to endless, as long as
 * it returns true. The larger workloads may be left out. */
static void everywhere(struct kvc_trials *t, struct kvc_trial_run *run, uint64_t most_blocks,
                       bool (*each)(struct kvc_trials *, struct kvc_trial_run *))
{
    uint64_t rng = kvc_rng_stream(3, "trials");
    bool go_on = true;
    for (uint32_t i = 0; i < FORESTS && go_on; i++) {
        struct kvc_workload w;
        if (kvc_workload_random(&w, &rng, NULL) != KVC_OK)
            return;
        const uint64_t some[] = {1 + kvc_rng_below(&rng, w.blocks), i % 3, w.blocks, UINT64_MAX};
        run->workload = &w;
        for (size_t k = 0; k < (i % 10 ? 2 : 4) && go_on; k++) {
            run->capacity = some[k];
            kvc_trial_stage(t, "random forest %u at %llu blocks", i, (unsigned long long)some[k]);
            go_on = each(t, run);
        }
        kvc_workload_clear(&w);
    }
    for (size_t i = 0; i < t->n_workloads && go_on; i++) {
        run->workload = &t->workload[i];
        if (run->workload->blocks > most_blocks)
            continue;
        for (size_t k = 0; k < KVC_TRIAL_CAPACITIES && go_on; k++) {
            run->capacity = kvc_trial_capacity(run->workload, k);
            kvc_trial_stage(t, "workload %s at %llu blocks", run->workload->name,
                            (unsigned long long)run->capacity);
            go_on = each(t, run);
        }
    }
}

/* Returns a digest of all hits. */
static uint64_t check_everywhere(struct kvc_trials *t, bool pin, uint64_t most_blocks,
                                 bool (*each)(struct kvc_trials *, struct kvc_trial_run *))
{
    struct kvc_plugin *p;
    if (!kvc_trial_open(t, &p))
        return 0;
    struct kvc_trial_run run = {.spec = t->policy, .pin = pin,
                                .trial = {.plugin = p, .place = &t->board->place}};
    everywhere(t, &run, most_blocks, each);
    kvc_plugin_close(p);
    return run.digests;
}

static void rules(struct kvc_trials *t)
{
    t->board->digest = check_everywhere(t, false, UINT64_MAX, fine);
}

static void pins(struct kvc_trials *t)
{
    check_everywhere(t, true, HANDY, fine);
}

/* ---- closure ---- */

static bool leaves_no_orphans(struct kvc_trials *t, struct kvc_trial_run *run)
{
    if (!fine(t, run))
        return false;
    if (run->orphans)
        kvc_trial_fails(t, "it promises KVC_EVICT_CLOSED, and left %llu blocks behind one that was "
                           "gone, of %s: take the flag away, or evict children before parents",
                        (unsigned long long)run->orphans, t->board->stage);
    return !run->orphans;
}

static void closure(struct kvc_trials *t)
{
    if (t->board->flags & KVC_EVICT_CLOSED)
        check_everywhere(t, false, HANDY, leaves_no_orphans);
    else
        kvc_trial_skips(t, "it does not promise KVC_EVICT_CLOSED");
}

/* ---- twin ---- */

static void first_difference(struct kvc_trials *t, const struct kvc_trial_run *run,
                             const uint32_t *pieces, const uint32_t *singles)
{
    bool admits = t->board->kind == KVC_POLICY_ADMISSION;
    for (uint64_t r = 0; r < run->workload->view.n_requests; r++)
        if (pieces[r] != singles[r]) {
            kvc_trial_fails(t, "request %llu of %s finds %u blocks, and %u when %s are single "
                               "blocks: %s", (unsigned long long)r, t->board->stage, pieces[r],
                               singles[r],
                            admits ? "segments" : "pieces",
                            admits ? "count blocks, not segments, and judge by what they are, not "
                                     "by how a segment is numbered or cut"
                                   : "raise *blocks in victim only while each newcomer would find "
                                     "the same victim, or set KVC_EVICT_SINGLE");
            return;
        }
}

static bool agrees_with_single_blocks(struct kvc_trials *t, struct kvc_trial_run *run)
{
    uint64_t n = run->workload->view.n_requests;
    uint32_t *pieces = kvc_calloc(n, sizeof(*pieces)), *singles = kvc_calloc(n, sizeof(*singles));
    bool good = pieces && singles;
    run->runs = pieces;
    good = good && fine(t, run);
    run->runs = singles;
    run->trial.single = true;
    good = good && fine(t, run);
    run->trial.single = false;
    run->runs = NULL;
    if (good)
        first_difference(t, run, pieces, singles);
    kvc_free(pieces);
    kvc_free(singles);
    return good && t->board->verdict == KVC_CHECK_PASSED;
}

static void twin(struct kvc_trials *t)
{
    if (t->board->flags & KVC_EVICT_SINGLE)
        kvc_trial_skips(t, "it takes single blocks only (KVC_EVICT_SINGLE)");
    else
        check_everywhere(t, false, HANDY, agrees_with_single_blocks);
}

/* ---- what info is asked for ---- */

static uint64_t digest_with(struct kvc_trials *t, struct kvc_trial_run *run, uint32_t noise)
{
    run->digests = 0;
    run->trial.noise = noise;
    everywhere(t, run, HANDY, fine);
    return run->digests;
}

/* Fields that no flag declares hold noise: hits that change come from one that is read. */
static void fields(struct kvc_trials *t)
{
    static const struct {
        uint32_t flag;
        const char *name, *what;
    } declared[] = {
        {KVC_EVICT_TOUCHES, "KVC_EVICT_TOUCHES", "touches"},
        {KVC_EVICT_HISTORY, "KVC_EVICT_HISTORY",
         "its tenant, stored_ns, touched_ns, stored_request or touched_request"},
    };
    struct kvc_plugin *p;
    if (!kvc_trial_open(t, &p))
        return;
    struct kvc_trial_run run = {.spec = t->policy, .trial = {.plugin = p,
                                                             .place = &t->board->place}};
    uint64_t plain = digest_with(t, &run, 0);
    for (size_t i = 0; i < 2 && t->board->verdict == KVC_CHECK_PASSED; i++)
        if (!(t->board->flags & declared[i].flag) &&
            digest_with(t, &run, declared[i].flag) != plain)
            kvc_trial_fails(t, "it reads %s of info, which is empty without %s: add that to .flags",
                            declared[i].what, declared[i].name);
    kvc_plugin_close(p);
}

/* ---- determinism ---- */

struct side {
    struct kvc_trial_run run;
    uint64_t digest;
};

static void *run_side(void *user)
{
    struct side *s = user;
    for (int i = 0; i < 3 && s->run.status == KVC_OK; i++) {
        kvc_trial_run(&s->run);
        s->digest = kvc_mix64(s->digest ^ s->run.digest) + 1;
    }
    return NULL;
}

static void two_threads(struct kvc_trials *t, const struct kvc_plugin *p,
                        const struct kvc_workload *w)
{
    struct side side[2];
    pthread_t other;
    for (int i = 0; i < 2; i++)
        side[i] = (struct side){.run = {.workload = w, .spec = t->policy, .trial = {.plugin = p},
                                        .capacity = kvc_trial_capacity(w, 1)}};
    kvc_trial_stage(t, "workload %s in two threads at once", w->name);
    bool alone = pthread_create(&other, NULL, run_side, &side[1]) != 0;
    run_side(&side[0]);
    if (alone)
        return;
    pthread_join(other, NULL);
    if (side[0].run.status != KVC_OK || side[1].run.status != KVC_OK)
        kvc_trial_fails(t, "%s (%s)", side[side[0].run.status == KVC_OK].run.error.text,
                        t->board->stage);
    else if (side[0].digest != side[1].digest)
        kvc_trial_fails(t, "two runs at once differ, of %s: it writes to a global variable; all "
                           "that changes belongs into the state that create "
                           "makes", t->board->stage);
}

/* The digest that rules left, in another process, and another time in this one. */
static void determinism(struct kvc_trials *t)
{
    struct kvc_plugin *p;
    if (!kvc_trial_open(t, &p)) /* and keep it, with the global variables that it may have */
        return;
    for (int i = 0; i < 2 && t->board->verdict == KVC_CHECK_PASSED; i++) {
        uint64_t again = check_everywhere(t, false, UINT64_MAX, fine);
        if (t->board->verdict == KVC_CHECK_PASSED && again != t->board->digest)
            kvc_trial_fails(t, "the same runs gave other hits %s: let nothing but the host's calls "
                               "decide (no clock, no addresses, no global variables; host->random "
                               "is a stream that repeats)",
                            i ? "a second time in one process" : "in another process");
    }
    for (size_t i = 0; i < t->n_workloads && t->board->verdict == KVC_CHECK_PASSED; i++)
        two_threads(t, p, &t->workload[i]);
    kvc_plugin_close(p);
}

/* ---- memory that runs out ---- */

/* Makes the k-th allocation of a run fail, for every k until the run needs no more. */
static void no_memory(struct kvc_trials *t)
{
    struct kvc_plugin *p;
    struct kvc_workload w;
    uint64_t rng = kvc_rng_stream(5, "memory");
    bool last = false;
    if (!kvc_trial_open(t, &p))
        return;
    for (int i = 0; i < 3 && kvc_workload_random(&w, &rng, NULL) == KVC_OK; i++, last = false) {
        struct kvc_trial_run run = {.spec = t->policy, .workload = &w, .capacity = w.blocks / 3 + 1,
                                    .trial = {.plugin = p, .place = &t->board->place}};
        for (uint64_t k = 1; !last && t->board->verdict == KVC_CHECK_PASSED; k++) {
            kvc_trial_stage(t, "a run whose allocation %llu fails", (unsigned long long)k);
            kvc_alloc_fail_after(k);
            kvc_trial_run(&run);
            kvc_alloc_fail_after(0);
            last = run.status == KVC_OK;
            if (run.trial.leaks)
                kvc_trial_fails(t, "%llu allocations are left behind after %s: destroy and a "
                                   "create that gives up free all that alloc gave",
                                (unsigned long long)run.trial.leaks, t->board->stage);
        }
        kvc_workload_clear(&w);
    }
    kvc_plugin_close(p);
}

/* ---- options ---- */

const char *kvc_trial_with_option(struct kvc_trials *t, const struct kvc_plugin *p,
                                  const struct kvc_policy_option *o, double value,
                                  const char *before, char *spec, size_t size)
{
    char text[64];
    struct kvc_error err = {0};
    union kvc_option_value v[KVC_POLICY_OPTIONS];
    if (o->kind == KVC_OPTION_TIME)
        kvc_format_ns((uint64_t)value, text, sizeof(text));
    else if (o->kind == KVC_OPTION_COUNT)
        snprintf(text, sizeof(text), "%.0f", value);
    else
        snprintf(text, sizeof(text), "%.17g", value);
    snprintf(spec, size, "%s%s:%s=%s", before, p->path, o->name, text);
    kvc_trial_stage(t, "options %s=%s", o->name, text);
    if (kvc_policy_options(p->policy.name, strrchr(spec, ':') + 1, p->policy.options,
                           p->policy.n_options, v, &err) == KVC_OK)
        return spec;
    kvc_trial_fails(t, "its own limit of %s, %s, is refused: %s", o->name, text, err.text);
    return NULL;
}

static bool with_option(struct kvc_trials *t, struct kvc_trial_run *run,
                        const struct kvc_policy_option *o, double value)
{
    char spec[400];
    const struct kvc_plugin *p = run->trial.plugin;
    const char *before = p->policy.kind == KVC_POLICY_ADMISSION ? "lru+" : "";
    run->spec = kvc_trial_with_option(t, p, o, value, before, spec, sizeof(spec));
    bool good = run->spec && fine(t, run);
    run->spec = t->policy;
    return good;
}

static void options(struct kvc_trials *t)
{
    struct kvc_plugin *p;
    uint64_t rng = kvc_rng_stream(7, "options");
    struct kvc_workload w;
    if (!kvc_trial_open(t, &p) || kvc_workload_random(&w, &rng, NULL) != KVC_OK)
        return;
    struct kvc_trial_run run = {.spec = t->policy, .workload = &w, .capacity = w.blocks / 3 + 1,
                                .trial = {.plugin = p, .place = &t->board->place}};
    run.trial.null_options = true;
    kvc_trial_stage(t, "a run with options NULL");
    bool good = fine(t, &run);
    run.trial.null_options = false;
    for (uint32_t i = 0; i < p->policy.n_options && good; i++)
        good = with_option(t, &run, &p->policy.options[i], p->policy.options[i].min) &&
               with_option(t, &run, &p->policy.options[i], p->policy.options[i].max);
    kvc_workload_clear(&w);
    kvc_plugin_close(p);
}

const struct kvc_trial kvc_trial_table[] = {
    {"loads", "it is a plug-in for this version", loads, 0},
    {"rules", "every answer keeps the rules, at every capacity", rules, KVC_POLICY_EVICTION},
    {"closure", "what it promises of prefixes holds", closure, KVC_POLICY_EVICTION},
    {"twin", "pieces give what single blocks give", twin, KVC_POLICY_EVICTION},
    {"fields", "what it reads of info is declared", fields, KVC_POLICY_EVICTION},
    {"repeats", "equal runs give equal hits, in threads too", determinism, KVC_POLICY_EVICTION},
    {"pins", "what running requests read stays", pins, KVC_POLICY_EVICTION},
    {"options", "NULL, and both ends of each", options, KVC_POLICY_EVICTION},
    {"memory", "it ends in order when there is none", no_memory, KVC_POLICY_EVICTION},
    {"rules", "every answer keeps the rules, asked twice too", rules, KVC_POLICY_ADMISSION},
    {"twin", "segments give what single blocks give", twin, KVC_POLICY_ADMISSION},
    {"repeats", "equal runs give equal hits, in threads too", determinism, KVC_POLICY_ADMISSION},
    {"options", "NULL, and both ends of each", options, KVC_POLICY_ADMISSION},
    {"memory", "it ends in order when there is none", no_memory, KVC_POLICY_ADMISSION},
    {"rules", "every answer is a replica", kvc_trial_router_rules, KVC_POLICY_ROUTING},
    {"repeats", "equal runs give equal answers", kvc_trial_router_repeats, KVC_POLICY_ROUTING},
    {"rules", "every rank is a number, the same when asked twice", kvc_trial_order_rules,
     KVC_POLICY_ORDERING},
    {"repeats", "equal queues are served alike", kvc_trial_order_repeats, KVC_POLICY_ORDERING},
    {"options", "NULL, and both ends of each", kvc_trial_order_options, KVC_POLICY_ORDERING},
    {"memory", "it ends in order when there is none", kvc_trial_order_memory, KVC_POLICY_ORDERING},
    {NULL, NULL, NULL, 0},
};
