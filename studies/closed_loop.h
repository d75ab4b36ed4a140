/* SPDX-License-Identifier: Apache-2.0
 * One benchmark run as its clients see it: so many clients, each sending its next request when the
 * last one ends, against one engine without cached prefixes. */
#ifndef KVC_STUDIES_CLOSED_LOOP_H
#define KVC_STUDIES_CLOSED_LOOP_H

#include "models/models.h"

struct kvc_host_costs { /* instead of those in the step model's profile */
    double step_ns, sequence_ns, prefill_ns; /* of each step, sequence in it, step with prefill */
    double front_ns;                         /* of each request, half of it on each way */
};

struct kvc_closed_loop {
    const struct kvc_step_model *model;
    struct kvc_host_costs host;
    uint32_t clients, requests;
    uint32_t input, output; /* tokens of the longest request */
    double shortest;        /* lengths are uniform in [shortest, 1] of these; 1: all alike */
    uint64_t seed;
    uint32_t max_batched_tokens;
    bool prefill_first;     /* prefill steps hold no decodes (SGLang) */
    double kv_tokens;       /* room; a request takes input + output when admitted */
};

struct kvc_closed_loop_result { /* means over all requests, the burst at the start included */
    double ttft_ns, tpot_ns; /* tpot 0: outputs of one token */
    uint64_t steps;
    uint32_t peak_running;
    uint32_t flags; /* enum KVC_STEP_*, of every step */
};

enum kvc_status kvc_closed_loop_run(const struct kvc_closed_loop *loop,
                                    struct kvc_closed_loop_result *out, struct kvc_error *err);

#endif
