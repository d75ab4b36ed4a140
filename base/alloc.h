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

/* Whole pages of the system's, huge ones where it has them: large arrays grow without being copied
 * and their memory comes in few steps. Sizes are multiples of KVC_PAGES; p NULL, old 0: new ones.
 * What is added holds zeros; p stays valid on failure. */
#define KVC_PAGES ((size_t)2 << 20)
void *kvc_pages_grow(void *p, size_t old, size_t bytes);
void kvc_pages_free(void *p, size_t bytes);

/* Makes the countdown-th allocation from now fail (0 = never), in this thread. */
void kvc_alloc_fail_after(uint64_t countdown);
uint64_t kvc_alloc_count(void); /* calls made by this thread */

/* Grows *array (elements of size bytes) to hold at least need; doubles. */
bool kvc_grow(void **array, size_t *capacity, size_t need, size_t size);

#endif
