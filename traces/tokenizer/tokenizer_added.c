/* SPDX-License-Identifier: Apache-2.0
 * Added tokens in text: a trie over bytes, the longest token at the leftmost place wins, as
 * Aho-Corasick in its leftmost-longest mode has it. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"

#include <string.h>

static uint32_t *child_link(struct kvc_trie *t, uint32_t node, unsigned char byte)
{
    uint32_t *link = node ? &t->nodes[node].child : &t->first[byte];
    while (*link && t->nodes[*link].byte != byte)
        link = &t->nodes[*link].sibling;
    return link;
}

bool kvc_trie_put(struct kvc_trie *t, const char *key, uint32_t token, bool lstrip)
{
    uint32_t node = 0;
    for (const char *s = key; *s; s++) {
        /* node 0 is the root, which has no place of its own */
        if (!kvc_grow((void **)&t->nodes, &t->cap, t->n + 2, sizeof(*t->nodes)))
            return false;
        t->n += t->n == 0;
        uint32_t *link = child_link(t, node, (unsigned char)*s);
        if (!*link) {
            *link = (uint32_t)t->n;
            t->nodes[t->n++] = (struct kvc_trie_node){
                .token = KVC_ID_NONE, .byte = (unsigned char)*s};
        }
        node = *link;
    }
    if (node && t->nodes[node].token == KVC_ID_NONE)
        t->nodes[node].token = token;
    t->any_lstrip |= lstrip;
    return true;
}

void kvc_trie_clear(struct kvc_trie *t)
{
    kvc_free(t->nodes);
    *t = (struct kvc_trie){0};
}

/* Longest token at s[at..]; *seen is how far was looked. */
static size_t longest(const struct kvc_trie *t, const char *s, size_t n, size_t at,
                      uint32_t *token, size_t *seen)
{
    size_t best = 0, i = at;
    uint32_t node = t->first[(unsigned char)s[i]];
    while (node) {
        const struct kvc_trie_node *k = &t->nodes[node];
        i++;
        if (k->token != KVC_ID_NONE) {
            best = i - at;
            *token = k->token;
        }
        node = k->child;
        *seen = i + (node != 0);
        if (i == n)
            break;
        while (node && t->nodes[node].byte != (unsigned char)s[i])
            node = t->nodes[node].sibling;
    }
    return best;
}

bool kvc_trie_next(const struct kvc_trie *t, const char *s, size_t n, size_t at, size_t limit,
                   size_t *from, size_t *to, uint32_t *token, size_t *unsafe)
{
    if (!t->nodes)
        return false;
    for (size_t i = at; i < n; i++) {
        if (!t->first[(unsigned char)s[i]])
            continue;
        size_t seen = 0;
        size_t len = longest(t, s, n, i, token, &seen);
        if (seen > limit && i < *unsafe)
            *unsafe = i;
        if (!len)
            continue;
        *from = i;
        *to = i + len;
        return true;
    }
    return false;
}
