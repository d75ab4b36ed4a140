/* SPDX-License-Identifier: Apache-2.0
 * What running sequences take beside their tokens: closed forms, what engines state, and how many
 * sequences a replay then runs at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/models.h"
#include "sim/scenario/scenario.h"
#include "traces/trace_write.h"

static struct kvc_kv_room room_of(const char *llm, const char *backend, enum kvc_dtype kv,
                                  bool caching, bool unified)
{
    const struct kvc_step_config config = {kvc_llm_find(llm), kvc_gpu_find("h200_sxm"), backend,
                                           KVC_BF16, kv, 2, 1, .ep = 1};
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};
    struct kvc_kv_room room;

    if (kvc_step_model_create(&m, &config, &err) != KVC_OK)
        fail_msg("%s: %s", llm, err.text);
    kvc_step_kv_room(m, caching, unified, &room);
    kvc_step_model_destroy(m);
    return room;
}

static void plain_models_hold_tokens_alone(void **state)
{
    (void)state;
    static const char *const backends[] = {"vllm", "sglang", "trtllm"};

    for (size_t i = 0; i < 3; i++) {
        struct kvc_kv_room r = room_of("Llama-3.1-8B", backends[i], KVC_BF16, true, false);
        assert_int_equal(r.token_bytes, 131072);
        assert_int_equal(r.sequence_bytes + r.apart_bytes + r.resume_tokens, 0);
        assert_true(r.token_share == 1);
    }
}

/* Qwen3.5-27B: 48 layers of 48 heads of 128 x 128 floats, and of a convolution's last 3 inputs of
 * 10,240 channels; 16 layers of 4 KV heads of 256. */
static void states_are_held_as_engines_do(void **state)
{
    (void)state;
    const uint64_t one = 48ull * (48 * 128 * 128 * 4 + 3 * 10240 * 2);
    struct kvc_kv_room r = room_of("Qwen3.5-27B", "vllm", KVC_BF16, true, false);

    assert_int_equal(r.token_bytes, 16ull * 2 * 4 * 256 * 2);
    assert_int_equal(r.sequence_bytes, 2 * one);
    /* as a vLLM log on H200 states it for Qwen3_5ForConditionalGeneration: "Setting attention block
     * size to 784 tokens to ensure that attention page size is >= mamba page size" */
    assert_int_equal(r.resume_tokens, 784);
    assert_int_equal(room_of("Qwen3.5-27B", "vllm", KVC_FP8, true, false).resume_tokens, 1568);
    /* the same heads as Qwen3.5-35B-A3B, of whose prompt of 1200 tokens vLLM finds 1056 (issue
     * 51250) */
    assert_int_equal(room_of("Qwen3-Next-80B-A3B", "vllm", KVC_BF16, true, false).resume_tokens,
                     1056);
    r = room_of("Qwen3.5-27B", "vllm", KVC_BF16, false, false);
    assert_int_equal(r.sequence_bytes, one);
    assert_int_equal(r.resume_tokens, 0);
    assert_int_equal(room_of("Qwen3.5-27B", "trtllm", KVC_BF16, true, false).sequence_bytes, one);
    r = room_of("Qwen3.5-27B", "sglang", KVC_BF16, true, false);
    assert_int_equal(r.sequence_bytes, 0);
    assert_int_equal(r.apart_bytes, 3 * one);
    assert_true(fabs(r.token_share - 10.0 / 19) < 1e-12);
}

/* gpt-oss-120b: 18 of 36 layers see 128 tokens, all with 8 KV heads of 64. */
static void windows_are_capped_unified_or_a_pool(void **state)
{
    (void)state;
    const uint64_t half = 18ull * 2 * 8 * 64 * 2;
    struct kvc_kv_room r = room_of("gpt-oss-20b", "vllm", KVC_BF16, true, false);

    assert_int_equal(r.sequence_bytes, 12ull * 2 * 8 * 64 * 2 * 128);
    r = room_of("gpt-oss-120b", "vllm", KVC_BF16, true, false);
    assert_int_equal(r.token_bytes, half);
    assert_int_equal(r.sequence_bytes, half * 128);
    r = room_of("gpt-oss-120b", "vllm", KVC_BF16, true, true);
    assert_int_equal(r.token_bytes, 2 * half);
    assert_int_equal(r.sequence_bytes, 0);
    r = room_of("gpt-oss-120b", "sglang", KVC_BF16, true, false);
    assert_true(fabs((double)r.token_bytes - 1.8 * (double)half) <= 1);
    assert_int_equal(r.sequence_bytes, 0);
}

/* Each layer's keys, each layer's values; a latent a layer; with windows what grows alone. */
static void tokens_lie_in_so_many_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *llm;
        bool unified;
        uint32_t tensors;
    } seen[] = {{"Llama-3.1-8B", false, 64},  {"Qwen3.5-27B", false, 32},
                {"gpt-oss-120b", false, 36},  {"gpt-oss-120b", true, 72},
                {"DeepSeek-V3", false, 61}};

    for (size_t i = 0; i < 5; i++) {
        struct kvc_kv_room room = room_of(seen[i].llm, "vllm", KVC_BF16, true, seen[i].unified);
        assert_int_equal(room.token_tensors, seen[i].tensors);
    }
}

#define REQUESTS 64

/* So many that come together; the answer stays in the last page. */
static struct kvc_result *served(const char *model, const char *const (*key)[2], size_t n)
{
    static uint64_t arrival[REQUESTS];
    static uint32_t input[REQUESTS], output[REQUESTS], seg[REQUESTS];
    struct kvc_trace t = {.n_requests = REQUESTS, .arrival_ns = arrival, .input_tokens = input,
                          .output_tokens = output, .prompt_seg = seg};
    const struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    struct kvc_scenario *sc = NULL;
    struct kvc_result *r = NULL;
    struct kvc_error err = {0};

    for (size_t i = 0; i < REQUESTS; i++) {
        input[i] = 1500;
        output[i] = 4;
        seg[i] = KVC_SEG_NONE;
    }
    kvc_trace_digest(&t, t.digest);
    assert_int_equal(kvc_scenario_create(&sc, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "model", model, NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "cluster.gpu", "h200-sxm", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "cluster.tp", "2", NULL), KVC_OK);
    for (size_t i = 0; i < n; i++)
        if (key[i][1] && kvc_scenario_set(sc, key[i][0], key[i][1], &err) != KVC_OK)
            fail_msg("%s", err.text);
    if (kvc_replay_run(&r, &t, sc, &options, &err) != KVC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(r->completed, REQUESTS);
    kvc_scenario_destroy(sc);
    return r;
}

static uint64_t peak_of(struct kvc_result *r)
{
    uint64_t peak = r->replicas[0].peak_running;

    kvc_result_destroy(r);
    return peak;
}

static uint64_t peak_running(const char *model, const char *sequence)
{
    const char *const keys[][2] = {{"engine.kv_cache_memory", "4GB"},
                                   {"engine.max_batched_tokens", "131072"},
                                   {"engine.sequence_memory", sequence}};

    return peak_of(served(model, keys, 3));
}

static bool warns(const char *code, const char *model, const char *memory, const char *budget)
{
    const char *const keys[][2] = {{"engine.kv_cache_memory", memory},
                                   {"engine.max_batched_tokens", budget}};
    struct kvc_result *r = served(model, keys, 2);
    bool found = false;

    for (size_t i = 0; i < r->n_warnings; i++)
        found |= strcmp(r->warnings[i].code, code) == 0;
    kvc_result_destroy(r);
    return found;
}

/* 4 GB are 3,814 pages of Qwen3.5-27B's 65,536 bytes a token; a prompt takes 94 and two states
 * 294. */
static void as_many_run_as_there_is_room_for(void **state)
{
    (void)state;
    const uint64_t pages = 4000000000 / (65536 * 16) - 1;
    const uint64_t states = (2 * (150994944 + 2949120) + 65536 * 16 - 1) / (65536 * 16);

    assert_int_equal(states, 294);
    assert_int_equal(peak_running("Qwen3.5-27B", NULL), pages / (94 + states));
    assert_int_equal(peak_running("Qwen3.5-27B", "64KiB"), pages / 95);
    assert_int_equal(peak_running("Llama-3.1-8B", NULL), (4000000000 / 2097152 - 1) / 94);
}

/* Two H200 hold 2 x 150.4 GB, 16 of them weights, more of them activations. */
static void more_than_the_memory_is_told(void **state)
{
    (void)state;
    assert_false(warns("kv_beyond_memory", "Llama-3.1-8B", "250GB", "131072"));
    assert_true(warns("kv_beyond_memory", "Llama-3.1-8B", "290GB", "131072"));
}

/* vLLM's experts on H200 were measured up to 16,384 tokens; each prompt has 1,500. */
static void steps_beyond_the_kernels_are_told(void **state)
{
    (void)state;
    assert_false(warns("kernels_outside", "Mixtral-8x7B", "40GB", "16000"));
    assert_true(warns("kernels_outside", "Mixtral-8x7B", "40GB", "20000"));
}

/* SGLang's pool of states: 0.9 of what the tokens' pool gets, three of them a sequence. */
static void no_more_run_than_there_are_states(void **state)
{
    const char *const keys[][2] = {{"engine.preset", "sglang"}, {"engine.max_seqs", "60"},
                                   {"engine.max_batched_tokens", "131072"},
                                   {"engine.gpu_memory_utilization", "0.35"}};
    const struct kvc_step_config config = {kvc_llm_find("Qwen3.5-27B"), kvc_gpu_find("h200_sxm"),
                                           "sglang", KVC_BF16, KVC_BF16, 2, 1, .ep = 1};
    struct kvc_step_model *m = NULL;
    (void)state;

    assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
    double states = (double)kvc_step_kv_capacity_bytes(m, 0.35, 131072) * 0.9 / 1.9;
    uint64_t most = (uint64_t)(states / (3.0 * 48 * (48 * 128 * 128 * 4 + 3 * 10240 * 2)));
    kvc_step_model_destroy(m);
    assert_true(most > 10 && most < 60);
    assert_int_equal(peak_of(served("Qwen3.5-27B", keys, 4)), most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_models_hold_tokens_alone),
        cmocka_unit_test(states_are_held_as_engines_do),
        cmocka_unit_test(tokens_lie_in_so_many_tensors),
        cmocka_unit_test(windows_are_capped_unified_or_a_pool),
        cmocka_unit_test(as_many_run_as_there_is_room_for),
        cmocka_unit_test(no_more_run_than_there_are_states),
        cmocka_unit_test(more_than_the_memory_is_told),
        cmocka_unit_test(steps_beyond_the_kernels_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
