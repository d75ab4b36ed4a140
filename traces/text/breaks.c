/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/text/breaks.h"

#include "base/alloc.h"
#include "base/siphash.h"
#include "traces/text/break_spans.h"

#include <stdlib.h>
#include <string.h>

/* Bounds of memory, for logs without end: what is behind them is not compared. */
#define KEPT 4096                     /* prompts to compare with: sessions open at once, and more */
#define KEPT_BYTES ((size_t)64 << 20) /* of all their texts, 16 KiB each where all are kept */
#define KEPT_PROMPT ((size_t)1 << 20) /* of one: 250 K tokens */
#define PLACES 4096                   /* 20 of which are shown */

#define KEYS 4      /* each prompt may be found by */
#define OPENING 32  /* bytes: "You are a helpful .."; enough to tell applications apart */
#define STRETCHES 8 /* volatile texts passed over in one prompt */
#define VALUES 8    /* told apart at one place; beyond it is no toggle anyway */
#define TOGGLE 4    /* values, each met twice on average */
#define PIECE_END '\x1f' /* in no word, and hardly in a text */

struct kept_text { /* the input pieces, one behind the other; shared by the keys it is kept under */
    size_t n;
    unsigned refs;
    char bytes[];
};

struct kept {
    uint64_t key;
    struct kept_text *text; /* NULL: empty */
};

struct place {
    struct kvc_break of;
    uint64_t lost_bytes;
    uint32_t begin; /* of the words that differ, in bytes of the message */
    uint64_t value[VALUES]; /* hashes of what stood there */
    uint32_t n_values;
};

struct kvc_breaks {
    struct kept kept[KEPT];
    size_t kept_bytes, hand;
    struct place *place; /* open addressing; prompts 0 = empty */
    size_t n_places;
    uint64_t compared;
    char *text; /* the prompt in hand, its input only */
    size_t n, cap;
};

static uint64_t hash(const void *bytes, size_t n, uint64_t of)
{
    struct kvc_sip s;
    kvc_sip_start(&s, of, 0);
    kvc_sip_bytes(&s, bytes, n);
    return kvc_sip_end(&s) | 1;
}

/* ---- prompts to compare with ---- */

static size_t slot(uint64_t key)
{
    return key / 2 % KEPT; /* all keys are odd */
}

static const struct kept_text *find(const struct kvc_breaks *b, uint64_t key)
{
    const struct kept *k = &b->kept[slot(key)];
    return k->text && k->key == key ? k->text : NULL;
}

static void release(struct kvc_breaks *b, struct kept_text *text)
{
    if (--text->refs)
        return;
    b->kept_bytes -= text->n;
    kvc_free(text);
}

static void forget(struct kvc_breaks *b, struct kept *k)
{
    if (k->text)
        release(b, k->text);
    *k = (struct kept){0};
}

/* Under all keys that aren't 0. */
static bool keep(struct kvc_breaks *b, const uint64_t keys[KEYS])
{
    size_t n = b->n < KEPT_PROMPT ? b->n : KEPT_PROMPT;
    for (; b->kept_bytes + n > KEPT_BYTES; b->hand = (b->hand + 1) % KEPT)
        forget(b, &b->kept[b->hand]);
    struct kept_text *text = kvc_malloc(sizeof(*text) + n, 1);
    if (!text)
        return false;
    text->n = n;
    text->refs = 1; /* ours, as two keys may have one place */
    memcpy(text->bytes, b->text, n);
    b->kept_bytes += n;
    for (int i = 0; i < KEYS; i++) {
        struct kept *k = &b->kept[slot(keys[i])];
        if (!keys[i])
            continue;
        forget(b, k);
        *k = (struct kept){keys[i], text};
        text->refs++;
    }
    release(b, text);
    return true;
}

/* ---- places ---- */

/* begin: where the words that differ begin. Two times of day first differ in their hours, minutes
 * or seconds; that is one place, and its offset is the first byte that ever differed. */
static struct place *place_of(struct kvc_breaks *b, const struct kvc_break *at, uint32_t begin)
{
    uint32_t key[4] = {at->kind, (uint32_t)at->role << 8 | at->part, at->message, begin};
    size_t i = hash(key, sizeof(key), 1) % (2 * PLACES);
    for (;; i = (i + 1) % (2 * PLACES)) {
        struct place *p = &b->place[i];
        if (!p->of.prompts) {
            if (b->n_places == PLACES)
                return NULL;
            b->n_places++;
            p->of = *at;
            p->begin = begin;
            return p;
        }
        if (p->of.kind == at->kind && p->of.role == at->role && p->of.part == at->part &&
            p->of.message == at->message && p->begin == begin) {
            if (at->offset < p->of.offset)
                p->of.offset = at->offset;
            return p;
        }
    }
}

static void note_value(struct place *p, uint64_t value)
{
    for (uint32_t i = 0; i < p->n_values && i < VALUES; i++)
        if (p->value[i] == value)
            return;
    if (p->n_values < VALUES)
        p->value[p->n_values] = value;
    p->n_values += p->n_values <= VALUES;
}

static size_t with_end(const struct kvc_piece *piece)
{
    return piece->n ? piece->n + 1 : 0;
}

/* The piece that holds byte at of the input. */
static void locate(const struct kvc_prompt *p, size_t at, struct kvc_break *out)
{
    size_t i = 0, before = 0, offset;
    while (i + 1 < p->n_input && before + with_end(&p->pieces[i]) <= at)
        before += with_end(&p->pieces[i++]);
    const struct kvc_piece *piece = &p->pieces[i];
    out->role = piece->role;
    out->part = piece->kind;
    out->message = piece->message < KVC_BREAK_MESSAGES ? piece->message : KVC_BREAK_MESSAGES;
    for (offset = at - before; i > 0 && p->pieces[i - 1].message == piece->message; i--)
        offset += p->pieces[i - 1].n;
    out->offset = piece->message < KVC_BREAK_MESSAGES ? (uint32_t)offset : 0;
}

/* ---- one prompt ---- */

/* Walks both texts from the first difference on, over what differs to where they go on alike. */
static void note_breaks(struct kvc_breaks *b, const struct kvc_prompt *p,
                        const struct kept_text *old, size_t common)
{
    struct kvc_break_spans s = {b->text, old->bytes, b->n, old->n, common, common};
    for (unsigned k = 0; k < STRETCHES && s.at < s.n && s.old_at < s.old_n; k++) {
        struct kvc_break at = {.kind = KVC_BREAK_CONTENT};
        size_t parted = s.at;
        struct kvc_break_value value = {0};
        size_t alike = kvc_break_pass(&s, &value);
        if (alike)
            at.kind = (uint8_t)(value.n >= value.old_n
                                    ? kvc_break_classify(value.text, value.n)
                                    : kvc_break_classify(value.old_text, value.old_n));
        else if (k > 0)
            return;
        locate(p, parted, &at);
        struct kvc_break word = at;
        if (alike)
            locate(p, (size_t)(value.text - b->text), &word);
        struct place *place = place_of(b, &at, word.offset);
        if (!place)
            return;
        place->of.prompts++;
        place->lost_bytes += alike;
        if (alike) {
            note_value(place, hash(value.text, value.n, 0));
            note_value(place, hash(value.old_text, value.old_n, 0));
        }
        if (!alike)
            return;
    }
}

static size_t common_bytes(const char *a, size_t n, const char *b, size_t m)
{
    size_t i = 0, most = n < m ? n : m;
    while (i + 8 <= most && memcmp(a + i, b + i, 8) == 0)
        i += 8;
    while (i < most && a[i] == b[i])
        i++;
    return i;
}

static bool gather(struct kvc_breaks *b, const struct kvc_prompt *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_input; i++)
        n += with_end(&p->pieces[i]);
    if (!kvc_grow((void **)&b->text, &b->cap, n + 1, 1))
        return false;
    b->n = 0;
    for (size_t i = 0; i < p->n_input; i++) {
        if (!p->pieces[i].n)
            continue;
        memcpy(b->text + b->n, p->text + p->pieces[i].at, p->pieces[i].n);
        b->n += p->pieces[i].n;
        b->text[b->n++] = PIECE_END;
    }
    return true;
}

static bool see(void *user, const struct kvc_prompt *p, const struct kvc_log_row *row,
                const struct kvc_text_facts *facts)
{
    struct kvc_breaks *b = user;
    (void)facts;
    if (!gather(b, p))
        return false;
    if (!b->n)
        return true;
    uint64_t model = row->model.text ? hash(row->model.text, row->model.n, 2) : 1;
    size_t first = 0; /* bytes of the first piece */
    while (b->text[first] != PIECE_END)
        first++;
    const uint64_t keys[KEYS] = {
        row->session.text ? hash(row->session.text, row->session.n, model + 2) : 0,
        hash(b->text, first, model + 4),
        hash(b->text, first < OPENING ? first : OPENING, model),
        model,
    };
    const struct kept_text *old = NULL;
    size_t common = 0;
    for (int i = 0; i < KEYS; i++) { /* the most alike of those before */
        const struct kept_text *k = keys[i] ? find(b, keys[i]) : NULL;
        size_t alike = k ? common_bytes(b->text, b->n, k->bytes, k->n) : 0;
        if (k && (!old || alike > common)) {
            old = k;
            common = alike;
        }
    }
    b->compared += old != NULL;
    if (old && common < old->n && common < b->n)
        note_breaks(b, p, old, common);
    return keep(b, keys);
}

/* ---- the whole ---- */

struct kvc_breaks *kvc_breaks_create(struct kvc_import *im)
{
    struct kvc_breaks *b = kvc_calloc(1, sizeof(*b));
    struct kvc_text_hook hook = {b, see};
    if (b && (b->place = kvc_calloc(2 * PLACES, sizeof(*b->place))) &&
        kvc_text_set_hook(im, &hook))
        return b;
    kvc_breaks_destroy(b);
    return NULL;
}

void kvc_breaks_destroy(struct kvc_breaks *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < KEPT; i++)
        forget(b, &b->kept[i]);
    kvc_free(b->place);
    kvc_free(b->text);
    kvc_free(b);
}

static int most_lost_first(const void *a, const void *b)
{
    const struct kvc_break *x = a, *y = b;
    if (x->lost_tokens != y->lost_tokens)
        return x->lost_tokens > y->lost_tokens ? -1 : 1;
    if (x->prompts != y->prompts)
        return x->prompts > y->prompts ? -1 : 1;
    uint64_t p = (uint64_t)x->message << 32 | x->offset, q = (uint64_t)y->message << 32 | y->offset;
    if (p != q)
        return p < q ? -1 : 1;
    p = (uint64_t)x->kind << 16 | (uint64_t)x->role << 8 | x->part;
    q = (uint64_t)y->kind << 16 | (uint64_t)y->role << 8 | y->part;
    return p < q ? -1 : p > q;
}

bool kvc_breaks_finish(const struct kvc_breaks *b, double bytes_per_token, struct kvc_trace *t)
{
    struct kvc_break *all = kvc_malloc(b->n_places + 1, sizeof(*all));
    if (!all)
        return false;
    uint32_t n = 0;
    for (size_t i = 0; i < 2 * PLACES; i++) {
        const struct place *p = &b->place[i];
        if (!p->of.prompts)
            continue;
        all[n] = p->of;
        all[n].values = p->n_values;
        all[n].lost_tokens = (uint64_t)((double)p->lost_bytes / bytes_per_token + 0.5);
        if (p->of.kind == KVC_BREAK_WORD && p->n_values <= TOGGLE &&
            p->of.prompts >= 2 * p->n_values)
            all[n].kind = KVC_BREAK_TOGGLE;
        n++;
    }
    qsort(all, n, sizeof(*all), most_lost_first);
    t->breaks = all;
    t->n_breaks = n < KVC_BREAKS_SHOWN ? n : KVC_BREAKS_SHOWN;
    t->compared_prompts = b->compared;
    return true;
}
