/* SPDX-License-Identifier: Apache-2.0
 * Kernel tables from rows measured on a user's own GPU, be they few: a table of their own where
 * they span one, else the nearest GPU's table with the constants of its closed form fitted anew. */
#ifndef KVC_MODELS_OWN_KERNELS_H
#define KVC_MODELS_OWN_KERNELS_H

#include "models/kernel_store.h"
#include "models/measured_fit.h"

struct kvc_own_row {
    const struct kvc_kernel_family *family;
    struct kvc_kernel_row row;
    bool bound; /* by a plainer kernel than engines run: a time that theirs stay below */
};

enum kvc_own_way {
    KVC_OWN_TABLE,    /* the rows' own */
    KVC_OWN_RESCALED, /* the base's shapes, the constants of its closed form by the rows */
    KVC_OWN_BOUND,    /* plain kernels slower than the base's: they say no more, none was made */
    KVC_OWN_TOO_FEW   /* to make a table of, and there is no base; none was made */
};

struct kvc_own_kernel { /* what became of the rows of a key */
    const struct kvc_kernel_family *family;
    char key[KVC_KERNEL_KEY];
    size_t rows, shapes;
    double least[KVC_KERNEL_AXES], most[KVC_KERNEL_AXES]; /* of the axes */
    enum kvc_own_way way;
    char base[64];               /* "h100_sxm vllm"; "": there is none */
    struct kvc_measured_fit fit; /* of the base's constants; n 0: none */
    /* mean errors on shapes (where there is one alone, rows) left out, percent; NAN: not known */
    double table_off, rescaled_off;
    double slower; /* KVC_OWN_BOUND: than the base, as a share */
};

struct kvc_own_kernels { /* all zero = empty */
    struct kvc_own_kernel *kernel;
    size_t n;
    struct kvc_kernel_tables tables;
    struct kvc_peaks peaks; /* that the tables take shares of */
    struct kvc_peaks told;  /* what of them the rows told; 0: as the GPU's */
};

/* Sorts the rows. gpu and backend name the base. stands_in: the rows are of another device that gpu
 * is most like, so its peaks follow from matrix products: those by which gpu's kernels, at their
 * shares of peak, take what the rows took. source: of tables, without the number of rows. */
enum kvc_status kvc_own_kernels_fit(struct kvc_own_kernels *out, struct kvc_own_row *rows,
                                    size_t n, const struct kvc_gpu *gpu, const char *backend,
                                    bool stands_in, const char *source, struct kvc_error *err);
void kvc_own_kernels_clear(struct kvc_own_kernels *own);

#endif
