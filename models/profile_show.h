/* SPDX-License-Identifier: Apache-2.0
 * Shows the profiles this folder owns: hardware, model, price, link. */
#ifndef KVC_MODELS_PROFILE_SHOW_H
#define KVC_MODELS_PROFILE_SHOW_H

#include <kvcast/kvcast.h>

/* As kvc_profile_show, without presets. */
enum kvc_status kvc_models_show(char **out, const char *kind, const char *name, bool json,
                                struct kvc_error *err);

#endif
