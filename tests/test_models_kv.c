/* SPDX-License-Identifier: Apache-2.0
 * Bytes of KV and weights against published figures, and the profiles' form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "models/link_use.h"
#include "models/models.h"

static struct kvc_llm plain(uint32_t layers, uint32_t kv_heads, uint32_t head_dim)
{
    return (struct kvc_llm){.layers = layers,
                            .heads = kv_heads,
                            .kv_heads = kv_heads,
                            .head_dim = head_dim};
}

/* Must run first: the store is parsed once. A failed attempt leaves nothing behind and is repeated.
 */
static void profiles_survive_a_lack_of_memory(void **state)
{
    (void)state;
    struct kvc_error err = {0};
    size_t failures = 0;
    for (uint64_t n = 1;; n += 1 + n / 4, failures++) {
        kvc_alloc_fail_after(n);
        enum kvc_status status = kvc_profiles_ready(&err);
        kvc_alloc_fail_after(0);
        if (status == KVC_OK)
            break;
        assert_int_equal(status, KVC_ERR_NOMEM);
        kvc_alloc_fail_after(1);
        assert_null(kvc_gpu_find("h200_sxm"));
        kvc_alloc_fail_after(0);
    }
    assert_true(failures > 3);
    assert_non_null(kvc_gpu_find("h200_sxm"));
}

/* Public reports, case log c22: head_dim as given, MLA stored once and without the factor 2. */
static void bytes_per_token_of_public_reports(void **state)
{
    (void)state;
    struct kvc_llm explicit_dim = plain(36, 8, 128), big = plain(80, 8, 128),
                   mha = plain(32, 32, 128);
    struct kvc_llm mla = {.layers = 61,
                          .heads = 128,
                          .kv_heads = 1,
                          .head_dim = 192,
                          .kv_lora_rank = 512,
                          .qk_rope_dim = 64};
    assert_int_equal(kvc_llm_kv_bytes_per_token(&explicit_dim, KVC_BF16, 1), 147456);
    assert_int_equal(kvc_llm_kv_bytes_per_token(&mla, KVC_BF16, 1), 70272);
    assert_int_equal(kvc_llm_kv_bytes_per_token(&big, KVC_BF16, 1), 327680);
    assert_int_equal(kvc_llm_kv_bytes_per_token(&mha, KVC_BF16, 1), 524288);
}

/* c23: alternating windows of 128 tokens, 8192 tokens of one sequence. */
static void windows_hold_no_more_than_their_width(void **state)
{
    (void)state;
    struct kvc_llm m = plain(36, 8, 64);
    uint64_t unified = kvc_llm_kv_bytes_per_token(&m, KVC_BF16, 1) * 8192;
    m.window_layers = 18;
    m.window_tokens = 128;
    m.window_kv_heads = 8;
    m.window_head_dim = 64;
    uint64_t capped = kvc_llm_kv_bytes_per_token(&m, KVC_BF16, 1) * 8192 +
                      kvc_llm_window_kv_bytes(&m, KVC_BF16, 1, 8192);
    assert_int_equal(unified, 603979776);
    assert_int_equal(capped, 306708480);
    assert_int_equal(kvc_llm_window_kv_bytes(&m, KVC_BF16, 1, 100), 100 * 18 * 2 * 8 * 64 * 2);
    m.window_layers = m.window_head_dim = 0; /* formats with scales need a head to spread them
                                                over */
    assert_int_equal(kvc_llm_window_kv_bytes(&m, KVC_INT8, 1, 100), 0);
}

/* Capacity against bf16 as vLLM's study of TurboQuant states it for Llama-3.3-70B (one decimal),
 * and windows whose layers all grow as gpt-oss' and Gemma's stated totals. */
static void formats_hold_what_was_published(void **state)
{
    (void)state;
    static const struct {
        enum kvc_dtype kv;
        double ratio;
    } stated[] = {{KVC_FP8, 2}, {KVC_FP8_E5M2, 2}, {KVC_TQ_K8V4, 2.4}, {KVC_TQ_4, 3.4},
                  {KVC_TQ_K3V4, 3.7}, {KVC_TQ_3, 4.2}};
    const struct kvc_llm *m = kvc_llm_find("Llama-3.3-70B");
    double bf16 = (double)kvc_llm_kv_bytes_per_token(m, KVC_BF16, 1);

    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        double ratio = bf16 / (double)kvc_llm_kv_bytes_per_token(m, stated[i].kv, 1);
        assert_true(fabs(ratio / stated[i].ratio - 1) < 0.03);
    }
    /* 2 bits in groups of 32 with a 16-bit scale and zero are 3 bits */
    assert_int_equal(kvc_llm_kv_bytes_per_token(m, KVC_KIVI_2, 1), 327680 * 3 / 16);
    const struct kvc_llm *oss = kvc_llm_find("gpt-oss-120b"), *gemma = kvc_llm_find("Gemma-4-31B");
    assert_int_equal(kvc_llm_kv_bytes_per_token(oss, KVC_BF16, 1) +
                         kvc_llm_window_kv_bytes(oss, KVC_BF16, 1, 1), 73728);
    assert_int_equal(kvc_llm_kv_bytes_per_token(gemma, KVC_BF16, 1) +
                         kvc_llm_window_kv_bytes(gemma, KVC_BF16, 1, 1), 901120);
}

/* c24: a rank holds at least one head, the latent is on every rank. */
static void ranks_share_heads_until_there_is_one(void **state)
{
    (void)state;
    struct kvc_llm m = plain(80, 8, 128);
    struct kvc_llm mla = {.layers = 61,
                          .heads = 128,
                          .kv_heads = 1,
                          .head_dim = 192,
                          .kv_lora_rank = 512,
                          .qk_rope_dim = 64};
    static const uint32_t tp[] = {1, 4, 8, 16};
    static const uint64_t per_gpu[] = {327680, 81920, 40960, 40960};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(kvc_llm_kv_bytes_per_token(&m, KVC_BF16, tp[i]), per_gpu[i] * tp[i]);
    assert_int_equal(kvc_llm_kv_bytes_per_token(&mla, KVC_BF16, 8), 8 * 70272);
}

/* The profile's stated figure was taken from another place than the geometry. */
static void geometry_agrees_with_stated_bytes(void **state)
{
    (void)state;
    size_t n = 0;
    for (const char *const *name = kvc_llm_names(); *name; name++, n++) {
        const struct kvc_llm *m = kvc_llm_find(*name);
        assert_non_null(m);
        if (kvc_llm_kv_bytes_per_token(m, KVC_BF16, 1) != m->kv_bytes_per_token_bf16)
            fail_msg("%s: %llu bytes from geometry, %llu stated", *name,
                     (unsigned long long)kvc_llm_kv_bytes_per_token(m, KVC_BF16, 1),
                     (unsigned long long)m->kv_bytes_per_token_bf16);
        assert_int_equal(2 * kvc_llm_kv_bytes_per_token(m, KVC_FP8, 1), m->kv_bytes_per_token_bf16);
    }
    assert_true(n >= 30);
    /* one entry of 512 per 4 or 128 tokens, an indexer key of 128 per 4 */
    assert_int_equal(kvc_llm_find("deepseek_v4_flash")->kv_bytes_per_token_bf16,
                     21 * (512 + 128) * 2 / 4 + 20 * 512 * 2 / 128);
    assert_int_equal(kvc_llm_find("DeepSeek-V4-Pro")->kv_bytes_per_token_bf16,
                     30 * (512 + 128) * 2 / 4 + 31 * 512 * 2 / 128);
}

/* Parameters from geometry must give the stated count (own sum, not the library's). */
static void dense_parameters_add_up(void **state)
{
    (void)state;
    static const char *const names[] = {"Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B",
                                        "Qwen3-32B"};
    for (size_t i = 0; i < 4; i++) {
        const struct kvc_llm *m = kvc_llm_find(names[i]);
        double h = m->hidden, attention = h * m->head_dim * (2.0 * m->heads + 2.0 * m->kv_heads);
        double total = 2.0 * m->vocab * h + m->layers * (attention + 3.0 * h * m->intermediate);
        assert_true(fabs(total / (m->params_total_b * 1e9) - 1) < 0.002);
        assert_true(fabs((double)kvc_llm_weight_bytes(m, KVC_BF16) / (2 * total) - 1) < 0.002);
    }
    /* the published checkpoint is 65.2 GB */
    double oss = (double)kvc_llm_weight_bytes(kvc_llm_find("gpt-oss-120b"), KVC_MXFP4);
    assert_true(fabs(oss / 65.2e9 - 1) < 0.02);
    /* Kimi's int4 checkpoints, experts in groups of 32 and the rest bf16, are 64 files of slightly
     * less than 10 GB with their vision tower; all of it at 4.5 bits would be 583 GB (Unsloth). */
    const struct kvc_llm *kimi = kvc_llm_find("Kimi-K2.5");
    double int4 = (double)kvc_llm_weight_bytes(kimi, KVC_INT4);
    assert_true(int4 > 583e9 && int4 < 640e9);
    assert_int_equal(kvc_llm_plain_dtype(kimi, KVC_INT4), KVC_BF16);
    assert_int_equal(kvc_llm_plain_dtype(kimi, KVC_NVFP4), KVC_BF16); /* as its NVFP4 checkpoint */
    assert_int_equal(kvc_llm_plain_dtype(kvc_llm_find("Llama-3.1-8B"), KVC_NVFP4), KVC_NVFP4);
    assert_int_equal(kvc_llm_plain_dtype(kvc_llm_find("Llama-3.1-8B"), KVC_INT4), KVC_INT4);
}

static void names_are_found_in_any_spelling(void **state)
{
    (void)state;
    enum kvc_dtype d;
    assert_ptr_equal(kvc_gpu_find("H200-SXM"), kvc_gpu_find("h200_sxm"));
    assert_non_null(kvc_gpu_find("H200-SXM"));
    assert_ptr_equal(kvc_llm_find("llama_3.1_70b"), kvc_llm_find("Llama-3.1-70B"));
    assert_non_null(kvc_link_find("PCIE5_X16"));
    assert_null(kvc_gpu_find("h300"));
    assert_true(kvc_dtype_parse("FP8-E5M2", &d) && d == KVC_FP8_E5M2);
    assert_true(kvc_dtype_parse("turboquant-4bit-nc", &d) && d == KVC_TQ_4);
    assert_string_equal(kvc_dtype_name(KVC_KIVI_2), "kivi_2");
    assert_false(kvc_dtype_parse("fp7", &d));
    assert_int_equal(strlen(kvc_profiles_digest()), 16);
}

static void check_figure(const char *what, const struct kvc_figure *f)
{
    static const char *const kinds[] = {"datasheet", "measured", "fitted", "assumed", "published"};
    bool known = false;
    for (size_t i = 0; i < 5; i++)
        known = known || strcmp(f->kind, kinds[i]) == 0;
    if (!known || strlen(f->source) < 4 || !(f->value >= 0))
        fail_msg("%s: value %g kind %s source '%s'", what, f->value, f->kind, f->source);
}

static void every_figure_has_a_kind_and_a_source(void **state)
{
    (void)state;
    for (const char *const *n = kvc_gpu_names(); *n; n++) {
        const struct kvc_gpu *g = kvc_gpu_find(*n);
        check_figure(*n, &g->memory_bytes);
        check_figure(*n, &g->hbm_bytes_per_s);
        check_figure(*n, &g->bf16_flops);
        check_figure(*n, &g->fp8_flops);
        check_figure(*n, &g->tdp_w);
        check_figure(*n, &g->usd_per_hour);
        check_figure(*n, &g->h2d_bytes_per_s);
        check_figure(*n, &g->d2h_bytes_per_s);
        check_figure(*n, &g->nic_bytes_per_s);
        check_figure(*n, &g->gpu_link_bytes_per_s);
        assert_non_null(kvc_link_find(g->host_link));
    }
    for (const char *const *n = kvc_link_names(); *n; n++) {
        const struct kvc_link_profile *l = kvc_link_find(*n);
        const struct kvc_figure *given[] = {&l->read_bytes_per_s, &l->write_bytes_per_s,
                                            &l->latency_ns, &l->per_op_ns};
        const struct kvc_figure *also[] = {&l->both_bytes_per_s, &l->queue_depth,
                                           &l->op_latency_ns, &l->ops_per_s,
                                           &l->stream_bytes_per_s, &l->all_read_bytes_per_s,
                                           &l->all_write_bytes_per_s};
        for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
            check_figure(*n, given[i]);
        for (size_t i = 0; i < sizeof(also) / sizeof(also[0]); i++)
            if (also[i]->value > 0) /* 0: no such limit */
                check_figure(*n, also[i]);
    }
    const struct kvc_prices *p = kvc_prices_default();
    check_figure("dram", &p->dram_gb_month_usd);
    check_figure("nvme", &p->nvme_gb_month_usd);
    check_figure("remote", &p->remote_gb_month_usd);
    check_figure("power", &p->power_usd_per_kwh);
    check_figure("pue", &p->pue);
    check_figure("network", &p->network_usd_per_hour_per_gpu);
}

/* A rent lies where its source says: in the middle of the posted prices, or within them. */
static void rents_lie_within_posted_prices(void **state)
{
    size_t posted = 0;
    (void)state;
    for (const char *const *n = kvc_gpu_names(); *n; n++) {
        const struct kvc_figure *usd = &kvc_gpu_find(*n)->usd_per_hour;
        const char *range = strstr(usd->source, "posted prices ");
        double low, high;
        if (!range)
            continue;
        assert_int_equal(sscanf(range, "posted prices %lf..%lf:", &low, &high), 2);
        if (usd->value < low || usd->value > high)
            fail_msg("%s: %g an hour, of %g to %g", *n, usd->value, low, high);
        if (strncmp(usd->source, "middle", 6) == 0)
            assert_true(fabs(usd->value - (low + high) / 2) < 0.0051); /* rounded to cents */
        posted++;
    }
    assert_true(posted > 0);
}

/* What the interface promises by name. */
static void promised_profiles_exist(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100-sxm", "h200-sxm",  "b200-sxm",
                                       "gh200-96", "gh200-144", "mi300x",
                                       "b300-sxm", "gb300",     "gb200"};
    static const char *const links[] = {"pcie4-x16",    "pcie5-x16", "nvlink-c2c", "nvme-gen4-x4",
                                        "nvme-gen5-x4", "gds",       "rdma-100",   "rdma-200",
                                        "rdma-400",     "tcp-25",    "tcp-100",    "object-store"};
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++)
        assert_non_null(kvc_gpu_find(gpus[i]));
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        assert_non_null(kvc_link_find(links[i]));
    assert_true(kvc_gpu_find("h200-sxm")->kernels_measured);
    assert_false(kvc_gpu_find("gh200-96")->kernels_measured);
    assert_false(kvc_gpu_find("mi300x")->kernels_measured);
}

/* A GPU's host link is one profile for all GPUs of its kind; it must not promise more than this GPU
 * was measured or assumed to reach (2 %: A100 is stated once as 26.28 and once as 26 GB/s). */
static void host_links_are_no_faster_than_their_gpu(void **state)
{
    (void)state;
    for (const char *const *name = kvc_gpu_names(); *name; name++) {
        const struct kvc_gpu *g = kvc_gpu_find(*name);
        const struct kvc_link_profile *l = kvc_link_find(g->host_link);
        assert_non_null(l);
        assert_true(l->read_bytes_per_s.value <= 1.02 * g->h2d_bytes_per_s.value);
        assert_true(l->write_bytes_per_s.value <= 1.02 * g->d2h_bytes_per_s.value);
    }
}

/* Mean absolute error of a block's copy in percent, by the measured points of a direction and
 * way. */
static double copies_off(FILE *f, const char *direction, const char *method,
                         double bytes_per_s, double per_op_ns)
{
    char line[512];
    double sum = 0;
    size_t n = 0;
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, direction);
        double kb, gb_s;
        at = at ? strstr(at, method) : NULL;
        if (!at || sscanf(at + strlen(method), ",%lf,%lf", &kb, &gb_s) != 2)
            continue;
        double ns = per_op_ns + 1e9 * kb * 1024 / bytes_per_s;
        sum += fabs(kb * 1024 / ns / gb_s - 1);
        n++;
    }
    assert_true(n >= 13);
    return 100 * sum / (double)n;
}

static void copies_agree_with_the_measured_points(void **state)
{
    (void)state;
    static const struct {
        const char *link, *method;
    } ways[] = {{"pcie5-x16-dma", "dma"}, {"pcie5-x16", "kernel"}};
    FILE *f = fopen("../shared/kernels/links/gpu_host_copy_vs_block.csv", "r");
    if (!f) {
        print_message("skipped: no ../shared/kernels/links\n");
        skip();
    }
    for (size_t i = 0; i < 2; i++) {
        const struct kvc_link_profile *l = kvc_link_find(ways[i].link);
        double in = copies_off(f, "cpu_to_gpu", ways[i].method, l->read_bytes_per_s.value,
                               l->per_op_ns.value);
        double out = copies_off(f, "gpu_to_cpu", ways[i].method, l->write_bytes_per_s.value,
                                l->per_op_ns.value);
        print_message("%s: %.1f %% off to the GPU, %.1f %% from it\n", ways[i].link, in, out);
        assert_true(in < 5 && out < 17); /* one cost of a block for both ways */
        assert_true(l->both_bytes_per_s.value <
                    l->read_bytes_per_s.value + l->write_bytes_per_s.value);
    }
    fclose(f);
}

/* Messages of 64 KB to 2 MB over 16 NICs: a NIC is busy for their bytes, or begins no more of
 * them. */
static void messages_agree_with_the_measured_points(void **state)
{
    (void)state;
    const struct kvc_link_profile *l = kvc_link_find("rdma-200-efa");
    FILE *f = fopen("../shared/kernels/links/rdma_transfer.csv", "r");
    char line[512];
    double sum = 0, worst = 0;
    size_t n = 0;
    if (!f) {
        print_message("skipped: no ../shared/kernels/links\n");
        skip();
    }
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "16x200Gb EFA,");
        char way[8], unit[4];
        double size, gb_s;
        if (!at || !strstr(at, "GPU-GPU") ||
            sscanf(at, "16x200Gb EFA,%7[a-z],GPU-GPU,%lf %3[A-Z],threads16 batch128,%lf", way,
                   &size, unit, &gb_s) != 4)
            continue;
        double bytes = size * (strcmp(unit, "MB") == 0 ? 1048576 : 1024);
        struct kvc_link_use use;
        kvc_link_use_of(&use, l, strcmp(way, "read") != 0, bytes, 16);
        double off = fabs(use.bytes_per_s / 1e9 / gb_s - 1);
        sum += off;
        worst = off > worst ? off : worst;
        n++;
    }
    fclose(f);
    assert_int_equal(n, 12);
    print_message("rdma-200-efa: %.1f %% off, %.1f %% at worst\n", 100 * sum / 12, 100 * worst);
    assert_true(sum / 12 < 0.06 && worst < 0.15);
}

static void shown_profiles_name_their_sources(void **state)
{
    (void)state;
    struct kvc_error err = {0};
    static const char *const kinds[] = {"hardware", "model", "price", "link", "preset"};
    char *text;
    for (size_t i = 0; i < 5; i++) {
        for (int json = 0; json < 2; json++) {
            assert_int_equal(kvc_profile_show(&text, kinds[i], NULL, json, &err), KVC_OK);
            assert_true(strlen(text) > 100);
            kvc_free(text);
        }
    }
    assert_int_equal(kvc_profile_show(&text, "hardware", "h100-sxm", false, &err), KVC_OK);
    assert_non_null(strstr(text, "datasheet"));
    kvc_free(text);
    assert_int_equal(kvc_profile_show(&text, "model", "lama-3.1-70b", false, &err), KVC_ERR_USAGE);
    assert_non_null(strstr(err.text, "Llama-3.1-70B"));
    assert_int_equal(kvc_profile_show(&text, "bogus", NULL, false, &err), KVC_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_survive_a_lack_of_memory),
        cmocka_unit_test(bytes_per_token_of_public_reports),
        cmocka_unit_test(windows_hold_no_more_than_their_width),
        cmocka_unit_test(formats_hold_what_was_published),
        cmocka_unit_test(ranks_share_heads_until_there_is_one),
        cmocka_unit_test(geometry_agrees_with_stated_bytes),
        cmocka_unit_test(dense_parameters_add_up),
        cmocka_unit_test(names_are_found_in_any_spelling),
        cmocka_unit_test(every_figure_has_a_kind_and_a_source),
        cmocka_unit_test(rents_lie_within_posted_prices),
        cmocka_unit_test(promised_profiles_exist),
        cmocka_unit_test(host_links_are_no_faster_than_their_gpu),
        cmocka_unit_test(copies_agree_with_the_measured_points),
        cmocka_unit_test(messages_agree_with_the_measured_points),
        cmocka_unit_test(shown_profiles_name_their_sources),
    };
    return cmocka_run_group_tests_name("models_kv", tests, NULL, NULL);
}
