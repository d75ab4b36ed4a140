/* SPDX-License-Identifier: Apache-2.0
 * The profile files of models/profiles/, carried inside the program. */
#ifndef KVC_MODELS_BLOBS_H
#define KVC_MODELS_BLOBS_H

#include <stddef.h>

struct kvc_blob {
    const char *name;          /* file name without its folder */
    const unsigned char *data; /* size bytes, then a NUL */
    size_t size;
};
extern const struct kvc_blob kvc_blobs[]; /* ends with a NULL name; written by models/embed.sh */

#endif
