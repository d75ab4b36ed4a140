/* SPDX-License-Identifier: Apache-2.0
 * Who of the tenants holds how much cache over time, who lost what to whom, and for each block why
 * it last left a pool. A log has any number of tenants: those with rules and the largest ones are
 * told apart, the others are one group. */
#ifndef KVC_SIM_METER_H
#define KVC_SIM_METER_H

#include "traces/trace.h"

#define KVC_METER_GROUPS 32 /* told apart, the one of all others included */
/* Columns behind the groups: why something left that no tenant's request pushed out. */
enum kvc_meter_why { KVC_WHY_DECODING, KVC_WHY_TTL, KVC_WHY_OTHER, KVC_WHYS };

struct kvc_meter_row {
    uint64_t bytes, since_ns;
    double byte_s; /* integral up to then */
};

struct kvc_meter {
    const uint64_t *now;
    uint32_t n_tenants, n_groups;
    struct kvc_meter_row *rows; /* per tenant */
    uint8_t *group_of;          /* per tenant */
    uint32_t *tenant_of;        /* per group; KVC_ID_NONE: all others */
    uint64_t *evicted_bytes;    /* [group that lost][group that took, then why] */
    uint64_t *missed_tokens;    /* evicted ones: the same, of prompt tokens missed for it */
    uint64_t *seg_base;         /* number of a segment's first block */
    uint8_t *gone;              /* per block: to whom it last fell, as such a column */
};

/* named: tenants that get a group of their own, as a flag per tenant; requests that name no tenant
 * are those of the last one. */
bool kvc_meter_init(struct kvc_meter *m, const struct kvc_trace *trace, const bool *named,
                    uint32_t n_tenants, const uint64_t *now);
void kvc_meter_clear(struct kvc_meter *m);

/* tenant holds so many bytes more (modulo 2^64: or less). */
static inline void kvc_meter_charge(struct kvc_meter *m, uint32_t tenant, uint64_t bytes)
{
    struct kvc_meter_row *row = &m->rows[tenant];
    row->byte_s += (double)row->bytes * ((double)(*m->now - row->since_ns) * 1e-9);
    row->since_ns = *m->now;
    row->bytes += bytes;
}

static inline uint32_t kvc_meter_columns(const struct kvc_meter *m)
{
    return m->n_groups + KVC_WHYS;
}

/* Blocks [lo, hi) of seg, which tenant had stored, left a pool for by (or KVC_BY_..). */
void kvc_meter_left(struct kvc_meter *m, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t tenant,
                    uint32_t by, uint64_t bytes);
/* Bytes that a group holds now. */
uint64_t kvc_meter_held(const struct kvc_meter *m, uint32_t group);

#endif
