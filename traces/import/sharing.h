/* SPDX-License-Identifier: Apache-2.0
 * Whether engines could read what others of them store. Keys that are salted per process make equal
 * blocks unreadable elsewhere: a shared store then fills up and never hits. Where a log names the
 * engine of each block and tells equal contents apart, what that costs is counted here. */
#ifndef KVC_TRACES_SHARING_H
#define KVC_TRACES_SHARING_H

#include "traces/import/import.h"
#include "traces/import/intern.h"

#define KVC_SHARING_KEYS ((size_t)1 << 23) /* contents and places kept; then counting ends */

struct kvc_sharing { /* all zero at first */
    struct kvc_intern instances;
    uint64_t *slots;
    size_t n, mask;
    bool full;
    uint64_t rows;        /* that were counted */
    uint64_t apart, once; /* blocks stored if each instance keeps its own, and if all share */
    uint64_t hits_apart, hits_shared; /* full blocks at the beginning that were there */
};

/* A prompt of an instance: what it is apart from its ids (content, as a number) and its ids, of
 * which full are whole blocks. False: no memory. */
bool kvc_sharing_row(struct kvc_sharing *s, const struct kvc_span *instance, uint64_t content,
                     const uint64_t *ids, size_t n, size_t full);
/* One block stored by an instance, its content as a number; *copy: another instance has it. */
bool kvc_sharing_block(struct kvc_sharing *s, uint32_t instance, uint64_t content, bool *copy);
void kvc_sharing_clear(struct kvc_sharing *s);

/* The figures of a reader that sees contents itself, for the report. */
void kvc_import_keys(struct kvc_import *im, uint64_t instances, uint64_t stored, uint64_t copied);
/* What was found goes into the report, and into words. */
void kvc_import_tell_sharing(struct kvc_import *im);

#endif
