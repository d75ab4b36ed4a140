/* SPDX-License-Identifier: Apache-2.0
 * Plug-ins against the built-in policies that do the same, and the loader against what is wrong. */
#include "base/rng.h"
#include "policies/plugged.h"
#include "studies/workloads.h"

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
            snprintf(path, sizeof(path), "%s%s", so(pairs[k].plugin, file, sizeof(file)),
                     pairs[k].options);
            snprintf(name, sizeof(name), "%s%s", pairs[k].built_in, pairs[k].options);
            same(&w, name, path, capacity, NULL, i);
            if (i % 8)
                continue;
            assert_int_equal(kvc_plugin_open(&plugin, path, 0, NULL), KVC_OK);
            trial.plugin = plugin;
            same(&w, name, path, capacity, &trial, i); /* block by block */
            assert_int_equal(trial.leaks, 0);
            kvc_plugin_close(plugin);
        }
        kvc_workload_clear(&w);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugins_give_what_built_ins_give),
    };
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - argv[0]) : 1,
             slash ? argv[0] : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
