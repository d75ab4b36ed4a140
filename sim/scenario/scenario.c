/* SPDX-License-Identifier: Apache-2.0
 *
 * A key that was set stays; every other key is worked out again after each change: default, then
 * the scenario preset, the engine preset, and what follows from the GPU. So the order in which
 * keys are set does not matter. */
#include "sim/scenario/scenario_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "models/profiles.h"
#include "policies/plugins/plugin.h"
#include "policies/policies.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static size_t index_of(const struct kvc_scenario_key *key)
{
    size_t n;
    return (size_t)(key - kvc_scenario_keys(&n));
}

static bool is_given(const struct kvc_scenario *s, size_t i)
{
    return s->given[i / 64] >> (i % 64) & 1;
}

static void mark(struct kvc_scenario *s, size_t i, bool given)
{
    uint64_t bit = UINT64_C(1) << (i % 64);
    s->given[i / 64] = given ? s->given[i / 64] | bit : s->given[i / 64] & ~bit;
}

bool kvc_scenario_given(const struct kvc_scenario *s, const char *name)
{
    const struct kvc_scenario_key *key = kvc_scenario_key_find(name);
    return key && is_given(s, index_of(key));
}

/* ---- values and text ---- */

/* A size in units of 1024 is said in those of the bounds, too. */
static enum kvc_status out_of_range(const struct kvc_scenario_key *key, const char *text,
                                    double v, struct kvc_error *err)
{
    char low[48], high[48], same[32] = "";
    snprintf(low, sizeof(low), "%.15g", key->min);
    snprintf(high, sizeof(high), "%.15g", key->max);
    if (key->kind == KVC_KEY_NS) {
        kvc_format_ns((uint64_t)key->min, low, sizeof(low));
        kvc_format_ns((uint64_t)key->max, high, sizeof(high));
    } else if (key->kind == KVC_KEY_BYTES || key->kind == KVC_KEY_RATE) {
        kvc_format_bytes((uint64_t)key->min, low, sizeof(low));
        kvc_format_bytes((uint64_t)key->max, high, sizeof(high));
        if (v > key->max && strchr(text, 'i'))
            snprintf(same, sizeof(same), " (%.4gPB)", v / 1e15);
    }
    const char *per = key->kind == KVC_KEY_RATE ? "/s" : "";
    return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, key->name,
                       "%.64s%s%s is not between %s%s and %s%s", text, same, *same ? per : "", low,
                       per, high, per);
}

static bool is_one_of(const char *text, const char *const *list)
{
    size_t i = 0;
    while (list[i] && !kvc_name_equal(list[i], text))
        i++;
    return list[i] != NULL;
}

static enum kvc_status needs_future(const struct kvc_scenario_key *key, const char *text,
                                    struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, key->name,
                       "%.64s must know when blocks are used next, which no engine does: kvcast "
                       "ceiling --policy %.64s gives what it would hit", text, text);
}

/* Of the policies that a key names, but those of eviction; 0: it names none. */
static uint32_t kind_of(const struct kvc_scenario_key *key)
{
    return key->names == kvc_router_names      ? KVC_POLICY_ROUTING
           : key->names == kvc_admission_names ? KVC_POLICY_ADMISSION
           : key->names == kvc_ordering_names  ? KVC_POLICY_ORDERING
                                               : 0;
}

static enum kvc_status pick_name(const struct kvc_scenario_key *key, const char *text,
                                 const char **out, size_t *at, struct kvc_error *err)
{
    const char *const *list = key->choices ? key->choices : key->names();
    char all[256] = "";
    uint32_t kind = kind_of(key);
    if (kind && kvc_plugin_is(text)) {
        *out = text; /* loaded when the run begins */
        return KVC_OK;
    }
    if (key->names == kvc_eviction_names && strcspn(text, "/:+.") < strlen(text)) {
        struct kvc_eviction order;
        *out = text; /* a plug-in is loaded when the run begins */
        return kvc_plugin_is(text) ? KVC_OK : kvc_eviction_of(text, &order, err);
    }
    if (key->names == kvc_eviction_names &&
        (kvc_name_equal(text, "opt") || kvc_name_equal(text, "optforced")))
        return needs_future(key, text, err);
    if (kind && strchr(text, ':') && !strchr(text, '+')) {
        struct kvc_policy_choice choice;
        *out = text;
        enum kvc_status st = kvc_policy_choose(&choice, text, kind, err);
        kvc_policy_drop(&choice);
        return st;
    }
    const char *nearest;
    for (size_t i = 0; list[i]; i++) {
        if (kvc_name_equal(list[i], text)) {
            *out = list[i];
            *at = i;
            return KVC_OK;
        }
        if (strlen(all) + strlen(list[i]) + 2 < sizeof(all))
            snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "", list[i]);
    }
    if (key->names == kvc_preset_scenario_names && is_one_of(text, kvc_preset_engine_names()))
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, key->name,
                           "%.64s presets an engine only: give it as engine.preset (--engine)",
                           text);
    nearest = kvc_name_nearest(text, list);
    if (nearest)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, key->name,
                           "\"%.64s\" is not known; did you mean %s?", text, nearest);
    return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, key->name,
                       "\"%.64s\" is not known; there are: %s", text, all);
}

static void *field_of(struct kvc_scenario *s, const struct kvc_scenario_key *key)
{
    return (char *)s + key->offset;
}

/* What a key holds when it is "none". */
static void clear_value(struct kvc_scenario *s, const struct kvc_scenario_key *key)
{
    memset(field_of(s, key), 0, key->size);
    if (key->kind == KVC_KEY_DOUBLE || key->kind == KVC_KEY_RATE) {
        double none = NAN;
        memcpy(field_of(s, key), &none, sizeof(none));
    }
}

static enum kvc_status assign_text(struct kvc_scenario *s, const struct kvc_scenario_key *key,
                                   const char *text, struct kvc_error *err)
{
    if (strlen(text) >= key->size)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, key->name, "longer than %zu characters",
                           key->size - 1);
    memset(field_of(s, key), 0, key->size);
    memcpy(field_of(s, key), text, strlen(text));
    return KVC_OK;
}

static enum kvc_status assign_whole(struct kvc_scenario *s, const struct kvc_scenario_key *key,
                                    const char *text, struct kvc_error *err)
{
    uint64_t v = 0;
    enum kvc_status st = key->kind == KVC_KEY_BYTES ? kvc_parse_bytes(text, key->name, &v, err)
                         : key->kind == KVC_KEY_NS  ? kvc_parse_ns(text, key->name, &v, err)
                                                    : kvc_parse_u64(text, key->name, &v, err);
    if (st != KVC_OK)
        return st;
    if (key->kind != KVC_KEY_U64 && ((double)v < key->min || (double)v > key->max))
        return out_of_range(key, text, (double)v, err);
    if (key->kind == KVC_KEY_U32) {
        uint32_t narrow = (uint32_t)v;
        memcpy(field_of(s, key), &narrow, sizeof(narrow));
    } else {
        memcpy(field_of(s, key), &v, sizeof(v));
    }
    return KVC_OK;
}

static enum kvc_status assign_real(struct kvc_scenario *s, const struct kvc_scenario_key *key,
                                   const char *text, struct kvc_error *err)
{
    double v = 0;
    enum kvc_status st = key->kind == KVC_KEY_RATE
                             ? kvc_parse_bytes_per_s(text, key->name, &v, err)
                             : kvc_parse_double(text, key->name, &v, err);
    if (st != KVC_OK)
        return st;
    if (v < key->min || v > key->max)
        return out_of_range(key, text, v, err);
    memcpy(field_of(s, key), &v, sizeof(v));
    return KVC_OK;
}

static enum kvc_status assign_bool(struct kvc_scenario *s, const struct kvc_scenario_key *key,
                                   const char *text, struct kvc_error *err)
{
    bool v = kvc_name_equal(text, "true") || kvc_name_equal(text, "on");
    if (!v && !kvc_name_equal(text, "false") && !kvc_name_equal(text, "off"))
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, key->name,
                           "\"%.64s\" is neither true nor false", text);
    memcpy(field_of(s, key), &v, sizeof(v));
    return KVC_OK;
}

enum kvc_status kvc_scenario_assign(struct kvc_scenario *s, const struct kvc_scenario_key *key,
                                    const char *text, struct kvc_error *err)
{
    const char *name = NULL;
    size_t at = 0;
    enum kvc_status st = KVC_OK;
    if (!text) {
        if (key->default_text[0] && key->default_text[0] != '(')
            return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, key->name,
                               "can't be null: give a value");
        clear_value(s, key);
        return KVC_OK;
    }
    switch (key->kind) {
    case KVC_KEY_TEXT:
        return assign_text(s, key, text, err);
    case KVC_KEY_NAME:
        st = pick_name(key, text, &name, &at, err);
        return st == KVC_OK ? assign_text(s, key, name, err) : st;
    case KVC_KEY_ENUM:
        st = pick_name(key, text, &name, &at, err);
        if (st == KVC_OK) {
            int v = (int)at;
            memcpy(field_of(s, key), &v, sizeof(v));
        }
        return st;
    case KVC_KEY_BOOL:
        return assign_bool(s, key, text, err);
    case KVC_KEY_DOUBLE:
    case KVC_KEY_RATE:
        return assign_real(s, key, text, err);
    default:
        return assign_whole(s, key, text, err);
    }
}

/* The shortest of the ways to write a rate that reads back as the same double. */
static void rate_text(double rate, char *buf, size_t size)
{
    static const struct { const char *unit; double factor; } units[] = {
        {"GB/s", 1e9}, {"MB/s", 1e6}, {"B/s", 1}};
    double back = 0;
    for (size_t i = 0; i < 3; i++) {
        snprintf(buf, size, "%.15g%s", rate / units[i].factor, units[i].unit);
        if (kvc_parse_bytes_per_s(buf, NULL, &back, NULL) == KVC_OK && back == rate)
            return;
    }
    snprintf(buf, size, "%.17gB/s", rate);
}

static bool real_text(double v, bool rate, char *buf, size_t size)
{
    double back;
    if (isnan(v))
        return false;
    if (rate) {
        rate_text(v, buf, size);
        return true;
    }
    snprintf(buf, size, "%.15g", v);
    if (kvc_parse_double(buf, NULL, &back, NULL) != KVC_OK || back != v)
        snprintf(buf, size, "%.17g", v);
    return true;
}

bool kvc_scenario_text(const struct kvc_scenario *s, const struct kvc_scenario_key *key, char *buf,
                       size_t size)
{
    const char *at = (const char *)s + key->offset;
    bool optional = !key->default_text[0];
    uint64_t whole = 0;
    uint32_t narrow;
    double real;
    int choice;
    switch (key->kind) {
    case KVC_KEY_TEXT:
    case KVC_KEY_NAME:
        snprintf(buf, size, "%s", at);
        return buf[0] != '\0';
    case KVC_KEY_ENUM:
        memcpy(&choice, at, sizeof(choice));
        snprintf(buf, size, "%s", key->choices[choice]);
        return true;
    case KVC_KEY_BOOL:
        snprintf(buf, size, "%s", *(const bool *)(const void *)at ? "true" : "false");
        return true;
    case KVC_KEY_DOUBLE:
    case KVC_KEY_RATE:
        memcpy(&real, at, sizeof(real));
        return real_text(real, key->kind == KVC_KEY_RATE, buf, size);
    case KVC_KEY_U32:
        memcpy(&narrow, at, sizeof(narrow));
        whole = narrow;
        break;
    default:
        memcpy(&whole, at, sizeof(whole));
    }
    if (key->kind == KVC_KEY_BYTES)
        kvc_format_bytes(whole, buf, size);
    else if (key->kind == KVC_KEY_NS)
        kvc_format_ns(whole, buf, size);
    else
        snprintf(buf, size, "%" PRIu64, whole);
    return !(optional && whole == 0);
}

/* ---- what follows from what ---- */

static enum kvc_status apply_preset(struct kvc_scenario *s, const char *name, struct kvc_error *err)
{
    const struct kvc_preset *p = kvc_preset_find(name);
    enum kvc_status st = KVC_OK;
    if (!p)
        return KVC_OK;
    if (p->refused)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, p->whole ? "preset" : "engine.preset",
                           "%s %s", p->name, p->refused);
    for (const struct kvc_setting *set = p->settings; set->key && st == KVC_OK; set++) {
        const struct kvc_scenario_key *key = kvc_scenario_key_find(set->key);
        if (!key)
            return kvc_fail(err, KVC_ERR_INTERNAL, "preset %s sets %s, which is no key", p->name,
                            set->key);
        if (!is_given(s, index_of(key)))
            st = kvc_scenario_assign(s, key, set->value, err);
    }
    return st;
}

static void derive_tier(struct kvc_scenario *s, size_t i)
{
    static const char *const names[] = {"dram", "nvme", "remote"};
    struct kvc_tier_config *t = &s->tiers[i];
    const struct kvc_gpu *gpu = s->cluster.gpu[0] ? kvc_gpu_find(s->cluster.gpu) : NULL;
    snprintf(t->name, sizeof(t->name), "%s", names[i]);
    t->present = t->capacity_bytes > 0;
    if (!isnan(t->link_bytes_per_s)) {
        t->link[0] = '\0';
        if (isnan(t->link_efficiency))
            t->link_efficiency = 1.0;
    } else if (!t->link[0]) {
        const char *link = gpu && gpu->host_link ? gpu->host_link : "pcie5-x16";
        const struct kvc_link_profile *profile = kvc_link_find(link);
        snprintf(t->link, sizeof(t->link), "%s", profile ? profile->name : link);
    }
}

/* What a load costs in the engine whose times are used. */
static void derive_loads(struct kvc_scenario *s)
{
    const struct kvc_engine_profile *engine = kvc_engine_find(s->engine.backend);
    if (engine && !kvc_scenario_given(s, "engine.kv_load_time"))
        s->engine.kv_load_ns = (uint64_t)(engine->kv_load_ns.value + 0.5);
    if (engine && !kvc_scenario_given(s, "engine.kv_load_token_time"))
        s->engine.kv_load_token_ns = (uint64_t)(engine->kv_load_token_ns.value + 0.5);
}

/* SGLang's chunk and static share of memory, from the GPU's MiB (ServerArgs; CUDA graphs of up to
 * 256 sequences assumed). */
static void derive_sglang(struct kvc_scenario *s, const struct kvc_gpu *gpu)
{
    double mib = gpu->memory_bytes.value / 1048576;
    if (!kvc_scenario_given(s, "engine.max_batched_tokens"))
        s->engine.max_batched_tokens = mib < 35 * 1024    ? 2048
                                       : mib < 60 * 1024  ? 4096
                                       : mib < 160 * 1024 ? 8192
                                                          : 16384;
    double chunk = s->engine.max_batched_tokens, gpus = s->cluster.tp * s->cluster.pp;
    double reserve = 512 + 1.5 * (chunk > 2048 ? chunk : 2048) + 2 * 256 + 1024 * gpus / 8;
    if (mib > 60 * 1024 && reserve < 10 * 1024)
        reserve = 10 * 1024;
    if (!kvc_scenario_given(s, "engine.gpu_memory_utilization"))
        s->engine.gpu_memory_utilization = fmax((mib - reserve) / mib, 0.1);
}

/* vLLM's smaller defaults: GPUs below 70 GiB, and A100 (EngineArgs, API server). */
static void derive_batch(struct kvc_scenario *s)
{
    const struct kvc_gpu *gpu = s->cluster.gpu[0] ? kvc_gpu_find(s->cluster.gpu) : NULL;
    if (gpu && !s->preset[0] && strcmp(s->engine.backend, "sglang") == 0)
        derive_sglang(s, gpu);
    if (!gpu || s->preset[0] || strcmp(s->engine.backend, "vllm") != 0 ||
        (gpu->memory_bytes.value >= 70.0 * 1073741824 && strncmp(gpu->id, "a100", 4) != 0))
        return;
    if (!kvc_scenario_given(s, "engine.max_batched_tokens"))
        s->engine.max_batched_tokens = 2048;
    if (!kvc_scenario_given(s, "engine.max_seqs"))
        s->engine.max_seqs = 256;
}

static enum kvc_status derive(struct kvc_scenario *s, struct kvc_error *err)
{
    size_t n;
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    enum kvc_status st = KVC_OK;
    for (size_t i = 0; i < n && st == KVC_OK; i++) {
        const char *text = keys[i].default_text;
        if (!is_given(s, i))
            st = kvc_scenario_assign(s, &keys[i], *text && *text != '(' ? text : NULL, err);
    }
    /* the whole scenario names the engine; its own settings then win over the engine's */
    if (st == KVC_OK)
        st = apply_preset(s, s->preset, err);
    if (st == KVC_OK)
        st = apply_preset(s, s->engine.preset, err);
    if (st == KVC_OK)
        st = apply_preset(s, s->preset, err);
    for (size_t i = 0; i < 3 && st == KVC_OK; i++)
        derive_tier(s, i);
    derive_batch(s);
    derive_loads(s);
    if (!s->weights_dtype[0]) {
        const struct kvc_llm *llm = s->model[0] ? kvc_llm_find(s->model) : NULL;
        snprintf(s->weights_dtype, sizeof(s->weights_dtype), "%s",
                 llm && llm->weights_dtype ? llm->weights_dtype : "bf16");
    }
    return st;
}

/* A link's name and its own figures replace each other: the later one holds. */
static void forget_rivals(struct kvc_scenario *s, const struct kvc_scenario_key *key)
{
    size_t n;
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    const char *dot = strstr(key->name, ".link");
    if (!dot)
        return;
    size_t stem = (size_t)(dot - key->name) + strlen(".link");
    for (size_t i = 0; i < n; i++) {
        bool same = strncmp(keys[i].name, key->name, stem) == 0;
        if (same && (key->name[stem] == '\0') != (keys[i].name[stem] == '\0'))
            mark(s, i, false);
    }
}

enum kvc_status kvc_scenario_set_key(struct kvc_scenario *s, const struct kvc_scenario_key *key,
                                     const char *text, struct kvc_error *err)
{
    struct kvc_scenario next = *s;
    forget_rivals(&next, key);
    mark(&next, index_of(key), true);
    if (key->offset == offsetof(struct kvc_scenario, trace))
        next.trace_path[0] = '\0';
    if (key->offset == offsetof(struct kvc_scenario, profile))
        next.profile_path[0] = '\0';
    enum kvc_status st = kvc_scenario_assign(&next, key, text, err);
    if (st == KVC_OK)
        st = derive(&next, err);
    if (st == KVC_OK)
        *s = next;
    return st;
}

enum kvc_status kvc_scenario_set(struct kvc_scenario *s, const char *name, const char *value,
                                 struct kvc_error *err)
{
    const struct kvc_scenario_key *key = kvc_scenario_key_find(name);
    bool none = kvc_name_equal(value, "null") || kvc_name_equal(value, "none");
    if (!strncmp(name, "tenants.", 8))
        return kvc_scenario_tenants_set(s, name + 8, value, err);
    if (key && value[0] != '{')
        return kvc_scenario_set_key(s, key, none ? NULL : value, err);
    /* a group at once: null or an object, as in JSON; wrap it so that both take one way */
    struct kvc_json j;
    struct kvc_jval *root = NULL;
    enum kvc_status st;
    if (!none && value[0] != '{')
        return kvc_scenario_unknown(name, err);
    kvc_json_init(&j, false);
    kvc_json_open_object(&j, NULL);
    kvc_json_raw(&j, name, none ? "null" : value);
    kvc_json_close(&j);
    if (j.failed)
        st = kvc_fail_nomem(err);
    else
        st = kvc_json_parse(&root, j.buf, j.len, false, NULL, 1, err);
    if (st == KVC_OK)
        st = kvc_scenario_apply_json(s, root, "", NULL, err);
    if (st != KVC_OK && err)
        err->line = 0;
    kvc_json_free(root);
    kvc_json_clear(&j);
    return st;
}

enum kvc_status kvc_scenario_create(struct kvc_scenario **out, const char *preset,
                                    struct kvc_error *err)
{
    const struct kvc_preset *p = preset ? kvc_preset_find(preset) : NULL;
    struct kvc_scenario *s = kvc_calloc(1, sizeof(*s));
    enum kvc_status st;
    if (!s)
        return kvc_fail_nomem(err);
    st = derive(s, err);
    if (st == KVC_OK && preset)
        st = kvc_scenario_set(s, p && !p->whole ? "engine.preset" : "preset", preset, err);
    if (st == KVC_OK)
        *out = s;
    else
        kvc_free(s);
    return st;
}

void kvc_scenario_destroy(struct kvc_scenario *s)
{
    kvc_free(s);
}

const char *kvc_scenario_trace(const struct kvc_scenario *s)
{
    const char *path = s->trace_path[0] ? s->trace_path : s->trace;
    return path[0] ? path : NULL;
}
