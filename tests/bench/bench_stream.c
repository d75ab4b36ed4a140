/* SPDX-License-Identifier: Apache-2.0
 * A log without end through a pipe, with and without forgetting: MB per CPU second of the reading
 * process and its peak of anonymous memory. STREAM_MB sets the length (500). And the corpus of
 * kv-cache-tester: size of its .kvt and the time to load it. */
#include "tests/bench/bench.h"

#include <kvcast/kvcast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS 5

static uint64_t anon_kb(void)
{
    char line[256];
    unsigned long long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "RssAnon: %llu", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

/* Sessions of four turns below a shared prompt, 40 requests a second; ids never repeat. */
static void stream(int fd, uint64_t bytes)
{
    static char buf[1 << 16];
    FILE *f = fdopen(fd, "w");
    uint64_t done = 0;
    for (uint64_t i = 0; f && done < bytes; i++) {
        uint64_t session = i / 64 * 16 + i % 16, turn = i / 16 % 4; /* 16 sessions side by side */
        size_t n = (size_t)sprintf(buf, "{\"timestamp\": %llu, \"input_length\": %llu, "
                                   "\"output_length\": 100, \"hash_ids\": [1, 2, 3",
                                   (unsigned long long)i * 25,
                                   (unsigned long long)(3 + 20 * (turn + 1)) * 512);
        for (uint64_t k = 0; k < 20 * (turn + 1); k++)
            n += (size_t)sprintf(buf + n, ", %llu", (unsigned long long)(100 + session * 80 + k));
        n += (size_t)sprintf(buf + n, "]}\n");
        if (fwrite(buf, 1, n, f) != n)
            break;
        done += n;
    }
    if (f)
        fclose(f);
}

static uint64_t peak_kb;

static void sample(void *user, const struct kvc_import_estimate *e)
{
    unsigned *tick = user;
    (void)e;
    if (++*tick % 64 == 0) {
        uint64_t kb = anon_kb();
        peak_kb = kb > peak_kb ? kb : peak_kb;
    }
}

static int pipe_through(uint64_t bytes, uint64_t forget_ns)
{
    int ends[2];
    unsigned tick = 0;
    const char *path = "-", *name = forget_ns ? "--forget 1h" : "nothing forgotten";
    struct kvc_import_options o = { .struct_size = sizeof(o), .forget_ns = forget_ns,
                                    .spill_over_bytes = (uint64_t)64 << 20,
                                    .estimate = sample, .estimate_user = &tick };
    struct kvc_import_report r;
    struct kvc_error err = { 0 };
    struct kvc_trace *t = NULL;
    fflush(stdout);
    if (pipe(ends) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        stream(ends[1], bytes);
        _exit(0);
    }
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    peak_kb = 0;
    double begin = bench_cpu_s();
    enum kvc_status status = kvc_trace_import(&t, &path, 1, &o, &r, &err);
    double spent = bench_cpu_s() - begin;
    uint64_t kb = anon_kb();
    peak_kb = kb > peak_kb ? kb : peak_kb;
    kvc_trace_destroy(t);
    waitpid(child, NULL, 0);
    if (status != KVC_OK) {
        fprintf(stderr, "bench_stream: %s\n", err.text);
        return 1;
    }
    printf("pipe of %.1f GB, %s\t%.0f\tMB JSON per CPU second\t-\t-\n", (double)r.bytes_in * 1e-9,
           name, (double)r.bytes_in * 1e-6 / spent);
    printf("pipe of %.1f GB, %s, peak\t%.0f\tMB RssAnon\t-\t-\n", (double)r.bytes_in * 1e-9, name,
           (double)peak_kb * 1.024e-3);
    return 0;
}

static int corpus(void)
{
    const char *log = "../shared/traces/kv-cache-tester/traces.tar.zst";
    const char *out = "/tmp/kvcast-bench.kvt";
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    struct stat st;
    double import[RUNS], load[RUNS];
    if (access(log, R_OK) != 0) {
        printf("skip\tkv-cache-tester corpus\t%s is not there\n", log);
        return 0;
    }
    for (int i = 0; i < RUNS; i++) {
        double begin = bench_cpu_s();
        if (kvc_trace_import(&t, &log, 1, NULL, NULL, &err) != KVC_OK ||
            kvc_trace_save(t, out, &err) != KVC_OK || stat(out, &st) != 0)
            return 1;
        kvc_trace_destroy(t);
        import[i] = bench_cpu_s() - begin;
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        if (kvc_trace_open(&t, out, NULL, NULL, &err) != KVC_OK)
            return 1;
        clock_gettime(CLOCK_MONOTONIC, &b);
        kvc_trace_destroy(t);
        load[i] = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6;
    }
    unlink(out);
    bench_sort(import, RUNS);
    bench_sort(load, RUNS);
    printf("import, kv-cache-tester tar.zst (313 MB of JSON)\t%.2f\tCPU seconds\t%.1f\t<=2\n",
           import[RUNS / 2], 50 * (import[RUNS - 1] - import[0]) / import[RUNS / 2]);
    printf(".kvt of the kv-cache-tester corpus\t%.2f\tMB\t-\t<=4\n", (double)st.st_size * 1e-6);
    printf("load of that .kvt\t%.1f\tms, wall time\t%.1f\t<=50\n", load[RUNS / 2],
           50 * (load[RUNS - 1] - load[0]) / load[RUNS / 2]);
    return 0;
}

int main(void)
{
    const char *mb = getenv("STREAM_MB");
    uint64_t bytes = (mb ? strtoull(mb, NULL, 10) : 500) * 1000000;
    return corpus() || pipe_through(bytes, 0) || pipe_through(bytes, (uint64_t)3600 * 1000000000);
}
