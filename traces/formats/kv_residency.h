/* SPDX-License-Identifier: Apache-2.0
 * What a stream of KV events shows: which blocks were resident where and for how long, and the
 * chains of blocks that were stored. */
#ifndef KVC_TRACES_KV_RESIDENCY_H
#define KVC_TRACES_KV_RESIDENCY_H

#include "traces/import/intern.h"
#include "traces/import/sharing.h"

#include <kvcast/kvcast.h>

#define KVC_BLOCK_NONE UINT32_MAX
#define KVC_MEDIA 8

struct kvc_block_name { /* a block's hash; text hashes are numbered elsewhere */
    uint64_t id;
    bool text;
};

struct kvc_kept_block {
    uint64_t id, stored_ns;
    uint64_t content; /* of all tokens from the prompt's start; 0: not known */
    uint32_t parent; /* an earlier block, or KVC_BLOCK_NONE */
    uint32_t place;
    uint32_t chain; /* that ends here and may go on, + 1; 0: none */
    bool text, resident;
    bool headless; /* the beginning of its chain was stored before the dump began */
};

struct kvc_chain {
    uint64_t first_ns;
    uint32_t leaf;
};

struct kvc_medium {
    char name[24]; /* empty: not stated */
    bool device;   /* the engine's own memory: chains are made of what is stored there */
    uint64_t stored, again, already; /* blocks; again: of the stored, stored before too */
    uint64_t removed, unknown; /* unknown: removed, but never seen */
    uint64_t cleared, resident, peak;
    uint64_t *lifetimes; /* ns, of those removed */
    size_t n_lifetimes, lifetimes_cap;
};

struct kvc_residency { /* all zero = empty */
    struct kvc_intern instances, blocks, names;
    uint32_t *first_instance; /* by number of the name: whose it was first */
    size_t first_cap;
    bool shared; /* a name was seen in two instances */
    struct kvc_sharing sharing; /* of contents in the engines' own memory */
    uint64_t unreadable;        /* copies of what another instance has under another name */
    struct kvc_kept_block *block;
    size_t block_cap;
    struct kvc_chain *chain;
    size_t n_chains, chain_cap;
    struct kvc_medium medium[KVC_MEDIA];
    uint32_t n_media;
};

void kvc_residency_clear(struct kvc_residency *r);
/* The medium's number; more of them than there is room for share the last. */
uint32_t kvc_residency_medium(struct kvc_residency *r, const char *name);
struct kvc_stored_blocks { /* behind parent, NULL: at the beginning of a prompt */
    const struct kvc_block_name *parent;
    const uint64_t *ids;
    const uint64_t *tokens; /* a number for each block's own tokens; NULL: they are not known */
    size_t n;
    bool text; /* ids are */
};
/* False: no memory. */
bool kvc_residency_store(struct kvc_residency *r, uint32_t instance, uint32_t medium, uint64_t ns,
                         const struct kvc_stored_blocks *blocks);
bool kvc_residency_remove(struct kvc_residency *r, uint32_t instance, uint32_t medium, uint64_t ns,
                          const uint64_t *ids, size_t n, bool text);
/* All blocks in an instance's own memory go; other tiers keep theirs. */
void kvc_residency_drop(struct kvc_residency *r, uint32_t instance);
/* Blocks from the beginning of a chain to its leaf. */
size_t kvc_residency_depth(const struct kvc_residency *r, uint32_t leaf);

struct kvc_import;
/* Notes of the import: by medium, what came and went and how long it stayed (sorts lifetimes);
 * .. */
void kvc_residency_tell_media(struct kvc_residency *r, struct kvc_import *im);
/* .. and whether instances can read one another's blocks. Hashes alone don't say whether they hold
 * the same; tokens do. */
void kvc_residency_tell_sharing(const struct kvc_residency *r, struct kvc_import *im);

#endif
