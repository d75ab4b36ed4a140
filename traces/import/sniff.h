/* SPDX-License-Identifier: Apache-2.0
 * What the first bytes of a JSON file tell: the keys of its first rows, enough to know a format
 * by several fields of its own. */
#ifndef KVC_TRACES_SNIFF_H
#define KVC_TRACES_SNIFF_H

#include <stdbool.h>
#include <stddef.h>

/* Whether one of the first rows has all these keys (NULL-terminated), a path of keys joined by
 * dots for one inside another object. Rows may be cut by the end of head. */
bool kvc_sniff_row(const char *head, size_t n, const char *const *keys);
/* Whether one of the first rows is a list that begins with a number and a list. */
bool kvc_sniff_batch(const char *head, size_t n);
/* The keys of the first row, joined by commas; empty: not an object. */
void kvc_sniff_keys(const char *head, size_t n, char *out, size_t size);
/* The deepest nesting in the first row. */
size_t kvc_sniff_depth(const char *head, size_t n);

#endif
