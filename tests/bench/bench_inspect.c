/* SPDX-License-Identifier: Apache-2.0
 * bench_inspect [TRACE]: all that inspect tells of a trace, in process, loaded once. Median of 15;
 * lines as tools/bench.sh takes them. */
#include "reports/traffic.h"
#include "tests/bench/bench.h"

#include <stdio.h>

#define RUNS 15
#define DEFAULT_TRACE "../shared/traces/kv-cache-tester/traces.tar.zst"

int main(int argc, char **argv)
{
    static struct kvc_traffic traffic;
    const char *path = argc > 1 ? argv[1] : DEFAULT_TRACE;
    struct kvc_trace *trace = NULL;
    struct kvc_error err;
    double time_s[RUNS];
    char text[1024];
    FILE *there = fopen(path, "rb");
    if (!there) {
        printf("skip\tinspect\t%s is not here\n", path);
        return 0;
    }
    fclose(there);
    if (kvc_trace_open(&trace, path, NULL, NULL, &err)) {
        kvc_error_format(&err, text, sizeof(text));
        fprintf(stderr, "bench_inspect: %s\n", text);
        return 1;
    }
    for (int i = 0; i < RUNS; i++) {
        double start = bench_cpu_s();
        if (kvc_traffic_make(&traffic, trace, "log", 0, &err))
            return 1;
        time_s[i] = bench_cpu_s() - start;
        kvc_traffic_clear(&traffic);
    }
    bench_sort(time_s, RUNS);
    double median = time_s[RUNS / 2];
    double spread = 50 * (time_s[RUNS - 2] - time_s[1]) / median;
    printf("inspect, 63.6 M block touches of agents, loaded\t%.1f\tCPU ms\t%.1f\t<=1000\n",
           1e3 * median, spread);
    printf("inspect, per segment touch\t%.1f\tns\t%.1f\t-\n",
           1e9 * median / (double)traffic.stats.segment_touches, spread);
    kvc_trace_destroy(trace);
    return 0;
}
