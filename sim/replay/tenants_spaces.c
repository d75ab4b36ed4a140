/* SPDX-License-Identifier: Apache-2.0
 * Which tenants share content: a namespace for each salt, and for those that allow one another. */
#include "sim/replay/tenants.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

struct spaces {
    const struct kvc_trace *trace;
    const struct kvc_scenario *sc;
    const struct kvc_tenant_rule **rule; /* by tenant: who says what its salt is; may be NULL */
    uint32_t *of;                        /* by tenant; one more for requests that name none */
    uint32_t n;                          /* namespaces so far, that of all included */
};

static const struct kvc_tenant_rule *rule_for(const struct kvc_scenario *sc, const char *name,
                                              enum kvc_tenant_field field)
{
    const struct kvc_tenant_rule *other = NULL;
    for (uint32_t i = 0; i < sc->n_tenants; i++) {
        const struct kvc_tenant_rule *r = &sc->tenants[i];
        if (!(r->given >> field & 1))
            continue;
        if (name && strcmp(r->name, name) == 0)
            return r;
        if (strcmp(r->name, KVC_TENANT_DEFAULT) == 0)
            other = r;
    }
    return other;
}

static bool lists(const char *names, const char *name)
{
    for (size_t n = strlen(name); *names;) {
        size_t len = strcspn(names, "\n");
        if (len == n && memcmp(names, name, n) == 0)
            return true;
        names += len + (names[len] == '\n');
    }
    return false;
}

static const struct kvc_tenant_rule *own_rule(const struct kvc_scenario *sc, const char *name)
{
    for (uint32_t i = 0; i < sc->n_tenants; i++)
        if (strcmp(sc->tenants[i].name, name) == 0)
            return &sc->tenants[i];
    return NULL;
}

static enum kvc_status not_mutual(const struct kvc_tenant_rule *a, const char *b,
                                  struct kvc_error *err)
{
    char field[96];
    snprintf(field, sizeof(field), "tenants.%.60s.allow", a->name);
    return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, field,
                       "names %.60s, whose own list does not name the same tenants: those who "
                       "allow one another share a namespace; reading one way only is not yet "
                       "supported", b);
}

/* The tenants a list names must have that list too, themselves instead of its owner. */
static enum kvc_status check_allow(const struct kvc_trace *trace, const struct kvc_scenario *sc,
                                   const struct kvc_tenant_rule *a, struct kvc_error *err)
{
    char name[256], field[96];
    snprintf(field, sizeof(field), "tenants.%.60s.allow", a->name);
    for (const char *p = a->allow; *p;) {
        size_t n = strcspn(p, "\n");
        snprintf(name, sizeof(name), "%.*s", (int)n, p);
        p += n + (p[n] == '\n');
        if (strcmp(name, a->name) == 0)
            continue;
        if (kvc_tenants_find(trace, name) == KVC_ID_NONE)
            return kvc_tenants_missing(trace, field, name, err);
        const struct kvc_tenant_rule *b = own_rule(sc, name);
        if (!b || !lists(b->allow, a->name))
            return not_mutual(a, name, err);
        for (uint32_t i = 0; i < sc->n_tenants; i++) {
            const char *c = sc->tenants[i].name;
            if (strcmp(c, a->name) && strcmp(c, b->name) &&
                lists(a->allow, c) != lists(b->allow, c))
                return not_mutual(a, name, err);
        }
    }
    return KVC_OK;
}

/* The number of the namespace that a tenant falls into; an earlier tenant's when they share one. */
static enum kvc_status place(struct spaces *s, uint32_t t, struct kvc_error *err)
{
    const char *name = s->trace->tenant_names[t];
    const struct kvc_tenant_rule *allow = own_rule(s->sc, name);
    enum kvc_status st = KVC_OK;
    s->rule[t] = rule_for(s->sc, name, KVC_TENANT_SALT);
    const char *salt = s->rule[t] ? s->rule[t]->salt : "";
    if (allow && allow->allow[0]) {
        st = check_allow(s->trace, s->sc, allow, err);
        for (uint32_t u = 0; u < t; u++)
            if (lists(allow->allow, s->trace->tenant_names[u])) {
                s->of[t] = s->of[u];
                return st;
            }
        s->of[t] = s->n++;
        return st;
    }
    for (uint32_t u = 0; salt[0] && strcmp(salt, "true") && u < t; u++)
        if (s->rule[u] && strcmp(s->rule[u]->salt, salt) == 0) {
            s->of[t] = s->of[u];
            return st;
        }
    s->of[t] = salt[0] ? s->n++ : 0;
    return st;
}

/* Names in allow-lists must be tenants with rules. */
static enum kvc_status by_tenant(struct spaces *s, bool isolate, struct kvc_error *err)
{
    uint32_t n = s->trace->n_tenants;
    const struct kvc_tenant_rule *other = rule_for(s->sc, NULL, KVC_TENANT_SALT);
    enum kvc_status st = KVC_OK;
    s->n = 1;
    for (uint32_t t = 0; t < n && st == KVC_OK; t++) {
        if (isolate)
            s->of[t] = s->n++;
        else
            st = place(s, t, err);
    }
    s->of[n] = isolate || (other && other->salt[0]) ? s->n++ : 0;
    return st;
}

enum kvc_status kvc_tenants_spaces(uint32_t **out, const struct kvc_trace *trace,
                                   const struct kvc_scenario *sc, bool isolate,
                                   struct kvc_error *err)
{
    bool asked = isolate;
    for (uint32_t i = 0; i < sc->n_tenants; i++)
        asked |= sc->tenants[i].salt[0] || sc->tenants[i].allow[0];
    *out = NULL;
    if (!asked || !trace->tenant)
        return KVC_OK;
    size_t n = (size_t)trace->n_tenants + 1;
    struct spaces s = {.trace = trace, .sc = sc, .of = kvc_calloc(n, sizeof(*s.of)),
                       .rule = kvc_calloc(n, sizeof(*s.rule))};
    uint32_t *of = kvc_malloc(trace->n_requests, sizeof(*of));
    enum kvc_status st = s.of && s.rule && of ? by_tenant(&s, isolate, err) : kvc_fail_nomem(err);
    for (uint64_t i = 0; st == KVC_OK && i < trace->n_requests; i++)
        of[i] = s.of[trace->tenant[i] == KVC_ID_NONE ? trace->n_tenants : trace->tenant[i]];
    kvc_free(s.of);
    kvc_free(s.rule);
    if (st == KVC_OK)
        *out = of;
    else
        kvc_free(of);
    return st;
}
