/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/formats/kv_residency.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct block_key {
    uint64_t id;
    uint32_t place; /* instance and medium */
    uint32_t text;
};

static uint32_t place_of(uint32_t instance, uint32_t medium)
{
    return instance * KVC_MEDIA + medium;
}

void kvc_residency_clear(struct kvc_residency *r)
{
    kvc_intern_clear(&r->instances);
    kvc_intern_clear(&r->blocks);
    kvc_intern_clear(&r->names);
    kvc_sharing_clear(&r->sharing);
    kvc_free(r->first_instance);
    kvc_free(r->block);
    kvc_free(r->chain);
    for (uint32_t m = 0; m < r->n_media; m++)
        kvc_free(r->medium[m].lifetimes);
    memset(r, 0, sizeof(*r));
}

static bool is_device(const char *name)
{
    return !*name || strcasecmp(name, "GPU") == 0 || strcasecmp(name, "device") == 0;
}

uint32_t kvc_residency_medium(struct kvc_residency *r, const char *name)
{
    bool device = is_device(name);
    uint32_t m = 0;
    while (m < r->n_media &&
           !(device ? r->medium[m].device
                    : strncasecmp(r->medium[m].name, name, sizeof(r->medium[m].name) - 1) == 0))
        m++;
    if (m < r->n_media) {
        if (!r->medium[m].name[0]) /* its own, not named so far */
            snprintf(r->medium[m].name, sizeof(r->medium[m].name), "%s", name);
        return m;
    }
    if (r->n_media == KVC_MEDIA) {
        strcpy(r->medium[KVC_MEDIA - 1].name, "other media");
        r->medium[KVC_MEDIA - 1].device = false;
        return KVC_MEDIA - 1;
    }
    snprintf(r->medium[m].name, sizeof(r->medium[m].name), "%s", name);
    r->medium[m].device = device;
    r->n_media++;
    return m;
}

/* Whether an instance shares blocks with another is told by names alone. */
static bool see_name(struct kvc_residency *r, uint32_t instance, const struct kvc_block_name *name,
                     bool *shared)
{
    struct block_key key = { .id = name->id, .text = name->text };
    uint32_t number;
    size_t had = r->names.n;
    if (!kvc_intern_get(&r->names, (const char *)&key, sizeof(key), &number) ||
        !kvc_grow((void **)&r->first_instance, &r->first_cap, r->names.n,
                  sizeof(*r->first_instance)))
        return false;
    if (r->names.n > had)
        r->first_instance[number] = instance;
    *shared = r->first_instance[number] != instance;
    r->shared |= *shared;
    return true;
}

static bool find_block(const struct kvc_residency *r, uint32_t place,
                       const struct kvc_block_name *name, uint32_t *number)
{
    struct block_key key = { name->id, place, name->text };
    return kvc_intern_find(&r->blocks, (const char *)&key, sizeof(key), number);
}

/* The block, made when it is new; *fresh tells. */
static bool get_block(struct kvc_residency *r, uint32_t place, const struct kvc_block_name *name,
                      uint32_t parent, bool headless, uint32_t *number, bool *fresh)
{
    struct block_key key = { name->id, place, name->text };
    size_t had = r->blocks.n;
    if (!kvc_intern_get(&r->blocks, (const char *)&key, sizeof(key), number) ||
        !kvc_grow((void **)&r->block, &r->block_cap, r->blocks.n, sizeof(*r->block)))
        return false;
    *fresh = r->blocks.n > had;
    struct kvc_kept_block *b = &r->block[*number];
    if (*fresh)
        *b = (struct kvc_kept_block){ .id = name->id, .text = name->text, .place = place,
                                      .parent = parent, .headless = headless };
    else if (b->headless && parent != KVC_BLOCK_NONE && parent < *number) {
        b->parent = parent; /* parents come first, so that there are no circles */
        b->headless = false;
    }
    return true;
}

static void count_stored(struct kvc_residency *r, struct kvc_medium *m, uint32_t number, bool fresh,
                         uint64_t ns)
{
    struct kvc_kept_block *b = &r->block[number];
    if (b->resident) {
        m->already++;
        return;
    }
    b->resident = true;
    b->stored_ns = ns;
    m->stored++;
    m->again += !fresh;
    m->peak = ++m->resident > m->peak ? m->resident : m->peak;
}

/* The chain that ends at the parent goes on to the leaf; else one begins. */
static bool extend_chain(struct kvc_residency *r, uint32_t parent, uint32_t leaf, uint64_t ns)
{
    uint32_t chain = parent == KVC_BLOCK_NONE ? 0 : r->block[parent].chain;
    if (chain) {
        r->block[parent].chain = 0;
        r->chain[chain - 1].leaf = leaf;
    } else {
        if (r->n_chains >= UINT32_MAX - 1 ||
            !kvc_grow((void **)&r->chain, &r->chain_cap, r->n_chains + 1, sizeof(*r->chain)))
            return false;
        r->chain[r->n_chains++] = (struct kvc_chain){ ns, leaf };
        chain = (uint32_t)r->n_chains;
    }
    r->block[leaf].chain = chain;
    return true;
}

/* What a new block holds, and whether another instance holds the same under another name. */
static bool note_content(struct kvc_residency *r, uint32_t instance, uint32_t number,
                         uint64_t above, uint64_t tokens, bool shared_name)
{
    bool copy;
    uint64_t content = kvc_mix64(above ^ kvc_mix64(tokens)) | 1;
    r->block[number].content = content;
    if (!kvc_sharing_block(&r->sharing, instance, content, &copy))
        return false;
    r->unreadable += copy && !shared_name;
    return true;
}

bool kvc_residency_store(struct kvc_residency *r, uint32_t instance, uint32_t medium, uint64_t ns,
                         const struct kvc_stored_blocks *s)
{
    uint32_t place = place_of(instance, medium), before = KVC_BLOCK_NONE, number;
    bool fresh, shared_name, device = r->medium[medium].device;
    if (s->parent)
        find_block(r, place, s->parent, &before);
    uint32_t behind = before;
    for (size_t i = 0; i < s->n; i++) {
        struct kvc_block_name name = { s->ids[i], s->text };
        bool headless = s->parent && behind == KVC_BLOCK_NONE;
        uint64_t above = behind == KVC_BLOCK_NONE ? 0 : r->block[behind].content;
        if (!see_name(r, instance, &name, &shared_name) ||
            !get_block(r, place, &name, behind, headless, &number, &fresh))
            return false;
        if (fresh && s->tokens && device && !headless && (above || behind == KVC_BLOCK_NONE) &&
            !note_content(r, instance, number, above, s->tokens[i], shared_name))
            return false;
        count_stored(r, &r->medium[medium], number, fresh, ns);
        behind = number;
    }
    return !s->n || !device || extend_chain(r, before, behind, ns);
}

bool kvc_residency_remove(struct kvc_residency *r, uint32_t instance, uint32_t medium, uint64_t ns,
                          const uint64_t *ids, size_t n, bool text)
{
    struct kvc_medium *m = &r->medium[medium];
    for (size_t i = 0; i < n; i++) {
        struct kvc_block_name name = { ids[i], text };
        uint32_t number;
        if (!find_block(r, place_of(instance, medium), &name, &number) ||
            !r->block[number].resident) {
            m->unknown++;
            continue;
        }
        struct kvc_kept_block *b = &r->block[number];
        if (!kvc_grow((void **)&m->lifetimes, &m->lifetimes_cap, m->n_lifetimes + 1,
                      sizeof(*m->lifetimes)))
            return false;
        m->lifetimes[m->n_lifetimes++] = ns > b->stored_ns ? ns - b->stored_ns : 0;
        b->resident = false;
        b->chain = 0;
        m->removed++;
        m->resident--;
    }
    return true;
}

void kvc_residency_drop(struct kvc_residency *r, uint32_t instance)
{
    for (size_t i = 0; i < r->blocks.n; i++) {
        struct kvc_kept_block *b = &r->block[i];
        if (b->place / KVC_MEDIA != instance || !b->resident ||
            !r->medium[b->place % KVC_MEDIA].device)
            continue;
        b->resident = false;
        b->chain = 0;
        r->medium[b->place % KVC_MEDIA].cleared++;
        r->medium[b->place % KVC_MEDIA].resident--;
    }
}

size_t kvc_residency_depth(const struct kvc_residency *r, uint32_t leaf)
{
    size_t n = 0;
    for (; leaf != KVC_BLOCK_NONE; leaf = r->block[leaf].parent)
        n++;
    return n;
}
