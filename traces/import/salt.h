/* SPDX-License-Identifier: Apache-2.0
 * The key of hashes of other people's texts and names: from a file, or drawn for one import. */
#ifndef KVC_TRACES_SALT_H
#define KVC_TRACES_SALT_H

#include <kvcast/kvcast.h>

/* path NULL: from the system's random numbers. A file of any kind, at least 16 bytes long. */
enum kvc_status kvc_salt_read(const char *path, uint64_t key[2], struct kvc_error *err);

#endif
