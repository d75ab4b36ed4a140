/* SPDX-License-Identifier: Apache-2.0
 * bench_policies [TRACE]: policies without time at one capacity, in process, on the whole
 * kv-cache-tester corpus: block touches per CPU second of each. Median of several; lines as
 * tools/bench.sh takes them. */
#include "sim/ceiling/ceiling.h"
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 5
#define CAPACITY 100000
#define DEFAULT_TRACE "../shared/traces/kv-cache-tester/traces.tar.zst"

struct group {
    const char *names, *goal;
};

static const struct group groups[] = {
    {"curve", ">=500"},
    {"lru fifo", ">=400"},
    {"lfu sieve s3fifo twoq arc", ">=200"},
    {"opt", ">=150"},
    {"*", "-"}, /* what is in no group */
};

/* The optimum, its proof and the check of that. */
static enum kvc_status certify(const struct kvc_trace *trace)
{
    struct kvc_certificate c = {0};
    struct kvc_certificate_check check = {.optimal = false};
    enum kvc_status failed = kvc_ceiling_certify(trace, CAPACITY, &c, NULL);
    if (!failed)
        failed = kvc_certificate_check(trace, &c, &check, NULL);
    kvc_certificate_clear(&c);
    return failed || check.optimal ? failed : KVC_ERR_INTERNAL;
}

static double once(const struct kvc_ceiling_view *v, const struct kvc_trace *trace,
                   const char *policy)
{
    const uint64_t capacity = CAPACITY;
    struct kvc_curve curve = {0};
    struct kvc_hits hits;
    double start = bench_cpu_s();
    enum kvc_status failed = !strcmp(policy, "curve")
                     ? kvc_ceiling_lru_curve(trace, &curve, NULL)
                 : !strcmp(policy, "certify") ? certify(trace)
                 : !strcmp(policy, "opt") ? kvc_ceiling_opt_of(v, &capacity, 1, &hits, NULL, NULL)
                                          : kvc_ceiling_runs_of(v, policy, &capacity, 1, &hits,
                                                                NULL, NULL);
    double took = bench_cpu_s() - start;
    kvc_curve_clear(&curve);
    if (failed)
        exit(1);
    return took;
}

static void measure(const struct kvc_ceiling_view *v, const struct kvc_trace *trace,
                    const char *policy, uint64_t touches, const char *goal)
{
    double time_s[RUNS];
    for (int i = 0; i < RUNS; i++)
        time_s[i] = once(v, trace, policy);
    bench_sort(time_s, RUNS);
    double median = time_s[RUNS / 2];
    printf("%s%s\t%.0f\tM block touches/CPU s\t%.1f\t%s\n",
           strchr(policy, '/') ? "lru as a plug-in" : policy,
           !strcmp(policy, "curve") ? " of lru, all capacities, kv-cache-tester"
                                            : " at 100,000 blocks, kv-cache-tester",
           (double)touches / median / 1e6,
           50 * (time_s[RUNS - 1] - time_s[0]) / median, goal);
}

static bool in(const char *names, const char *policy)
{
    size_t n = strlen(policy);
    for (const char *at = names; (at = strstr(at, policy)) != NULL; at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static const char *goal_of(const char *policy)
{
    const struct group *g = groups;
    while (strcmp(g->names, "*") != 0 && !in(g->names, policy))
        g++;
    return g->goal;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : DEFAULT_TRACE;
    struct kvc_trace *trace = NULL;
    struct kvc_ceiling_view v;
    struct kvc_trace_stats stats;
    struct kvc_error err;
    char text[1024];
    FILE *there = fopen(path, "rb");
    if (!there) {
        printf("skip\tpolicies at one capacity\t%s is not here\n", path);
        return 0;
    }
    fclose(there);
    if (kvc_trace_open(&trace, path, NULL, NULL, &err) || kvc_ceiling_view(&v, trace, &err)) {
        kvc_error_format(&err, text, sizeof(text));
        fprintf(stderr, "bench_policies: %s\n", text);
        return 1;
    }
    kvc_trace_stats(trace, &stats);
    measure(&v, trace, "curve", stats.block_touches, goal_of("curve"));
    for (const char *const *p = kvc_ceiling_policies(); *p; p++)
        measure(&v, trace, *p, stats.block_touches, goal_of(*p));
    measure(&v, trace, "certify", stats.block_touches, goal_of("certify"));
    const char *build = getenv("KVCAST_BUILD");
    char plugin[512];
    snprintf(plugin, sizeof(plugin), "%s/tests/plugins/lru.so", build ? build : "build/release");
    measure(&v, trace, plugin, stats.block_touches, "-");
    kvc_trace_destroy(trace);
    return 0;
}
