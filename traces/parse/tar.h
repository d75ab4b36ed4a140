/* SPDX-License-Identifier: Apache-2.0
 * Members of a tar archive (ustar, pax and GNU names), read in one pass. */
#ifndef KVC_TRACES_TAR_H
#define KVC_TRACES_TAR_H

#include "traces/import/import.h"

struct kvc_tar {
    struct kvc_import *im; /* names the archive in errors, and whose bytes they are .. */
    struct kvc_stream *stream; /* .. unless they are this one's */
    uint64_t left;         /* bytes of the member not read yet */
    uint64_t padding;      /* behind them */
    uint64_t offset;       /* in the archive */
    char name[256];        /* of the member, cut where it is longer */
    uint64_t size;
    uint64_t pax_size; /* UINT64_MAX without */
};

void kvc_tar_init(struct kvc_tar *tar, struct kvc_import *im);
void kvc_tar_init_stream(struct kvc_tar *tar, struct kvc_import *im, struct kvc_stream *stream);
/* The next regular file; *more false at the end. What was left of the one before is passed over. */
enum kvc_status kvc_tar_next(struct kvc_tar *tar, bool *more, struct kvc_error *err);
/* Up to n bytes of what is left of the member. */
enum kvc_status kvc_tar_some(struct kvc_tar *tar, void *buf, size_t n, size_t *got,
                             struct kvc_error *err);
/* n bytes of the member, which must have them. */
enum kvc_status kvc_tar_read(struct kvc_tar *tar, void *buf, size_t n, struct kvc_error *err);

#endif
