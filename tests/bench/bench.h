/* SPDX-License-Identifier: Apache-2.0
 * What benchmarks share. */
#ifndef KVC_BENCH_H
#define KVC_BENCH_H

#include <stdlib.h>
#include <time.h>

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

#endif
