/* SPDX-License-Identifier: Apache-2.0
 * One benchmark run as its clients see it: so many clients, each sending its next request when the
 * last one ends, against one engine without cached prefixes. */
#ifndef KVC_STUDIES_CLOSED_LOOP_H
#define KVC_STUDIES_CLOSED_LOOP_H

#include "models/models.h"

struct kvc_host_costs { /* instead of those in the step model's profile */
    double step_ns, sequence_ns, prefill_ns; /* of each step, sequence in it, step with prefill */
    double front_ns;                         /* of each request, half of it on each way */
    double front_token_ns;                   /* of each token of a prompt, on the way there */
};

struct kvc_request_length {
    uint32_t input, output; /* tokens, at least 1 each */
};

/* How an engine batches; all zero but max_batched_tokens: chunks beside decodes, as vLLM. */
struct kvc_batching {
    uint32_t max_batched_tokens;
    uint32_t slots;         /* sequences that run at once; 0: no limit */
    bool prefill_first;     /* prefill steps hold no decodes (SGLang) */
    bool whole_prompts;     /* a prompt goes in one step (TensorRT-LLM) unless it never fits */
    uint32_t wait_steps;    /* prompts wait so many decode steps (TensorRT-LLM) .. */
    uint32_t wait_tokens;   /* .. unless they and the decodes make so many tokens */
    bool reserves_output;   /* room for a whole output is taken at the start (TensorRT-LLM) */
    bool plan_ahead;        /* a step is planned when the one before begins (vLLM) */
    uint32_t receive_steps; /* requests are looked for every so many decode steps (SGLang) */
};

struct kvc_closed_loop {
    const struct kvc_step_model *model;
    struct kvc_host_costs host;
    struct kvc_batching batching;
    uint32_t clients, requests;
    const struct kvc_request_length *length; /* [requests], in the order they are sent */
    double kv_tokens; /* room: of input and output, or of input and half of the output */
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
