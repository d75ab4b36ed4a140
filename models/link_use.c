/* SPDX-License-Identifier: Apache-2.0 */
#include "models/link_use.h"

#include <math.h>

double kvc_link_op_ns(const struct kvc_link_profile *l)
{
    double begins = l->ops_per_s.value > 0 ? 1e9 / l->ops_per_s.value : 0;

    return fmax(l->per_op_ns.value, begins);
}

void kvc_link_use_of(struct kvc_link_use *u, const struct kvc_link_profile *l, bool write,
                     double op_bytes, double devices)
{
    double rate = write ? l->write_bytes_per_s.value : l->read_bytes_per_s.value;
    double all = write ? l->all_write_bytes_per_s.value : l->all_read_bytes_per_s.value;
    double stream = l->stream_bytes_per_s.value > 0 ? fmin(l->stream_bytes_per_s.value, rate)
                                                    : rate;
    double answer = l->op_latency_ns.value > 0 ? fmin(l->op_latency_ns.value, l->latency_ns.value)
                                               : l->latency_ns.value;
    double wire = op_bytes / rate * 1e9, own = l->per_op_ns.value + wire;

    if (l->ops_per_s.value > 0)
        own = fmax(own, 1e9 / l->ops_per_s.value);
    u->op_bytes = op_bytes;
    u->latency_ns = l->latency_ns.value;
    u->setup_ns = l->latency_ns.value - answer;
    u->each_ns = answer + l->per_op_ns.value + op_bytes / stream * 1e9;
    u->slots = l->queue_depth.value >= 1 ? l->queue_depth.value * devices : 0;
    u->wide_bytes_per_s = rate * devices * (wire / own);
    if (all > 0) /* one device is what was measured, whatever is said of many */
        u->wide_bytes_per_s = fmin(u->wide_bytes_per_s, fmax(all, rate));
    u->bytes_per_s = u->wide_bytes_per_s;
    if (u->slots > 0)
        u->bytes_per_s = fmin(u->bytes_per_s, u->slots * op_bytes / u->each_ns * 1e9);
}

uint64_t kvc_link_ahead_ns(const struct kvc_link_use *u, uint64_t bytes)
{
    double ahead = u->latency_ns, all = (double)bytes;

    if (u->slots > 0) {
        double rounds = ceil(ceil(all / u->op_bytes) / u->slots);
        double wide = u->latency_ns + all / u->wide_bytes_per_s * 1e9;
        ahead = fmax(wide, u->setup_ns + rounds * u->each_ns) - all / u->bytes_per_s * 1e9;
    }
    return ahead > 0 ? (uint64_t)(ahead + 0.5) : 0;
}
