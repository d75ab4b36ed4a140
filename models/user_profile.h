/* SPDX-License-Identifier: Apache-2.0
 * Figures measured on a user's own machines, in place of those of the profiles carried in the
 * program: a file of schema kvcast.profile.v1 (docs/calibrate.md). */
#ifndef KVC_MODELS_USER_PROFILE_H
#define KVC_MODELS_USER_PROFILE_H

#include "models/kernel_store.h"
#include "models/profiles.h"

#define KVC_PROFILE_SCHEMA "kvcast.profile.v1"

struct kvc_user_profile; /* immutable */

/* A file of kernel tables alone (kvcast.kernels.v2) is a profile, too. Names of GPUs, links and
 * engines must be known ones, figures within what is physically sensible; file
 * names the text in errors. */
enum kvc_status kvc_user_profile_parse(struct kvc_user_profile **out, const char *text, size_t n,
                                       const char *file, struct kvc_error *err);
void kvc_user_profile_destroy(struct kvc_user_profile *p); /* NULL is fine */

/* The GPU that the figures were measured beside, "" where the file does not say. */
const char *kvc_user_profile_gpu(const struct kvc_user_profile *p);
const char *kvc_user_profile_digest(const struct kvc_user_profile *p); /* of the text, hex */

/* The profile of that name, with the user's figures where p (NULL: none) has them; strings live as
 * long as p. false: the name is unknown. */
bool kvc_user_link(const struct kvc_user_profile *p, const char *name,
                   struct kvc_link_profile *out);
bool kvc_user_engine(const struct kvc_user_profile *p, const char *backend,
                     struct kvc_engine_profile *out);

/* The GPU of that name, with the user's figures. Where the file says that the name stands for
 * another device, its name is that device's and its kernels are the named GPU's, as shares of its
 * own peaks. NULL: the name is unknown. p NULL: kvc_gpu_find. Lives as long as p. */
const struct kvc_gpu *kvc_user_gpu(const struct kvc_user_profile *p, const char *name);
/* Tables of the user's own for a GPU, as kvc_user_gpu has it, and an engine; NULL: none. They live
 * as long as p. */
const struct kvc_kernel_store *kvc_user_kernels(const struct kvc_user_profile *p,
                                                const struct kvc_gpu *gpu, const char *backend);

/* What it says of GPUs and kernels, as members of the object that is open in j. */
void kvc_user_profile_put_gpus(const struct kvc_user_profile *p, struct kvc_json *j);

/* The figures that a file may state, for whoever writes one; they end with a NULL key. */
struct kvc_user_figure {
    const char *key;
    size_t offset;   /* of the struct kvc_figure in its profile */
    double min, max; /* inclusive */
};
extern const struct kvc_user_figure kvc_user_link_figures[], kvc_user_engine_figures[],
    kvc_user_gpu_figures[];

#endif
