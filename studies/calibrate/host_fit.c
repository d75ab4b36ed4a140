/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/host_fit.h"

#include <math.h>
#include <string.h>

void kvc_host_fit_start(struct kvc_host_fit *f, const struct kvc_engine_profile *e)
{
    static const char *const names[KVC_HOST_CONSTANTS] = {
        "host time per step", "host time per sequence", "host time per step with prefill",
        "front end"};
    static const double least[KVC_HOST_CONSTANTS] = {1e5, 1e4, 1e6, 1e7}; /* a fit moves by shares
                                                                           * of where it starts */
    const double base[KVC_HOST_CONSTANTS] = {
        e->host_per_step_ns.value, e->host_per_sequence_ns.value,
        e->host_per_prefill_step_ns.value, e->front_end_ns.value};

    memset(f, 0, sizeof *f);
    f->backend = e->backend;
    f->fit.n_constants = KVC_HOST_CONSTANTS;
    for (size_t i = 0; i < KVC_HOST_CONSTANTS; i++)
        f->fit.constant[i] = (struct kvc_fit_constant){
            .name = names[i], .start = fmax(base[i], least[i]), .base = base[i]};
}

void kvc_host_fit_clear(struct kvc_host_fit *f)
{
    kvc_text_clear(&f->sources);
    kvc_text_clear(&f->notes);
}
