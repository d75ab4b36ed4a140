/* SPDX-License-Identifier: Apache-2.0
 * bench_curve [TRACE]: ceilings of a trace, in process, loaded once: the exact LRU curve over all
 * capacities, and the optimum at one. Median of 100; lines as tools/bench.sh takes them. */
#include "sim/ceiling/ceiling.h"
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

#define RUNS 100
#define DEFAULT_TRACE "../shared/traces/mooncake/conversation_trace.jsonl.zst"

static double one_curve(const struct kvc_trace *trace)
{
    struct kvc_curve curve;
    double start = bench_cpu_s();
    if (kvc_ceiling_lru_curve(trace, &curve, NULL))
        exit(1);
    double took = bench_cpu_s() - start;
    kvc_curve_clear(&curve);
    return took;
}

static double one_opt(const struct kvc_trace *trace)
{
    const uint64_t capacity = 10000;
    struct kvc_hits hits;
    double start = bench_cpu_s();
    if (kvc_ceiling_policy(trace, "opt", &capacity, 1, &hits, NULL))
        exit(1);
    return bench_cpu_s() - start;
}

/* Median CPU time, and half of the middle 80 % of the runs in percent of it. */
static double measure(double (*one)(const struct kvc_trace *), const struct kvc_trace *trace,
                      double *spread_percent)
{
    double time_s[RUNS];
    for (int i = 0; i < RUNS; i++)
        time_s[i] = one(trace);
    bench_sort(time_s, RUNS);
    double median = time_s[RUNS / 2];
    *spread_percent = 50 * (time_s[RUNS * 9 / 10] - time_s[RUNS / 10]) / median;
    return median;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : DEFAULT_TRACE;
    struct kvc_trace *trace = NULL;
    struct kvc_trace_stats stats;
    struct kvc_error err;
    double spread;
    char text[1024];
    FILE *there = fopen(path, "rb");
    if (!there) {
        printf("skip\texact LRU curve\t%s is not here\n", path);
        return 0;
    }
    fclose(there);
    if (kvc_trace_open(&trace, path, NULL, NULL, &err)) {
        kvc_error_format(&err, text, sizeof(text));
        fprintf(stderr, "bench_curve: %s\n", text);
        return 1;
    }
    kvc_trace_stats(trace, &stats);
    double median = measure(one_curve, trace, &spread);
    printf("exact LRU curve, all capacities\t%.2f\tM requests/CPU s\t%.1f\t>=3\n",
           (double)stats.requests / median / 1e6, spread);
    printf("exact LRU curve, per segment touch\t%.1f\tns\t%.1f\t-\n",
           median * 1e9 / (double)stats.segment_touches, spread);
    printf("exact LRU curve, block touches\t%.0f\tM/CPU s\t%.1f\t-\n",
           (double)stats.block_touches / median / 1e6, spread);
    median = measure(one_opt, trace, &spread);
    printf("optimum at one capacity\t%.2f\tM requests/CPU s\t%.1f\t-\n",
           (double)stats.requests / median / 1e6, spread);
    kvc_trace_destroy(trace);
    return 0;
}
