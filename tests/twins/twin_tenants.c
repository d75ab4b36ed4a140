/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's tenants, written from docs/tenants.md: what holds for each, worked out block
 * by block. */
#include <string.h>

#include "base/alloc.h"
#include "tests/twins/twin_order.h"

uint32_t tenant_of(const struct twin *tw, uint32_t request)
{
    uint32_t t = tw->trace->tenant ? tw->trace->tenant[request] : 0;

    return t == KVC_ID_NONE ? tw->n_tenants - 1 : t;
}

static const struct kvc_tenant_rule *rule_named(const struct twin *tw, const char *name)
{
    for (uint32_t i = 0; i < tw->sc->n_tenants; i++)
        if (strcmp(tw->sc->tenants[i].name, name) == 0)
            return &tw->sc->tenants[i];
    return NULL;
}

static uint64_t amount(const struct kvc_amount *own, const struct kvc_amount *other, uint64_t pages,
                       uint64_t page_bytes, uint64_t none)
{
    const struct kvc_amount *a = own && own->kind != KVC_AMOUNT_UNSET ? own : other;

    if (a && a->kind == KVC_AMOUNT_BYTES)
        return a->bytes / page_bytes;
    if (a && a->kind == KVC_AMOUNT_SHARE)
        return (uint64_t)(a->share * (double)pages);
    return none;
}

static uint64_t tier_blocks(const struct twin *tw, int k)
{
    uint64_t bytes = tw->sc->tiers[k].capacity_bytes;

    if (tw->sc->tiers[k].scope == KVC_PER_GPU)
        bytes *= (uint64_t)tw->sc->cluster.tp * tw->sc->cluster.pp;
    return bytes / (tw->B * tw->setup->kv_bytes_per_token);
}

static struct twin_ttl shorter(uint64_t tier, uint64_t tenant)
{
    if (tier && (!tenant || tier <= tenant))
        return (struct twin_ttl){tier, true};
    return (struct twin_ttl){tenant ? tenant : KVC_TIME_NONE, false};
}

/* By its own rule or its policy's. */
static uint64_t tier_ttl(const struct twin *tw, int level)
{
    const struct kvc_tier_config *t = level ? &tw->sc->tiers[level - 1] : NULL;
    uint64_t own = t ? t->ttl_ns : tw->sc->hbm_ttl_ns;
    uint64_t policy = t && !t->present ? 0 : twin_policy_ttl(t ? t->policy : tw->sc->hbm_policy);

    return !own || (policy && policy < own) ? policy : own;
}

static void fill_rule(const struct twin *tw, uint32_t t)
{
    static const struct kvc_tenant_rule none;
    const char *name = tw->trace->tenant_names && t < tw->trace->n_tenants
                           ? tw->trace->tenant_names[t] : "";
    const struct kvc_tenant_rule *own = rule_named(tw, name), *other = rule_named(tw, "default");
    struct twin_rule *r = &tw->rules[t];

    own = own ? own : &none;
    other = other ? other : &none;
    r->mode = (own->given & 1u << KVC_TENANT_MODE ? own : other)->quota_mode;
    r->priority = (own->given & 1u << KVC_TENANT_PRIORITY ? own : other)->priority;
    for (int k = 0; k < 4; k++) {
        uint64_t pages = k ? tier_blocks(tw, k - 1) : tw->setup->pages;
        uint64_t bytes = (k ? tw->B : tw->P) * tw->setup->kv_bytes_per_token;

        r->quota[k] = amount(&own->quota[k], &other->quota[k], pages, bytes, UINT64_MAX);
        r->reserve[k] = amount(&own->reserve[k], &other->reserve[k], pages, bytes, 0);
        r->ttl[k] = shorter(tier_ttl(tw, k),
                            (own->given & 1u << KVC_TENANT_TTL ? own : other)->ttl_ns);
    }
}

/* One tenant is limited where it has limits; several are as soon as one has any. */
static void find_limits(struct twin *tw, uint32_t t)
{
    bool all = tw->rules[t].priority != tw->rules[0].priority;

    for (int k = 0; k < 4; k++) {
        bool here = (!k || tw->sc->tiers[k - 1].present) &&
                    (tw->rules[t].quota[k] != UINT64_MAX || tw->rules[t].reserve[k] > 0);

        tw->limited[k] |= here;
        all |= here && tw->n_tenants > 1;
    }
    for (int k = 0; k < 4; k++)
        tw->limited[k] |= all;
}

void tenants_create(struct twin *tw)
{
    uint32_t n = tw->trace->tenant ? tw->trace->n_tenants : 0, columns;

    for (uint32_t i = 0; tw->trace->tenant && i < tw->n_req; i++)
        if (tw->trace->tenant[i] == KVC_ID_NONE) {
            n++;
            break;
        }
    tw->n_tenants = tw->out->n_tenants = n ? n : 1;
    columns = tw->n_tenants + TWIN_WHYS;
    tw->ruled = tw->sc->n_tenants || tier_ttl(tw, 0) || tier_ttl(tw, 1) || tier_ttl(tw, 2) ||
                tier_ttl(tw, 3);
    tw->rules = twin_alloc(tw->n_tenants, sizeof *tw->rules);
    tw->lost_to = twin_alloc(tw->n_nodes, sizeof *tw->lost_to);
    tw->out->evicted_blocks = twin_alloc(tw->n_tenants * columns, sizeof(uint64_t));
    tw->out->missed_to = twin_alloc(tw->n_tenants * columns, sizeof(uint64_t));
    for (uint32_t t = 0; t < tw->n_tenants; t++) {
        fill_rule(tw, t);
        find_limits(tw, t);
    }
    for (uint32_t i = 0; i < tw->n_nodes; i++)
        tw->lost_to[i] = tw->n_tenants + 2;
}

void tenants_destroy(struct twin *tw)
{
    kvc_free(tw->rules);
    kvc_free(tw->lost_to);
}

static uint64_t beyond(uint64_t used, uint64_t limit)
{
    return used > limit ? used - limit : 0;
}

/* Whether what owner has reserved does not hold against by. */
bool tenants_own(const struct twin *tw, uint32_t owner, uint32_t by)
{
    return owner == (by == TWIN_DECODING ? tw->decoders : by);
}

uint64_t tenants_free(const struct twin *tw, int level, const struct twin_use *use,
                      uint64_t plain, uint32_t by)
{
    for (uint32_t t = 0; t < tw->n_tenants; t++) {
        uint64_t spare = beyond(use[t].used, tw->rules[t].reserve[level]);

        plain += tenants_own(tw, t, by) || use[t].unheld < spare ? use[t].unheld : spare;
    }
    return plain;
}

bool tenants_may_go(const struct twin *tw, int level, const struct twin_use *use, uint32_t owner,
                    uint32_t by, uint64_t take, uint64_t *rank)
{
    const struct twin_rule *r = &tw->rules[owner];
    bool over = r->mode == KVC_QUOTA_SOFT && use[owner].used > r->quota[level];

    *rank = UINT64_MAX / 2 - r->priority - (over ? UINT64_MAX / 4 : 0);
    if (by != TWIN_DECODING && tw->rules[by].mode != KVC_QUOTA_SOFT &&
        tw->rules[by].mode != KVC_QUOTA_ISOLATED &&
        use[by].used + take > tw->rules[by].quota[level] && use[by].unheld_blocks)
        return owner == by; /* it makes way for itself */
    return tenants_own(tw, owner, by) || r->reserve[level] == 0 ||
           use[owner].used > r->reserve[level];
}

uint64_t tenants_round(const struct twin *tw, int level, const struct twin_use *use, uint32_t t)
{
    uint64_t quota = tw->rules[t].quota[level], used = use[t].used;

    if (tw->rules[t].mode != KVC_QUOTA_ISOLATED || quota == UINT64_MAX || !use[t].unheld ||
        (double)used < 0.8 * (double)quota)
        return 0;
    if (quota == 0)
        return used;
    return used >= 5 ? used / 5 : 1;
}

/* Shorter ones first; of equal ones, those that go nowhere. */
static bool ttl_before(const struct twin_ttl *a, const struct twin_ttl *b)
{
    return a->ns != b->ns ? a->ns < b->ns : a->down < b->down;
}

struct twin_ttl *tenants_longer(struct twin *tw, struct twin_ttl *now, int level, uint32_t by)
{
    struct twin_ttl *mine = &tw->rules[by].ttl[level];

    return !now || ttl_before(now, mine) ? mine : now;
}

void tenants_lost(struct twin *tw, int level, uint32_t node, uint32_t owner, uint32_t by)
{
    uint32_t column = by == TWIN_DECODING ? tw->n_tenants : by == TWIN_TTL ? tw->n_tenants + 1 : by;

    (void)level;
    tw->lost_to[node] = column;
    tw->out->evicted_blocks[owner * (tw->n_tenants + TWIN_WHYS) + column]++;
}
