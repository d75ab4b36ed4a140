/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/alignment.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "traces/import/import_state.h"

#include <stdio.h>

struct kvc_alignment {
    uint64_t *slots; /* states seen, open addressing; 0 = free */
    size_t mask, n;
    bool full;
    uint64_t rows, tokens, whole, lost; /* of prompts: all, in shared blocks, shared behind them */
    uint64_t longest;                   /* shared by two prompts that share no block */
};

bool kvc_alignment_wants(struct kvc_import *im, size_t tokens)
{
    if (!im->alignment)
        return tokens <= KVC_ALIGNMENT_TOKENS;
    struct kvc_alignment *a = im->alignment;
    a->full = a->full || tokens > KVC_ALIGNMENT_TOKENS - a->n;
    return !a->full;
}

static uint64_t *slot_of(uint64_t *slots, size_t mask, uint64_t state)
{
    size_t i = (size_t)state & mask;
    while (slots[i] && slots[i] != state)
        i = (i + 1) & mask;
    return &slots[i];
}

static bool reserve(struct kvc_alignment *a, size_t more)
{
    size_t size = a->slots ? a->mask + 1 : 1024;
    while (size < 2 * (a->n + more))
        size *= 2;
    if (a->slots && size == a->mask + 1)
        return true;
    uint64_t *bigger = kvc_calloc(size, sizeof(*bigger));
    if (!bigger)
        return false;
    for (size_t i = 0; a->slots && i <= a->mask; i++)
        if (a->slots[i])
            *slot_of(bigger, size - 1, a->slots[i]) = a->slots[i];
    kvc_free(a->slots);
    a->slots = bigger;
    a->mask = size - 1;
    return true;
}

static uint64_t mix_name(uint64_t h, const struct kvc_span *name)
{
    for (size_t i = 0; name->text && i < name->n; i++)
        h = kvc_mix64(h ^ (unsigned char)name->text[i]);
    return kvc_mix64(h + (name->text != NULL));
}

/* Tokens of one model, adapter and salt are no others'. */
static uint64_t space_of(const struct kvc_import *im, const struct kvc_log_row *row)
{
    uint64_t h = row->key_space;
    if (!im->options->merge_models)
        h = mix_name(h, &row->model);
    return mix_name(mix_name(h, &row->adapter), &row->salt);
}

bool kvc_alignment_row(struct kvc_import *im, const struct kvc_log_row *row,
                       const uint64_t *states, size_t prompt, size_t known)
{
    struct kvc_alignment *a = im->alignment;
    if (!a && !(a = im->alignment = kvc_calloc(1, sizeof(*a))))
        return false;
    if (!reserve(a, known))
        return false;
    uint64_t space = space_of(im, row), block = kvc_import_block_tokens(im);
    size_t shared = 0;
    while (shared < prompt && *slot_of(a->slots, a->mask, (states[shared] ^ space) | 1))
        shared++;
    for (size_t i = shared; i < known; i++) {
        uint64_t state = (states[i] ^ space) | 1, *slot = slot_of(a->slots, a->mask, state);
        a->n += !*slot;
        *slot = state;
    }
    a->rows++;
    a->tokens += prompt;
    a->whole += shared - shared % block;
    a->lost += shared % block;
    if (shared < block && shared > a->longest)
        a->longest = shared;
    return true;
}

void kvc_alignment_note(struct kvc_import *im, uint32_t block)
{
    const struct kvc_alignment *a = im->alignment;
    if (!a || !block || !a->lost || (a->whole && a->lost < a->tokens / 100))
        return;
    char rows[64] = "";
    if (a->full)
        snprintf(rows, sizeof(rows), " in the first %llu rows", (unsigned long long)a->rows);
    if (!a->whole)
        kvc_import_note(im, "no block of %u tokens is shared%s, but prompts do share their first "
                        "tokens, up to %llu: shared prefix shorter than a block (alignment); "
                        "--block-tokens sets the size", block, rows,
                        (unsigned long long)a->longest);
    else
        kvc_import_note(im, "alignment: of %llu prompt tokens%s, %llu are shared in whole blocks "
                        "of %u and %llu (%.1f %%) more behind the last whole one, which blocks of "
                        "that size lose", (unsigned long long)a->tokens, rows,
                        (unsigned long long)a->whole, block, (unsigned long long)a->lost,
                        100 * (double)a->lost / (double)a->tokens);
}

void kvc_alignment_destroy(struct kvc_import *im)
{
    if (!im->alignment)
        return;
    kvc_free(im->alignment->slots);
    kvc_free(im->alignment);
    im->alignment = NULL;
}
