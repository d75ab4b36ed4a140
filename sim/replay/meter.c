/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/meter.h"

#include "base/alloc.h"
#include "sim/replay/pool.h"

#include <string.h>

/* The named ones, then the largest by prompt tokens, as many as there are groups for. */
static void form_groups(struct kvc_meter *m, const uint64_t *tokens, const bool *named)
{
    uint32_t most = m->n_tenants < KVC_METER_GROUPS ? m->n_tenants : KVC_METER_GROUPS - 1;
    memset(m->group_of, 0xff, m->n_tenants * sizeof(*m->group_of));
    while (m->n_groups < most) {
        uint32_t best = KVC_ID_NONE;
        for (uint32_t t = 0; t < m->n_tenants; t++)
            if (m->group_of[t] == UINT8_MAX &&
                (best == KVC_ID_NONE || (named && named[t] > named[best]) ||
                 ((!named || named[t] == named[best]) && tokens[t] > tokens[best])))
                best = t;
        m->tenant_of[m->n_groups] = best;
        m->group_of[best] = (uint8_t)m->n_groups++;
    }
    if (m->n_groups == m->n_tenants)
        return;
    m->tenant_of[m->n_groups] = KVC_ID_NONE;
    for (uint32_t t = 0; t < m->n_tenants; t++)
        if (m->group_of[t] == UINT8_MAX)
            m->group_of[t] = (uint8_t)m->n_groups;
    m->n_groups++;
}

bool kvc_meter_init(struct kvc_meter *m, const struct kvc_trace *trace, const bool *named,
                    uint32_t n_tenants, const uint64_t *now)
{
    uint64_t blocks = 0, *tokens = NULL;
    memset(m, 0, sizeof(*m));
    m->now = now;
    m->n_tenants = n_tenants;
    m->seg_base = kvc_malloc(trace->n_segments, sizeof(*m->seg_base));
    for (uint32_t s = 0; m->seg_base && s < trace->n_segments; s++) {
        m->seg_base[s] = blocks;
        blocks += trace->seg_len[s];
    }
    tokens = kvc_calloc(m->n_tenants, sizeof(*tokens));
    m->rows = kvc_calloc(m->n_tenants, sizeof(*m->rows));
    m->group_of = kvc_calloc(m->n_tenants, sizeof(*m->group_of));
    m->tenant_of = kvc_calloc(KVC_METER_GROUPS, sizeof(*m->tenant_of));
    m->gone = kvc_malloc(blocks, 1);
    if (m->seg_base && tokens && m->rows && m->group_of && m->tenant_of && m->gone) {
        for (uint64_t i = 0; trace->tenant && i < trace->n_requests; i++)
            tokens[trace->tenant[i] == KVC_ID_NONE ? n_tenants - 1 : trace->tenant[i]] +=
                trace->input_tokens[i];
        form_groups(m, tokens, named);
        memset(m->gone, (int)(m->n_groups + KVC_WHY_OTHER), blocks);
        size_t cells = (size_t)m->n_groups * kvc_meter_columns(m);
        m->evicted_bytes = kvc_calloc(cells, sizeof(*m->evicted_bytes));
        m->missed_tokens = kvc_calloc(cells, sizeof(*m->missed_tokens));
    }
    kvc_free(tokens);
    return m->evicted_bytes && m->missed_tokens;
}

void kvc_meter_clear(struct kvc_meter *m)
{
    void *all[] = {m->rows, m->group_of, m->tenant_of, m->evicted_bytes, m->missed_tokens,
                   m->seg_base, m->gone};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        kvc_free(all[i]);
    memset(m, 0, sizeof(*m));
}

void kvc_meter_left(struct kvc_meter *m, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t tenant,
                    uint32_t by, uint64_t bytes)
{
    uint32_t column = by == KVC_BY_DECODING ? m->n_groups + KVC_WHY_DECODING
                      : by == KVC_BY_TTL    ? m->n_groups + KVC_WHY_TTL
                                            : m->group_of[by];
    m->evicted_bytes[m->group_of[tenant] * kvc_meter_columns(m) + column] += bytes;
    memset(m->gone + m->seg_base[seg] + lo, (int)column, hi - lo);
}

uint64_t kvc_meter_held(const struct kvc_meter *m, uint32_t group)
{
    if (m->tenant_of[group] != KVC_ID_NONE)
        return m->rows[m->tenant_of[group]].bytes;
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < m->n_tenants; t++)
        bytes += m->group_of[t] == group ? m->rows[t].bytes : 0;
    return bytes;
}
