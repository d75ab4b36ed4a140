/* SPDX-License-Identifier: Apache-2.0
 * vLLM server logs: requests where --enable-log-requests wrote them down, and what engines state of
 * their caches. LMCache's lines in the same log are read too. */
#include "base/alloc.h"
#include "base/error.h"
#include "traces/formats/engine_log.h"
#include "traces/parse/py_repr.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

#define CURE                                                                                       \
    "Start vLLM with --enable-log-requests, VLLM_LOGGING_LEVEL=DEBUG and --enable-log-outputs to "\
    "have prompts and answers logged"
#define GIB 1073741824.0

struct own {
    bool lmcache; /* has lines of LMCache */
};

/* ---- engines ---- */

/* "(EngineCore_DP1 pid=7)", "(Worker_DP1_TP0 pid=8)" and "Engine 001:" are one engine. */
static struct kvc_engine_facts *engine_of(struct kvc_engine_log *l)
{
    char name[40] = "engine 0";
    uint64_t number;
    size_t head = l->n < 80 ? l->n : 80;
    const char *close = l->n && l->line[0] == '(' ? memchr(l->line, ')', head) : NULL;
    if (kvc_line_u64(l->line, l->n, "] Engine ", &number) ||
        (close && kvc_line_u64(l->line, (size_t)(close - l->line), "DP", &number)))
        snprintf(name, sizeof(name), "engine %llu", (unsigned long long)number);
    return kvc_import_engine(l->im, name);
}

static bool statistics(struct kvc_engine_log *l)
{
    double v;
    uint64_t n;
    if (!kvc_line_number(l->line, l->n, "Avg prompt throughput: ", &v))
        return false;
    struct kvc_engine_facts *e = engine_of(l);
    if (!e)
        return true;
    e->lines++;
    kvc_peak(&e->prompt_tokens_per_s_peak, v);
    if (kvc_line_number(l->line, l->n, "Avg generation throughput: ", &v))
        kvc_peak(&e->output_tokens_per_s_peak, v);
    if (kvc_line_u64(l->line, l->n, "Running: ", &n))
        kvc_peak_u64(&e->running_peak, n);
    if (kvc_line_u64(l->line, l->n, "Waiting: ", &n) ||
        kvc_line_u64(l->line, l->n, "Pending: ", &n))
        kvc_peak_u64(&e->waiting_peak, n);
    if (kvc_line_u64(l->line, l->n, "Preemptions: ", &n))
        kvc_peak_u64(&e->preemptions, n);
    if (kvc_line_number(l->line, l->n, "GPU KV cache usage: ", &v))
        kvc_peak(&e->kv_used_peak, v / 100);
    if (kvc_line_number(l->line, l->n, ", Prefix cache hit rate: ", &v) ||
        kvc_line_number(l->line, l->n, "Prefix cache hit rate: GPU: ", &v))
        e->hit_rate_last = v / 100;
    if (kvc_line_number(l->line, l->n, "External prefix cache hit rate: ", &v))
        e->external_hit_rate_last = v / 100;
    return true;
}

static bool sizes(struct kvc_engine_log *l)
{
    double v;
    uint64_t n;
    if (kvc_line_number(l->line, l->n, "Available KV cache memory: ", &v) && v > 0 && v < 1e6) {
        struct kvc_engine_facts *e = engine_of(l);
        uint64_t bytes = (uint64_t)(v * GIB);
        if (e && (!e->kv_cache_bytes || bytes < e->kv_cache_bytes)) /* workers print one each */
            e->kv_cache_bytes = bytes;
        return true;
    }
    if (kvc_line_u64(l->line, l->n, "GPU KV cache size: ", &n)) {
        struct kvc_engine_facts *e = engine_of(l);
        if (e)
            e->kv_cache_tokens = n;
        return true;
    }
    if (kvc_line_u64(l->line, l->n, "Maximum concurrency for ", &n)) {
        struct kvc_engine_facts *e = engine_of(l);
        if (e && kvc_line_number(l->line, l->n, "tokens per request: ", &v)) {
            e->concurrency_tokens = n;
            e->concurrency = v;
        }
        return true;
    }
    return false;
}

/* ---- requests ---- */

/* max_log_len cuts the text to so many characters and the ids to so many tokens: a text is never
 * of as few characters as tokens otherwise, when it is long. */
static bool is_cut(size_t tokens, size_t characters)
{
    return tokens >= 8 && tokens == characters;
}

static bool keep_prompt(struct kvc_engine_log *l, struct kvc_open_request *q,
                        const struct kvc_span *prompt, const struct kvc_span *ids)
{
    size_t characters = 0, n = 0;
    l->text.len = 0;
    bool text = prompt->text && kvc_py_string(prompt, &l->text, &characters) && characters;
    bool tokens = ids->text && kvc_py_ids(ids, &l->ids, &n) && n;
    if (n == KVC_ID_NONE || l->text.failed)
        return false;
    if (q->token_ids || q->text)
        return true;
    q->cut = text && tokens && is_cut(n, characters);
    if (q->cut || n > KVC_TOKENS_MAX)
        return true;
    if (tokens) {
        q->input_tokens = (uint32_t)n;
        q->input_stated = true;
        return kvc_open_request_ids(q, l->ids.v, n);
    }
    return !text || kvc_open_request_text(q, l->text.buf, l->text.len);
}

static bool keep_adapter(struct kvc_open_request *q, const struct kvc_span *lora)
{
    struct kvc_py w;
    struct kvc_span key, value;
    if (!lora->text || !kvc_py_inside(lora, &w))
        return true;
    while (kvc_py_member(&w, '=', &key, &value))
        if (kvc_py_is(&key, "lora_name") && value.n > 2 && !q->adapter) {
            q->adapter = kvc_calloc(value.n - 1, 1);
            if (q->adapter)
                memcpy(q->adapter, value.text + 1, value.n - 2);
            return q->adapter != NULL;
        }
    return true;
}

/* "Received request ID: prompt: '..', params: .., prompt_token_ids: [..]", which newer versions
 * split over "Request ID details: .." and a line without the prompt. */
static enum kvc_status received(struct kvc_engine_log *l, const char *id, size_t n_id,
                                const char *rest, size_t n, struct kvc_error *err)
{
    struct kvc_py w = { rest, rest + n };
    struct kvc_span key, value, prompt = { 0 }, ids = { 0 }, lora = { 0 };
    struct kvc_open_request *q = kvc_open_request(&l->requests, id, n_id, true, l->time_ns,
                                                  kvc_import_line_number(l->im));
    if (!q)
        return kvc_fail_nomem(err);
    while (kvc_py_member(&w, ':', &key, &value)) {
        if (kvc_py_is(&key, "prompt"))
            prompt = value;
        else if (kvc_py_is(&key, "prompt_token_ids"))
            ids = value;
        else if (kvc_py_is(&key, "lora_request"))
            lora = value;
    }
    return keep_prompt(l, q, &prompt, &ids) && keep_adapter(q, &lora) ? KVC_OK
                                                                      : kvc_fail_nomem(err);
}

/* "Generated response ID (streaming delta): output: '..', output_token_ids: [..], .." */
static enum kvc_status generated(struct kvc_engine_log *l, const char *id, size_t n_id,
                                 const char *rest, size_t n, struct kvc_error *err)
{
    struct kvc_py w = { rest, rest + n };
    struct kvc_span key, value, output = { 0 }, ids = { 0 };
    size_t tokens, characters = 0;
    bool delta = kvc_line_after(id, n_id, " (streaming delta", &tokens) != NULL;
    const char *space = memchr(id, ' ', n_id);
    struct kvc_open_request *q = kvc_open_request(&l->requests, id,
                                                  space ? (size_t)(space - id) : n_id, false, 0, 0);
    if (!q)
        return KVC_OK;
    while (kvc_py_member(&w, ':', &key, &value)) {
        if (kvc_py_is(&key, "output"))
            output = value;
        else if (kvc_py_is(&key, "output_token_ids"))
            ids = value;
        else if (kvc_py_is(&key, "finish_reason") && value.n >= 5 &&
                 (memcmp(value.text, "abort", 5) == 0 || memcmp(value.text, "error", 5) == 0))
            q->status = value.text[0] == 'a' ? KVC_ROW_CANCELLED : KVC_ROW_FAILED;
    }
    l->text.len = 0;
    bool told = ids.text && kvc_py_ids(&ids, &l->ids, &tokens);
    if (told && !delta && output.text && kvc_py_string(&output, &l->text, &characters) &&
        is_cut(tokens, characters))
        told = false;
    if (l->text.failed || (ids.text && tokens == KVC_ID_NONE))
        return kvc_fail_nomem(err);
    if (told && tokens <= KVC_TOKENS_MAX - q->output_tokens && (delta || !q->output_stated)) {
        q->output_tokens += (uint32_t)tokens;
        q->output_stated = true;
    }
    q->done = q->done || !delta;
    return KVC_OK;
}

/* What LMCache found of a prompt. It may say so again for a request that waits: the last counts.
 * What need not be loaded of its hits, or less than nothing, the engine has already. */
static enum kvc_status lookup(struct kvc_engine_log *l, const char *rest, size_t n,
                              struct kvc_error *err)
{
    uint64_t total, hits;
    double need;
    const char *comma = memchr(rest, ',', n);
    if (!comma || !kvc_line_u64(rest, n, "otal tokens ", &total) ||
        !kvc_line_u64(rest, n, "LMCache hit tokens: ", &hits) ||
        !kvc_line_number(rest, n, "need to load: ", &need) || total > KVC_TOKENS_MAX ||
        hits > total)
        return KVC_OK;
    struct kvc_open_request *q = kvc_open_request(&l->requests, rest, (size_t)(comma - rest), true,
                                                  l->time_ns, kvc_import_line_number(l->im));
    if (!q)
        return kvc_fail_nomem(err);
    double engine = (double)hits - need; /* what it had computed or cached before */
    double cached = engine > (double)hits ? engine : (double)hits;
    if (!q->token_ids)
        q->input_tokens = (uint32_t)total;
    q->input_stated = q->cached_stated = true;
    q->cached_tokens = cached < (double)total ? (uint32_t)cached : (uint32_t)total;
    ((struct own *)l->own)->lmcache = true;
    return KVC_OK;
}

static bool moved(struct kvc_engine_log *l)
{
    double tokens, gb;
    size_t rest;
    bool in = kvc_line_after(l->line, l->n, " Stored ", &rest) != NULL;
    const char *p = kvc_line_after(l->line, l->n, in ? " Stored " : " Retrieved ", &rest);
    if (!p || !memmem(p, rest, " out of ", 8) || !kvc_line_number(p, rest, "", &tokens) ||
        !kvc_line_number(p, rest, "size: ", &gb) || tokens < 0 || gb < 0 || gb > 1e9)
        return false;
    struct kvc_engine_facts *e = engine_of(l);
    if (e) {
        *(in ? &e->stored_tokens : &e->retrieved_tokens) += (uint64_t)tokens;
        *(in ? &e->stored_bytes : &e->retrieved_bytes) += (uint64_t)(gb * GIB);
    }
    ((struct own *)l->own)->lmcache = true;
    return true;
}

/* "Aborted request ID." and the like: the last we hear of it. */
static bool ended(struct kvc_engine_log *l)
{
    static const struct {
        const char *words;
        uint8_t status;
    } known[] = { { "] Aborted request ", KVC_ROW_CANCELLED },
                  { "] Finished request ", KVC_ROW_OK } };
    size_t n;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *id = kvc_line_after(l->line, l->n, known[i].words, &n);
        if (!id)
            continue;
        while (n && (id[n - 1] == '.' || id[n - 1] == ' '))
            n--;
        struct kvc_open_request *q = kvc_open_request(&l->requests, id, n, false, 0, 0);
        if (q && known[i].status)
            q->status = known[i].status;
        if (q)
            q->done = true;
        return true;
    }
    return false;
}

/* ---- lines ---- */

static enum kvc_status one_line(struct kvc_engine_log *l, bool *known, struct kvc_error *err)
{
    static const struct {
        const char *words, *behind;
        enum kvc_status (*read)(struct kvc_engine_log *, const char *, size_t, const char *, size_t,
                                struct kvc_error *);
    } about[] = { { "] Received request ", ": ", received },
                  { "] Request ", " details: ", received },
                  { "] Generated response ", ": ", generated } };
    size_t n, rest;
    *known = true;
    l->time_ns = kvc_line_time(&l->clock, l->line, l->n);
    for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
        const char *id = kvc_line_after(l->line, l->n, about[i].words, &n);
        const char *behind = id ? kvc_line_after(id, n, about[i].behind, &rest) : NULL;
        if (behind)
            return about[i].read(l, id, n - rest - strlen(about[i].behind), behind, rest, err);
    }
    const char *id = kvc_line_after(l->line, l->n, "Reqid: ", &n);
    if (id)
        return lookup(l, id, n, err);
    *known = statistics(l) || sizes(l) || ended(l) || moved(l);
    return KVC_OK;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct own own = { false };
    struct kvc_engine_log l = { .im = im, .own = &own };
    enum kvc_status status = kvc_engine_log_read(&l, one_line, err);
    if (l.clock.yearless)
        kvc_import_note(im, "times have no year: taken as %u, one more each time December turns "
                        "January", 2024);
    if (own.lmcache)
        kvc_import_note(im, "LMCache's gb are 2^30 bytes; cached tokens are the greater of its "
                        "hits and of what the engine had, its hits less what had to be loaded");
    return status;
}

static enum kvc_status end(struct kvc_import *im, struct kvc_error *err)
{
    return kvc_engine_log_end(im, CURE, err);
}

static bool sniff(const char *head, size_t n)
{
    static const char *const words[] = {
        "] Engine 0",  "GPU KV cache size: ",         "Avg prompt throughput: ",
        "] Received request ", "Available KV cache memory: ", "vLLM API server version",
        "LMCache hit tokens: ",
    };
    size_t i = 0;
    while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r'))
        i++;
    if (i == n || head[i] == '{')
        return false;
    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
        if (memmem(head, n, words[k], strlen(words[k])))
            return true;
    return false;
}

const struct kvc_format kvc_format_vllm_log = {
    .name = "vllm-log",
    .summary = "vLLM server logs, with LMCache's lines in them",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
    .end = end,
};
