/* SPDX-License-Identifier: Apache-2.0
 * The fitted kernel tables of one GPU and engine backend. */
#ifndef KVC_MODELS_KERNEL_STORE_H
#define KVC_MODELS_KERNEL_STORE_H

#include "models/kernel_fit.h"

#define KVC_KERNELS_SCHEMA "kvcast.kernels.v2"

struct kvc_kernel_store {
    struct kvc_kernel_tables tables;
    struct kvc_peaks peaks;    /* of the GPU asked for */
    char from[64];             /* GPU whose tables these are */
    bool borrowed;             /* not the one asked for: shares of peak carried over */
    char file[128], version[64];
};

/* The tables carried in the program: the GPU's own, else those of the GPU that its profile names
 * as like it (borrowed). KVC_ERR_UNSUPPORTED: neither has any of this backend. */
enum kvc_status kvc_kernel_store_load(struct kvc_kernel_store *out, const struct kvc_gpu *gpu,
                                      const char *backend, struct kvc_error *err);
/* As if that GPU had no tables of its own. */
enum kvc_status kvc_kernel_store_borrow(struct kvc_kernel_store *out, const struct kvc_gpu *gpu,
                                        const char *like, const char *backend,
                                        struct kvc_error *err);
/* Of an object that holds "tables". */
enum kvc_status kvc_kernel_store_read(struct kvc_kernel_store *out, const struct kvc_jval *v,
                                      const char *file, struct kvc_error *err);
/* Tables of a profile's text, as kvc_kernel_store_text writes it. */
enum kvc_status kvc_kernel_store_parse(struct kvc_kernel_store *out, const char *text, size_t n,
                                       const char *file, struct kvc_error *err);
void kvc_kernel_store_clear(struct kvc_kernel_store *store);

struct kvc_kernel_profile { /* what a profile says of itself */
    const char *gpu, *backend, *version;
};
/* NULL when memory ran out; the caller frees it with kvc_free. */
char *kvc_kernel_store_text(const struct kvc_kernel_tables *tables,
                            const struct kvc_kernel_profile *profile);

/* The table of that family that shares most leading words with key, at least the family's n_dtype;
 * of several, the one with most rows behind it. NULL: none. */
const struct kvc_kernel_table *kvc_kernel_store_find(const struct kvc_kernel_store *store,
                                                     const struct kvc_kernel_family *family,
                                                     const char *key);
/* Time of a row by its nearest table; false: there is none. *outside (may be NULL): the row lies
 * outside what was measured, in its axes or more than an octave from the next shape. */
bool kvc_kernel_store_predict(const struct kvc_kernel_store *store,
                              const struct kvc_kernel_family *family,
                              const struct kvc_kernel_row *row, double *ns, bool *outside);

#endif
