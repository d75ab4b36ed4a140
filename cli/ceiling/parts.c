/* SPDX-License-Identifier: Apache-2.0
 * What the files that print have in common: a capacity, hits, the policies' column. */
#include "cli/ceiling/ceiling.h"

#include "reports/closeup.h"

#include <string.h>

void kvc_ceiling_json_hits(struct kvc_json *j, const struct kvc_hits *h,
                           const struct kvc_trace_stats *s)
{
    kvc_hits_json(j, h, s->has_prefix, s->has_tokens);
}

void kvc_ceiling_json_capacity(struct kvc_json *j, const struct ceiling *c,
                               const struct ceiling_point *p)
{
    bool inf = p->blocks == KVC_CAPACITY_INF;
    if (inf)
        kvc_json_string(j, "capacity_blocks", "inf");
    else
        kvc_json_u64(j, "capacity_blocks", p->blocks);
    if (!c->bytes_per_token)
        kvc_json_null(j, "capacity_bytes");
    else if (inf)
        kvc_json_string(j, "capacity_bytes", "inf");
    else
        kvc_json_u64(j, "capacity_bytes", p->bytes);
}

int kvc_ceiling_name_width(const struct ceiling *c)
{
    size_t width = 10;
    for (size_t k = 0; k < c->n_policies; k++)
        if (strlen(kvc_ceiling_label(c, k)) > width)
            width = strlen(kvc_ceiling_label(c, k));
    return (int)width;
}
