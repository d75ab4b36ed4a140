/* SPDX-License-Identifier: Apache-2.0
 * How near to the optimum a policy comes on the bundled workloads, beside the built-in ones, and
 * what it costs. */
#include "studies/policies/trials.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define COST_RUNS 3
#define COST_S 0.05

/* ---- in a child ---- */

void kvc_trial_scores(struct kvc_trials *t)
{
    struct kvc_plugin *p;
    size_t n = 0;
    if (!kvc_trial_open(t, &p))
        return;
    for (size_t i = 0; i < t->n_workloads; i++)
        for (size_t k = 0; k < KVC_TRIAL_CAPACITIES; k++, n++) {
            struct kvc_trial_run run = {.workload = &t->workload[i], .spec = t->policy,
                                        .capacity = kvc_trial_capacity(&t->workload[i], k),
                                        .trial = {.plugin = p, .place = &t->board->place}};
            kvc_trial_stage(t, "workload %s", run.workload->name);
            kvc_trial_run(&run);
            if (run.status != KVC_OK)
                kvc_trial_fails(t, "%s (%s)", run.error.text, t->board->stage);
            t->board->hits[n] = run.hits;
            t->board->touches[n] = run.touches;
        }
    kvc_plugin_close(p);
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* CPU time of a block touched, over runs that together take long enough for a coarse clock. */
static double time_touches(struct kvc_trials *t, struct kvc_trial_run *run)
{
    uint64_t touches = 0;
    double start = cpu_s(), took = 0;
    while (took < COST_S && t->board->verdict == KVC_CHECK_PASSED) {
        kvc_trial_run(run);
        if (run->status != KVC_OK)
            kvc_trial_fails(t, "%s (%s)", run->error.text, t->board->stage);
        touches += run->touches;
        took = cpu_s() - start;
    }
    return touches ? took * 1e9 / (double)touches : 0;
}

/* The least of several times, taken in turn with lru's so that both see the same machine. */
void kvc_trial_cost(struct kvc_trials *t)
{
    struct kvc_plugin *p;
    const struct kvc_workload *w = &t->workload[0];
    double least[2] = {0, 0};
    if (!kvc_trial_open(t, &p))
        return;
    for (size_t i = 1; i < t->n_workloads; i++)
        w = t->workload[i].blocks > w->blocks ? &t->workload[i] : w;
    for (int i = 0; i < 2 * COST_RUNS; i++) {
        bool ours = i % 2;
        struct kvc_trial_run run = {.workload = w, .spec = ours ? t->policy : "lru",
                                    .capacity = kvc_trial_capacity(w, 1),
                                    .trial = {.plugin = ours ? p : NULL}};
        kvc_trial_stage(t, "workload %s, for its cost", w->name);
        double took = time_touches(t, &run);
        least[ours] = i < 2 || took < least[ours] ? took : least[ours];
    }
    t->board->lru_ns_per_touch = least[0];
    t->board->ns_per_touch = least[1];
    kvc_plugin_close(p);
}

/* ---- in the parent ---- */

static enum kvc_status hits_of(const struct kvc_ceiling_view *v, const char *policy,
                               uint64_t capacity, uint64_t *out, struct kvc_error *err)
{
    struct kvc_hits hits;
    enum kvc_status st = kvc_ceiling_runs_of(v, policy, &capacity, 1, &hits, NULL, err);
    *out = st == KVC_OK ? hits.raw_hit_blocks : 0;
    return st;
}

static enum kvc_status built_ins(const struct kvc_ceiling_view *v, uint32_t kind,
                                 struct kvc_check_score *s, struct kvc_error *err)
{
    bool admits = kind == KVC_POLICY_ADMISSION;
    struct kvc_hits hits;
    enum kvc_status st = kvc_ceiling_opt_of(v, &s->capacity_blocks, 1, &hits, NULL, err);
    const char *const *name = admits ? kvc_admission_names() : kvc_runs_policies();
    s->opt = hits.raw_hit_blocks;
    for (; *name && st == KVC_OK; name++) {
        char spec[sizeof(s->best_name)];
        uint64_t found;
        snprintf(spec, sizeof(spec), "%s%s", admits ? "lru+" : "", *name);
        st = hits_of(v, spec, s->capacity_blocks, &found, err);
        if (!s->best_name[0] || found > s->best) {
            s->best = found;
            memcpy(s->best_name, spec, sizeof(spec));
        }
    }
    if (st == KVC_OK)
        st = hits_of(v, "lru", s->capacity_blocks, &s->lru, err);
    return st == KVC_OK ? hits_of(v, "fifo", s->capacity_blocks, &s->fifo, err) : st;
}

static double regret(uint64_t hits, uint64_t opt)
{
    return opt ? 1 - (double)hits / (double)opt : 0;
}

enum kvc_status kvc_trial_compare(const struct kvc_trials *t, struct kvc_policy_check *out,
                                  struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    for (size_t i = 0; i < t->n_workloads; i++)
        for (size_t k = 0; k < KVC_TRIAL_CAPACITIES && st == KVC_OK; k++) {
            const struct kvc_workload *w = &t->workload[i];
            struct kvc_check_score *s = &out->score[out->n_scores];
            *s = (struct kvc_check_score){.what = w->what, .blocks = w->blocks,
                                          .capacity_blocks = kvc_trial_capacity(w, k),
                                          .hits = t->board->hits[out->n_scores],
                                          .touches = t->board->touches[out->n_scores]};
            snprintf(s->workload, sizeof(s->workload), "%s", w->name);
            st = built_ins(&w->view, out->kind, s, err);
            out->regret += regret(s->hits, s->opt);
            out->lru_regret += regret(s->lru, s->opt);
            out->fifo_regret += regret(s->fifo, s->opt);
            out->best_regret += regret(s->best, s->opt);
            out->n_scores++;
        }
    double n = out->n_scores ? (double)out->n_scores : 1;
    out->regret /= n;
    out->lru_regret /= n;
    out->fifo_regret /= n;
    out->best_regret /= n;
    out->ns_per_touch = t->board->ns_per_touch;
    out->lru_ns_per_touch = t->board->lru_ns_per_touch;
    return st;
}
