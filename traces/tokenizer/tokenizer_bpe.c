/* SPDX-License-Identifier: Apache-2.0
 * Byte pair encoding of a piece: of the pairs that merges know, the one of lowest rank, leftmost
 * among equals, is joined until none is left. Short words in a plain loop, long ones with a heap,
 * O(n log n); words met before come from a cache. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <string.h>

#define SHORT_WORD 48
#define CACHED_BYTES 64        /* longest word that is remembered */
#define CACHE_SLOTS (1u << 17) /* half of them used at most */
#define INLINE_BYTES 16
#define INLINE_IDS 3
#define NO_PAIR UINT64_MAX

/* A word that was met, half a cache line. Up to INLINE_BYTES it is told by a and b alone, which
 * hold all its bytes; longer ones have their hash in a and their bytes, then ids, in the arena at
 * b. Ids are in the slot while they fit, else, too, in the arena, at v[0]. */
struct slot {
    uint64_t a, b;
    uint32_t v[INLINE_IDS];
    uint8_t bytes, ids; /* bytes 0 = free */
};

struct link {
    uint32_t id, before, after; /* places, KVC_ID_NONE at the ends */
    uint64_t pair;              /* rank << 32 | new id of this one and the next */
};

struct kvc_bpe_work {
    struct kvc_token_ids symbols;
    struct link *links;
    size_t cap_links;
    uint64_t *heap; /* rank << 32 | place */
    size_t n_heap, cap_heap;
    struct slot *cache;
    size_t n_cached;
    uint32_t *arena;
    size_t n_arena, cap_arena;
};

struct kvc_bpe_work *kvc_bpe_work_create(void)
{
    struct kvc_bpe_work *w = kvc_calloc(1, sizeof(*w));
    if (w)
        w->cache = kvc_calloc(CACHE_SLOTS, sizeof(*w->cache));
    if (w && !w->cache) {
        kvc_bpe_work_free(w);
        return NULL;
    }
    return w;
}

void kvc_bpe_work_free(struct kvc_bpe_work *w)
{
    if (!w)
        return;
    kvc_free(w->symbols.v);
    kvc_free(w->links);
    kvc_free(w->heap);
    kvc_free(w->cache);
    kvc_free(w->arena);
    kvc_free(w);
}

bool kvc_token_ids_push(struct kvc_token_ids *ids, uint32_t id)
{
    if (ids->n == ids->cap &&
        !kvc_grow((void **)&ids->v, &ids->cap, ids->n + 1, sizeof(*ids->v)))
        return false;
    ids->v[ids->n++] = id;
    return true;
}

/* ---- symbols ---- */

static uint32_t char_id(const struct kvc_bpe *b, uint32_t c)
{
    if (c < 128)
        return b->ascii_id[c];
    const uint64_t *id = kvc_map64_get(&b->chars, c);
    return id ? (uint32_t)*id : KVC_ID_NONE;
}

/* False where some byte has no token: then none of them counts. */
static bool falls_back(const struct kvc_bpe *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (b->byte_id[(unsigned char)s[i]] == KVC_ID_NONE)
            return false;
    }
    return b->byte_fallback;
}

/* An unknown character waits for the next known one (or the end) before it becomes unk, and with
 * fuse_unk takes those it meets until then along; bytes of others pass it. */
static bool char_symbols(const struct kvc_bpe *b, const char *s, size_t n,
                         struct kvc_token_ids *out)
{
    bool waiting = false, ok = true;
    size_t len;
    for (size_t i = 0; i < n && ok; i += len) {
        uint32_t id = char_id(b, kvc_utf8_get(s + i, &len));
        if (id != KVC_ID_NONE) {
            ok = (!waiting || kvc_token_ids_push(out, b->unk)) && kvc_token_ids_push(out, id);
            waiting = false;
        } else if (falls_back(b, s + i, len)) {
            for (size_t k = i; k < i + len && ok; k++)
                ok = kvc_token_ids_push(out, b->byte_id[(unsigned char)s[k]]);
        } else if (b->unk != KVC_ID_NONE) {
            if (waiting && !b->fuse_unk)
                ok = kvc_token_ids_push(out, b->unk);
            waiting = true;
        }
    }
    return ok && (!waiting || kvc_token_ids_push(out, b->unk));
}

static bool symbols(const struct kvc_bpe *b, const char *s, size_t n, struct kvc_token_ids *out)
{
    out->n = 0;
    if (!b->bytes)
        return char_symbols(b, s, n, out);
    for (size_t i = 0; i < n; i++) {
        uint32_t id = b->byte_id[(unsigned char)s[i]];
        if (id != KVC_ID_NONE && !kvc_token_ids_push(out, id))
            return false;
    }
    return true;
}

static uint64_t pair_of(const struct kvc_bpe *b, uint32_t left, uint32_t right)
{
    const uint64_t *p = kvc_map64_get(&b->merges, (uint64_t)left << 32 | right);
    return p ? *p : NO_PAIR;
}

/* ---- merging ---- */

static size_t merge_short(const struct kvc_bpe *b, uint32_t *v, size_t n)
{
    uint64_t pair[SHORT_WORD];
    for (size_t i = 0; i + 1 < n; i++)
        pair[i] = pair_of(b, v[i], v[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            best = pair[i] >> 32 < pair[best] >> 32 ? i : best;
        if (pair[best] == NO_PAIR)
            break;
        v[best] = (uint32_t)pair[best];
        memmove(v + best + 1, v + best + 2, (n - best - 2) * sizeof(*v));
        n--;
        if (best + 1 < n) {
            memmove(pair + best + 1, pair + best + 2, (n - best - 2) * sizeof(*pair));
            pair[best] = pair_of(b, v[best], v[best + 1]);
        }
        if (best > 0)
            pair[best - 1] = pair_of(b, v[best - 1], v[best]);
    }
    return n;
}

static bool heap_push(struct kvc_bpe_work *w, uint64_t key)
{
    size_t i = w->n_heap;
    if (!kvc_grow((void **)&w->heap, &w->cap_heap, i + 1, sizeof(*w->heap)))
        return false;
    for (w->n_heap++; i && w->heap[(i - 1) / 2] > key; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = key;
    return true;
}

static uint64_t heap_pop(struct kvc_bpe_work *w)
{
    uint64_t top = w->heap[0], key = w->heap[--w->n_heap];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < w->n_heap) {
        child += child + 1 < w->n_heap && w->heap[child + 1] < w->heap[child];
        if (w->heap[child] >= key)
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = key;
    return top;
}

static bool set_pair(const struct kvc_bpe *b, struct kvc_bpe_work *w, uint32_t at)
{
    struct link *l = &w->links[at];
    l->pair = l->after == KVC_ID_NONE ? NO_PAIR : pair_of(b, l->id, w->links[l->after].id);
    return l->pair == NO_PAIR || heap_push(w, (l->pair & ~(uint64_t)UINT32_MAX) | at);
}

static bool join_links(const struct kvc_bpe *b, struct kvc_bpe_work *w, uint32_t at)
{
    struct link *l = &w->links[at];
    struct link *gone = &w->links[l->after];
    l->id = (uint32_t)l->pair;
    l->after = gone->after;
    gone->pair = NO_PAIR;
    if (l->after != KVC_ID_NONE)
        w->links[l->after].before = at;
    return set_pair(b, w, at) && (l->before == KVC_ID_NONE || set_pair(b, w, l->before));
}

/* An entry of the heap counts while its place still has a pair of that rank: a pair that was
 * joined over there is longer, so it has another. */
static bool merge_long(const struct kvc_bpe *b, struct kvc_bpe_work *w)
{
    uint32_t n = (uint32_t)w->symbols.n;
    bool ok = kvc_grow((void **)&w->links, &w->cap_links, n, sizeof(*w->links));
    w->n_heap = 0;
    for (uint32_t i = 0; i < n && ok; i++)
        w->links[i] = (struct link){w->symbols.v[i], i ? i - 1 : KVC_ID_NONE,
                                    i + 1 < n ? i + 1 : KVC_ID_NONE, NO_PAIR};
    for (uint32_t i = 0; i < n && ok; i++)
        ok = set_pair(b, w, i);
    while (ok && w->n_heap) {
        uint64_t top = heap_pop(w);
        uint32_t at = (uint32_t)top;
        if (w->links[at].pair != NO_PAIR && w->links[at].pair >> 32 == top >> 32)
            ok = join_links(b, w, at);
    }
    if (!ok)
        return false;
    w->symbols.n = 0;
    for (uint32_t i = 0; i != KVC_ID_NONE; i = w->links[i].after)
        w->symbols.v[w->symbols.n++] = w->links[i].id;
    return true;
}

/* ---- words ---- */

static bool append(struct kvc_token_ids *ids, const uint32_t *v, size_t n)
{
    if (ids->n + n > ids->cap &&
        !kvc_grow((void **)&ids->v, &ids->cap, ids->n + n, sizeof(*ids->v)))
        return false;
    for (size_t i = 0; i < n; i++)
        ids->v[ids->n + i] = v[i];
    ids->n += n;
    return true;
}

static bool fresh_word(const struct kvc_bpe *b, struct kvc_bpe_work *w, const char *s, size_t n)
{
    uint32_t id = b->ignore_merges ? kvc_strmap_get(&b->words, s, n) : KVC_ID_NONE;
    if (id != KVC_ID_NONE) {
        w->symbols.n = 0;
        return kvc_token_ids_push(&w->symbols, id);
    }
    if (!symbols(b, s, n, &w->symbols) || w->symbols.n >= KVC_ID_NONE)
        return false;
    if (w->symbols.n > SHORT_WORD)
        return merge_long(b, w);
    w->symbols.n = merge_short(b, w->symbols.v, w->symbols.n);
    return true;
}

/* a and b hold s[0..n), n from 1 to 16, in a way that differs for any other text of n bytes. */
static void load16(const char *s, size_t n, uint64_t *a, uint64_t *b)
{
    const unsigned char *u = (const unsigned char *)s;
    uint32_t x, y;
    *b = 0;
    if (n >= 8) {
        memcpy(a, s, 8);
        memcpy(b, s + n - 8, 8);
    } else if (n >= 4) {
        memcpy(&x, s, 4);
        memcpy(&y, s + n - 4, 4);
        *a = (uint64_t)y << 32 | x;
    } else {
        *a = (uint64_t)u[n - 1] << 16 | (uint64_t)u[n / 2] << 8 | u[0];
    }
}

/* The place of a word, its own or a free one. */
static struct slot *find(const struct kvc_bpe_work *w, const char *s, size_t n,
                         struct slot *wanted)
{
    uint64_t hash;
    *wanted = (struct slot){.bytes = (uint8_t)n};
    if (n <= INLINE_BYTES) {
        load16(s, n, &wanted->a, &wanted->b);
        hash = wanted->b * 0x9fb21c651e98df25u;
        hash = kvc_mix64(wanted->a ^ n << 56 ^ hash ^ hash >> 32);
    } else {
        wanted->a = hash = kvc_hash_bytes(s, n);
    }
    for (size_t i = (size_t)(hash >> 32) & (CACHE_SLOTS - 1);; i = (i + 1) & (CACHE_SLOTS - 1)) {
        struct slot *k = &w->cache[i];
        if (!k->bytes)
            return k;
        if (k->a != wanted->a || k->bytes != n)
            continue;
        if (n <= INLINE_BYTES ? k->b == wanted->b : !memcmp(w->arena + k->b, s, n))
            return k;
    }
}

/* Adds n bytes to the arena, in whole words. */
static bool store(struct kvc_bpe_work *w, const void *bytes, size_t n, size_t *at)
{
    size_t words = (n + 3) / 4;
    if (!kvc_grow((void **)&w->arena, &w->cap_arena, w->n_arena + words, sizeof(*w->arena)))
        return false;
    *at = w->n_arena;
    memcpy(w->arena + w->n_arena, bytes, n);
    w->n_arena += words;
    return true;
}

/* Forgets everything when full: the common words are back soon. */
static bool remember(struct kvc_bpe_work *w, struct slot *place, struct slot *k, const char *s)
{
    const struct kvc_token_ids *ids = &w->symbols;
    size_t at = 0;
    if (2 * (w->n_cached + 1) > CACHE_SLOTS) {
        memset(w->cache, 0, CACHE_SLOTS * sizeof(*w->cache));
        w->n_cached = w->n_arena = 0;
    }
    k->ids = (uint8_t)ids->n;
    if (k->bytes > INLINE_BYTES) {
        if (!store(w, s, k->bytes, &at))
            return false;
        k->b = at;
    }
    if (ids->n > INLINE_IDS) {
        if (!store(w, ids->v, ids->n * sizeof(*ids->v), &at))
            return false;
        k->v[0] = (uint32_t)at;
    } else if (ids->n) {
        memcpy(k->v, ids->v, ids->n * sizeof(*ids->v));
    }
    *place = *k;
    w->n_cached++;
    return true;
}

static bool word(const struct kvc_bpe *b, struct kvc_bpe_work *w, const char *s, size_t n,
                 struct kvc_token_ids *ids)
{
    struct slot wanted;
    if (n > CACHED_BYTES)
        return fresh_word(b, w, s, n) && append(ids, w->symbols.v, w->symbols.n);
    struct slot *k = find(w, s, n, &wanted);
    if (k->bytes)
        return append(ids, k->ids > INLINE_IDS ? w->arena + k->v[0] : k->v, k->ids);
    return fresh_word(b, w, s, n) && remember(w, k, &wanted, s) &&
           append(ids, w->symbols.v, w->symbols.n);
}

/* ---- pieces ---- */

static bool joins(const struct kvc_bpe *b, uint32_t left, uint32_t right)
{
    if ((left | right) < 128)
        return b->ascii_joins[left][right / 8] >> right % 8 & 1;
    return kvc_map64_get(&b->joins, (uint64_t)left << 32 | right) != NULL;
}

/* Where the part that begins at from ends; *seen: what had to be known for it. */
static size_t part_end(const struct kvc_bpe *b, const char *s, size_t n, size_t from,
                       size_t *seen)
{
    size_t len;
    uint32_t left = kvc_utf8_get(s + from, &len), right;
    for (size_t i = from + len; i < n; i += len, left = right) {
        right = kvc_utf8_get(s + i, &len);
        /* unknown neighbours may become one */
        if (!joins(b, left, right) &&
            (char_id(b, left) != KVC_ID_NONE || char_id(b, right) != KVC_ID_NONE)) {
            *seen = i + len;
            return i;
        }
    }
    *seen = KVC_FINAL;
    return n;
}

enum kvc_status kvc_bpe_encode(const struct kvc_bpe *b, struct kvc_bpe_work *w, const char *s,
                               size_t n, size_t limit, struct kvc_token_ids *ids, size_t *certain)
{
    size_t before = ids->n, seen;
    *certain = 0;
    for (size_t from = 0, to; from < n && b->cuts; from = to) {
        to = part_end(b, s, n, from, &seen);
        if (!word(b, w, s + from, to - from, ids))
            return KVC_ERR_NOMEM;
        if (seen <= limit)
            *certain = ids->n - before;
    }
    if (!b->cuts && !word(b, w, s, n, ids))
        return KVC_ERR_NOMEM;
    if (limit == KVC_FINAL)
        *certain = ids->n - before;
    return KVC_OK;
}
