/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/tenants.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "policies/policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[KVC_LEVELS] = {"hbm", "dram", "nvme", "remote"};

/* ---- names ---- */

/* "a, b, c", or the first of them and how many there are. */
static void list_tenants(const struct kvc_trace *trace, char *list, size_t size)
{
    size_t at = 0;
    list[0] = '\0';
    for (uint32_t t = 0; t < trace->n_tenants; t++) {
        const char *name = trace->tenant_names[t];
        if (at + strlen(name) + sizeof(", .., 4294967295 in all") > size) {
            snprintf(list + at, size - at, "%s.., %u in all", t ? ", " : "", trace->n_tenants);
            return;
        }
        at += (size_t)snprintf(list + at, size - at, "%s%s", t ? ", " : "", name);
    }
}

enum kvc_status kvc_tenants_missing(const struct kvc_trace *trace, const char *field,
                                    const char *name, struct kvc_error *err)
{
    const char **names = kvc_calloc((size_t)trace->n_tenants + 1, sizeof(*names));
    char list[160];
    if (!names)
        return kvc_fail_nomem(err);
    for (uint32_t t = 0; t < trace->n_tenants; t++)
        names[t] = trace->tenant_names[t];
    const char *nearest = kvc_name_nearest(name, names);
    list_tenants(trace, list, sizeof(list));
    enum kvc_status st =
        !trace->n_tenants ? kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, field,
                                        "the trace names no tenants, so only \"%s\" can have rules "
                                        "(kvcast import --tenant-field says what names them)",
                                        KVC_TENANT_DEFAULT)
        : nearest         ? kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, field,
                                        "the trace has no tenant \"%.64s\"; did you mean %.64s?",
                                        name, nearest)
                          : kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, field,
                                        "the trace has no tenant \"%.64s\"; there are %s", name,
                                        list);
    kvc_free(names);
    return st;
}

uint32_t kvc_tenants_find(const struct kvc_trace *trace, const char *name)
{
    uint32_t t = 0;
    while (t < trace->n_tenants && strcmp(trace->tenant_names[t], name) != 0)
        t++;
    return t < trace->n_tenants ? t : KVC_ID_NONE;
}

enum kvc_status kvc_tenants_without(uint8_t **out, const struct kvc_trace *trace, const char *name,
                                    struct kvc_error *err)
{
    uint32_t t = kvc_tenants_find(trace, name);
    if (t == KVC_ID_NONE)
        return kvc_tenants_missing(trace, "what-if", name, err);
    uint8_t *status = kvc_calloc(trace->n_requests, sizeof(*status));
    if (!status)
        return kvc_fail_nomem(err);
    for (uint64_t i = 0; i < trace->n_requests; i++) {
        status[i] = trace->row_status ? trace->row_status[i] : KVC_ROW_OK;
        if (!trace->tenant || trace->tenant[i] == t)
            status[i] = KVC_ROW_FAILED;
    }
    *out = status;
    return KVC_OK;
}

/* The rule of each tenant and, in front, default's; NULL where there is none. The caller frees. */
static enum kvc_status find_rules(const struct kvc_tenant_rule ***out,
                                  const struct kvc_trace *trace, const struct kvc_scenario *sc,
                                  uint32_t n, struct kvc_error *err)
{
    const struct kvc_tenant_rule **by = kvc_calloc((size_t)n + 1, sizeof(*by));
    enum kvc_status st = by ? KVC_OK : kvc_fail_nomem(err);
    for (uint32_t i = 0; i < sc->n_tenants && st == KVC_OK; i++) {
        const struct kvc_tenant_rule *r = &sc->tenants[i];
        uint32_t t = kvc_tenants_find(trace, r->name);
        char field[80];
        snprintf(field, sizeof(field), "tenants.%.60s", r->name);
        if (strcmp(r->name, KVC_TENANT_DEFAULT) == 0)
            by[0] = r;
        else if (t == KVC_ID_NONE)
            st = kvc_tenants_missing(trace, field, r->name, err);
        else
            by[1 + t] = r;
    }
    if (st == KVC_OK)
        *out = by;
    else
        kvc_free(by);
    return st;
}

/* ---- what holds for a tenant ---- */

static const struct kvc_tenant_rule nothing;

struct rule_pair { /* what its own leaves out, the other says */
    const struct kvc_tenant_rule *own, *other;
};

static struct rule_pair pair_of(const struct kvc_tenant_rule *const *by, uint32_t tenant)
{
    struct rule_pair p = {by[1 + tenant], by[0]};
    p.own = p.own ? p.own : &nothing;
    p.other = p.other ? p.other : &nothing;
    return p;
}

static const struct kvc_tenant_rule *who_says(struct rule_pair p, enum kvc_tenant_field field)
{
    return p.own->given >> field & 1 ? p.own : p.other;
}

static uint64_t in_pages(const struct kvc_amount *own, const struct kvc_amount *other,
                         const struct kvc_level *level, uint64_t none)
{
    const struct kvc_amount *a = own->kind == KVC_AMOUNT_UNSET ? other : own;
    if (a->kind == KVC_AMOUNT_SHARE)
        return (uint64_t)(a->share * (double)level->pages);
    if (a->kind == KVC_AMOUNT_BYTES)
        return level->page_bytes ? a->bytes / level->page_bytes : 0;
    return none;
}

static struct kvc_pool_limits limits_of(struct rule_pair p, const struct kvc_level *level,
                                        uint32_t k)
{
    struct kvc_pool_limits l = {.quota = KVC_CAPACITY_INF};
    if (level->present) {
        l.quota = in_pages(&p.own->quota[k], &p.other->quota[k], level, KVC_CAPACITY_INF);
        l.reserve = in_pages(&p.own->reserve[k], &p.other->reserve[k], level, 0);
    }
    l.mode = who_says(p, KVC_TENANT_MODE)->quota_mode;
    l.priority = who_says(p, KVC_TENANT_PRIORITY)->priority;
    return l;
}

/* ---- classes ---- */

static enum kvc_status beyond_quota(const struct kvc_tenants *t,
                                    const struct kvc_tenant_rule *const *by, uint32_t tenant,
                                    uint32_t level, struct kvc_error *err)
{
    char field[96];
    bool own = by[1 + tenant] && by[1 + tenant]->reserve[level].kind != KVC_AMOUNT_UNSET;
    snprintf(field, sizeof(field), "tenants.%.60s.reserve",
             own ? kvc_tenant_name(t, tenant) : KVC_TENANT_DEFAULT);
    return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, field,
                       "more is reserved in %s than the quota of tenant %.60s lets it keep there: "
                       "raise the quota, or lower this", level_names[level],
                       kvc_tenant_name(t, tenant));
}

/* Tenants without limits of their own and of one priority are one class. */
static enum kvc_status form_classes(struct kvc_tenants *t, const struct kvc_tenant_rule *const *by,
                                    const struct kvc_level *levels, struct kvc_error *err)
{
    uint32_t *free_class = kvc_malloc(t->n, sizeof(*free_class)), n_free = 0;
    bool ok = free_class && (t->class_of = kvc_calloc(t->n, sizeof(*t->class_of)));
    for (uint32_t k = 0; k < KVC_LEVELS; k++)
        ok = ok && (t->limits[k] = kvc_calloc(t->n, sizeof(*t->limits[k])));
    for (uint32_t i = 0; ok && i < t->n; i++) {
        struct kvc_pool_limits l[KVC_LEVELS];
        bool limited = false;
        uint32_t c = 0;
        for (uint32_t k = 0; k < KVC_LEVELS; k++) {
            l[k] = limits_of(pair_of(by, i), &levels[k], k);
            if (l[k].reserve > l[k].quota) {
                kvc_free(free_class);
                return beyond_quota(t, by, i, k, err);
            }
            limited |= l[k].quota != KVC_CAPACITY_INF || l[k].reserve;
        }
        while (!limited && c < n_free && t->limits[0][free_class[c]].priority != l[0].priority)
            c++;
        if (!limited && c < n_free) {
            t->class_of[i] = free_class[c];
            continue;
        }
        if (!limited)
            free_class[n_free++] = t->n_classes;
        for (uint32_t k = 0; k < KVC_LEVELS; k++)
            t->limits[k][t->n_classes] = l[k];
        t->class_of[i] = t->n_classes++;
    }
    kvc_free(free_class);
    return ok ? KVC_OK : kvc_fail_nomem(err);
}

static enum kvc_status check_reserves(struct kvc_tenants *t, const struct kvc_level *levels,
                                      struct kvc_error *err)
{
    for (uint32_t k = 0; k < KVC_LEVELS; k++) {
        uint64_t sum = 0;
        for (uint32_t c = 0; c < t->n_classes; c++)
            sum += t->limits[k][c].reserve;
        if (k == 0)
            t->reserved_pages = sum;
        if (levels[k].present && sum > levels[k].pages) {
            char reserved[32], holds[32];
            kvc_format_bytes(sum * levels[k].page_bytes, reserved, sizeof(reserved));
            kvc_format_bytes(levels[k].pages * levels[k].page_bytes, holds, sizeof(holds));
            return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "tenants",
                               "the reservations in %s come to %s, and an instance of it holds %s: "
                               "lower them", level_names[k], reserved, holds);
        }
    }
    return KVC_OK;
}

/* How long blocks live in a tier, by its own rule and its policy's: 0: for ever. */
static uint64_t tier_ttl_ns(const struct kvc_scenario *sc, uint32_t level)
{
    uint64_t own = level ? sc->tiers[level - 1].ttl_ns : sc->hbm_ttl_ns;
    struct kvc_eviction order = {0};
    if (level && !sc->tiers[level - 1].present)
        return own;
    kvc_eviction_of(level ? sc->tiers[level - 1].policy : sc->hbm_policy, &order, NULL);
    return !own || (order.ttl_ns && order.ttl_ns < own) ? order.ttl_ns : own;
}

static int by_ttl(const void *a, const void *b)
{
    const struct kvc_pool_ttl *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return (int)x->passes_down - (int)y->passes_down;
}

/* The shorter of the tier's and the tenant's. */
static struct kvc_pool_ttl ttl_at(uint64_t tier_ns, uint64_t tenant_ns)
{
    bool tier = tier_ns && (!tenant_ns || tier_ns <= tenant_ns);
    return (struct kvc_pool_ttl){tier ? tier_ns : tenant_ns, tier};
}

static enum kvc_status form_ttls(struct kvc_tenants *t, const struct kvc_tenant_rule *const *by,
                                 uint32_t k, uint64_t tier_ns, struct kvc_error *err)
{
    struct kvc_pool_rules *r = &t->rules[k];
    t->ttls[k] = kvc_malloc(t->n, sizeof(*t->ttls[k]));
    t->ttl_of[k] = kvc_malloc(t->n, sizeof(*t->ttl_of[k]));
    if (!t->ttls[k] || !t->ttl_of[k])
        return kvc_fail_nomem(err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        struct kvc_pool_ttl ttl =
            ttl_at(tier_ns, who_says(pair_of(by, i), KVC_TENANT_TTL)->ttl_ns);
        if (ttl.ns)
            t->ttls[k][n++] = ttl;
    }
    qsort(t->ttls[k], n, sizeof(*t->ttls[k]), by_ttl);
    for (uint32_t i = 0; i < n; i++)
        if (!r->n_ttls || by_ttl(&t->ttls[k][i], &t->ttls[k][r->n_ttls - 1]) != 0)
            t->ttls[k][r->n_ttls++] = t->ttls[k][i];
    for (uint32_t i = 0; i < t->n; i++) {
        struct kvc_pool_ttl ttl =
            ttl_at(tier_ns, who_says(pair_of(by, i), KVC_TENANT_TTL)->ttl_ns);
        uint32_t *at = &t->ttl_of[k][i];
        *at = ttl.ns ? 0 : r->n_ttls;
        while (*at < r->n_ttls && by_ttl(&t->ttls[k][*at], &ttl) != 0)
            ++*at;
    }
    return KVC_OK;
}

static enum kvc_status form_rules(struct kvc_tenants *t, const struct kvc_tenant_rule *const *by,
                                  const struct kvc_scenario *sc, const struct kvc_level *levels,
                                  const uint64_t *now, struct kvc_error *err)
{
    enum kvc_status st = form_classes(t, by, levels, err);
    if (st == KVC_OK)
        st = check_reserves(t, levels, err);
    for (uint32_t k = 0; k < KVC_LEVELS && st == KVC_OK; k++) {
        struct kvc_pool_rules *r = &t->rules[k];
        if (!levels[k].present)
            continue;
        st = form_ttls(t, by, k, tier_ttl_ns(sc, k), err);
        bool limited = t->n_classes > 1 || t->limits[k][0].quota != KVC_CAPACITY_INF ||
                       t->limits[k][0].reserve;
        r->class_of = t->class_of;
        r->limits = t->limits[k];
        r->ttls = t->ttls[k];
        r->ttl_of = t->ttl_of[k];
        r->now = now;
        r->n_classes = limited || r->n_ttls ? t->n_classes : 0;
        for (uint32_t c = 0; c < t->n_classes; c++)
            r->rounds |= r->limits[c].mode == KVC_QUOTA_ISOLATED &&
                         r->limits[c].quota != KVC_CAPACITY_INF;
        t->expire |= r->n_ttls > 0 || r->rounds;
    }
    return st;
}

static enum kvc_status form_priorities(struct kvc_tenants *t, struct kvc_error *err)
{
    bool differ = false;
    for (uint32_t c = 1; c < t->n_classes; c++)
        differ |= t->limits[0][c].priority != t->limits[0][0].priority;
    if (!differ)
        return KVC_OK;
    t->priority = kvc_malloc(t->n, sizeof(*t->priority));
    for (uint32_t i = 0; t->priority && i < t->n; i++)
        t->priority[i] = t->limits[0][t->class_of[i]].priority;
    return t->priority ? KVC_OK : kvc_fail_nomem(err);
}

static void count_tenants(struct kvc_tenants *t)
{
    const struct kvc_trace *trace = t->trace;
    for (uint64_t i = 0; trace->tenant && i < trace->n_requests; i++)
        t->unnamed |= trace->tenant[i] == KVC_ID_NONE;
    t->n = (trace->tenant ? trace->n_tenants : 0) + t->unnamed;
    t->n = t->n ? t->n : 1;
}

enum kvc_status kvc_tenants_create(struct kvc_tenants *out, const struct kvc_trace *trace,
                                   const struct kvc_scenario *sc,
                                   const struct kvc_level levels[KVC_LEVELS], const uint64_t *now,
                                   struct kvc_error *err)
{
    const struct kvc_tenant_rule **by = NULL;
    bool *named = NULL, ttl = false;
    memset(out, 0, sizeof(*out));
    out->trace = trace;
    count_tenants(out);
    for (uint32_t k = 0; k < KVC_LEVELS; k++)
        ttl |= tier_ttl_ns(sc, k) > 0;
    bool ruled = sc->n_tenants || ttl;
    out->metered = out->n > 1 || ruled;
    enum kvc_status st = find_rules(&by, trace, sc, out->n, err);
    if (st == KVC_OK && ruled)
        st = form_rules(out, by, sc, levels, now, err);
    if (st == KVC_OK)
        st = form_priorities(out, err);
    if (st == KVC_OK && !(named = kvc_calloc(out->n, sizeof(*named))))
        st = kvc_fail_nomem(err);
    for (uint32_t i = 0; st == KVC_OK && i < out->n; i++)
        named[i] = by[1 + i] != NULL;
    if (st == KVC_OK && out->metered && !kvc_meter_init(&out->meter, trace, named, out->n, now))
        st = kvc_fail_nomem(err);
    kvc_free(named);
    kvc_free(by);
    return st;
}

void kvc_tenants_clear(struct kvc_tenants *t)
{
    kvc_meter_clear(&t->meter);
    kvc_free(t->priority);
    kvc_free(t->class_of);
    for (uint32_t k = 0; k < KVC_LEVELS; k++) {
        kvc_free(t->limits[k]);
        kvc_free(t->ttls[k]);
        kvc_free(t->ttl_of[k]);
    }
    memset(t, 0, sizeof(*t));
}

uint64_t kvc_tenants_reserved(const struct kvc_tenants *t, uint32_t tenant)
{
    return t->reserved_pages ? t->reserved_pages - t->limits[0][t->class_of[tenant]].reserve : 0;
}

const char *kvc_tenant_name(const struct kvc_tenants *t, uint32_t tenant)
{
    if (t->unnamed && tenant == t->n - 1)
        return "(none)";
    return t->trace->n_tenants && t->trace->tenant_names ? t->trace->tenant_names[tenant]
                                                         : KVC_TENANT_DEFAULT;
}

bool kvc_tenants_watch(struct kvc_tenants *t, uint32_t level, struct kvc_pool *pool,
                       uint64_t page_bytes, uint64_t block_bytes)
{
    pool->page_bytes = page_bytes;
    pool->block_bytes = block_bytes;
    pool->meter = t->metered ? &t->meter : NULL;
    return !t->rules[level].n_classes || kvc_pool_set_rules(pool, &t->rules[level]);
}
