/* SPDX-License-Identifier: Apache-2.0
 * Pipeline stages: prefill fills batches in order, which leave the last stage one by one and after
 * those of the round before. */
#include "sim/replay/replica.h"

#include "base/whole.h"

/* How long after the step the batch with so many of its tokens is through. */
static uint64_t late_ns(const struct kvc_replica *r, uint64_t tokens, uint64_t all, uint32_t batch,
                        uint64_t spacing)
{
    uint64_t end = kvc_div_up(tokens, batch) * batch;
    end = end < all ? end : all;
    uint64_t own = end > batch ? spacing * (end - batch) / batch : 0;
    uint64_t behind = r->through_ns + spacing * end / batch;
    return behind > r->due_ns + own ? behind - r->due_ns : own;
}

void kvc_replica_note_late(struct kvc_engine *e, struct kvc_replica *r, uint32_t n_decode,
                           uint64_t context, uint32_t sampled)
{
    uint64_t all = 0, to = 0;
    uint32_t batch;
    uint64_t spacing = kvc_step_spacing_ns(e->model, e->chunks, r->n_chunks, n_decode, context,
                                           sampled, &batch);
    for (size_t i = 0; i < r->n_chunks; i++)
        all += e->chunks[i].tokens;
    for (size_t i = 0; i < r->n_chunks; i++) {
        to += e->chunks[i].tokens;
        e->jobs[r->chunk_jobs[i]].late_ns = late_ns(r, to, all, batch, spacing);
    }
    r->through_ns = r->due_ns + late_ns(r, all, all, batch, spacing);
}
