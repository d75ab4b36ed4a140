/* SPDX-License-Identifier: Apache-2.0
 * How long prompts, answers, sessions and pauses are, and what rows state beside them. */
#include "traces/profile/profile_parts.h"

#include "base/alloc.h"
#include "base/distribution.h"

#include <string.h>

static uint32_t length_class(uint32_t tokens)
{
    uint32_t i = 0;
    while (i < KVC_PROFILE_LENGTHS - 1 && tokens >> i)
        i++;
    return i;
}

static void count_rows(const struct kvc_trace *t, struct kvc_profile *p)
{
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t in = t->input_tokens[r], class = length_class(in);
        p->input_requests[class]++;
        p->input_sum[class] += in;
        if (kvc_trace_output_known(t, r)) {
            p->output_requests[length_class(t->output_tokens[r])]++;
            p->zero_output += t->output_tokens[r] == 0;
        } else {
            p->unknown_output++;
        }
        p->failed += t->row_status && t->row_status[r] == KVC_ROW_FAILED;
        p->cancelled += t->row_status && t->row_status[r] == KVC_ROW_CANCELLED;
        p->outputs_known += t->output_seg && t->output_seg[r] != KVC_SEG_NONE;
        p->in_sessions += t->session && t->session[r] != KVC_ID_NONE;
        if (t->cached_tokens && t->cached_tokens[r] != KVC_ID_NONE) {
            p->cached_rows++;
            p->cached_of_tokens += in;
            p->cached_tokens += t->cached_tokens[r];
        }
    }
}

/* Turns too short to hold the prompt and the answer before them: a history cut, edited or
 * summed up. */
static void count_shrunken(const struct kvc_trace *t, struct kvc_profile *p, uint64_t *last)
{
    memset(last, 0xff, t->n_sessions * sizeof(*last));
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t s = t->session[r];
        if (s == KVC_ID_NONE)
            continue;
        uint64_t before = last[s];
        if (before != UINT64_MAX)
            p->shrunken_turns += (uint64_t)t->input_tokens[before] + t->output_tokens[before] >
                                 t->input_tokens[r];
        last[s] = r;
    }
}

bool kvc_profile_lengths(const struct kvc_trace *t, struct kvc_profile *p)
{
    uint64_t n = t->n_requests, k = 0;
    size_t room = n > t->n_sessions ? (size_t)n : t->n_sessions;
    uint64_t *v = kvc_malloc(room, sizeof(*v));
    if (!v)
        return false;
    for (uint64_t r = 0; r < n; r++)
        v[r] = t->input_tokens[r];
    kvc_distribution(v, n, 1, &p->input_tokens);
    for (uint64_t r = 0; r < n; r++)
        if (kvc_trace_output_known(t, r))
            v[k++] = t->output_tokens[r];
    kvc_distribution(v, k, 1, &p->output_tokens);
    k = 0;
    for (uint64_t r = 0; t->think_ns && r < n; r++)
        if (t->think_ns[r] != KVC_TIME_NONE)
            v[k++] = t->think_ns[r];
    kvc_distribution(v, k, 1e9, &p->think_s);
    if (t->session) {
        memset(v, 0, room * sizeof(*v));
        for (uint64_t r = 0; r < n; r++)
            if (t->session[r] != KVC_ID_NONE)
                v[t->session[r]]++;
        kvc_distribution(v, t->n_sessions, 1, &p->turns);
        count_shrunken(t, p, v);
    }
    count_rows(t, p);
    kvc_free(v);
    return true;
}
