/* SPDX-License-Identifier: Apache-2.0
 * The closed loop against disaggregated serving: prefill engines that do nothing else, a copy of
 * the KV, decode engines that do nothing else. */
#ifndef KVC_STUDIES_CLOSED_DISAGG_H
#define KVC_STUDIES_CLOSED_DISAGG_H

#include "studies/engine/closed_loop.h"

struct kvc_engine_pool { /* of alike engines */
    const struct kvc_step_model *model;
    uint32_t engines;
    uint32_t most;    /* prefill: tokens of a step, whole prompts; decode: sequences */
    double kv_tokens; /* decode: room of one engine, a request takes input + output */
};

struct kvc_closed_disagg {
    struct kvc_engine_pool prefill, decode;
    struct kvc_host_costs host;
    uint32_t clients, requests;
    const struct kvc_request_length *length; /* [requests] */
    double copy_ns, copy_ns_per_token;       /* of a request's KV */
};

/* The first token reaches the client with the first step of its decode engine. */
enum kvc_status kvc_closed_disagg_run(const struct kvc_closed_disagg *loop,
                                      struct kvc_closed_loop_result *out, struct kvc_error *err);

#endif
