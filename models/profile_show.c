/* SPDX-License-Identifier: Apache-2.0 */
#include "models/profile_show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "models/kernels.h"
#include "models/link_use.h"
#include "models/profiles.h"

/* One profile after the other, as text or JSON. */
struct show {
    bool json, brief; /* brief: one line a profile, text only */
    bool kernels;     /* a GPU asked for by name */
    struct kvc_json j;
    struct kvc_text text;
};

/* key is the JSON name, in base units; label, divide and unit are for people. */
static void figure(struct show *s, const char *key, const char *label, const struct kvc_figure *f,
                   double divide, const char *unit)
{
    if (s->json) {
        kvc_json_open_object(&s->j, key);
        kvc_json_double(&s->j, "value", f->value);
        kvc_json_string(&s->j, "kind", f->kind);
        kvc_json_string(&s->j, "source", f->source);
        kvc_json_close(&s->j);
    } else {
        char value[48];
        snprintf(value, sizeof value, "%.6g %s", f->value / divide, unit);
        kvc_text_addf(&s->text, "  %-26s %-16s %-10s %s\n", label, value, f->kind, f->source);
    }
}

static void count(struct show *s, const char *key, const char *label, uint64_t value)
{
    if (s->json)
        kvc_json_u64(&s->j, key, value);
    else if (value)
        kvc_text_addf(&s->text, "  %-26s %llu\n", label, (unsigned long long)value);
}

static void words(struct show *s, const char *key, const char *label, const char *value)
{
    if (s->json)
        kvc_json_string(&s->j, key, value);
    else if (value)
        kvc_text_addf(&s->text, "  %-26s %s\n", label, value);
}

static void open_profile(struct show *s, const char *name, const char *title)
{
    if (s->json) {
        kvc_json_open_object(&s->j, NULL);
        kvc_json_string(&s->j, "name", name);
        if (title)
            kvc_json_string(&s->j, "title", title);
    } else {
        kvc_text_addf(&s->text, "%s%s%s\n", name, title ? ": " : "", title ? title : "");
    }
}

static void close_profile(struct show *s)
{
    if (s->json)
        kvc_json_close(&s->j);
}

static void kernel_part(struct show *s, const struct kvc_kernel_store *k,
                        const struct kvc_kernel_table *t)
{
    const char *kind = k->borrowed ? "assumed" : t->kind;
    double off = t->shape.rows ? t->shape.mape : NAN;
    char part[KVC_KERNEL_KEY + 64], error[32] = "-";

    snprintf(part, sizeof part, "%s %s", t->family->name, t->key);
    if (s->json) {
        kvc_json_open_object(&s->j, part);
        kvc_json_string(&s->j, "kind", kind);
        kvc_json_string(&s->j, "source", t->source);
        kvc_json_double(&s->j, "mape_percent", off);
        kvc_json_close(&s->j);
    } else {
        if (!isnan(off))
            snprintf(error, sizeof error, "%.1f %% off, %zu", off, t->shape.rows);
        kvc_text_addf(&s->text, "  %-26s %-16s %-10s %s\n", part, error, kind, t->source);
    }
}

/* Kernel times by engine backend, each with its mean error on shapes kept aside. */
static void show_kernels(struct show *s, const struct kvc_gpu *g)
{
    if (s->json)
        kvc_json_open_object(&s->j, "kernels");
    for (const char *const *b = kvc_engine_names(); *b; b++) {
        struct kvc_kernel_store k = {0};
        bool any = kvc_kernel_store_load(&k, g, *b, NULL) == KVC_OK && k.tables.n;
        if (!s->json)
            kvc_text_addf(&s->text, "  kernel times, %s: %s%s\n", *b,
                          any ? "mean error on so many rows of shapes kept aside, -: none were"
                              : "none",
                          any && k.borrowed ? "; of the GPU in the source" : "");
        else
            kvc_json_open_object(&s->j, *b);
        for (size_t i = 0; any && i < k.tables.n; i++)
            kernel_part(s, &k, &k.tables.table[i]);
        kvc_kernel_store_clear(&k);
        if (s->json)
            kvc_json_close(&s->j);
    }
    if (s->json)
        kvc_json_close(&s->j);
}

/* A line of the list; NULL: its head. */
static void brief_gpu(struct show *s, const struct kvc_gpu *g)
{
    if (!g) {
        kvc_text_addf(&s->text, "~: assumed; TFLOP/s dense\n%-12s %-37s %7s %7s %7s %7s %7s  %s\n",
                      "", "", "GB", "GB/s", "bf16", "fp8", "USD/h", "kernel times");
        return;
    }
    const struct {
        const struct kvc_figure *figure;
        double divide;
        int digits;
    } column[] = {{&g->memory_bytes, 1e9, 0}, {&g->hbm_bytes_per_s, 1e9, 0},
                  {&g->bf16_flops, 1e12, 0}, {&g->fp8_flops, 1e12, 0}, {&g->usd_per_hour, 1, 2}};
    char value[32];

    kvc_text_addf(&s->text, "%-12s %-37s", g->id, g->name);
    for (size_t i = 0; i < sizeof column / sizeof column[0]; i++) {
        snprintf(value, sizeof value, "%s%.*f",
                 strcmp(column[i].figure->kind, "assumed") == 0 ? "~" : "", column[i].digits,
                 column[i].figure->value / column[i].divide);
        kvc_text_addf(&s->text, " %7s", value);
    }
    kvc_text_addf(&s->text, "  %s\n", g->kernels_measured ? "measured" : "assumed");
}

/* What copies of KV take in replays, which is no large copy's rate. */
static void show_host_link(struct show *s, const char *name)
{
    const struct kvc_link_profile *l = kvc_link_find(name);
    char text[160];

    if (s->json || !l) {
        words(s, "host_link", "host link", name);
        return;
    }
    snprintf(text, sizeof text, "%s: what replays use for KV, %.4g GB/s to the GPU, %.4g back; "
             "the rates above are of one large copy", name, l->read_bytes_per_s.value / 1e9,
             l->write_bytes_per_s.value / 1e9);
    words(s, NULL, "host link", text);
}

static void show_gpu(struct show *s, const struct kvc_gpu *g)
{
    if (s->brief) {
        brief_gpu(s, g);
        return;
    }
    open_profile(s, g->id, g->name);
    figure(s, "memory_bytes", "memory", &g->memory_bytes, 1e9, "GB");
    figure(s, "hbm_bytes_per_s", "HBM bandwidth", &g->hbm_bytes_per_s, 1e9, "GB/s");
    figure(s, "bf16_flops", "bf16 peak, dense", &g->bf16_flops, 1e12, "TFLOP/s");
    figure(s, "fp8_flops", "fp8 peak, dense", &g->fp8_flops, 1e12, "TFLOP/s");
    if (g->fp4_flops.value > 0)
        figure(s, "fp4_flops", "fp4 peak, dense", &g->fp4_flops, 1e12, "TFLOP/s");
    if (g->peer_links.value > 0)
        figure(s, "peer_links", "links to peers", &g->peer_links, 1, "");
    if (g->multiprocessors.value > 0)
        figure(s, "multiprocessors", "multiprocessors", &g->multiprocessors, 1, "");
    if (g->l2_bytes.value > 0)
        figure(s, "l2_bytes", "last cache", &g->l2_bytes, 1 << 20, "MiB");
    figure(s, "h2d_bytes_per_s", "host to GPU", &g->h2d_bytes_per_s, 1e9, "GB/s");
    figure(s, "d2h_bytes_per_s", "GPU to host", &g->d2h_bytes_per_s, 1e9, "GB/s");
    figure(s, "gpu_link_bytes_per_s", "GPU to GPU", &g->gpu_link_bytes_per_s, 1e9, "GB/s");
    figure(s, "nic_bytes_per_s", "network", &g->nic_bytes_per_s, 1e9, "GB/s");
    figure(s, "tdp_w", "power limit", &g->tdp_w, 1, "W");
    figure(s, "usd_per_hour", "rent", &g->usd_per_hour, 1, "USD/h");
    show_host_link(s, g->host_link);
    if (s->json)
        kvc_json_bool(&s->j, "kernels_measured", g->kernels_measured);
    else
        words(s, NULL, "kernel times",
              g->kernels_measured ? "measured with vLLM" : "assumed, wide band");
    if (s->kernels)
        show_kernels(s, g);
    close_profile(s);
}

static void show_llm(struct show *s, const struct kvc_llm *m)
{
    if (s->brief) {
        char size[16] = "?";
        if (m->params_total_b > 0)
            snprintf(size, sizeof(size), "%.1f", m->params_total_b);
        kvc_text_addf(&s->text,
                      "%-26s %3u layers %8s B parameters %8llu KV bytes/token (bf16)%s\n",
                      m->name, m->layers, size,
                      (unsigned long long)kvc_llm_kv_bytes_per_token(m, KVC_BF16, 1),
                      m->no_step_model ? "  no step times" : "");
        return;
    }
    open_profile(s, m->name, NULL);
    count(s, "layers", "layers", m->layers);
    count(s, "hidden", "hidden size", m->hidden);
    count(s, "heads", "attention heads", m->heads);
    count(s, "kv_heads", "KV heads", m->kv_heads);
    count(s, "head_dim", "head size", m->head_dim);
    count(s, "vocab", "vocabulary", m->vocab);
    count(s, "intermediate", "feed-forward width", m->intermediate);
    count(s, "max_position", "longest context", m->max_position);
    count(s, "experts", "experts", m->experts);
    count(s, "top_k", "experts a token", m->top_k);
    count(s, "expert_intermediate", "expert width", m->expert_intermediate);
    count(s, "shared_intermediate", "shared expert width", m->shared_intermediate);
    count(s, "dense_layers", "dense layers", m->experts ? m->dense_layers : m->layers);
    count(s, "kv_lora_rank", "latent KV rank", m->kv_lora_rank);
    count(s, "window_layers", "sliding-window layers", m->window_layers);
    count(s, "window_tokens", "window", m->window_tokens);
    count(s, "linear_layers", "linear-attention layers", m->linear_layers);
    count(s, "linear_state_bytes", "their state, bytes",
          m->linear_state_bytes + m->linear_conv_bytes);
    count(s, "kv_bytes_per_token_bf16", "KV bytes/token, bf16",
          kvc_llm_kv_bytes_per_token(m, KVC_BF16, 1));
    count(s, "kv_bytes_per_token_fp8", "KV bytes/token, fp8",
          kvc_llm_kv_bytes_per_token(m, KVC_FP8, 1));
    if (s->json)
        kvc_json_double(&s->j, "params_total_b", m->params_total_b);
    else if (m->params_total_b > 0)
        kvc_text_addf(&s->text, "  %-26s %.2f billion\n", "parameters", m->params_total_b);
    words(s, "weights_dtype", "published weights", m->weights_dtype);
    words(s, "no_step_model", "no step times", m->no_step_model);
    words(s, "source", "source", m->source);
    close_profile(s);
}

static double shown_rate(const struct kvc_link_profile *l, double op_bytes, double depth,
                         double devices)
{
    struct kvc_link_profile at = *l;
    struct kvc_link_use use;

    at.queue_depth.value = depth;
    kvc_link_use_of(&use, &at, false, op_bytes, devices);
    return use.bytes_per_s;
}

static const double shown_depths[] = {1, 4, 16, 64, 0};
static const double shown_devices[] = {1, 2, 4, 8};
enum {
    DEPTHS = sizeof shown_depths / sizeof shown_depths[0],
    DEVICES = sizeof shown_devices / sizeof shown_devices[0]
};

/* What of the read rate operations of each size reach. */
static void show_curve_json(struct show *s, const struct kvc_link_profile *l)
{
    kvc_json_open_array(&s->j, "read_by_operation");
    for (double op = 4096; op < 1e8; op *= 4)
        for (size_t i = 0; i < DEPTHS; i++) {
            kvc_json_open_object(&s->j, NULL);
            kvc_json_double(&s->j, "op_bytes", op);
            kvc_json_double(&s->j, "queue_depth", shown_depths[i]);
            kvc_json_double(&s->j, "bytes_per_s", shown_rate(l, op, shown_depths[i], 1));
            kvc_json_close(&s->j);
        }
    kvc_json_close(&s->j);
    kvc_json_open_array(&s->j, "read_by_devices");
    for (size_t i = 0; i < DEVICES; i++) {
        kvc_json_open_object(&s->j, NULL);
        kvc_json_double(&s->j, "devices", shown_devices[i]);
        kvc_json_double(&s->j, "bytes_per_s",
                        shown_rate(l, 1048576, l->queue_depth.value, shown_devices[i]));
        kvc_json_close(&s->j);
    }
    kvc_json_close(&s->j);
}

static void show_curve(struct show *s, const struct kvc_link_profile *l)
{
    char size[32];

    kvc_text_add(&s->text, "  GB/s read by a device\n  operations of   1 under way       4      16"
                           "      64   enough\n");
    for (double op = 4096; op < 1e8; op *= 4) {
        kvc_format_bytes((uint64_t)op, size, sizeof size);
        kvc_text_addf(&s->text, "  %13s  ", size);
        for (size_t i = 0; i < DEPTHS; i++)
            kvc_text_addf(&s->text, i ? " %8.4g" : " %10.4g",
                          shown_rate(l, op, shown_depths[i], 1) / 1e9);
        kvc_text_add(&s->text, "\n");
    }
    kvc_text_add(&s->text, "  by so many devices, operations of 1 MiB:");
    for (size_t i = 0; i < DEVICES; i++)
        kvc_text_addf(&s->text, "  %g: %.4g", shown_devices[i],
                      shown_rate(l, 1048576, l->queue_depth.value, shown_devices[i]) / 1e9);
    kvc_text_add(&s->text, "\n");
}

static void show_link(struct show *s, const struct kvc_link_profile *l)
{
    const struct {
        const char *key, *label;
        const struct kvc_figure *figure;
        double scale;
        const char *unit;
    } limit[] = {
        {"op_latency_ns", "latency of an operation", &l->op_latency_ns, 1e3, "us"},
        {"ops_per_s", "operations a second", &l->ops_per_s, 1, ""},
        {"stream_bytes_per_s", "one operation's rate", &l->stream_bytes_per_s, 1e9, "GB/s"},
        {"all_read_bytes_per_s", "read, all devices", &l->all_read_bytes_per_s, 1e9, "GB/s"},
        {"all_write_bytes_per_s", "write, all devices", &l->all_write_bytes_per_s, 1e9, "GB/s"},
    };

    if (s->brief) {
        kvc_text_addf(&s->text,
                      "%-14s read %7.2f GB/s  write %7.2f GB/s  latency %9.1f us  per operation "
                      "%8.2f us\n",
                      l->name, l->read_bytes_per_s.value / 1e9, l->write_bytes_per_s.value / 1e9,
                      l->latency_ns.value / 1e3, l->per_op_ns.value / 1e3);
        return;
    }
    open_profile(s, l->name, NULL);
    figure(s, "read_bytes_per_s", "read", &l->read_bytes_per_s, 1e9, "GB/s");
    figure(s, "write_bytes_per_s", "write", &l->write_bytes_per_s, 1e9, "GB/s");
    figure(s, "latency_ns", "latency", &l->latency_ns, 1e3, "us");
    figure(s, "per_op_ns", "per operation", &l->per_op_ns, 1e3, "us");
    if (l->both_bytes_per_s.value > 0)
        figure(s, "both_bytes_per_s", "both ways at once", &l->both_bytes_per_s, 1e9, "GB/s");
    if (l->queue_depth.value > 0)
        figure(s, "queue_depth", "queue depth", &l->queue_depth, 1, "");
    for (size_t i = 0; i < sizeof limit / sizeof limit[0]; i++)
        if (limit[i].figure->value > 0)
            figure(s, limit[i].key, limit[i].label, limit[i].figure, limit[i].scale,
                   limit[i].unit);
    if (s->json)
        show_curve_json(s, l);
    else
        show_curve(s, l);
    close_profile(s);
}

static void show_prices(struct show *s)
{
    const struct kvc_prices *p = kvc_prices_default();

    open_profile(s, "default",
                 "prices where the scenario names none; a GPU's rent is in its hardware profile");
    figure(s, "dram_gb_month_usd", "DRAM", &p->dram_gb_month_usd, 1, "USD/GB/mon");
    figure(s, "nvme_gb_month_usd", "NVMe", &p->nvme_gb_month_usd, 1, "USD/GB/mon");
    figure(s, "remote_gb_month_usd", "remote store", &p->remote_gb_month_usd, 1, "USD/GB/mon");
    figure(s, "power_usd_per_kwh", "electricity", &p->power_usd_per_kwh, 1, "USD/kWh");
    figure(s, "pue", "power overhead (PUE)", &p->pue, 1, "");
    figure(s, "network_usd_per_hour_per_gpu", "network", &p->network_usd_per_hour_per_gpu, 1,
           "USD/h/GPU");
    close_profile(s);
}

static void show_band(struct show *s, const struct kvc_time_band *b)
{
    if (!s->json) {
        kvc_text_addf(&s->text, "  %-26s TTFT x %g to %g, TPOT x %g to %g; %s\n", "80 % band",
                      b->ttft_low, b->ttft_high, b->tpot_low, b->tpot_high, b->source);
        return;
    }
    kvc_json_open_object(&s->j, "band");
    kvc_json_double(&s->j, "ttft_low", b->ttft_low);
    kvc_json_double(&s->j, "ttft_high", b->ttft_high);
    kvc_json_double(&s->j, "tpot_low", b->tpot_low);
    kvc_json_double(&s->j, "tpot_high", b->tpot_high);
    kvc_json_string(&s->j, "source", b->source);
    kvc_json_close(&s->j);
}

/* What of a time is not kernels, and how wrong times of that engine were. */
static void show_engine(struct show *s, const struct kvc_engine_profile *e)
{
    const struct {
        const char *key, *label;
        const struct kvc_figure *figure;
        double divide;
        const char *unit;
    } figures[] = {
        {"host_per_step_ns", "host, a step", &e->host_per_step_ns, 1e3, "us"},
        {"host_per_sequence_ns", "host, a sequence in it", &e->host_per_sequence_ns, 1e3, "us"},
        {"host_per_prefill_step_ns", "host, more with prefill", &e->host_per_prefill_step_ns, 1e3,
         "us"},
        {"front_end_ns", "front end, a request", &e->front_end_ns, 1e6, "ms"},
        {"front_end_token_ns", "clients' texts, a token", &e->front_end_token_ns, 1e3, "us"},
        {"kv_load_ns", "load from below HBM", &e->kv_load_ns, 1e6, "ms"},
        {"kv_load_token_ns", "the same, a token", &e->kv_load_token_ns, 1e3, "us"},
        {"eager_launch_ns", "launch outside of graphs", &e->eager_launch_ns, 1e3, "us"},
        {"captured_tokens", "graphs of prefill up to", &e->captured_tokens, 1, "tokens"},
        {"compile_ns", "first use of a kernel", &e->compile_ns, 1e6, "ms"},
        {"mixed_step_share", "prompts beside decodes", &e->mixed_step_share, 0.01, "% more"},
        {"elementwise_launch_ns", "small kernels of a layer", &e->elementwise_launch_ns, 1e3, "us"},
        {"elementwise_bandwidth", "their share of bandwidth", &e->elementwise_bandwidth, 0.01, "%"},
        {"fused_floor_ns", "least of fused products", &e->fused_floor_ns, 1e3, "us"},
        {"custom_allreduce_max_bytes", "own all-reduce up to", &e->custom_allreduce_max_bytes,
         1 << 20, "MiB"},
        {"memory_overhead_bytes", "memory of a rank", &e->memory_overhead_bytes, 1e9, "GB"},
    };

    if (s->brief) {
        char step[32], sequence[32], prefill[32], front_end[32];
        kvc_format_ns((uint64_t)e->host_per_step_ns.value, step, sizeof step);
        kvc_format_ns((uint64_t)e->host_per_sequence_ns.value, sequence, sizeof sequence);
        kvc_format_ns((uint64_t)e->host_per_prefill_step_ns.value, prefill, sizeof prefill);
        kvc_format_ns((uint64_t)e->front_end_ns.value, front_end, sizeof front_end);
        kvc_text_addf(&s->text,
                      "%-8s host %s a step, %s a sequence, %s more with prefill; front end %s a "
                      "request\n", e->backend, step, sequence, prefill, front_end);
        return;
    }
    open_profile(s, e->backend, NULL);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        figure(s, figures[i].key, figures[i].label, figures[i].figure, figures[i].divide,
               figures[i].unit);
    show_band(s, &e->band);
    close_profile(s);
}

static enum kvc_status unknown(const char *kind, const char *name, const char *const *names,
                               struct kvc_error *err)
{
    const char *near = kvc_name_nearest(name, names);

    if (near)
        return kvc_fail(err, KVC_ERR_USAGE, "unknown %s '%s'; did you mean '%s'?", kind, name,
                        near);
    return kvc_fail(err, KVC_ERR_USAGE, "unknown %s '%s'; 'kvcast show %s' lists them", kind, name,
                    kind);
}

static void show_kv(struct show *s, const struct kvc_kv_format *f)
{
    double ratio = 2 / kvc_kv_element_bytes(f->dtype, 128);

    if (s->brief) {
        kvc_text_addf(&s->text,
                      "%-20s %.2f x the tokens of bf16, decode attention %.2f x that of %s%s\n",
                      f->name, ratio, f->decode_cost.value, kvc_dtype_name(f->kernel),
                      f->plain_layers ? "; some layers stay bf16" : "");
        return;
    }
    open_profile(s, f->name, NULL);
    if (s->json)
        kvc_json_double(&s->j, "capacity_of_bf16", ratio);
    else
        kvc_text_addf(&s->text, "  %-26s %.2f of bf16, heads of 128\n", "capacity", ratio);
    count(s, "plain_layers", "layers left in bf16", f->plain_layers);
    words(s, "kernel", "read as", kvc_dtype_name(f->kernel));
    figure(s, "decode_cost", "decode attention", &f->decode_cost, 1, "x");
    if (s->json)
        kvc_json_open_array(&s->j, "quality");
    for (const struct kvc_kv_quality *q = f->quality; q && q->model; q++) {
        if (!s->json) {
            kvc_text_addf(&s->text, "  %-26s %-16g %-10s %s; %s; %s\n", "quality", q->value,
                          "published", q->model, q->measure, q->source);
            continue;
        }
        kvc_json_open_object(&s->j, NULL);
        kvc_json_string(&s->j, "model", q->model);
        kvc_json_string(&s->j, "measure", q->measure);
        kvc_json_double(&s->j, "value", q->value);
        kvc_json_string(&s->j, "source", q->source);
        kvc_json_close(&s->j);
    }
    if (s->json)
        kvc_json_close(&s->j);
    else if (!f->quality)
        words(s, "quality", "quality",
              f->dtype == KVC_BF16 ? "the reference" : "no published figure");
    close_profile(s);
}

static enum kvc_status show_kvs(struct show *s, const char *name, struct kvc_error *err)
{
    const char *names[32] = {NULL};
    enum kvc_dtype asked = KVC_BF16;
    size_t n = 0;

    for (; kvc_kv_format_at(n) && n < 31; n++)
        names[n] = kvc_kv_format_at(n)->name;
    if (name && (!kvc_dtype_parse(name, &asked) || !kvc_kv_format(asked)))
        return unknown("kv", name, names, err);
    for (size_t i = 0; i < n; i++)
        if (!name || kvc_kv_format_at(i)->dtype == asked)
            show_kv(s, kvc_kv_format_at(i));
    return KVC_OK;
}

static enum kvc_status show_named(struct show *s, const char *kind, const char *name,
                                  struct kvc_error *err)
{
    if (strcmp(kind, "hardware") == 0) {
        if (name && !kvc_gpu_find(name))
            return unknown(kind, name, kvc_gpu_names(), err);
        if (s->brief)
            brief_gpu(s, NULL);
        for (const char *const *n = kvc_gpu_names(); *n; n++)
            if (!name || kvc_name_equal(*n, name))
                show_gpu(s, kvc_gpu_find(*n));
    } else if (strcmp(kind, "model") == 0) {
        if (name && !kvc_llm_find(name))
            return unknown(kind, name, kvc_llm_names(), err);
        for (const char *const *n = kvc_llm_names(); *n; n++)
            if (!name || kvc_name_equal(*n, name))
                show_llm(s, kvc_llm_find(*n));
    } else if (strcmp(kind, "link") == 0) {
        if (name && !kvc_link_find(name))
            return unknown(kind, name, kvc_link_names(), err);
        for (const char *const *n = kvc_link_names(); *n; n++)
            if (!name || kvc_name_equal(*n, name))
                show_link(s, kvc_link_find(*n));
    } else if (strcmp(kind, "engine") == 0) {
        if (name && !kvc_engine_find(name))
            return unknown(kind, name, kvc_engine_names(), err);
        for (const char *const *n = kvc_engine_names(); *n; n++)
            if (!name || kvc_name_equal(*n, name))
                show_engine(s, kvc_engine_find(*n));
    } else if (strcmp(kind, "kv") == 0) {
        return show_kvs(s, name, err);
    } else if (strcmp(kind, "price") == 0) {
        static const char *const names[] = {"default", NULL};
        if (name && !kvc_name_equal(name, "default"))
            return unknown(kind, name, names, err);
        show_prices(s);
    } else {
        return kvc_fail(err, KVC_ERR_USAGE,
                        "cannot show '%s'; known: hardware, model, engine, preset, price, link, kv",
                        kind);
    }
    return KVC_OK;
}

enum kvc_status kvc_models_show(char **out, const char *kind, const char *name, bool json,
                                struct kvc_error *err)
{
    struct show s = {.json = json, .brief = !json && !name, .kernels = name != NULL};
    enum kvc_status status = kvc_profiles_ready(err);

    if (status != KVC_OK)
        return status;
    if (json) {
        kvc_json_init(&s.j, true);
        kvc_json_open_object(&s.j, NULL);
        kvc_json_string(&s.j, "schema", "kvcast.show.v1");
        kvc_json_string(&s.j, "kind", kind);
        kvc_json_string(&s.j, "digest", kvc_profiles_digest());
        kvc_json_open_array(&s.j, "profiles");
    }
    status = show_named(&s, kind, name, err);
    if (json) {
        kvc_json_close(&s.j);
        kvc_json_close(&s.j);
    }
    char *text = json ? kvc_json_take(&s.j) : s.text.buf;
    if (status == KVC_OK && (!text || s.text.failed))
        status = kvc_fail_nomem(err);
    if (status != KVC_OK) {
        kvc_free(text);
        return status;
    }
    *out = text;
    return KVC_OK;
}
