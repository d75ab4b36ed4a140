/* SPDX-License-Identifier: Apache-2.0
 * A file that appears whole or not at all: written without a name (or under a temporary one in
 * the same folder where the filesystem can't), synced, then put in place. */
#ifndef KVC_BASE_OUTFILE_H
#define KVC_BASE_OUTFILE_H

#include <kvcast/kvcast.h>

struct kvc_outfile;

/* "-" is stdout; devices and pipes are written as they are. A link stays one, and a file that is
 * replaced keeps its permissions. */
enum kvc_status kvc_outfile_open(struct kvc_outfile **out, const char *path, struct kvc_error *err);
/* Fails now where kvc_outfile_open would fail later, to be asked before long work. Leaves nothing
 * behind; devices and pipes are not touched. */
enum kvc_status kvc_outfile_try(const char *path, struct kvc_error *err);
/* Keeps the first failure and does nothing after it; kvc_outfile_close tells it. */
void kvc_outfile_write(struct kvc_outfile *o, const void *bytes, size_t n);
/* Whether nothing has failed so far. */
bool kvc_outfile_ok(const struct kvc_outfile *o);
/* Ends the file and puts it in place; on failure, also an earlier one, nothing is left. */
enum kvc_status kvc_outfile_close(struct kvc_outfile *o, struct kvc_error *err);
/* Leaves nothing behind. NULL is fine. */
void kvc_outfile_abandon(struct kvc_outfile *o);
/* All at once. */
enum kvc_status kvc_outfile_put(const char *path, const void *bytes, size_t n,
                                struct kvc_error *err);

#endif
