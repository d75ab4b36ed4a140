/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <kvcast/kvcast.h> /* kvc_free is public */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Thread_local uint64_t fail_countdown;
static _Thread_local uint64_t calls;

static bool allowed(void)
{
    calls++;
    return !(fail_countdown && --fail_countdown == 0);
}

void kvc_alloc_fail_after(uint64_t countdown)
{
    fail_countdown = countdown;
}

uint64_t kvc_alloc_count(void)
{
    return calls;
}

#define LARGE ((size_t)16 << 20)

/* Of large arrays, most of them read in no order, fewer and larger pages are quicker to find. */
static void *hint(void *p, size_t bytes)
{
    uintptr_t page = 4096, from = ((uintptr_t)p + page - 1) & ~(page - 1);
    if (p && bytes >= LARGE) /* refused where there are none: no harm */
        (void)madvise((void *)from, (bytes - (from - (uintptr_t)p)) & ~(page - 1), MADV_HUGEPAGE);
    return p;
}

void *kvc_malloc(size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        return NULL;
    size_t bytes = n * size;
    return allowed() ? hint(malloc(bytes > 0 ? bytes : 1), bytes) : NULL;
}

void *kvc_calloc(size_t n, size_t size)
{
    return allowed() ? hint(calloc(n ? n : 1, size ? size : 1), n * size) : NULL;
}

void *kvc_realloc(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        return NULL;
    size_t bytes = n * size;
    return allowed() ? hint(realloc(p, bytes > 0 ? bytes : 1), bytes) : NULL;
}

char *kvc_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = kvc_malloc(n, 1);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

void kvc_free(void *p)
{
    free(p);
}

void *kvc_pages_grow(void *p, size_t old, size_t bytes)
{
    if (!allowed())
        return NULL;
    void *fresh = p ? mremap(p, old, bytes, MREMAP_MAYMOVE)
                    : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return NULL;
    (void)madvise(fresh, bytes, MADV_HUGEPAGE); /* refused where there are none: no harm */
    return fresh;
}

void kvc_pages_free(void *p, size_t bytes)
{
    munmap(p, bytes);
}

bool kvc_grow(void **array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity)
        return true;
    size_t n = *capacity ? *capacity : 16;
    while (n < need) {
        if (n > SIZE_MAX / 2)
            return false;
        n *= 2;
    }
    void *p = kvc_realloc(*array, n, size);
    if (!p)
        return false;
    *array = p;
    *capacity = n;
    return true;
}
