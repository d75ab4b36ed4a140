/* SPDX-License-Identifier: Apache-2.0
 * Engine rows: labels repaired and repeats found on a hand-made table, what is skipped and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/profiles.h"
#include "studies/engine/predict.h"

/* ---- tables ---- */

#define HEADER                                                                                     \
    "id,silicon_data_source,backend,model_path,system,precision,mode,isl,osl,gemm_quant_mode,"     \
    "moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,"         \
    "silicon_ttft_ms,silicon_tpot_ms\n"

static const char table[] = HEADER
    /* 0, 1: one measurement, the plain label is the second; 2: under V3's name, too */
    "mul,dump,sglang,deepseek-ai/DeepSeek-R1,h200_sxm,fp8,agg,1024,1024,fp8,fp8_block,4,64,1,1,8,8,"
    "300.0001,11.5\n"
    "plain,dump,sglang,deepseek-ai/DeepSeek-R1,h200_sxm,fp8,agg,1024,1024,fp8,fp8_block,4,8,1,1,1,"
    "8,300,11.5\n"
    "v3,dump,sglang,deepseek-ai/DeepSeek-V3,h200_sxm,fp8,agg,1024,1024,fp8,fp8_block,4,8,1,1,1,8,"
    "300,11.5\n"
    /* 3: replicas multiplied, their clients divided; 4: a real 2 x 2; 5: ep 0 */
    "dp,dump,sglang,deepseek-ai/DeepSeek-R1,h200_sxm,fp8,agg,1024,1024,fp8,fp8_block,4,1,1,64,8,8,"
    "400,20\n"
    "real,aic-auto-gap,trtllm,Qwen/Qwen3-235B-A22B-FP8,h100_sxm,fp8,agg,128,128,fp8_block,"
    "fp8_block,4,4,1,,2,2,90,20\n"
    "ep0,dump,trtllm,meta-llama/Llama-3.1-70B,h200_sxm,fp8,agg,1024,1024,fp8,fp8,4,8,1,,1,0,100,8\n"
    /* 6..10: not to be predicted */
    "bad,dump,vllm,meta-llama/Llama-3.1-70B,h200_sxm,fp8,agg,1024,many,fp8,fp8,4,8,1,1,1,1,100,"
    "8.1\n"
    "gpu,dump,vllm,meta-llama/Llama-3.1-70B,x100,fp8,agg,1024,1024,fp8,fp8,4,8,1,1,1,1,100,8.2\n"
    "llm,dump,vllm,some/Model,h200_sxm,fp8,agg,1024,1024,fp8,fp8,4,8,1,1,1,1,100,8.3\n"
    "dis,dump,vllm,meta-llama/Llama-3.1-70B,h200_sxm,fp8,disagg,1024,1024,fp8,fp8,,,,,,,100,8.4\n"
    "eng,dump,mine,meta-llama/Llama-3.1-70B,h200_sxm,fp8,agg,1024,1024,fp8,fp8,4,8,1,1,1,1,100,"
    "8.5\n"
    /* 11: predicted, not scored */
    "odd,dump,vllm,nvidia/Llama-3.1-8B-Instruct-FP8,h200_sxm,fp8,agg,200,20,fp8,fp8,4,1,1,1,1,1,20,"
    "2\n"
    /* 12: how many GPUs is not stated */
    "tp,dump,vllm,meta-llama/Llama-3.1-70B,h200_sxm,fp8,agg,1024,1024,fp8,fp8,4,,1,1,1,1,100,8.6\n";

static void write_table(char path[64], const char *text)
{
    strcpy(path, "/tmp/kvcast_rows_XXXXXX");
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void labels_are_repaired_and_repeats_found(void **state)
{
    struct kvc_engine_rows rows;
    char path[64];

    (void)state;
    write_table(path, table);
    assert_int_equal(kvc_engine_rows_read(&rows, path, NULL, NULL), KVC_OK);
    unlink(path);
    assert_int_equal(rows.n, 13);
    assert_int_equal(rows.row[0].tp, 8);
    assert_int_equal(rows.row[0].moe_ep, 8);
    assert_non_null(rows.row[0].repaired);
    assert_non_null(rows.row[0].unusable); /* the plainly labelled one stays */
    assert_null(rows.row[1].unusable);
    assert_null(rows.row[1].repaired);
    assert_non_null(rows.row[2].unusable);
    assert_int_equal(rows.row[3].dp, 8);
    assert_int_equal(rows.row[3].clients, 32);
    assert_int_equal(rows.row[4].tp, 4);
    assert_null(rows.row[4].repaired);
    assert_int_equal(rows.row[5].moe_ep, 1);
    assert_non_null(rows.row[6].unusable);
    assert_null(rows.row[10].doubtful);
    assert_non_null(rows.row[11].doubtful);
    assert_non_null(rows.row[12].unusable);
    assert_string_equal(kvc_engine_row_llm(&rows.row[11])->name, "Llama-3.1-8B");
    kvc_engine_rows_clear(&rows);
}

static bool has_reason(const struct kvc_engine_validation *v, const char *part, size_t rows)
{
    for (size_t i = 0; i < v->n_reasons; i++)
        if (strstr(v->reason[i].text, part))
            return v->reason[i].rows == rows;
    return false;
}

static void what_is_not_predicted_is_counted(void **state)
{
    struct kvc_engine_validation v;
    char path[64];

    (void)state;
    write_table(path, table);
    assert_int_equal(kvc_engine_validate(&v, path, NULL, false, NULL, NULL, NULL), KVC_OK);
    unlink(path);
    assert_int_equal(v.scored, 4); /* plain, ep0, dp and both cut and dealt */
    assert_int_equal(v.doubtful, 1);
    assert_int_equal(v.skipped, 8);
    assert_true(has_reason(&v, "repeat", 2));
    assert_true(has_reason(&v, "number is missing", 2));
    assert_true(has_reason(&v, "'x100'", 1));
    assert_true(has_reason(&v, "'Model'", 1));
    assert_true(has_reason(&v, "disaggregated", 1));
    assert_true(has_reason(&v, "'mine'", 1));
    assert_int_equal(v.n_groups, 4);
    assert_int_equal(v.n_backends, 2);
    assert_int_equal(v.group[1].kind, KVC_ROW_DATA_PARALLEL); /* a group of its own, in no sum */
    /* one row: median, mean and P90 are its error */
    const struct kvc_engine_errors *e = &v.group[0].tpot;
    double error = 100 * (v.prediction[1].tpot_ms / v.rows.row[1].tpot_ms - 1);
    assert_int_equal(e->rows, 1);
    assert_true(fabs(e->bias - error) < 1e-9 && fabs(e->median - fabs(error)) < 1e-9);
    assert_true(e->median == e->mean && e->mean == e->p90);
    assert_int_equal(v.group[v.n_groups + v.n_backends].ttft.rows, 3);
    kvc_engine_validation_clear(&v);
}

/* A client alone, prompts of 128 and answers of 3 tokens, all alike: a request is a step of its
 * prompt and two decode steps, and without fitted constants nothing else. */
static void without_fitted_constants_only_kernels_take_time(void **state)
{
    struct kvc_engine_validation v;
    struct kvc_step_config config;
    struct kvc_step_model *model;
    const struct kvc_chunk prompt = {128, 0};
    uint64_t host, first, decode = 0;
    char path[64], text[256];

    (void)state;
    write_table(path, HEADER
                "a,aic-auto-gap,trtllm,Qwen/Qwen3-32B,h100_sxm,fp8,agg,128,3,fp8,fp8,1,2,1,1,1,1,"
                "60,10\n"
                "b,aic-auto-gap,sglang,Qwen/Qwen3-32B,h100_sxm,fp8,agg,128,3,fp8,fp8,1,2,1,1,1,1,"
                "70,11\n"
                "c,dump,sglang,deepseek-ai/DeepSeek-R1,h200_sxm,fp8,agg,128,16,fp8,fp8_block,4,8,1,"
                "1,1,8,300,11\n");
    assert_int_equal(kvc_engine_validate(&v, path, NULL, false, NULL, NULL, NULL), KVC_OK);
    unlink(path);
    assert_int_equal(v.scored, 3);
    assert_true(kvc_engine_configure(&v.rows.row[0], &config, text));
    config.graphed_prefill = true;
    assert_int_equal(kvc_step_model_create(&model, &config, NULL), KVC_OK);
    first = kvc_step_ns(model, &prompt, 1, 0, 0, 1, &host);
    first -= host;
    for (uint64_t context = 129; context <= 130; context++) {
        decode += kvc_step_ns(model, NULL, 0, 1, context, 1, &host);
        decode -= host;
    }
    kvc_step_model_destroy(model);
    assert_true(fabs(v.prediction[0].unfitted_ttft_ms - (double)first / 1e6) < 1e-9);
    /* a stretch is one sum, the steps above are rounded to ns one by one */
    assert_true(fabs(v.prediction[0].unfitted_tpot_ms - (double)decode / 2e6) < 1e-6);
    assert_true(v.prediction[0].ttft_ms > v.prediction[0].unfitted_ttft_ms);

    /* the groups: TensorRT-LLM's row, and DeepSeek's on H200 */
    const struct kvc_engine_group *g = &v.group[v.n_groups + v.n_backends + 1];
    double error = 100 * (v.prediction[0].unfitted_tpot_ms / 10 - 1);
    assert_true(g[0].tpot.rows == 1 && fabs(g[0].tpot.bias - error) < 1e-9);
    error = 100 * (v.prediction[2].unfitted_ttft_ms / 300 - 1);
    assert_true(g[1].ttft.rows == 1 && fabs(g[1].ttft.bias - error) < 1e-9);
    assert_true(g[0].bars.tpot_p90 == 22 && g[1].bars.tpot_p90 == 18);
    kvc_engine_validation_clear(&v);
}

static void a_table_of_another_kind_is_refused(void **state)
{
    struct kvc_engine_rows rows;
    struct kvc_error err = {0};
    char path[64];

    (void)state;
    write_table(path, "a,b\n1,2\n");
    assert_int_equal(kvc_engine_rows_read(&rows, path, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "no such column"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_repaired_and_repeats_found),
        cmocka_unit_test(what_is_not_predicted_is_counted),
        cmocka_unit_test(without_fitted_constants_only_kernels_take_time),
        cmocka_unit_test(a_table_of_another_kind_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
