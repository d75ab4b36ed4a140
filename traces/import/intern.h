/* SPDX-License-Identifier: Apache-2.0
 * Byte strings to dense numbers, in order of first appearance. */
#ifndef KVC_TRACES_INTERN_H
#define KVC_TRACES_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kvc_intern { /* all zero = empty */
    char *bytes;    /* each string with a NUL after it */
    size_t n_bytes, bytes_cap;
    size_t *at;
    size_t n, at_cap;
    uint32_t *slots; /* number + 1, 0 = empty */
    size_t mask;
};

bool kvc_intern_get(struct kvc_intern *in, const char *s, size_t n, uint32_t *number);
/* Whether it is there. */
bool kvc_intern_find(const struct kvc_intern *in, const char *s, size_t n, uint32_t *number);
/* Copies of all names, each for kvc_free, as the array is. NULL: none, or no memory. */
char **kvc_intern_names(const struct kvc_intern *in);
void kvc_intern_clear(struct kvc_intern *in);

#endif
