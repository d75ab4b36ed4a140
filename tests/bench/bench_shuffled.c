/* SPDX-License-Identifier: Apache-2.0
 * bench_shuffled [MILLIONS]: policies on prompts that share little, with ids in no order: 50 M
 * block touches over segments of about 5 blocks, imported in process. What they take of memory, and
 * time against block size: the same prompts in blocks of 512 tokens and of 16, at equal bytes.
 * Lines as tools/bench.sh takes them. */
#include "base/rng.h"
#include "policies/eviction/runs_internal.h"
#include "sim/ceiling/ceiling.h"
#include "tests/bench/bench.h"
#include "traces/forest/forest.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 5
#define RECENT 100000 /* prompts that a new one may begin like */
#define LONGEST 19    /* blocks */
#define PARTS 32      /* of 16 tokens each in a block of 512 */

struct prompts {
    uint64_t ids[RECENT][LONGEST], fresh, rng;
    uint32_t length[RECENT];
};

static void check(enum kvc_status status)
{
    if (status == KVC_OK)
        return;
    fprintf(stderr, "bench_shuffled: failed with status %d\n", (int)status);
    exit(1);
}

/* Half of the prompts begin like an earlier one; ids are numbers that were shuffled. */
static void draw(struct prompts *p, uint64_t r, struct kvc_row *row)
{
    uint64_t ids[LONGEST];
    uint32_t n = 1 + (uint32_t)kvc_rng_below(&p->rng, LONGEST), shared = 0;
    if (r && kvc_rng_below(&p->rng, 2)) {
        uint64_t earlier = kvc_rng_below(&p->rng, r < RECENT ? r : RECENT);
        shared = (uint32_t)kvc_rng_below(&p->rng, p->length[earlier] + 1);
        shared = shared < n ? shared : n;
        memcpy(ids, p->ids[earlier], shared * sizeof(*ids));
    }
    for (uint32_t i = shared; i < n; i++)
        ids[i] = kvc_mix64(++p->fresh);
    memcpy(p->ids[r % RECENT], ids, n * sizeof(*ids));
    p->length[r % RECENT] = n;
    *row = (struct kvc_row){.time_ns = r * 1000, .input_tokens = 16 * n, .output_tokens = 1,
                            .ids = p->ids[r % RECENT], .n_ids = n, .session = KVC_ID_NONE,
                            .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                            .think_ns = KVC_TIME_NONE};
}

static double resident_bytes(const char *field)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtod(line + strlen(field) + 1, NULL);
    if (f)
        fclose(f);
    return kib * 1024;
}

static struct kvc_trace *import(uint64_t touches)
{
    struct prompts *p = calloc(1, sizeof(*p));
    struct kvc_forest *forest = kvc_forest_create_with(&(struct kvc_forest_options){.draws = true});
    struct kvc_trace *trace = NULL;
    struct kvc_trace_stats stats;
    struct kvc_row row;
    if (!p || !forest)
        check(KVC_ERR_NOMEM);
    p->rng = kvc_rng_stream(1, "shuffled");
    double before = resident_bytes("VmRSS:"), start = bench_cpu_s();
    uint64_t ids = 0;
    for (uint64_t r = 0; ids < touches; r++) {
        draw(p, r, &row);
        check(kvc_forest_add(forest, &row, NULL));
        ids += row.n_ids;
    }
    check(kvc_forest_finish(forest, 16, false, &trace, NULL));
    double peak = resident_bytes("VmHWM:") - before;
    printf("import of ids in no order\t%.1f\tM ids/CPU s\t-\t-\n",
           (double)ids / (bench_cpu_s() - start) / 1e6);
    kvc_trace_stats(trace, &stats);
    printf("its memory, rows and trace included\t%.1f\tbytes/distinct id\t-\t<=16\n",
           peak / (double)stats.blocks);
    free(p);
    return trace;
}

static double once(const struct kvc_ceiling_view *v, const char *policy, uint64_t capacity)
{
    struct kvc_hits hits;
    double start = bench_cpu_s();
    check(!strcmp(policy, "opt") ? kvc_ceiling_opt_of(v, &capacity, 1, &hits, NULL, NULL)
                                 : kvc_ceiling_runs_of(v, policy, &capacity, 1, &hits, NULL, NULL));
    return bench_cpu_s() - start;
}

/* Median time at the capacity, and how many times that the same takes in small blocks: by turns, so
 * that what else the machine does meets both. */
static double medians(const struct kvc_ceiling_view *large, const struct kvc_ceiling_view *small,
                      const char *policy, uint64_t capacity, double *spread, double *ratio)
{
    double time_s[RUNS], times[RUNS];
    for (int i = 0; i < RUNS; i++) {
        time_s[i] = once(large, policy, capacity);
        times[i] = once(small, policy, PARTS * capacity) / time_s[i];
    }
    bench_sort(time_s, RUNS);
    bench_sort(times, RUNS);
    *ratio = times[RUNS / 2];
    *spread = 50 * (time_s[RUNS - 1] - time_s[0]) / time_s[RUNS / 2];
    return time_s[RUNS / 2];
}

/* What lru holds at its end, against 48 bytes a segment and 64 a live run. */
static void memory(const struct kvc_ceiling_view *v, uint64_t capacity)
{
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    const struct kvc_runs_setup setup = {
        .policy = "lru", .capacity = capacity, .n_segments = v->n_segments, .seg_len = v->seg_len,
        .seg_depth = v->seg_depth, .seg_parent = v->seg_parent, .block_tokens = v->block_tokens,
    };
    struct kvc_runs *cache = kvc_runs_create(&setup);
    uint64_t runs = 0;
    if (!cache)
        check(KVC_ERR_NOMEM);
    for (uint64_t r = 0; r < v->n_requests; r++) {
        const struct kvc_runs_request request = kvc_ceiling_request(v, r);
        kvc_runs_arrive(cache, &request);
        kvc_runs_touch(cache);
    }
    for (uint32_t s = 0; s < v->n_segments; s++)
        for (uint32_t r = cache->seg[s].deepest; r != KVC_RUN_NONE; r = cache->run[r].shallower)
            runs++;
    size_t bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    bytes += 3 * sizeof(uint32_t) * (size_t)v->n_segments; /* the segments themselves */
    kvc_runs_destroy(cache);
    printf("memory of lru at %llu blocks, ids in no order\t%.0f\t%% of 48 B/segment, 64 B/run\t-"
           "\t<=100\n", (unsigned long long)capacity,
           100 * (double)bytes / (48 * (double)v->n_segments + 64 * (double)runs));
}

/* The same in blocks of a part of the size. */
static void split(struct kvc_ceiling_view *v, uint32_t parts)
{
    uint32_t *len = calloc(v->n_segments + 1u, sizeof(*len));
    uint32_t *depth = calloc(v->n_segments + 1u, sizeof(*depth));
    if (!len || !depth)
        check(KVC_ERR_NOMEM);
    for (uint32_t s = 0; s < v->n_segments; s++) {
        len[s] = v->seg_len[s] * parts;
        depth[s] = v->seg_depth[s] * parts;
    }
    v->seg_len = v->owned[2] = len;
    v->seg_depth = v->owned[3] = depth;
    v->block_tokens /= parts;
}

int main(int argc, char **argv)
{
    static const char *const policies[] = {"lru", "lfu", "s3fifo", "arc", "opt"};
    uint64_t touches = (argc > 1 ? strtoull(argv[1], NULL, 10) : 50) * 1000000;
    struct kvc_trace *trace = import(touches);
    struct kvc_ceiling_view v, small;
    struct kvc_trace_stats stats;
    double worst = 0, spread, ratio;
    check(kvc_ceiling_view(&v, trace, NULL));
    kvc_trace_stats(trace, &stats);
    uint64_t capacity = stats.blocks / 20;
    small = v;
    small.block_tokens = 512; /* of sixteen as well as of 512 */
    split(&small, PARTS);
    printf("a touch of a segment, ids in no order\t%.1f\tblocks\t-\t-\n",
           (double)stats.block_touches / (double)stats.segment_touches);
    memory(&v, capacity);
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        double large_s = medians(&v, &small, policies[i], capacity, &spread, &ratio);
        printf("%s, little shared, ids in no order\t%.0f\tM block touches/CPU s\t%.1f\t%s\n",
               policies[i], (double)stats.block_touches / large_s / 1e6, spread,
               i ? "-" : ">=20");
        worst = ratio > worst ? ratio : worst;
    }
    printf("16-token blocks against 512-token blocks, equal bytes, the worst\t%.2f\tx the time\t-"
           "\t<=1.3\n", worst);
    kvc_ceiling_view_clear(&small);
    kvc_trace_destroy(trace);
    return 0;
}
