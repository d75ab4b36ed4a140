/* SPDX-License-Identifier: Apache-2.0
 * Growable arrays that share a budget of memory: one that would exceed it moves into a temporary
 * file without a name, mapped into memory, so that the system may write it out and read it back.
 * The file is gone when the process ends, however it ends. */
#ifndef KVC_BASE_SPILL_H
#define KVC_BASE_SPILL_H

#include <kvcast/kvcast.h>

struct kvc_spill {
    char *folder;      /* where files go; where none can be made, $TMPDIR, else /tmp */
    uint64_t limit;    /* bytes of arrays held in memory, all together */
    uint64_t held;     /* of them now */
    uint64_t on_disk;  /* bytes in files now */
    int error;         /* errno of a file's failure, 0: none */
};

/* What an array's pointer does not say. All zero: an empty one. */
struct kvc_spill_array {
    size_t bytes;
    int file;   /* descriptor + 1 when it is a file, else 0 */
    bool paged; /* in memory that is its own whole pages, else of kvc_malloc */
};

/* folder is copied; NULL takes $TMPDIR, else /tmp. limit 0: 512 MiB. */
bool kvc_spill_init(struct kvc_spill *s, const char *folder, uint64_t limit);
void kvc_spill_clear(struct kvc_spill *s);
/* Makes *array (a T **) bytes long or a little more if it was shorter; the new part holds anything,
 * or zeros where zero is set. On failure all stays as it was, and kvc_spill_fail tells why. */
bool kvc_spill_grow(struct kvc_spill *s, void *array, struct kvc_spill_array *a, size_t bytes,
                    bool zero);
void kvc_spill_free(struct kvc_spill *s, void *array, struct kvc_spill_array *a);
/* Gives the array away, its file closed: to be freed with kvc_free when this returns 0, else with
 * kvc_spill_unmap and the bytes returned. */
size_t kvc_spill_detach(struct kvc_spill *s, struct kvc_spill_array *a);
void kvc_spill_unmap(void *p, size_t bytes);
/* The contents of [begin, end) are no longer needed: gives whole pages of a file back. */
void kvc_spill_drop(const struct kvc_spill_array *a, void *p, size_t begin, size_t end);
/* Status and words for the latest failure. */
enum kvc_status kvc_spill_fail(const struct kvc_spill *s, struct kvc_error *err);

#endif
