/* SPDX-License-Identifier: Apache-2.0
 * Normalization form C (UAX #15), a cluster at a time: a character that composes with nothing
 * before it begins one, and nothing passes from one cluster to the next. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"
#include "traces/tokenizer/tokenizer_nfc_tables.h"

#include <stdlib.h>
#include <string.h>

#define PLAIN_END 0x30000u /* from here on every character is plain */
#define S_BASE 0xac00u
#define L_BASE 0x1100u
#define V_BASE 0x1161u
#define T_BASE 0x11a7u
#define L_COUNT 19u
#define V_COUNT 21u
#define T_COUNT 28u
#define S_COUNT (L_COUNT * V_COUNT * T_COUNT)
#define CLUSTER_BUFFER 64

struct kvc_nfc {
    uint64_t plain[PLAIN_END / 64];  /* is its own NFC and begins a cluster */
    uint64_t begins[PLAIN_END / 64]; /* begins a cluster */
    struct kvc_map64 composed;       /* first, second: the character */
};

static bool bit(const uint64_t *bits, uint32_t c)
{
    return c >= PLAIN_END || (bits[c / 64] >> c % 64 & 1);
}

static void clear(uint64_t *bits, uint32_t c)
{
    if (c < PLAIN_END)
        bits[c / 64] &= ~(1ull << c % 64);
}

static uint8_t class_of(uint32_t c)
{
    size_t low = 0, high = kvc_nfc_n_classes;
    if (c < 0x300)
        return 0;
    while (low < high) {
        size_t mid = (low + high) / 2;
        const struct kvc_nfc_class *k = &kvc_nfc_classes[mid];
        if (c >= k->low && c <= k->high)
            return k->class;
        if (c < k->low)
            high = mid;
        else
            low = mid + 1;
    }
    return 0;
}

static int by_from(const void *key, const void *item)
{
    uint32_t a, b;
    memcpy(&a, key, sizeof(a));
    memcpy(&b, item, sizeof(b)); /* from comes first in both tables */
    return a < b ? -1 : a > b;
}

/* The canonical decomposition, one level: 0, 1 or 2 characters. */
static unsigned decompose(uint32_t c, uint32_t out[2])
{
    if (c - S_BASE < S_COUNT) {
        uint32_t s = c - S_BASE, t = s % T_COUNT;
        out[0] = t ? c - t : L_BASE + s / (V_COUNT * T_COUNT);
        out[1] = t ? T_BASE + t : V_BASE + s % (V_COUNT * T_COUNT) / T_COUNT;
        return 2;
    }
    const struct kvc_nfc_pair *p = bsearch(&c, kvc_nfc_pairs, kvc_nfc_n_pairs,
                                           sizeof(kvc_nfc_pairs[0]), by_from);
    if (p) {
        out[0] = p->a;
        out[1] = p->b;
        return 2;
    }
    const struct kvc_nfc_single *s = bsearch(&c, kvc_nfc_singles, kvc_nfc_n_singles,
                                             sizeof(kvc_nfc_singles[0]), by_from);
    if (s)
        out[0] = s->to;
    return s != NULL;
}

static uint32_t first_of(uint32_t c)
{
    uint32_t d[2];
    while (decompose(c, d))
        c = d[0];
    return c;
}

/* What can be the second of a pair does not begin a cluster, nor does a mark, nor what decomposes
 * into something that starts with either. */
static bool make_tables(struct kvc_nfc *nfc)
{
    memset(nfc->plain, 0xff, sizeof(nfc->plain));
    memset(nfc->begins, 0xff, sizeof(nfc->begins));
    for (size_t i = 0; i < kvc_nfc_n_pairs; i++) {
        const struct kvc_nfc_pair *p = &kvc_nfc_pairs[i];
        if (!p->composes)
            clear(nfc->plain, p->from);
        else if (!kvc_map64_put(&nfc->composed, (uint64_t)p->a << 32 | p->b, p->from))
            return false;
        if (p->composes)
            clear(nfc->begins, p->b);
    }
    for (size_t i = 0; i < kvc_nfc_n_classes; i++) {
        for (uint32_t c = kvc_nfc_classes[i].low; c <= kvc_nfc_classes[i].high; c++)
            clear(nfc->begins, c);
    }
    for (uint32_t c = V_BASE; c < V_BASE + V_COUNT; c++)
        clear(nfc->begins, c);
    for (uint32_t c = T_BASE + 1; c < T_BASE + T_COUNT; c++)
        clear(nfc->begins, c);
    for (size_t i = 0; i < kvc_nfc_n_singles; i++)
        clear(nfc->plain, kvc_nfc_singles[i].from);
    for (size_t i = 0; i < kvc_nfc_n_pairs + kvc_nfc_n_singles; i++) {
        uint32_t c = i < kvc_nfc_n_pairs ? kvc_nfc_pairs[i].from
                                         : kvc_nfc_singles[i - kvc_nfc_n_pairs].from;
        if (!bit(nfc->begins, first_of(c)))
            clear(nfc->begins, c);
    }
    for (size_t i = 0; i < PLAIN_END / 64; i++)
        nfc->plain[i] &= nfc->begins[i];
    return true;
}

struct kvc_nfc *kvc_nfc_create(void)
{
    struct kvc_nfc *nfc = kvc_calloc(1, sizeof(*nfc));
    if (nfc && !make_tables(nfc)) {
        kvc_nfc_free(nfc);
        return NULL;
    }
    return nfc;
}

void kvc_nfc_free(struct kvc_nfc *nfc)
{
    if (nfc)
        kvc_map64_clear(&nfc->composed);
    kvc_free(nfc);
}

/* ---- clusters ---- */

struct cluster {
    uint64_t *v; /* class << 56 | place << 24 | character, until ordered */
    size_t n, cap;
    uint64_t own[CLUSTER_BUFFER];
};

#define CHAR_SHIFT 24
#define CHAR_OF(x) ((uint32_t)(x) & 0xffffffu)

static bool push(struct cluster *k, uint32_t c)
{
    uint32_t d[2];
    unsigned parts = decompose(c, d);
    if (parts) {
        return push(k, d[0]) && (parts < 2 || push(k, d[1])); /* a few levels deep */
    }
    if (k->n == k->cap) {
        void *p = k->v == k->own ? NULL : k->v;
        size_t cap = k->v == k->own ? 0 : k->cap;
        if (k->n >= UINT32_MAX || !kvc_grow(&p, &cap, 2 * k->n, sizeof(*k->v)))
            return false;
        if (k->v == k->own)
            memcpy(p, k->own, sizeof(k->own));
        k->v = p;
        k->cap = cap;
    }
    k->v[k->n] = (uint64_t)class_of(c) << 56 | (uint64_t)k->n << CHAR_SHIFT | c;
    k->n++;
    return true;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* Marks between two starters by class, equal ones in their order. */
static void order(struct cluster *k)
{
    for (size_t i = 0; i < k->n;) {
        size_t from = i;
        while (i < k->n && k->v[i] >> 56)
            i++;
        if (i - from > 1)
            qsort(k->v + from, i - from, sizeof(*k->v), by_value);
        i += i == from;
    }
}

static uint32_t compose(const struct kvc_nfc *nfc, uint32_t a, uint32_t b)
{
    if (a - L_BASE < L_COUNT && b - V_BASE < V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a - S_BASE < S_COUNT && (a - S_BASE) % T_COUNT == 0 && b - T_BASE - 1 < T_COUNT - 1)
        return a + (b - T_BASE);
    const uint64_t *c = kvc_map64_get(&nfc->composed, (uint64_t)a << 32 | b);
    return c ? (uint32_t)*c : 0;
}

/* Each character joins the last starter unless something between them blocks it. */
static void join(const struct kvc_nfc *nfc, struct cluster *k)
{
    size_t out = 0, starter = SIZE_MAX;
    unsigned last = 0; /* class of the last one kept since the starter */
    for (size_t i = 0; i < k->n; i++) {
        uint32_t c = CHAR_OF(k->v[i]);
        unsigned class = (unsigned)(k->v[i] >> 56);
        bool next_to = starter != SIZE_MAX && out == starter + 1;
        uint32_t whole = 0;
        if (starter != SIZE_MAX && (next_to || (last < class && last)))
            whole = compose(nfc, CHAR_OF(k->v[starter]), c);
        if (whole) {
            k->v[starter] = whole;
            continue;
        }
        if (class == 0)
            starter = out;
        last = class;
        k->v[out++] = k->v[i];
    }
    k->n = out;
}

/* s[0..n) is one cluster, n > 0. */
static void add_cluster(const struct kvc_nfc *nfc, struct kvc_text *out, const char *s, size_t n)
{
    struct cluster k = {.v = k.own, .cap = CLUSTER_BUFFER};
    size_t len;
    for (size_t i = 0; i < n && !out->failed; i += len)
        out->failed = !push(&k, kvc_utf8_get(s + i, &len));
    order(&k);
    join(nfc, &k);
    for (size_t i = 0; i < k.n && !out->failed; i++) {
        char text[4];
        kvc_text_addn(out, text, kvc_utf8_put(CHAR_OF(k.v[i]), text));
    }
    if (k.v != k.own)
        kvc_free(k.v);
}

/* ---- texts ---- */

/* Passes plain characters; *last is where the last of them begins, which what follows may join. */
static size_t skip_plain(const struct kvc_nfc *nfc, const char *s, size_t n, size_t i,
                         size_t *last)
{
    size_t len;
    for (*last = i; i < n; i += len) {
        if ((unsigned char)s[i] < 0xcc) { /* below U+0300 */
            len = (unsigned char)s[i] < 0x80 ? 1 : 2;
        } else if (!bit(nfc->plain, kvc_utf8_get(s + i, &len))) {
            break;
        }
        *last = i;
    }
    return i;
}

bool kvc_nfc_is(const struct kvc_nfc *nfc, const char *s, size_t n)
{
    size_t last;
    return skip_plain(nfc, s, n, 0, &last) == n;
}

/* The last character that begins in s[from..to), from without one. */
static size_t last_begin(const char *s, size_t from, size_t to)
{
    while (to > from && (s[--to] & 0xc0) == 0x80)
        ;
    return to;
}

void kvc_nfc_add(const struct kvc_nfc *nfc, struct kvc_text *out, const char *s, size_t n,
                 size_t *limit)
{
    size_t certain = 0, from = 0, last, len;
    while (from < n && !out->failed) {
        size_t i = skip_plain(nfc, s, n, from, &last);
        /* what stands before the beginning of a cluster is done */
        if (*limit != KVC_FINAL && from < *limit && from < i)
            certain = out->len + last_begin(s, from, i < *limit ? i : *limit) - from;
        kvc_text_addn(out, s + from, last - from);
        if (i == n) {
            kvc_text_addn(out, s + last, n - last);
            break;
        }
        /* the cluster: the last plain character, or a beginning one, and all that joins it */
        uint32_t c = kvc_utf8_get(s + i, &len);
        if (bit(nfc->begins, c) && last < i) {
            kvc_text_addn(out, s + last, i - last);
            last = i;
            if (*limit != KVC_FINAL && i + len <= *limit)
                certain = out->len;
        }
        for (i += len; i < n; i += len) {
            c = kvc_utf8_get(s + i, &len);
            if (bit(nfc->begins, c))
                break;
        }
        add_cluster(nfc, out, s + last, i - last);
        from = i;
        if (i < n && *limit != KVC_FINAL && i + len <= *limit)
            certain = out->len;
    }
    if (*limit != KVC_FINAL)
        *limit = certain;
}
