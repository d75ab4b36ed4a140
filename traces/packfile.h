/* SPDX-License-Identifier: Apache-2.0
 * An output file (base/outfile.h) that may be compressed with zstd on its way. */
#ifndef KVC_TRACES_PACKFILE_H
#define KVC_TRACES_PACKFILE_H

#include <kvcast/kvcast.h>

struct kvc_packfile;

/* As the functions of kvc_outfile. pack: compress with zstd, checksum on. */
enum kvc_status kvc_packfile_open(struct kvc_packfile **out, const char *path, bool pack,
                                  struct kvc_error *err);
void kvc_packfile_write(struct kvc_packfile *p, const void *bytes, size_t n);
enum kvc_status kvc_packfile_close(struct kvc_packfile *p, struct kvc_error *err);
void kvc_packfile_abandon(struct kvc_packfile *p); /* NULL is fine */

#endif
