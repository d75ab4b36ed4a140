/* SPDX-License-Identifier: Apache-2.0
 * Options of callers that were built with another release: a struct that begins with its size. */
#ifndef KVC_BASE_SIZED_H
#define KVC_BASE_SIZED_H

#include <string.h>

/* Copies over own, of size bytes, what the caller's struct has of it: as much as its first member,
 * a size_t, says (0: all). The rest of own stays; what a newer caller has beyond is not read. */
static inline void kvc_sized_copy(void *own, size_t size, const void *given)
{
    size_t has;
    memcpy(&has, given, sizeof(has));
    memcpy(own, given, has && has < size ? has : size);
}

#endif
