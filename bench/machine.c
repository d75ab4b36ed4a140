/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/measure.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double kvc_bench_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void kvc_bench_settle(double *value, uint32_t n, double *median, struct kvc_bench_row *row)
{
    qsort(value, n, sizeof *value, ascending);
    *median = (value[(n - 1) / 2] + value[n / 2]) / 2;
    row->spread = *median > 0 ? (value[n - 1] - value[0]) / *median : 0;
    row->repeats = n;
}

void kvc_bench_note(const struct kvc_bench_sink *sink, const char *fmt, ...)
{
    char text[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    sink->note(sink->user, text);
}

static bool read_line(const char *path, char *buf, size_t size)
{
    FILE *f = fopen(path, "re");
    bool fine = f && fgets(buf, (int)size, f);

    if (f)
        fclose(f);
    return fine;
}

/* "0-3,8,10-11" */
uint32_t kvc_bench_node_cpus(uint32_t node, int *cpu, uint32_t most)
{
    char path[96], list[1024], *at = list;
    cpu_set_t allowed;
    uint32_t n = 0;

    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", node);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 0;
    if (!read_line(path, list, sizeof list)) {
        if (node)
            return 0;
        snprintf(list, sizeof list, "0-%d", CPU_SETSIZE - 1); /* a kernel that knows no nodes */
    }
    while (*at >= '0' && *at <= '9') {
        long from = strtol(at, &at, 10), to = *at == '-' ? strtol(at + 1, &at, 10) : from;
        for (long c = from; c <= to && c < CPU_SETSIZE && n < most; c++)
            if (CPU_ISSET((size_t)c, &allowed))
                cpu[n++] = (int)c;
        at += *at == ',';
    }
    return n;
}

bool kvc_bench_pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static void read_cpuinfo(struct kvc_bench_machine *m)
{
    char line[4096];
    FILE *f = fopen("/proc/cpuinfo", "re");

    while (f && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (value && strncmp(line, "model name", 10) == 0)
            snprintf(m->cpu, sizeof m->cpu, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        if (strncmp(line, "flags", 5) == 0) {
            m->hypervisor = strstr(line, " hypervisor") != NULL;
            break;
        }
    }
    if (f)
        fclose(f);
}

void kvc_bench_machine(struct kvc_bench_machine *out)
{
    char line[128];
    int cpu[CPU_SETSIZE];
    uint32_t n;

    memset(out, 0, sizeof *out);
    read_cpuinfo(out);
    while (out->nodes < 64 && (n = kvc_bench_node_cpus(out->nodes, cpu, CPU_SETSIZE)) > 0) {
        out->cpus += n;
        out->nodes++;
    }
    if (read_line("/proc/loadavg", line, sizeof line))
        out->load = strtod(line, NULL);
}
