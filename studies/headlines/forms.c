/* SPDX-License-Identifier: Apache-2.0
 * Published figures that follow from geometry, arithmetic or the time of single steps. The numbers
 * in them are the conditions that their sources state (table.c). */
#include "studies/headlines/headlines.h"

#include <stddef.h>

#include "base/error.h"
#include "models/models.h"
#include "sim/scenario/scenario.h"

#define CONTEXT 131072 /* "128K" */

static double kv_bytes(const char *llm, enum kvc_dtype kv)
{
    return (double)kvc_llm_kv_bytes_per_token(kvc_llm_find(llm), kv, 1);
}

enum kvc_status kvc_headline_sessions(double *values, struct kvc_error *err)
{
    enum kvc_status status = kvc_profiles_ready(err);

    if (status == KVC_OK)
        values[0] = kv_bytes("Llama-3.1-70B", KVC_BF16) * CONTEXT * 256 / 1e12;
    return status;
}

enum kvc_status kvc_headline_request(double *values, struct kvc_error *err)
{
    enum kvc_status status = kvc_profiles_ready(err);

    if (status == KVC_OK)
        values[0] = kv_bytes("Llama-3.1-70B", KVC_BF16) * CONTEXT / (1 << 30);
    return status;
}

enum kvc_status kvc_headline_fp8_share(double *values, struct kvc_error *err)
{
    enum kvc_status status = kvc_profiles_ready(err);

    if (status == KVC_OK)
        values[0] = kv_bytes("Llama-3.1-70B", KVC_FP8) / kv_bytes("Llama-3.1-70B", KVC_BF16);
    return status;
}

enum kvc_status kvc_headline_reload(double *values, struct kvc_error *err)
{
    enum kvc_status status = kvc_profiles_ready(err);

    if (status == KVC_OK)
        values[0] = kv_bytes("Llama-3.1-70B", KVC_FP8) * CONTEXT / 40e9 * 1e3;
    return status;
}

enum kvc_status kvc_headline_store(double *values, struct kvc_error *err)
{
    enum kvc_status status = kvc_profiles_ready(err);

    if (status == KVC_OK)
        values[0] = kv_bytes("Mistral-Medium-3.5-128B", KVC_BF16) * 140000 / 12.5e9;
    return status;
}

enum kvc_status kvc_headline_page(double *values, struct kvc_error *err)
{
    struct kvc_scenario *s;
    enum kvc_status status = kvc_scenario_create(&s, NULL, err);

    if (status == KVC_OK) {
        values[0] = s->engine.page_tokens;
        kvc_scenario_destroy(s);
    }
    return status;
}

/* ---- fp8 KV beside bf16, one request at a time ---- */

/* Step models of Llama-3.1-8B, KV in bf16 and in fp8. */
static enum kvc_status both_models(struct kvc_step_model *m[2], const char *gpu,
                                   struct kvc_error *err)
{
    enum kvc_status status = kvc_profiles_ready(err);

    m[0] = m[1] = NULL;
    for (size_t k = 0; k < 2 && status == KVC_OK; k++) {
        const struct kvc_step_config config = {
            kvc_llm_find("Llama-3.1-8B"), kvc_gpu_find(gpu), "vllm", KVC_BF16,
            k ? KVC_FP8 : KVC_BF16, 1, 1, .ep = 1};
        status = kvc_step_model_create(&m[k], &config, err);
    }
    return status;
}

static void destroy_models(struct kvc_step_model *m[2])
{
    kvc_step_model_destroy(m[0]);
    kvc_step_model_destroy(m[1]);
}

/* Of the step in the middle of the 128 tokens generated. */
static double itl_ms(const struct kvc_step_model *m, double prompt)
{
    return (double)kvc_step_ns(m, NULL, 0, 1, (uint64_t)prompt + 64, 1, NULL) / 1e6;
}

#define TOLD_MS 0.005 /* the source states ITL in hundredths of a millisecond: half of one */

/* The prompt from which on fp8 is faster by what can be told; it is not at the shortest. */
static enum kvc_status break_even(double *values, const char *gpu, struct kvc_error *err)
{
    struct kvc_step_model *m[2];
    double loses = 256, wins = 125000;
    enum kvc_status status = both_models(m, gpu, err);

    while (status == KVC_OK && wins - loses > 1) {
        double middle = (loses + wins) / 2;
        if (itl_ms(m[1], middle) < itl_ms(m[0], middle) - TOLD_MS)
            wins = middle;
        else
            loses = middle;
    }
    values[0] = wins;
    destroy_models(m);
    return status;
}

enum kvc_status kvc_headline_break_even(double *values, struct kvc_error *err)
{
    return break_even(values, "h100_sxm", err);
}

enum kvc_status kvc_headline_break_even_b200(double *values, struct kvc_error *err)
{
    return break_even(values, "b200_sxm", err);
}

/* Of the line through ITL over the swept prompts. */
static double slope(const struct kvc_step_model *m)
{
    static const double prompt[] = {256,   1000,  2000,  4000,  8000,
                                    16000, 32000, 64000, 96000, 125000};
    const double n = sizeof prompt / sizeof prompt[0];
    double x = 0, y = 0, xx = 0, xy = 0;

    for (size_t i = 0; i < sizeof prompt / sizeof prompt[0]; i++) {
        double ms = itl_ms(m, prompt[i]);
        x += prompt[i];
        y += ms;
        xx += prompt[i] * prompt[i];
        xy += prompt[i] * ms;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}

enum kvc_status kvc_headline_slopes(double *values, struct kvc_error *err)
{
    struct kvc_step_model *m[2];
    enum kvc_status status = both_models(m, "h100_sxm", err);

    if (status == KVC_OK)
        values[0] = slope(m[1]) / slope(m[0]);
    destroy_models(m);
    return status;
}

/* ---- arithmetic ---- */

enum kvc_status kvc_headline_quantised(double *values, struct kvc_error *err)
{
    static const enum kvc_dtype kv[] = {KVC_FP8, KVC_TQ_K8V4, KVC_TQ_4, KVC_TQ_K3V4, KVC_TQ_3};
    enum kvc_status status = kvc_profiles_ready(err);

    for (size_t i = 0; i < sizeof kv / sizeof kv[0] && status == KVC_OK; i++)
        values[i] = kv_bytes("Llama-3.3-70B", KVC_BF16) / kv_bytes("Llama-3.3-70B", kv[i]);
    return status;
}

enum kvc_status kvc_headline_agent_reuse(double *values, struct kvc_error *err)
{
    double all = 0, fresh = 0;

    (void)err;
    for (int turn = 0; turn < 33; turn++) {
        all += 12000 + 2242.0 * turn;
        fresh += turn ? 2242 : 12000;
    }
    values[0] = 1 - fresh / all;
    return KVC_OK;
}

/* DeepSeek's open-source week, day 6: 226.75 nodes of 8 H800 at 2 USD an hour, for a day; 608 G
 * tokens in, 342 G of them hits, 168 G out, at R1's prices of a million: 0.14, 0.55, 2.19 USD. */
enum kvc_status kvc_headline_deepseek_cost(double *values, struct kvc_error *err)
{
    (void)err;
    values[0] = 226.75 * 8 * 24 * 2;
    return KVC_OK;
}

/* Tokens in millions at their prices, and what is left of a dollar spent. */
enum kvc_status kvc_headline_deepseek_revenue(double *values, struct kvc_error *err)
{
    double cost;
    enum kvc_status status = kvc_headline_deepseek_cost(&cost, err);

    values[0] = 342e3 * 0.14 + (608e3 - 342e3) * 0.55 + 168e3 * 2.19;
    values[1] = (values[0] - cost) / cost;
    return status;
}

enum kvc_status kvc_headline_deepseek_hits(double *values, struct kvc_error *err)
{
    (void)err;
    values[0] = 342.0 / 608;
    return KVC_OK;
}
