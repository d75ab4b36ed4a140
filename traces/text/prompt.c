/* SPDX-License-Identifier: Apache-2.0
 * Building a struct kvc_prompt piece by piece. */
#include "traces/text/text_blocks.h"

#include "base/alloc.h"
#include "base/siphash.h"

#include <string.h>

static const char *const roles[] = { "text",      "system", "developer", "user",
                                     "assistant", "tool",   "other" };

const char *kvc_role_name(enum kvc_role role)
{
    return roles[role];
}

enum kvc_role kvc_role_named(const char *text, size_t n)
{
    for (int r = KVC_ROLE_SYSTEM; r < KVC_ROLE_OTHER; r++)
        if (strlen(roles[r]) == n && memcmp(roles[r], text, n) == 0)
            return (enum kvc_role)r;
    return n == 8 && memcmp(text, "function", 8) == 0 ? KVC_ROLE_TOOL : KVC_ROLE_OTHER;
}

void kvc_prompt_begin(struct kvc_prompt *p)
{
    p->n = p->n_pieces = p->n_input = 0;
    p->messages = 0;
    p->chat = p->answered = p->media_unknown = p->failed = false;
}

void kvc_prompt_clear(struct kvc_prompt *p)
{
    kvc_free(p->text);
    kvc_free(p->pieces);
    memset(p, 0, sizeof(*p));
}

static uint8_t current_role(const struct kvc_prompt *p)
{
    return p->n_pieces ? p->pieces[p->n_pieces - 1].role : KVC_ROLE_NONE;
}

static struct kvc_piece *push(struct kvc_prompt *p, enum kvc_piece_kind kind, uint8_t role)
{
    if (p->failed || !kvc_grow((void **)&p->pieces, &p->pieces_cap, p->n_pieces + 1,
                               sizeof(*p->pieces))) {
        p->failed = true;
        return NULL;
    }
    struct kvc_piece *piece = &p->pieces[p->n_pieces++];
    *piece = (struct kvc_piece){ .at = p->n, .message = p->messages ? p->messages - 1 : 0,
                                 .role = role, .kind = (uint8_t)kind };
    if (!p->answered)
        p->n_input = p->n_pieces;
    return piece;
}

void kvc_prompt_message(struct kvc_prompt *p, enum kvc_role role)
{
    p->chat = true;
    p->messages++;
    struct kvc_piece *piece = push(p, KVC_PIECE_FRAME, (uint8_t)role);
    if (piece)
        piece->tokens = KVC_FRAME_TOKENS;
}

char *kvc_prompt_room(struct kvc_prompt *p, size_t most)
{
    if (p->failed || !kvc_grow((void **)&p->text, &p->cap, p->n + most + 1, 1)) {
        p->failed = true;
        return NULL;
    }
    return p->text + p->n;
}

void kvc_prompt_wrote(struct kvc_prompt *p, enum kvc_piece_kind kind, size_t n)
{
    struct kvc_piece *last = p->n_pieces ? &p->pieces[p->n_pieces - 1] : NULL;
    bool same = last && last->kind == kind && (!p->answered || p->n_pieces > p->n_input);
    if (!n || p->failed)
        return;
    if (!same)
        last = push(p, kind, current_role(p));
    if (!last)
        return;
    if (!same && kind == KVC_PIECE_NAME)
        last->tokens = KVC_NAME_TOKENS;
    last->n += n;
    p->n += n;
}

void kvc_prompt_add(struct kvc_prompt *p, enum kvc_piece_kind kind, const char *text, size_t n)
{
    char *room = kvc_prompt_room(p, n);
    if (room && n)
        memcpy(room, text, n);
    kvc_prompt_wrote(p, kind, n);
}

static void add_digest(struct kvc_prompt *p, enum kvc_piece_kind kind, const char *content,
                       size_t n, uint32_t tokens)
{
    struct kvc_sip a;
    uint64_t digest[2];
    for (uint64_t i = 0; i < 2; i++) {
        kvc_sip_start(&a, i, i);
        kvc_sip_bytes(&a, content, n);
        digest[i] = kvc_sip_end(&a);
    }
    char *room = kvc_prompt_room(p, sizeof(digest));
    struct kvc_piece *piece = room ? push(p, kind, current_role(p)) : NULL;
    if (!piece)
        return;
    memcpy(room, digest, sizeof(digest));
    piece->n = sizeof(digest);
    piece->tokens = tokens;
    p->n += sizeof(digest);
}

void kvc_prompt_media(struct kvc_prompt *p, const char *content, size_t n, uint32_t tokens)
{
    if (tokens == KVC_ID_NONE)
        p->media_unknown = true;
    add_digest(p, KVC_PIECE_MEDIA, content, n, tokens == KVC_ID_NONE ? 0 : tokens);
}

void kvc_prompt_unknown(struct kvc_prompt *p, const char *key, size_t n, uint32_t tokens)
{
    add_digest(p, KVC_PIECE_UNKNOWN, key, n, tokens);
}

void kvc_prompt_append(struct kvc_prompt *p, const struct kvc_prompt *other, size_t from,
                       size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct kvc_piece *o = &other->pieces[i];
        char *room = kvc_prompt_room(p, o->n);
        p->messages += o->kind == KVC_PIECE_FRAME;
        p->chat = p->chat || o->kind == KVC_PIECE_FRAME;
        struct kvc_piece *piece = room ? push(p, o->kind, o->role) : NULL;
        if (!piece)
            return;
        if (o->n)
            memcpy(room, other->text + o->at, o->n);
        piece->n = o->n;
        piece->tokens = o->tokens;
        p->n += o->n;
    }
    p->media_unknown = p->media_unknown || other->media_unknown;
}

void kvc_prompt_answer(struct kvc_prompt *p)
{
    if (p->answered)
        return;
    if (p->chat)
        kvc_prompt_message(p, KVC_ROLE_ASSISTANT);
    p->answered = true;
}
