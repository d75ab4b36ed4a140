/* SPDX-License-Identifier: Apache-2.0
 * The full replay of the Mooncake conversation trace on 8 replicas of 8 x H100, Llama-3.1-70B fp8,
 * 512 GiB of DRAM each, bounds and capacity curve included; and of ten copies of it one after the
 * other, no block shared between copies. Medians of seven, in tools/bench.sh's form. */
#include <kvcast/kvcast.h>

#include "base/alloc.h"
#include "traces/forest/forest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 7
#define COPIES 10
#define TRACE "../shared/traces/mooncake/conversation_trace.jsonl.zst"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_row(const char *name, double *v, const char *unit, const char *goal)
{
    qsort(v, ROUNDS, sizeof *v, ascending);
    printf("%s\t%.4g\t%s\t%.1f\t%s\n", name, v[ROUNDS / 2], unit,
           50 * (v[ROUNDS - 1] - v[0]) / v[ROUNDS / 2], goal);
}

/* The trace COPIES times in a row, each copy with ids of its own. */
static enum kvc_status repeat(const struct kvc_trace *t, struct kvc_trace **out,
                              struct kvc_error *err)
{
    struct kvc_forest *f = kvc_forest_create();
    uint64_t *first = kvc_malloc(t->n_segments + 1, sizeof *first), *ids = kvc_malloc(65536, 8);
    enum kvc_status st = f && first && ids ? KVC_OK : KVC_ERR_NOMEM;
    uint64_t blocks = 0, span = t->arrival_ns[t->n_requests - 1] + 3000000000u;
    for (uint32_t s = 0; st == KVC_OK && s < t->n_segments; blocks += t->seg_len[s++])
        first[s] = blocks;
    for (uint64_t i = 0; st == KVC_OK && i < COPIES * t->n_requests; i++) {
        uint64_t k = i / t->n_requests, r = i % t->n_requests;
        struct kvc_row row = {.time_ns = t->arrival_ns[r] + k * span,
                              .input_tokens = t->input_tokens[r],
                              .output_tokens = t->output_tokens[r], .ids = ids,
                              .n_ids = kvc_trace_blocks(t, r), .session = KVC_ID_NONE,
                              .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                              .think_ns = KVC_TIME_NONE};
        for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s])
            for (uint32_t b = 0; b < t->seg_len[s]; b++)
                ids[t->seg_depth[s] + b] = first[s] + b + k * blocks;
        st = kvc_forest_add(f, &row, err);
    }
    kvc_free(first);
    kvc_free(ids);
    return st == KVC_OK ? kvc_forest_finish(f, t->block_tokens, false, out, err) : st;
}

static double cpu_of_run(const struct kvc_trace *t, const struct kvc_scenario *sc, bool bounds,
                         uint64_t *events)
{
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = !bounds};
    struct kvc_result *r;
    struct kvc_error err;
    if (kvc_replay_run(&r, t, sc, &options, &err) != KVC_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    double s = r->runtime.cpu_s;
    *events = r->runtime.events;
    kvc_result_destroy(r);
    return s;
}

static double peak_mib(void)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmHWM: %lf", &kib);
    if (f)
        fclose(f);
    return kib / 1024;
}

int main(void)
{
    static const char *const keys[][2] = {
        {"model", "llama-3.1-70b"}, {"weights_dtype", "fp8"}, {"kv_dtype", "fp8_e4m3"},
        {"cluster.gpu", "h100-sxm"}, {"cluster.tp", "8"}, {"cluster.replicas", "8"},
        {"tiers.dram.capacity", "512GiB"}};
    struct kvc_error err;
    struct kvc_trace *one = NULL, *ten = NULL;
    struct kvc_scenario *sc = NULL;
    uint64_t events;
    double full[ROUNDS], bare[ROUNDS], ratio[ROUNDS];

    if (access(TRACE, R_OK) != 0) {
        printf("skip\treplay of the conversation trace\t" TRACE " is not there\n");
        return 0;
    }
    enum kvc_status st = kvc_trace_open(&one, TRACE, NULL, NULL, &err);
    if (st == KVC_OK)
        st = kvc_scenario_create(&sc, NULL, &err);
    for (size_t i = 0; st == KVC_OK && i < sizeof keys / sizeof keys[0]; i++)
        st = kvc_scenario_set(sc, keys[i][0], keys[i][1], &err);
    if (st != KVC_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double requests = (double)one->n_requests;
    for (int i = 0; i < ROUNDS; i++) {
        full[i] = requests / cpu_of_run(one, sc, true, &events);
        bare[i] = requests / cpu_of_run(one, sc, false, &events);
    }
    double memory[ROUNDS], boundaries[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        memory[i] = peak_mib();
        boundaries[i] = (double)events;
    }
    st = repeat(one, &ten, &err);
    if (st != KVC_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < ROUNDS; i++)
        ratio[i] = cpu_of_run(ten, sc, true, &events) / cpu_of_run(one, sc, true, &events);
    print_row("full replay, conversation trace, 8 x (8 x H100)", full, "requests / CPU s",
              ">=50000");
    print_row("the same without bounds and capacity curve", bare, "requests / CPU s", "-");
    print_row("its events", boundaries, "events", "-");
    print_row("peak memory of the process so far", memory, "MiB", "<=150");
    print_row("replay of ten times the requests", ratio, "times the CPU time", "<=11");
    kvc_scenario_destroy(sc);
    kvc_trace_destroy(one);
    kvc_trace_destroy(ten);
    return 0;
}
