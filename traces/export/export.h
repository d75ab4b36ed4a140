/* SPDX-License-Identifier: Apache-2.0
 * What the writers of logs share: a buffered file, block numbers, and notes about what a format
 * can't hold. A writer is one file export_NAME.c ending in one const struct kvc_exporter. */
#ifndef KVC_TRACES_EXPORT_H
#define KVC_TRACES_EXPORT_H

#include "traces/parse/packfile.h"
#include "traces/trace.h"

#define KVC_EXPORT_BUFFER ((size_t)1 << 16)

struct kvc_export {
    const struct kvc_trace *t;
    struct kvc_packfile *file;
    struct kvc_export_report *report;
    uint64_t *first_block; /* number of each segment's first block: dense, parents first */
    uint32_t *path;        /* room for the longest */
    char *buf;
    size_t n;
};

struct kvc_exporter {
    const char *name;
    enum kvc_status (*write)(struct kvc_export *x, struct kvc_error *err);
};
extern const struct kvc_exporter kvc_exporter_mooncake, kvc_exporter_csv,
    kvc_exporter_oraclegeneral;

void kvc_export_put(struct kvc_export *x, const char *text, size_t n);
void kvc_export_text(struct kvc_export *x, const char *text);
void kvc_export_number(struct kvc_export *x, uint64_t v);
/* Numbers of the blocks of a path's segments from number skip on, separated. */
void kvc_export_blocks(struct kvc_export *x, uint32_t seg, uint64_t skip, const char *separator);
KVC_PRINTF(2, 3)
void kvc_export_note(struct kvc_export *x, const char *fmt, ...);
/* What an import that knows prompts and sessions only takes each request's output to be, to be
 * freed; see kvc_forest_finish. NULL: no memory. */
uint32_t *kvc_export_inferred(const struct kvc_trace *t);
/* Requests of several models share blocks, as --merge-models reads a log. False: no memory. */
bool kvc_export_models_share(const struct kvc_trace *t, bool *share);

#endif
