/* SPDX-License-Identifier: Apache-2.0
 * A 64-bit digest for identifying inputs in results; not cryptographic. Little-endian words, so
 * the same on every machine. */
#ifndef KVC_BASE_DIGEST_H
#define KVC_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct kvc_digest {
    uint64_t a, b;
};

void kvc_digest_init(struct kvc_digest *d);
void kvc_digest_add(struct kvc_digest *d, const void *bytes, size_t n);
void kvc_digest_hex(const struct kvc_digest *d, char out[24]); /* 16 hex digits */

#endif
