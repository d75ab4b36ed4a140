/* SPDX-License-Identifier: Apache-2.0
 * Plug-ins against the built-in policies that do the same, and the loader against what is wrong. */
#include "base/rng.h"
#include "studies/policies/trials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REQUESTS 80
#define FORESTS 600

/* Plug-ins of this build lie beside the test programs. */
static char folder[512];

static const char *so(const char *name, char *buf, size_t size)
{
    snprintf(buf, size, "%s/plugins/%s.so", folder, name);
    return buf;
}

/* Leading runs by request, and blocks found when touched. */
static uint64_t run(const struct kvc_workload *w, const char *policy, uint64_t capacity,
                    struct kvc_plugged_trial *trial, uint32_t *runs)
{
    const struct kvc_ceiling_view *v = &w->view;
    const struct kvc_runs_setup setup = {
        .policy = policy, .capacity = capacity, .n_segments = v->n_segments, .seg_len = v->seg_len,
        .seg_depth = v->seg_depth, .seg_parent = v->seg_parent, .block_tokens = v->block_tokens,
        .trial = trial,
    };
    struct kvc_error err = {0};
    uint64_t access = 0;
    struct kvc_runs *c = kvc_runs_create(&setup);
    assert_non_null(c);
    for (uint64_t r = 0; r < v->n_requests; r++) {
        const struct kvc_runs_request request = kvc_ceiling_request(v, r);
        runs[r] = (uint32_t)kvc_runs_arrive(c, &request);
        access += kvc_runs_touch(c);
    }
    if (kvc_runs_error(c, &err) != KVC_OK)
        fail_msg("%s: %s", policy, err.text);
    kvc_runs_destroy(c);
    return access;
}

static void same(const struct kvc_workload *w, const char *a, const char *b, uint64_t capacity,
                 struct kvc_plugged_trial *trial, uint64_t number)
{
    uint32_t want[REQUESTS], got[REQUESTS];
    uint64_t wanted = run(w, a, capacity, NULL, want), found = run(w, b, capacity, trial, got);
    for (uint64_t r = 0; r < w->view.n_requests; r++)
        if (want[r] != got[r])
            fail_msg("forest %llu, %llu blocks: request %llu: %s finds %u, %s %u",
                     (unsigned long long)number, (unsigned long long)capacity,
                     (unsigned long long)r, a, want[r], b, got[r]);
    assert_int_equal(wanted, found);
}

static void plugins_give_what_built_ins_give(void **state)
{
    static const struct {
        const char *built_in, *plugin, *options;
    } pairs[] = {
        {"lru", "lru", ""},   {"fifo", "fifo", ""}, {"lfu", "lfu", ""},
        {"sieve", "sieve", ""}, {"gdsf", "gdsf", ""}, {"twoq", "twoq", ""},
        {"twoq", "twoq", ":in=0.5:out=0.25"},
        {"lru+second", "second", ""},  {"fifo+second", "second", ":times=3"},
        {"lru+depth", "depth", ":tokens=40"}, {"sieve+depth", "depth", ":tokens=10"},
    };
    uint64_t rng = kvc_rng_stream(11, "plug-ins");
    (void)state;
    for (uint64_t i = 0; i < FORESTS; i++) {
        struct kvc_workload w;
        assert_int_equal(kvc_workload_random(&w, &rng, NULL), KVC_OK);
        uint64_t capacity = kvc_rng_below(&rng, w.blocks + 2);
        for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
            char file[600], path[700], name[64];
            struct kvc_plugged_trial trial = {.single = true};
            struct kvc_plugin *plugin;
            const char *plus = strchr(pairs[k].built_in, '+');
            int eviction = plus ? (int)(plus - pairs[k].built_in) + 1 : 0;
            snprintf(path, sizeof(path), "%.*s%s%s", eviction, pairs[k].built_in,
                     so(pairs[k].plugin, file, sizeof(file)), pairs[k].options);
            snprintf(name, sizeof(name), "%s%s", pairs[k].built_in, pairs[k].options);
            same(&w, name, path, capacity, NULL, i);
            if (i % 8)
                continue;
            assert_int_equal(kvc_plugin_open(&plugin, path + eviction, 0, NULL), KVC_OK);
            trial.plugin = plugin;
            same(&w, name, path, capacity, &trial, i); /* block by block */
            assert_int_equal(trial.leaks, 0);
            kvc_plugin_close(plugin);
        }
        kvc_workload_clear(&w);
    }
}

/* A rule on segments and places is the same rule where the engine's segments are single blocks. */
static void places_are_true_of_single_blocks(void **state)
{
    char path[600];
    uint64_t rng = kvc_rng_stream(17, "places");
    struct kvc_plugin *plugin;
    (void)state;
    so("places", path, sizeof(path));
    assert_int_equal(kvc_plugin_open(&plugin, path, 0, NULL), KVC_OK);
    for (uint64_t i = 0; i < 200; i++) {
        struct kvc_workload w;
        struct kvc_plugged_trial trial = {.plugin = plugin, .single = true};
        assert_int_equal(kvc_workload_random(&w, &rng, NULL), KVC_OK);
        same(&w, path, path, kvc_rng_below(&rng, w.blocks + 2), &trial, i);
        kvc_workload_clear(&w);
    }
    kvc_plugin_close(plugin);
}

/* ---- where a path ends ---- */

static void paths_and_names_are_told_apart(void **state)
{
    static const struct {
        const char *spec, *admission, *options;
        bool plugin;
    } cases[] = {
        {"lru", NULL, "", false},
        {"lru:k=1+second:times=3", "second:times=3", "", false},
        {"lru+./mine.so", "./mine.so", "", false},
        {"lru:k=1+./c++/mine.so:x=1", "./c++/mine.so:x=1", "", false},
        {"c++/mine.so", NULL, "", true},
        {"lru+/mine.so", "/mine.so", "", false},
        {"./lru+/mine.so:x=1", NULL, "x=1", true},
        {"./a.so:x=1+./b.so:y=2", "./b.so:y=2", "x=1+./b.so:y=2", true},
        {"a.so+b.so", "b.so", "", true},
        {"./a+b/c:d/e.so+second", "second", "", true},
        {"./folder/mine:x=1", NULL, "x=1", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *spec = cases[i].spec, *admission = kvc_policy_admission(spec);
        if (kvc_plugin_is(spec) != cases[i].plugin || !admission != !cases[i].admission ||
            (admission && strcmp(admission, cases[i].admission) != 0) ||
            (cases[i].plugin && strcmp(kvc_plugin_options(spec), cases[i].options) != 0))
            fail_msg("%s: plug-in %d, admission %s, options %s", spec, kvc_plugin_is(spec),
                     admission ? admission : "none", kvc_plugin_options(spec));
    }
}

/* ---- what is wrong ---- */

static const struct kvc_check_row *row_of(const struct kvc_policy_check *c, const char *name)
{
    for (size_t i = 0; i < c->n_rows; i++)
        if (!strcmp(c->row[i].name, name))
            return &c->row[i];
    return NULL;
}

/* The check that finds it, and what it says. */
static void broken_plugins_are_told_how(void **state)
{
    static const struct {
        const char *plugin, *check, *text;
    } cases[] = {
        {"bad_abi", "loads", "version 99 of the plug-in interface, this is version 1"},
        {"bad_size", "loads", "struct_size is 24"},
        {"bad_symbol", "loads", "no function kvc_policy_plugin"},
        {"bad_name", "loads", "name of a built-in policy"},
        {"bad_hook", "loads", "the hook victim is missing"},
        {"bad_closed", "closure", "promises KVC_EVICT_CLOSED"},
        {"bad_split", "twin", "when pieces are single blocks"},
        {"bad_touches", "fields", "without KVC_EVICT_TOUCHES"},
        {"bad_history", "fields", "without KVC_EVICT_HISTORY"},
        {"bad_random", "repeats", "a second time in one process"},
        {"bad_pinned", "pins", "the victim it named is pinned"},
        {"bad_crash", "options", "in create, of a run with options NULL"},
        {"bad_memory", "memory", "in create, of a run whose allocation"},
        {"bad_leak", "rules", "destroy left 1 allocations behind"},
        {"bad_lost", "rules", "has it lost track of pieces?"},
        {"bad_dead", "rules", "is not resident"},
        {"bad_nan", "rules", "rank was given NaN"},
        {"bad_fault", "rules", "in victim, at request"},
        {"bad_exit", "rules", "it ended the program, with exit code 0, in victim"},
        {"bad_beyond", "rules", "it wrote beyond the 16 bytes that alloc gave it"},
        {"bad_write", "rules", "it wrote to seg_depth, which it may only read"},
        {"bad_twice", "rules", "in destroy: free was given the same memory twice"},
        {"bad_piece", "rules", "it wrote beyond the 8 bytes of memory that each piece has"},
        {"bad_option", "loads", "option share: its own default_text is refused: 1.5 is out of "
                                "range"},
        {"bad_stray", "rules", "which count from 0"},
        {"bad_kind", "loads", "of kind 9, which this version"},
        {"bad_admits_none", "loads", "the hook admits is missing"},
        {"bad_admits_name", "loads", "name of a built-in policy"},
        {"bad_admits_more", "rules", "in admits, at request 0: it admits"},
        {"bad_admits_twice", "rules", "it gave two answers"},
        {"bad_admits_random", "rules", "random was called in admits"},
        {"bad_admits_alone", "rules", "it crashed"},
        {"bad_admits_segment", "twin", "when segments are single blocks"},
        {"bad_admits_global", "repeats", "a second time in one process"},
        {"bad_rank_once", "loads", "KVC_ORDERING_ONCE goes with neither"},
        {"bad_rank_nan", "rules", "in rank, at request 21: a rank is NaN"},
        {"bad_rank_counts", "rules", "it gave two ranks"},
        {"bad_rank_random", "rules", "random was called in rank"},
        {"bad_rank_crash", "rules", "in rank, at request 0, of a queue"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kvc_policy_check found;
        char path[600];
        assert_int_equal(kvc_policy_check(so(cases[i].plugin, path, sizeof(path)),
                                          cases[i].check, 0, &found, NULL),
                         KVC_OK);
        const struct kvc_check_row *row = row_of(&found, cases[i].check);
        assert_false(found.passed);
        assert_int_equal(found.n_scores, 0);
        if (!row || row->verdict != KVC_CHECK_FAILED || !strstr(row->text, cases[i].text))
            fail_msg("%s: %s: %s", cases[i].plugin, cases[i].check, row ? row->text : "not run");
    }
}

/* A policy in this program, as if it had been loaded. */
static struct kvc_plugin in_program(const struct kvc_evict_ops *ops)
{
    struct kvc_plugin p = {.path = "(test)", .policy = {.kind = KVC_POLICY_EVICTION, .name = "test",
                                                        .summary = "test"}};
    p.ops.evict = *ops;
    return p;
}

/* ---- services that the plug-ins above do without ---- */

static void rank_by_next(const struct kvc_host *host, void *state, kvc_piece piece)
{
    uint64_t next = host->next_use(host, piece);
    (void)state;
    host->rank(host, piece, next == KVC_NEVER ? -1e18 : -(double)next);
}

static void store_by_next(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)ghost;
    rank_by_next(host, state, piece);
}

static kvc_piece lowest(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)state, (void)newcomer, (void)blocks;
    return host->lowest(host);
}

/* Farthest next use goes; no policy that refuses nothing hits more, and opt, which may refuse,
 * does. */
static void an_oracle_comes_between_lru_and_opt(void **state)
{
    static const struct kvc_evict_ops ops = {.struct_size = sizeof(ops), .flags = KVC_EVICT_ORACLE,
                                             .stored = store_by_next, .touched = rank_by_next,
                                             .victim = lowest};
    struct kvc_plugin plugin = in_program(&ops);
    uint64_t ours = 0, lru = 0, opt = 0;
    (void)state;
    for (size_t i = 3; i < kvc_workloads(); i++) {
        struct kvc_workload w;
        struct kvc_hits hits;
        assert_int_equal(kvc_workload_make(&w, i, NULL), KVC_OK);
        struct kvc_trial_run run = {.workload = &w, .spec = "(test)", .capacity = w.blocks / 6 + 1,
                                    .trial = {.plugin = &plugin}};
        kvc_trial_run(&run);
        assert_int_equal(run.status, KVC_OK);
        ours += run.hits;
        assert_int_equal(kvc_ceiling_opt_of(&w.view, &run.capacity, 1, &hits, NULL, NULL), KVC_OK);
        opt += hits.raw_hit_blocks;
        assert_true(run.hits <= hits.raw_hit_blocks);
        assert_int_equal(kvc_ceiling_runs_of(&w.view, "lru", &run.capacity, 1, &hits, NULL, NULL),
                         KVC_OK);
        lru += hits.raw_hit_blocks;
        assert_true(run.hits >= hits.raw_hit_blocks);
        kvc_workload_clear(&w);
    }
    assert_true(lru < ours && ours < opt);
}

/* What info tells of a piece is true, and times bring the built-in ttl to the block. */
struct ages {
    uint64_t now_ns, request;
};

static void *make_ages(const struct kvc_host *host, const union kvc_option_value *options)
{
    (void)options;
    return host->alloc(host, 1, sizeof(struct ages));
}

static void free_ages(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

static void expire(const struct kvc_host *host, void *state,
                   const struct kvc_policy_request *request)
{
    struct ages *a = state;
    a->now_ns = request->time_ns;
    a->request = request->index;
    for (kvc_piece p; (p = host->oldest(host, 0)) != KVC_PIECE_NONE;) {
        const struct kvc_piece_info *info = host->info(host, p);
        if (a->now_ns - info->touched_ns < 3000000000u)
            return;
        host->drop(host, p, info->hi - info->lo);
    }
}

static void store_aged(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    const struct ages *a = state;
    const struct kvc_piece_info *info = host->info(host, piece);
    (void)ghost;
    if (info->stored_ns != a->now_ns || info->touched_request != a->request ||
        info->hi <= info->lo ||
        info->depth != host->seg_depth[info->segment] + info->lo || !info->resident || info->pinned)
        (host->fail)(host, "info is wrong");
    host->put(host, 0, piece);
}

static void touch_aged(const struct kvc_host *host, void *state, kvc_piece piece)
{
    const struct ages *a = state;
    if (host->info(host, piece)->touched_ns != a->now_ns)
        (host->fail)(host, "info is wrong");
    host->put(host, 0, piece);
}

static kvc_piece oldest(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)state;
    *blocks = newcomer->hi - newcomer->lo;
    return host->oldest(host, 0);
}

static void times_make_a_ttl(void **state)
{
    static const struct kvc_evict_ops ops = {
        .struct_size = sizeof(ops), .flags = KVC_EVICT_HISTORY, .queues = 1, .create = make_ages,
        .destroy = free_ages, .request = expire, .stored = store_aged, .touched = touch_aged,
        .victim = oldest};
    struct kvc_plugin plugin = in_program(&ops);
    uint64_t rng = kvc_rng_stream(13, "ttl");
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        struct kvc_workload w;
        struct kvc_plugged_trial trial = {.plugin = &plugin};
        assert_int_equal(kvc_workload_random(&w, &rng, NULL), KVC_OK);
        same(&w, "ttl:ttl=3s", "(test)", kvc_rng_below(&rng, w.blocks + 2), &trial, i);
        kvc_workload_clear(&w);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugins_give_what_built_ins_give),
        cmocka_unit_test(places_are_true_of_single_blocks),
        cmocka_unit_test(paths_and_names_are_told_apart),
        cmocka_unit_test(broken_plugins_are_told_how),
        cmocka_unit_test(an_oracle_comes_between_lru_and_opt),
        cmocka_unit_test(times_make_a_ttl),
    };
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - argv[0]) : 1,
             slash ? argv[0] : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
