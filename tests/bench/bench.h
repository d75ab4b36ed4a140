/* SPDX-License-Identifier: Apache-2.0
 * What benchmarks share. */
#ifndef KVC_BENCH_H
#define KVC_BENCH_H

#include <kvcast/kvcast.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BENCH_RUNS 5

/* CPU time of the whole process, user and system. */
static inline double bench_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void bench_sort(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), bench_by_value);
}

/* Imports the log to out five times and prints the row of the table: MB of unit per CPU second,
 * median and half the spread in percent. all_plain: a row that is bad or read the slow way
 * fails. */
static inline int bench_import(const char *name, const char *log, const char *out,
                               const char *unit, bool all_plain, const char *goal)
{
    double rate[BENCH_RUNS];
    for (int i = 0; i < BENCH_RUNS; i++) {
        struct kvc_trace *t = NULL;
        struct kvc_import_report r;
        struct kvc_error err = { 0 };
        double begin = bench_cpu_s();
        if (kvc_trace_import(&t, &log, 1, NULL, &r, &err) != KVC_OK ||
            kvc_trace_save(t, out, &err) != KVC_OK || (all_plain && (r.bad || r.odd))) {
            fprintf(stderr, "%s: %s\n", name, err.text[0] ? err.text : "a row was read the slow "
                                                                       "way");
            kvc_trace_destroy(t);
            return 1;
        }
        kvc_trace_destroy(t);
        rate[i] = (double)r.bytes_in * 1e-6 / (bench_cpu_s() - begin);
    }
    bench_sort(rate, BENCH_RUNS);
    double median = rate[BENCH_RUNS / 2];
    printf("%s\t%.0f\tMB %s per CPU second\t%.1f\t%s\n", name, median, unit,
           50 * (rate[BENCH_RUNS - 1] - rate[0]) / median, goal);
    return 0;
}

#endif
