/* SPDX-License-Identifier: Apache-2.0
 * An output file (base/outfile.h) that may be compressed on its way. */
#ifndef KVC_TRACES_PACKFILE_H
#define KVC_TRACES_PACKFILE_H

#include <kvcast/kvcast.h>

struct kvc_packfile;

/* As the functions of kvc_outfile. A path that ends in .zst is packed with zstd, checksum on, one
 * that ends in .gz with gzip; the bytes depend on nothing else but what is written. */
enum kvc_status kvc_packfile_open(struct kvc_packfile **out, const char *path,
                                  struct kvc_error *err);
void kvc_packfile_write(struct kvc_packfile *p, const void *bytes, size_t n);
bool kvc_packfile_ok(const struct kvc_packfile *p); /* whether nothing has failed so far */
enum kvc_status kvc_packfile_close(struct kvc_packfile *p, struct kvc_error *err);
void kvc_packfile_abandon(struct kvc_packfile *p); /* NULL is fine */

#endif
