/* SPDX-License-Identifier: Apache-2.0
 * Kernel tables fitted to files of measured rows, and how well tables predict such files. */
#ifndef KVC_STUDIES_KERNEL_STUDY_H
#define KVC_STUDIES_KERNEL_STUDY_H

#include "models/kernel_store.h"
#include "studies/kernels/rows.h"

struct kvc_kernel_calibration { /* all zero = empty */
    struct kvc_kernel_label label; /* of the first row; family is not set */
    const struct kvc_gpu *gpu;
    struct kvc_kernel_tables tables;
    size_t rows, bad_rows;
};
/* All files must be of one system and backend. origin (may be NULL) says where they come from, in
 * front of their names in the tables' sources. */
enum kvc_status kvc_kernel_calibrate(struct kvc_kernel_calibration *out, const char *const *paths,
                                     size_t n, const char *origin, struct kvc_error *err);
void kvc_kernel_calibration_clear(struct kvc_kernel_calibration *c);

/* What the program's tables of one GPU, backend, family and dtype state of themselves, rows of the
 * claimed range only, in percent. */
struct kvc_kernel_stated {
    const struct kvc_gpu *gpu;
    const char *backend, *version;
    const struct kvc_kernel_family *family;
    char dtype[KVC_KERNEL_KEY];
    size_t rows;
    double fitted, random, shape; /* NAN: too few rows to keep any aside */
};
typedef void (*kvc_kernel_stated_fn)(void *user, const struct kvc_kernel_stated *stated);
enum kvc_status kvc_kernel_stated(kvc_kernel_stated_fn fn, void *user, struct kvc_error *err);

struct kvc_kernel_check { /* one file's rows of one table */
    struct kvc_kernel_label label;
    const struct kvc_kernel_family *family;
    char key[KVC_KERNEL_KEY]; /* its dtype, or all of it */
    char from[64];            /* whose tables predicted */
    bool borrowed;
    size_t outside;           /* rows beyond what was measured, scored all the same */
    struct kvc_kernel_errors errors;
    struct kvc_kernel_error sum;
};
struct kvc_kernel_excluded {
    const char *reason;
    size_t rows;
};
struct kvc_kernel_validation { /* all zero = empty */
    struct kvc_kernel_check *check;
    size_t n, cap;
    struct kvc_kernel_excluded excluded[16];
    size_t n_excluded, rows, rows_excluded;
    struct kvc_kernel_errors errors; /* of all */
    struct kvc_kernel_error sum;
};
struct kvc_kernel_validate_options {
    const char *profile; /* tables of this file instead of the program's */
    const char *like;    /* tables of this GPU, as if the rows' own had none */
    bool by_key;         /* a line per table instead of one per dtype */
};
enum kvc_status kvc_kernel_validate(struct kvc_kernel_validation *out, const char *const *paths,
                                    size_t n, const struct kvc_kernel_validate_options *options,
                                    struct kvc_error *err);
void kvc_kernel_validation_clear(struct kvc_kernel_validation *v);

#endif
