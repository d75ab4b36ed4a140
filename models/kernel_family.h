/* SPDX-License-Identifier: Apache-2.0
 * The families of kernels: what a table of each is measured over, the closed form that carries its
 * scale, and the range in which predictions are claimed. */
#ifndef KVC_MODELS_KERNEL_FAMILY_H
#define KVC_MODELS_KERNEL_FAMILY_H

#include "models/models.h"

enum {
    KVC_KERNEL_SITE = 6,
    KVC_KERNEL_DERIVED = 2,
    KVC_KERNEL_PLACE = KVC_KERNEL_SITE + KVC_KERNEL_DERIVED,
    KVC_KERNEL_AXES = 2,
    KVC_KERNEL_X = KVC_KERNEL_SITE + KVC_KERNEL_AXES,
    KVC_KERNEL_CONSTANTS = 4,
    KVC_KERNEL_PARAMS = 4,
    KVC_KERNEL_KEY = 128,
};

struct kvc_peaks { /* of one GPU, datasheet; the forms take shares of them */
    double bf16_flops, fp8_flops, fp4_flops, bytes_per_s;
};
struct kvc_peaks kvc_peaks_of(const struct kvc_gpu *gpu);

struct kvc_kernel_row {
    char key[KVC_KERNEL_KEY];         /* names the table within the family: dtypes, kernel, .. */
    double x[KVC_KERNEL_X];           /* the site (shape), then the axes */
    double params[KVC_KERNEL_PARAMS]; /* of the key, for the form */
    double ns;
    const char *excluded; /* why no accuracy is claimed here; NULL: it is */
};

/* Text of a column, "" where there is none. */
typedef const char *(*kvc_column_fn)(void *user, const char *column);

struct kvc_kernel_family {
    const char *name;  /* as tables are named */
    const char *x;     /* what the site and the axes are, for people */
    const char *claim; /* the range, for people */
    size_t n_site, n_axes, n_constants;
    size_t n_group; /* leading site coordinates that are one shape; the rest is how it is run */
    size_t n_dtype; /* leading words of a key that name its dtype */
    size_t n_derived; /* what derive appends to where a shape lies */
    double rough; /* shapes that far apart differ by this power of it: 1 a line, 2 a plane */
    double least[KVC_KERNEL_AXES]; /* rows below this on an axis are not fitted */
    double start[KVC_KERNEL_CONSTANTS]; /* of the search for constants, all positive */
    /* further coordinates of a shape that say how alike two are; may be NULL */
    void (*derive)(const double *site, double *out);
    /* nanoseconds; p: params, x: site and axes */
    double (*form)(const double *constants, const double *p, const struct kvc_peaks *peaks,
                   const double *x);
    /* false: a number that the family needs is missing or makes no sense */
    bool (*read)(void *user, kvc_column_fn get, struct kvc_kernel_row *row);
};

const struct kvc_kernel_family *kvc_kernel_family_find(const char *name);
const struct kvc_kernel_family *kvc_kernel_families(size_t *n);
/* The leading words of a key that name its dtype; out holds KVC_KERNEL_KEY bytes. */
void kvc_kernel_dtype(const struct kvc_kernel_family *family, const char *key, char *out);
/* Mean absolute error in percent that a table of this key is to stay below; NAN: none was set. */
double kvc_kernel_target(const struct kvc_kernel_family *family, const char *key);

#endif
