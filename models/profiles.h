/* SPDX-License-Identifier: Apache-2.0
 * The parsed profile store and the helpers that read figures from profile JSON. */
#ifndef KVC_MODELS_PROFILES_H
#define KVC_MODELS_PROFILES_H

#include "base/json.h"
#include "models/blobs.h"
#include "models/models.h"

struct kvc_engine_profile {
    const char *backend;
    struct kvc_figure host_per_step_ns, host_per_sequence_ns, host_per_prefill_step_ns,
        front_end_ns;
    struct kvc_figure front_end_token_ns; /* of clients that send texts, a token; not in replays */
    struct kvc_figure kv_load_ns, kv_load_token_ns; /* of a load from below HBM, beside its bytes */
    bool fuses_quantise; /* takes the quantise launch out of fp8 products */
    struct kvc_figure fused_floor_ns;
    struct kvc_figure eager_launch_ns; /* of a kernel launched outside of a graph, in prefill */
    struct kvc_figure mixed_step_share; /* steps of prompts and decodes take so much longer */
    struct kvc_figure captured_tokens; /* steps of so many tokens still replay a graph */
    struct kvc_figure compile_ns; /* of a kernel that a step is the first to use; 0: none is left */
    struct kvc_figure elementwise_launch_ns, elementwise_bandwidth;
    struct kvc_figure custom_allreduce_max_bytes, memory_overhead_bytes;
    struct kvc_time_band band; /* of rows .. */
    uint32_t band_flags;       /* .. that carry these, KVC_STEP_PAST and KVC_STEP_OUTSIDE .. */
    const char *band_gpus;     /* .. and borrowed kernels on these GPUs, each name in spaces */
};

const struct kvc_engine_profile *kvc_engine_find(const char *backend); /* NULL when unknown */
const char *const *kvc_engine_names(void);

/* The embedded file of that name, or NULL. */
const struct kvc_blob *kvc_blob_find(const char *name);

/* {value, kind, source} of object's member key. false: absent or incomplete. */
bool kvc_profile_figure(const struct kvc_jval *object, const char *key, struct kvc_figure *out);
double kvc_profile_number(const struct kvc_jval *object, const char *key, double otherwise);
const char *kvc_profile_string(const struct kvc_jval *object, const char *key); /* NULL: absent */

#endif
