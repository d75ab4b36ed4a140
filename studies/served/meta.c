/* SPDX-License-Identifier: Apache-2.0
 * meta.json beside a log of requests: the flags of the engine that served it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "models/profiles.h"
#include "sim/scenario/scenario.h"
#include "studies/engine/rows.h"
#include "studies/calibrate/request_log.h"

struct meta {
    struct kvc_scenario *scenario;
    char *said;
    enum kvc_status status;
    struct kvc_error *err;
};

static void set(struct meta *m, const char *key, const char *value)
{
    size_t n = strlen(m->said);

    if (m->status != KVC_OK)
        return;
    m->status = kvc_scenario_set(m->scenario, key, value, m->err);
    snprintf(m->said + n, 512 - n, "%s%s %s", n ? ", " : "", key, value);
}

static bool count(const struct kvc_jval *object, const char *key, uint64_t *out)
{
    const struct kvc_jval *v = kvc_jval_member(object, key);

    return v && kvc_jval_u64(v, out) && *out > 0;
}

static void set_count(struct meta *m, const char *key, const struct kvc_jval *object,
                      const char *name)
{
    char text[24];
    uint64_t v;

    if (!count(object, name, &v))
        return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    set(m, key, text);
}

static const struct kvc_llm *find_llm(const char *model)
{
    struct kvc_engine_row row = {.id = ""};
    const char *slash = model ? strrchr(model, '/') : NULL;

    if (!model)
        return NULL;
    snprintf(row.model, sizeof row.model, "%s", slash ? slash + 1 : model);
    return kvc_engine_row_llm(&row);
}

/* The profile whose name begins with the device's, as drivers give it. */
static const struct kvc_gpu *find_gpu(const char *device)
{
    const char *const *names = kvc_gpu_names();

    for (size_t i = 0; device && names[i]; i++) {
        const struct kvc_gpu *gpu = kvc_gpu_find(names[i]);
        if (strncmp(gpu->name, device, strlen(device)) == 0)
            return gpu;
    }
    return NULL;
}

/* KV room as the engine reported it: blocks of so many tokens. */
static void set_room(struct meta *m, const struct kvc_jval *cache, const struct kvc_llm *llm,
                     uint64_t tp)
{
    uint64_t blocks, tokens;
    char text[32];

    if (!llm || !count(cache, "num_gpu_blocks", &blocks) || !count(cache, "block_size", &tokens) ||
        blocks > UINT32_MAX || tokens > 65536 || tp > 1024)
        return;
    uint64_t bytes = kvc_llm_kv_bytes_per_token(llm, KVC_BF16, (uint32_t)tp);
    snprintf(text, sizeof text, "%lluB", (unsigned long long)(blocks * tokens * bytes));
    set(m, "engine.kv_cache_memory", text);
    set_count(m, "engine.page_tokens", cache, "block_size");
}

/* Ranks with experts share them and step together; others have nothing in common. */
static void set_ranks(struct meta *m, const struct kvc_jval *flags, bool experts)
{
    const struct kvc_jval *parallel = kvc_jval_member(flags, "enable_expert_parallel");
    uint64_t tp = 1, dp = 1;
    bool dealt = false;
    char text[24];

    set_count(m, experts ? "cluster.dp" : "cluster.replicas", flags, "data_parallel_size");
    count(flags, "tensor_parallel_size", &tp);
    count(flags, "data_parallel_size", &dp);
    if (!experts || !parallel || !kvc_jval_bool(parallel, &dealt) || !dealt || tp > 1024 ||
        dp > 1024)
        return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)(tp * dp));
    set(m, "cluster.ep", text);
}

static void apply(struct meta *m, const struct kvc_jval *root)
{
    const struct kvc_jval *flags = kvc_jval_member(root, "engine_kwargs");
    const struct kvc_jval *device = kvc_jval_member(root, "hardware");
    const char *model = kvc_profile_string(flags, "model");
    const struct kvc_llm *llm =
        find_llm(model ? model : kvc_profile_string(root, "model"));
    const struct kvc_gpu *gpu = find_gpu(kvc_profile_string(device, "device_name"));
    const char *kv = kvc_profile_string(flags, "kv_cache_dtype");
    uint64_t tp = 1;

    if (llm)
        set(m, "model", llm->name);
    if (gpu)
        set(m, "cluster.gpu", gpu->id);
    set_count(m, "cluster.tp", flags, "tensor_parallel_size");
    set_ranks(m, flags, llm && llm->experts);
    set_count(m, "engine.max_seqs", flags, "max_num_seqs");
    set_count(m, "engine.max_batched_tokens", flags, "max_num_batched_tokens");
    if (kv && strncmp(kv, "fp8", 3) == 0)
        set(m, "kv_dtype", kv);
    count(flags, "tensor_parallel_size", &tp);
    if (!kv || strncmp(kv, "fp8", 3) != 0)
        set_room(m, kvc_jval_member(root, "kv_cache"), llm, tp);
}

/* The file's text, NULL where there is none. */
static char *whole_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    size_t cap = 1 << 20;
    char *text = f ? kvc_malloc(cap, 1) : NULL;

    *n = text ? fread(text, 1, cap, f) : 0;
    if (f)
        fclose(f);
    return text;
}

enum kvc_status kvc_measured_meta_apply(struct kvc_scenario *scenario, const char *log_path,
                                        char said[512], struct kvc_error *err)
{
    const char *slash = strrchr(log_path, '/');
    struct meta m = {scenario, said, KVC_OK, err};
    struct kvc_jval *root;
    char path[1024];
    size_t n;

    said[0] = '\0';
    snprintf(path, sizeof path, "%.*smeta.json", slash ? (int)(slash - log_path) + 1 : 0, log_path);
    char *text = whole_file(path, &n);
    if (!text)
        return KVC_OK;
    m.status = kvc_json_parse(&root, text, n, false, path, 1, err);
    if (m.status == KVC_OK) {
        apply(&m, root);
        kvc_json_free(root);
    }
    kvc_free(text);
    return m.status;
}
