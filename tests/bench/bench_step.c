/* SPDX-License-Identifier: Apache-2.0
 * Cost of an estimate: building a step model, one mixed step, one decode stretch; median of seven
 * rounds, in tools/bench.sh's form. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "models/models.h"

#define ROUNDS 7
#define CALLS 2000000

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

/* Builds the model and asks it, round by round; false when there is none. */
static bool rounds(const struct kvc_step_config *config, double *build, double *mixed,
                   double *decode, uint64_t *sum)
{
    uint64_t rng = kvc_rng_stream(1, "bench/step");
    struct kvc_step_model *m = NULL;
    struct kvc_error err;

    for (int r = 0; r < ROUNDS; r++) {
        double t = now_s();
        kvc_step_model_destroy(m);
        if (kvc_step_model_create(&m, config, &err) != KVC_OK) {
            fprintf(stderr, "%s\n", err.text);
            return false;
        }
        build[r] = 1e3 * (now_s() - t);
        t = now_s();
        for (int i = 0; i < CALLS; i++) {
            uint64_t x = kvc_rng_next(&rng);
            struct kvc_chunk c = {1 + (uint32_t)(x & 8191), (uint32_t)(x >> 20 & 65535)};
            *sum += kvc_step_ns(m, &c, 1, (uint32_t)(x >> 40 & 255), x >> 44, 1, NULL);
        }
        mixed[r] = 1e9 * (now_s() - t) / CALLS;
        t = now_s();
        for (int i = 0; i < CALLS; i++) {
            struct kvc_decode_cost c;
            uint64_t x = kvc_rng_next(&rng);
            kvc_step_decode(m, 1 + (uint32_t)(x & 1023), x >> 44, &c);
            *sum += (uint64_t)c.c0_q16;
        }
        decode[r] = 1e9 * (now_s() - t) / CALLS;
    }
    kvc_step_model_destroy(m);
    return true;
}

int main(void)
{
    struct kvc_step_config config = {
        kvc_llm_find("Llama-3.1-70B"), kvc_gpu_find("h100_sxm"), "vllm", KVC_FP8, KVC_FP8,
        .tp = 8, .pp = 1, .ep = 1};
    double build[ROUNDS], mixed[ROUNDS], decode[ROUNDS];
    uint64_t sum = 0;

    if (!rounds(&config, build, mixed, decode, &sum))
        return 1;
    print_row("step model, build", build, "ms", "-");
    print_row("step estimate with a chunk", mixed, "ns", "<=100");
    print_row("decode stretch", decode, "ns", "<=100");
    config.pp = 4;
    if (!rounds(&config, build, mixed, decode, &sum))
        return 1;
    print_row("step estimate with a chunk, 4 pipeline stages", mixed, "ns", "<=100");
    print_row("decode stretch, 4 pipeline stages", decode, "ns", "<=100");
    return sum == 42; /* keeps the loops alive */
}
