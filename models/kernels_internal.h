/* SPDX-License-Identifier: Apache-2.0
 * What the files that answer for kernels share. */
#ifndef KVC_MODELS_KERNELS_INTERNAL_H
#define KVC_MODELS_KERNELS_INTERNAL_H

#include "models/kernels.h"

/* Whose tables: the user's, this GPU's or the one's that it is like, this engine's or another's, or
 * the one's that runs the same FlashAttention 3. */
enum { USERS, OWN, OWN_FOREIGN, LIKE, LIKE_FOREIGN, OWN_NCCL, LIKE_NCCL, OWN_TWIN, LIKE_TWIN,
       STORES };

struct kvc_kernel_used {
    char name[48], value[96], source[256];
    const char *kind;
};

struct kvc_kernels {
    const struct kvc_gpu *gpu;
    char backend[32];
    struct kvc_kernel_store store[STORES];
    bool tried[STORES], there[STORES];
    enum kvc_status status; /* of a load that failed, not of one that found nothing */
    const struct kvc_kernel_store *users; /* NULL: none */
    double users_off; /* as kvc_kernels_users_off */
    struct kvc_kernel_used used[32];
    size_t n_used;
};

/* Loaded when first asked for; NULL: there is none. */
const struct kvc_kernel_store *kvc_kernels_store(struct kvc_kernels *k, int i);
/* What table t of store i says of a site. */
void kvc_kernels_answer(const struct kvc_kernel_store *s, int i, const struct kvc_kernel_table *t,
                        const double *site, struct kvc_kernel_answer *out);
/* Takes down that an answer was used, and as what. */
void kvc_kernels_note(struct kvc_kernels *k, const char *name, const struct kvc_kernel_answer *a);

#endif
