/* SPDX-License-Identifier: Apache-2.0
 * Checked allocation. All of kvcast allocates here, so that a test can make the Nth
 * allocation fail. */
#ifndef KVC_BASE_ALLOC_H
#define KVC_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *kvc_malloc(size_t n, size_t size);           /* n * size, NULL on overflow or none left */
void *kvc_calloc(size_t n, size_t size);
void *kvc_realloc(void *p, size_t n, size_t size); /* p stays valid on failure */
char *kvc_strdup(const char *s);
void kvc_free(void *p);

/* Makes the countdown-th allocation from now fail (0 = never), in this thread. */
void kvc_alloc_fail_after(uint64_t countdown);
uint64_t kvc_alloc_count(void); /* calls made by this thread */

/* Grows *array (elements of size bytes) to hold at least need; doubles. */
bool kvc_grow(void **array, size_t *capacity, size_t need, size_t size);

#endif
