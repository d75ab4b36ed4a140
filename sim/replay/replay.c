/* SPDX-License-Identifier: Apache-2.0
 * A replay as one call: checks, the run, the runs it is held against, the result. */
#include "sim/replay/collect.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "models/user_profile.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>

static enum kvc_status check_trace(const struct kvc_trace *trace, struct kvc_error *err)
{
    if (trace->objects)
        return kvc_fail(err, KVC_ERR_INPUT,
                        "the trace is a cache's references to objects: there are no prompts to "
                        "serve; ceiling gives what caches of any size can hit");
    if (trace->sample.weight)
        return kvc_fail(err, KVC_ERR_INPUT,
                        "the trace holds samples of one in %u subtrees of prompts (import "
                        "--sample): their load is not the log's, so that no replay of it would be "
                        "true; import all of the log, or a --window of it", trace->sample.weight);
    return KVC_OK;
}

static enum kvc_status read_profile(struct kvc_engine *e, struct kvc_error *err)
{
    const char *text = e->options->profile;
    return text ? kvc_user_profile_parse(&e->user, text, strlen(text), "profile", err)
                : kvc_scenario_profile(&e->user, e->sc, err);
}

/* The run is on the trace as the tenants' salts divide it. */
static enum kvc_status enter_spaces(struct kvc_engine *e, struct kvc_namespaces *spaces,
                                    bool isolate, struct kvc_error *err)
{
    uint32_t *of = NULL;
    const struct kvc_trace *whole = e->trace;
    enum kvc_status st = kvc_tenants_spaces(&of, whole, e->sc, isolate, err);
    if (st == KVC_OK && of)
        st = kvc_namespaces_create(spaces, whole, of, err);
    if (st == KVC_OK && of) {
        e->spaces = spaces;
        e->trace = &spaces->trace;
        e->seen_anywhere = kvc_calloc(whole->n_segments, sizeof(*e->seen_anywhere));
        if (!e->seen_anywhere)
            st = kvc_fail_nomem(err);
    }
    kvc_free(of);
    return st;
}

/* A run that differs from e in one thing, with its step times. */
static struct kvc_engine like(const struct kvc_engine *e, const struct kvc_trace *trace,
                              const struct kvc_scenario *sc,
                              const struct kvc_replay_options *options)
{
    return (struct kvc_engine){.trace = trace, .sc = sc, .options = options,
                               .user = e->user, .model = e->model, .model_is_lent = true};
}

/* What prefill takes for the same requests when there is nothing below HBM. */
static enum kvc_status run_hbm_only(struct kvc_engine *e, struct kvc_error *err)
{
    struct kvc_scenario bare = *e->sc;
    struct kvc_replay_options options = *e->options;
    struct kvc_engine other = like(e, e->trace, &bare, &options);
    for (uint32_t t = 0; t < KVC_LOWER_TIERS; t++)
        bare.tiers[t].present = false;
    options.progress = NULL;
    enum kvc_status st = kvc_engine_run(&other, err);
    if (st == KVC_OK)
        e->hbm_only_prefill_ns = other.prefill_ns;
    kvc_engine_close(&other);
    return st;
}

/* "noisy=TENANT": its requests end as if the log had no answer for them, so that all others keep
 * their times and their turns; "isolation": each tenant is a namespace of its own. */
static enum kvc_status run_what_if(struct kvc_engine *e, const struct kvc_trace *trace,
                                   const char *what, struct kvc_result *result,
                                   struct kvc_error *err)
{
    struct kvc_replay_options options = *e->options;
    struct kvc_trace without = *trace;
    struct kvc_namespaces spaces = {0};
    struct kvc_engine other = like(e, trace, e->sc, &options);
    const char *noisy = strncmp(what, "noisy=", 6) == 0 ? what + 6 : NULL;
    bool isolate = strcmp(what, "isolation") == 0;
    enum kvc_status st = KVC_OK;
    without.row_status = NULL;
    options.progress = NULL;
    if (!noisy && !isolate)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "what-if",
                           "\"%.64s\" is not known; there are noisy=TENANT and isolation", what);
    if (noisy) {
        st = kvc_tenants_without(&without.row_status, trace, noisy, err);
        other.trace = &without;
    }
    if (st == KVC_OK)
        st = enter_spaces(&other, &spaces, isolate, err);
    if (st == KVC_OK)
        st = kvc_engine_run(&other, err);
    if (st == KVC_OK)
        st = kvc_collect_what_if(&other, noisy, result, err);
    kvc_engine_close(&other);
    kvc_namespaces_clear(&spaces);
    kvc_free(without.row_status);
    return st;
}

struct clocks {
    double wall_s, cpu_s;
};

static double clock_s(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static struct clocks read_clocks(void)
{
    return (struct clocks){clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_THREAD_CPUTIME_ID)};
}

static void note_runtime(struct kvc_result *r, struct clocks began, const char *trace_path)
{
    struct clocks now = read_clocks();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    r->runtime.wall_s = now.wall_s - began.wall_s;
    r->runtime.cpu_s = now.cpu_s - began.cpu_s;
    r->runtime.peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    r->runtime.threads = 1;
    if (trace_path)
        strncpy(r->runtime.trace_path, trace_path, sizeof(r->runtime.trace_path) - 1);
}

enum kvc_status kvc_replay_run_with(struct kvc_result **out, const struct kvc_trace *trace,
                                    const struct kvc_scenario *scenario,
                                    const struct kvc_replay_options *options,
                                    struct kvc_step_model *model, struct kvc_error *err)
{
    struct kvc_replay_options own = {0};
    struct kvc_engine e = {.trace = trace, .sc = scenario, .options = &own, .model = model,
                           .model_is_lent = model != NULL};
    struct kvc_namespaces spaces = {0};
    struct clocks began = read_clocks();
    struct kvc_result *result = NULL;
    if (options)
        kvc_sized_copy(&own, sizeof(own), options);
    enum kvc_status st = kvc_scenario_check(scenario, err);
    if (st == KVC_OK)
        st = check_trace(trace, err);
    if (st == KVC_OK)
        st = read_profile(&e, err);
    if (st == KVC_OK)
        st = enter_spaces(&e, &spaces, false, err);
    if (st == KVC_OK)
        st = kvc_engine_run(&e, err);
    if (st == KVC_OK && e.first_tier < KVC_LOWER_TIERS && !own.skip_bounds)
        st = run_hbm_only(&e, err);
    if (st == KVC_OK)
        st = kvc_collect(&e, &result, err);
    for (size_t i = 0; st == KVC_OK && i < own.n_what_ifs; i++)
        st = run_what_if(&e, trace, own.what_ifs[i], result, err);
    kvc_engine_close(&e);
    kvc_user_profile_destroy(e.user);
    kvc_namespaces_clear(&spaces);
    if (st != KVC_OK) {
        kvc_result_destroy(result);
        return st;
    }
    note_runtime(result, began, own.trace_path);
    *out = result;
    return KVC_OK;
}

enum kvc_status kvc_replay_run(struct kvc_result **out, const struct kvc_trace *trace,
                               const struct kvc_scenario *scenario,
                               const struct kvc_replay_options *options, struct kvc_error *err)
{
    return kvc_replay_run_with(out, trace, scenario, options, NULL, err);
}
