/* SPDX-License-Identifier: Apache-2.0
 * Dumps of KV events as JSON lines: vLLM's and SGLang's batches [ts, events, dp_rank] of tagged
 * lists or objects, and Dynamo's router events. They tell what was stored and removed, never a
 * hit. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "traces/formats/kv_residency.h"
#include "traces/import/anonymize.h"
#include "traces/import/sniff.h"
#include "traces/parse/fields.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

struct kept {
    struct kvc_residency residency;
    uint64_t *sequence; /* by instance: of the last message + 1, 0 = none yet */
    size_t sequence_cap;
    uint64_t gaps, lost; /* in the numbers of messages */
};

struct reader {
    struct kvc_import *im;
    struct kept *kept;
    struct kvc_id_buffer ids, tokens;
    struct kvc_place at;
    uint64_t ns; /* of the message being read */
    uint32_t instance;
};

static void clear_kept(void *p)
{
    struct kept *k = p;
    kvc_residency_clear(&k->residency);
    kvc_free(k->sequence);
}

/* ---- one event ---- */

/* Its fields by name, or by place in a list, which older engines end earlier. */
struct event {
    const struct kvc_jval *hashes, *parent, *tokens, *block_size, *medium, *group, *kind;
    const struct kvc_jval *adapter, *adapter_id, *extra; /* part of a key beside tokens */
};

static const struct kvc_jval *nth(const struct kvc_jval *list, size_t n)
{
    const struct kvc_jval *v = kvc_jval_first(list);
    for (; v && n; n--)
        v = kvc_jval_next(v);
    return v && kvc_jval_kind(v) != KVC_JNULL ? v : NULL;
}

static void find_fields(const struct kvc_jval *v, bool stored, struct event *e)
{
    if (kvc_jval_kind(v) == KVC_JARRAY) {
        *e = (struct event){ .hashes = nth(v, 1) };
        e->parent = stored ? nth(v, 2) : NULL;
        e->tokens = stored ? nth(v, 3) : NULL;
        e->block_size = stored ? nth(v, 4) : NULL;
        e->medium = nth(v, stored ? 6 : 2);
        e->group = nth(v, stored ? 9 : 3);
        e->kind = stored ? nth(v, 10) : NULL;
        e->adapter_id = stored ? nth(v, 5) : NULL;
        e->adapter = stored ? nth(v, 7) : NULL;
        e->extra = stored ? nth(v, 8) : NULL;
        return;
    }
    *e = (struct event){ .hashes = kvc_field_member(v, "block_hashes"),
                         .parent = kvc_field_member(v, "parent_block_hash"),
                         .tokens = kvc_field_member(v, "token_ids"),
                         .block_size = kvc_field_member(v, "block_size"),
                         .medium = kvc_field_member(v, "medium"),
                         .group = kvc_field_member(v, "group_idx"),
                         .adapter_id = kvc_field_member(v, "lora_id"),
                         .adapter = kvc_field_member(v, "lora_name"),
                         .extra = kvc_field_member(v, "extra_keys"),
                         .kind = kvc_field_member(v, "kv_cache_spec_kind") };
}

/* Hybrid models keep several caches; only that of full attention holds whole prefixes. */
static bool other_cache(const struct event *e)
{
    static const char *const main_kinds[] = { "full_attention", "mla_attention",
                                              "sink_full_attention" };
    const char *kind = e->kind ? kvc_jval_string(e->kind) : NULL;
    uint64_t group;
    for (size_t i = 0; kind && i < 3; i++)
        if (strcmp(kind, main_kinds[i]) == 0)
            return false;
    return kind || (e->group && kvc_jval_u64(e->group, &group) && group);
}

static enum kvc_status read_hash(struct reader *r, const char *field, const struct kvc_jval *v,
                                 struct kvc_block_name *out, struct kvc_error *err)
{
    const char *text = kvc_jval_string(v);
    int64_t negative;
    out->text = text != NULL;
    if (text)
        out->id = kvc_import_text_id(text, strlen(text));
    else if (kvc_jval_i64(v, &negative))
        out->id = (uint64_t)negative;
    else if (!kvc_jval_u64(v, &out->id))
        return kvc_field_wrong(&r->at, field, v, "a block's hash is a whole number below 2^64, or "
                               "text", err);
    return KVC_OK;
}

static uint32_t medium_of(struct reader *r, const struct kvc_jval *v)
{
    const char *name = v ? kvc_jval_string(v) : NULL;
    return kvc_residency_medium(&r->kept->residency, name ? name : "");
}

/* The size of blocks, and that the tokens are as many as the blocks hold. Other tiers may cut
 * larger ones. */
static enum kvc_status check_size(struct reader *r, const struct event *e, size_t blocks,
                                  bool device, struct kvc_error *err)
{
    uint32_t given = kvc_import_options_of(r->im)->block_tokens;
    const struct kvc_jval *first;
    uint64_t size;
    if (!e->block_size)
        return kvc_field_missing(&r->at, "block_size", err);
    if (!kvc_jval_u64(e->block_size, &size) || !size || size > KVC_TOKENS_MAX)
        return kvc_field_wrong(&r->at, "block_size", e->block_size, "a whole number of tokens from "
                               "1 to 2^31-1 is expected", err);
    bool list = e->tokens && kvc_jval_kind(e->tokens) == KVC_JARRAY;
    first = list ? kvc_jval_first(e->tokens) : NULL;
    if (first && kvc_jval_kind(first) == KVC_JNUMBER &&
        kvc_jval_count(e->tokens) != blocks * size)
        return kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, "token_ids",
                           "%zu tokens for %zu blocks of %llu", kvc_jval_count(e->tokens), blocks,
                           (unsigned long long)size);
    if (device && given && given != size)
        return kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, "block_size",
                           "blocks of %llu tokens, where --block-tokens says %u",
                           (unsigned long long)size, given);
    return device ? kvc_import_block_size(r->im, (uint32_t)size, err) : KVC_OK;
}

static bool all_null(const struct kvc_jval *list)
{
    const struct kvc_jval *v = list && kvc_jval_kind(list) == KVC_JARRAY ? kvc_jval_first(list)
                                                                         : NULL;
    while (v && kvc_jval_kind(v) == KVC_JNULL)
        v = kvc_jval_next(v);
    return !v && (!list || kvc_jval_kind(list) == KVC_JARRAY);
}

static uint64_t number_of(const struct kvc_jval *v)
{
    const char *text = v ? kvc_jval_string(v) : NULL;
    uint64_t n = 0, h = 1;
    if (v && !text && kvc_jval_u64(v, &n))
        return kvc_mix64(n + 2);
    for (; text && *text; text++)
        h = kvc_mix64(h ^ (unsigned char)*text);
    return v ? h : 0;
}

/* A number for the tokens of each of n blocks; *known false where not all that a key is made of is
 * told: no tokens, or a salt or images besides. */
static bool read_tokens(struct reader *r, const struct event *e, size_t n, bool *known)
{
    size_t all = e->tokens && kvc_jval_kind(e->tokens) == KVC_JARRAY ? kvc_jval_count(e->tokens)
                                                                     : 0;
    const struct kvc_jval *t = all ? kvc_jval_first(e->tokens) : NULL;
    *known = n && all && all % n == 0 && all_null(e->extra);
    if (!*known)
        return true;
    if (!kvc_grow((void **)&r->tokens.v, &r->tokens.cap, n, sizeof(*r->tokens.v)))
        return false;
    uint64_t adapter = number_of(e->adapter) ^ kvc_mix64(number_of(e->adapter_id));
    for (size_t i = 0; i < n; i++) {
        uint64_t h = adapter, id;
        for (size_t k = 0; k < all / n; k++, t = kvc_jval_next(t)) {
            *known = *known && kvc_jval_u64(t, &id);
            h = *known ? kvc_mix64(h ^ kvc_mix64(id + 1)) : 0;
        }
        r->tokens.v[i] = h;
    }
    return true;
}

static enum kvc_status read_blocks(struct reader *r, const struct kvc_jval *v, bool stored,
                                   struct kvc_error *err)
{
    struct kvc_block_name parent;
    struct event e;
    size_t n;
    bool text = false, known = false;
    find_fields(v, stored, &e);
    if (other_cache(&e)) {
        kvc_import_tally(r->im, "events of a further cache of a hybrid model (sliding window, "
                                "state): left out");
        return KVC_OK;
    }
    if (!e.hashes)
        return kvc_field_missing(&r->at, "block_hashes", err);
    enum kvc_status status = kvc_field_ids(&r->at, "block_hashes", e.hashes, r->im, &r->ids, 0, &n,
                                           &text, err);
    if (status == KVC_OK && e.parent)
        status = read_hash(r, "parent_block_hash", e.parent, &parent, err);
    uint32_t medium = medium_of(r, e.medium);
    if (status == KVC_OK && stored)
        status = check_size(r, &e, n, r->kept->residency.medium[medium].device, err);
    if (status != KVC_OK)
        return status;
    kvc_import_tally(r->im, stored ? "BlockStored events" : "BlockRemoved events");
    if (stored && !read_tokens(r, &e, n, &known))
        return kvc_fail_nomem(err);
    struct kvc_stored_blocks blocks = { e.parent ? &parent : NULL, r->ids.v,
                                        known ? r->tokens.v : NULL, n, text };
    bool ok = stored ? kvc_residency_store(&r->kept->residency, r->instance, medium, r->ns, &blocks)
                     : kvc_residency_remove(&r->kept->residency, r->instance, medium, r->ns,
                                            r->ids.v, n, text);
    return ok ? KVC_OK : kvc_fail_nomem(err);
}

static enum kvc_status read_event(struct reader *r, const struct kvc_jval *v, struct kvc_error *err)
{
    bool list = kvc_jval_kind(v) == KVC_JARRAY;
    const struct kvc_jval *tag = list ? nth(v, 0) : kvc_field_member(v, "type");
    const char *word = tag ? kvc_jval_string(tag) : NULL;
    char text[KVC_SHOWN_NAME + 48], kind[KVC_SHOWN_NAME];
    if (!word)
        return kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, "events",
                           "an event is a list that begins with its type, or an object with one");
    if (strcmp(word, "BlockStored") == 0 || strcmp(word, "BlockRemoved") == 0)
        return read_blocks(r, v, word[5] == 'S', err);
    if (strcmp(word, "AllBlocksCleared") == 0) {
        kvc_import_tally(r->im, "AllBlocksCleared events");
        kvc_residency_drop(&r->kept->residency, r->instance);
        return KVC_OK;
    }
    kvc_import_shown_name(r->im, "kind", word, strlen(word), kind);
    snprintf(text, sizeof(text), "%s events, which say nothing of blocks", kind);
    kvc_import_tally(r->im, text);
    return KVC_OK;
}

/* ---- messages ---- */

/* Who sent it: an engine's process and rank. */
static enum kvc_status set_instance(struct reader *r, const struct kvc_jval *outer,
                                    const struct kvc_jval *rank, struct kvc_error *err)
{
    static const char *const who[] = { "worker_id", "instance_id", "source", "topic" };
    char text[200], digits[24];
    struct kvc_span name = { 0 };
    uint64_t number = 0;
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < 4 && outer && !name.text && status == KVC_OK; i++)
        status = kvc_field_name(&r->at, who[i], outer, digits, &name, err);
    if (status != KVC_OK)
        return status;
    if (rank && !kvc_jval_u64(rank, &number))
        return kvc_field_wrong(&r->at, "dp_rank", rank, "a whole number is expected", err);
    snprintf(text, sizeof(text), "%llu %.*s", (unsigned long long)number,
             (int)(name.n < 150 ? name.n : 150), name.text ? name.text : "");
    if (!kvc_intern_get(&r->kept->residency.instances, text, strlen(text), &r->instance))
        return kvc_fail_nomem(err);
    if (r->instance >= UINT32_MAX / KVC_MEDIA)
        return kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, NULL, "too many instances");
    return KVC_OK;
}

/* Numbers of an instance's messages are in sequence; what is missing was lost on its way. */
static enum kvc_status check_sequence(struct reader *r, const struct kvc_jval *v,
                                      struct kvc_error *err)
{
    struct kept *k = r->kept;
    size_t had = k->sequence_cap;
    uint64_t n;
    if (!v || !kvc_jval_u64(v, &n) || n == UINT64_MAX)
        return KVC_OK;
    if (!kvc_grow((void **)&k->sequence, &k->sequence_cap, (size_t)r->instance + 1,
                  sizeof(*k->sequence)))
        return kvc_fail_nomem(err);
    memset(k->sequence + had, 0, (k->sequence_cap - had) * sizeof(*k->sequence));
    if (k->sequence[r->instance] && n > k->sequence[r->instance]) {
        k->gaps++;
        k->lost += n - k->sequence[r->instance];
    }
    k->sequence[r->instance] = n + 1;
    return KVC_OK;
}

static enum kvc_status read_time(struct reader *r, const char *field, const struct kvc_jval *v,
                                 enum kvc_time_unit usual, struct kvc_error *err)
{
    return v ? kvc_field_when(r->im, &r->at, field, v, usual, &r->ns, err)
             : kvc_field_missing(&r->at, field, err);
}

static const struct kvc_jval *either(const struct kvc_jval *v, const char *a, const char *b)
{
    const struct kvc_jval *m = kvc_field_member(v, a);
    return m ? m : kvc_field_member(v, b);
}

/* [ts, events, dp_rank] or the same as an object; outer is what it is wrapped in, or NULL. */
static enum kvc_status read_batch(struct reader *r, const struct kvc_jval *batch,
                                  const struct kvc_jval *outer, struct kvc_error *err)
{
    bool list = kvc_jval_kind(batch) == KVC_JARRAY;
    const struct kvc_jval *ts = list ? nth(batch, 0) : either(batch, "ts", "timestamp");
    const struct kvc_jval *events = list ? nth(batch, 1) : kvc_field_member(batch, "events");
    const struct kvc_jval *rank = list ? nth(batch, 2)
                                       : either(batch, "data_parallel_rank", "dp_rank");
    const struct kvc_jval *around = outer ? outer : list ? NULL : batch;
    enum kvc_status status = read_time(r, "ts", ts, KVC_UNIT_S, err);
    if (status == KVC_OK && (!events || kvc_jval_kind(events) != KVC_JARRAY))
        status = kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, "events",
                             "a list of events is expected");
    if (status == KVC_OK)
        status = set_instance(r, around, rank, err);
    if (status == KVC_OK)
        status = check_sequence(r, around ? kvc_field_member(around, "seq") : NULL, err);
    for (const struct kvc_jval *e = status == KVC_OK ? kvc_jval_first(events) : NULL;
         e && status == KVC_OK; e = kvc_jval_next(e))
        status = read_event(r, e, err);
    return status;
}

/* An event of its own with a time in it. */
static enum kvc_status read_single(struct reader *r, const struct kvc_jval *v,
                                   struct kvc_error *err)
{
    enum kvc_status status = read_time(r, "ts", either(v, "ts", "timestamp"), KVC_UNIT_S, err);
    if (status == KVC_OK)
        status = set_instance(r, v, either(v, "data_parallel_rank", "dp_rank"), err);
    return status == KVC_OK ? read_event(r, v, err) : status;
}

/* ---- Dynamo ---- */

static enum kvc_status read_dynamo_stored(struct reader *r, const struct kvc_jval *stored,
                                          uint32_t medium, struct kvc_error *err)
{
    const struct kvc_jval *blocks = kvc_field_member(stored, "blocks");
    const struct kvc_jval *above = kvc_field_member(stored, "parent_hash"), *hash;
    struct kvc_block_name parent = { 0 }, name = { 0 };
    bool text = false, known = true;
    size_t n = 0;
    if (!blocks || kvc_jval_kind(blocks) != KVC_JARRAY)
        return kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, "stored.blocks",
                           "a list of blocks is expected");
    if (!kvc_grow((void **)&r->ids.v, &r->ids.cap, kvc_jval_count(blocks), sizeof(*r->ids.v)) ||
        !kvc_grow((void **)&r->tokens.v, &r->tokens.cap, kvc_jval_count(blocks),
                  sizeof(*r->tokens.v)))
        return kvc_fail_nomem(err);
    enum kvc_status status = above ? read_hash(r, "stored.parent_hash", above, &parent, err)
                                   : KVC_OK;
    for (const struct kvc_jval *b = kvc_jval_first(blocks); b && status == KVC_OK;
         b = kvc_jval_next(b)) {
        hash = kvc_field_member(b, "block_hash");
        status = hash ? read_hash(r, "block_hash", hash, &name, err)
                      : kvc_field_missing(&r->at, "block_hash", err);
        text = n ? text : name.text;
        if (status == KVC_OK && name.text != text)
            status = kvc_field_wrong(&r->at, "block_hash", hash, "hashes are all numbers, or all "
                                     "text", err);
        const struct kvc_jval *tokens = kvc_field_member(b, "tokens_hash");
        known = known && tokens && kvc_jval_u64(tokens, &r->tokens.v[n]);
        r->ids.v[n++] = name.id;
    }
    if (status != KVC_OK)
        return status;
    kvc_import_tally(r->im, "BlockStored events");
    struct kvc_stored_blocks s = { above ? &parent : NULL, r->ids.v, known ? r->tokens.v : NULL,
                                   n, text };
    return kvc_residency_store(&r->kept->residency, r->instance, medium, r->ns, &s)
               ? KVC_OK
               : kvc_fail_nomem(err);
}

static enum kvc_status read_dynamo_removed(struct reader *r, const struct kvc_jval *removed,
                                           uint32_t medium, struct kvc_error *err)
{
    const struct kvc_jval *hashes = kvc_field_member(removed, "block_hashes");
    size_t n;
    bool text = false;
    if (!hashes)
        return kvc_field_missing(&r->at, "removed.block_hashes", err);
    enum kvc_status status = kvc_field_ids(&r->at, "removed.block_hashes", hashes, r->im, &r->ids,
                                           0, &n, &text, err);
    if (status != KVC_OK)
        return status;
    kvc_import_tally(r->im, "BlockRemoved events");
    return kvc_residency_remove(&r->kept->residency, r->instance, medium, r->ns, r->ids.v, n, text)
               ? KVC_OK
               : kvc_fail_nomem(err);
}

/* {"worker_id", "storage_tier", "event": {"event_id", "dp_rank", "data": {..}}} in a recorder's
 * {"timestamp", "event"}. */
static enum kvc_status read_dynamo(struct reader *r, const struct kvc_jval *root,
                                   const struct kvc_jval *router, struct kvc_error *err)
{
    const struct kvc_jval *event = kvc_field_member(router, "event");
    const struct kvc_jval *data = kvc_field_member(event, "data");
    const struct kvc_jval *stored = kvc_field_member(data, "stored");
    const struct kvc_jval *removed = kvc_field_member(data, "removed");
    enum kvc_status status = read_time(r, "timestamp", kvc_field_member(root, "timestamp"),
                                       KVC_UNIT_MS, err);
    if (status == KVC_OK)
        status = set_instance(r, router, kvc_field_member(event, "dp_rank"), err);
    if (status == KVC_OK)
        status = check_sequence(r, kvc_field_member(event, "event_id"), err);
    if (status == KVC_OK && !kvc_import_options_of(r->im)->block_tokens) {
        kvc_import_note(r->im, "Dynamo's events don't say how large a block is: each counts as one "
                        "token, so that rates are of blocks and all other tokens, bytes and times "
                        "mean nothing; name the size with --block-tokens");
        status = kvc_import_block_size(r->im, 1, err);
    }
    if (status != KVC_OK)
        return status;
    uint32_t medium = medium_of(r, kvc_field_member(router, "storage_tier"));
    if (stored)
        return read_dynamo_stored(r, stored, medium, err);
    if (removed)
        return read_dynamo_removed(r, removed, medium, err);
    const char *word = kvc_jval_string(data);
    if ((word && strcmp(word, "cleared") == 0) || kvc_jval_member(data, "cleared")) {
        kvc_import_tally(r->im, "AllBlocksCleared events");
        kvc_residency_drop(&r->kept->residency, r->instance);
        return KVC_OK;
    }
    return kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, "event.data",
                       "stored, removed or cleared is expected");
}

/* ---- the format ---- */

static enum kvc_status read_message(struct reader *r, const struct kvc_jval *v,
                                    struct kvc_error *err)
{
    const struct kvc_jval *inner = kvc_field_member(v, "event"), *batch;
    if (kvc_jval_kind(v) == KVC_JARRAY)
        return read_batch(r, v, NULL, err);
    if (kvc_field_member(v, "events"))
        return read_batch(r, v, NULL, err);
    if ((batch = either(v, "payload", "batch")))
        return read_batch(r, batch, v, err);
    if (kvc_field_member(kvc_field_member(inner, "event"), "data"))
        return read_dynamo(r, v, inner, err);
    if (kvc_field_member(inner, "data"))
        return read_dynamo(r, v, v, err);
    return read_single(r, v, err);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .im = im, .kept = kvc_import_keep(im, sizeof(*r.kept), clear_kept) };
    const char *text;
    size_t n;
    enum kvc_status status;
    if (!r.kept)
        return kvc_fail_nomem(err);
    if (kvc_import_options_of(im)->forget_ns)
        return kvc_fail(err, KVC_ERR_USAGE, "which blocks events leave in a cache, and the rows "
                                            "made of them, are known when all are read: nothing "
                                            "can be forgotten before; leave out --forget");
    while ((status = kvc_import_line(im, &text, &n, err)) == KVC_OK && text) {
        struct kvc_jval *root = NULL;
        struct kvc_error bad;
        r.at = (struct kvc_place){ kvc_import_file(im), kvc_import_line_number(im) };
        status = kvc_row_parse_any(&root, text, n, &r.at, &bad);
        if (status == KVC_OK)
            status = read_message(&r, root, &bad);
        if (status != KVC_OK)
            status = kvc_import_bad(im, &bad, err);
        kvc_json_free(root);
        if (status != KVC_OK)
            break;
    }
    kvc_free(r.ids.v);
    kvc_free(r.tokens.v);
    return status;
}

static enum kvc_status hand_on_chain(struct kvc_import *im, const struct kvc_residency *res,
                                     const struct kvc_chain *chain, struct kvc_id_buffer *ids,
                                     struct kvc_error *err)
{
    const struct kvc_kept_block *leaf = &res->block[chain->leaf];
    size_t n = kvc_residency_depth(res, chain->leaf);
    uint64_t tokens = (uint64_t)n * kvc_import_block_tokens(im);
    struct kvc_log_row row = { .time_ns = chain->first_ns, .think_ns = KVC_TIME_NONE,
                               .output_tokens = KVC_TOKENS_UNKNOWN, .text_ids = leaf->text,
                               .n_ids = n };
    if (tokens > KVC_TOKENS_MAX) {
        kvc_import_tally(im, "chains of 2^31 tokens and more: left out");
        return KVC_OK;
    }
    if (!kvc_grow((void **)&ids->v, &ids->cap, n, sizeof(*ids->v)))
        return kvc_fail_nomem(err);
    bool headless = false;
    for (uint32_t b = chain->leaf; b != KVC_BLOCK_NONE; b = res->block[b].parent) {
        ids->v[--n] = res->block[b].id;
        headless = res->block[b].headless;
    }
    if (headless)
        kvc_import_tally(im, "chains whose beginning was stored before the dump began: only the "
                             "blocks in it count");
    row.ids = ids->v;
    row.input_tokens = (uint32_t)tokens;
    return kvc_import_row(im, &row, false, err);
}

static enum kvc_status end_log(struct kvc_import *im, struct kvc_error *err)
{
    struct kept *k = kvc_import_kept(im);
    struct kvc_residency *res = &k->residency;
    struct kvc_id_buffer ids = { 0 };
    enum kvc_status status = KVC_OK;
    kvc_import_note(im, "KV events show what was stored and removed, never a hit: each chain of "
                    "blocks is one request, when its first blocks were stored, without an answer; "
                    "hit rates here are of stored chains, not of what clients sent");
    kvc_residency_tell_media(res, im);
    if (k->gaps)
        kvc_import_note(im, "%llu messages are missing in %llu places, so residency is not exact",
                        (unsigned long long)k->lost, (unsigned long long)k->gaps);
    kvc_residency_tell_sharing(res, im);
    for (size_t c = 0; c < res->n_chains && status == KVC_OK; c++)
        status = hand_on_chain(im, res, &res->chain[c], &ids, err);
    kvc_free(ids.v);
    return status;
}

static bool names_event(const char *head, size_t n)
{
    return memmem(head, n, "\"BlockStored\"", 13) || memmem(head, n, "\"BlockRemoved\"", 14) ||
           memmem(head, n, "\"AllBlocksCleared\"", 18);
}

static bool sniff(const char *head, size_t n)
{
    static const char *const dynamo[][3] = {
        { "event.event.data", "event.worker_id", NULL },
        { "event.data", "worker_id", NULL },
    };
    static const char *const engine[][3] = {
        { "ts", "events", NULL },
        { "payload", "seq", NULL },
        { "batch", "seq", NULL },
        { "type", "block_hashes", NULL },
    };
    for (size_t k = 0; k < 2; k++)
        if (kvc_sniff_row(head, n, dynamo[k]))
            return true;
    for (size_t k = 0; k < 4 && names_event(head, n); k++)
        if (kvc_sniff_row(head, n, engine[k]))
            return true;
    return names_event(head, n) && kvc_sniff_batch(head, n);
}

const struct kvc_format kvc_format_kv_events = {
    .name = "kv-events",
    .summary = "KV events of vLLM, SGLang and Dynamo as JSON lines: BlockStored, BlockRemoved, "
               "AllBlocksCleared",
    .sniff = sniff,
    .read = read_log,
    .end = end_log,
};
