/* SPDX-License-Identifier: Apache-2.0
 * The rules of tenants in a scenario, read and written. */
#include "sim/scenario/scenario_internal.h"

#include "base/error.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const fields[] = {"quota",    "quota_mode", "reserve", "ttl",
                                     "priority", "salt",       "shared",  "allow", NULL};
static const char *const levels[] = {"hbm", "dram", "nvme", "remote", NULL};
static const char *const modes[] = {"hybrid", "soft", "hard", "isolated", NULL};

#define USUAL_CAP 0.5 /* of a hybrid quota that names none */

#define SHOWN(field, value, def, text) \
    {.name = "tenants.NAME." field, .arg = value, .default_text = def, .help = text}

const struct kvc_scenario_key *kvc_scenario_tenant_keys(size_t *n)
{
    static const struct kvc_scenario_key shown[] = {
        SHOWN("quota", "SHARE|BYTES", "", "of one instance of each tier, for the tenant NAME; "
              "default: for all without a rule of their own (docs/tenants.md)"),
        SHOWN("quota.TIER", "SHARE|BYTES", "", "of hbm, dram, nvme or remote only"),
        SHOWN("quota_mode", "MODE", "hybrid",
              "what happens beyond it: hybrid, soft, hard or isolated"),
        SHOWN("reserve", "SHARE|BYTES", "", "of GPU memory, which others' requests can't push out"),
        SHOWN("reserve.TIER", "SHARE|BYTES", "", "the same of hbm, dram, nvme or remote"),
        SHOWN("ttl", "TIME", "", "blocks leave so long after their last use"),
        SHOWN("priority", "N", "0", "lower numbers are served first and evicted last"),
        SHOWN("salt", "true|NAME", "false", "a namespace of its own, or of all with the same salt"),
        SHOWN("shared", "true|false", "true", "the same, the other way round"),
        SHOWN("allow", "NAME[,NAME]", "",
              "with whom it shares a namespace, each naming the others"),
    };
    *n = sizeof(shown) / sizeof(shown[0]);
    return shown;
}

static size_t find(const char *const *list, const char *name)
{
    size_t i = 0;
    while (list[i] && !kvc_name_equal(list[i], name))
        i++;
    return i;
}

KVC_PRINTF(4, 5)
static enum kvc_status wrong(const struct kvc_tenant_rule *r, const char *field,
                             struct kvc_error *err, const char *fmt, ...)
{
    char at[200], text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(at, sizeof(at), "tenants.%.64s%s%s", r->name, field[0] ? "." : "", field);
    return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, at, "%s", text);
}

static enum kvc_status unknown(const struct kvc_tenant_rule *r, const char *name,
                               const char *const *list, struct kvc_error *err)
{
    const char *dot = strrchr(name, '.'), *nearest = kvc_name_nearest(dot ? dot + 1 : name, list);
    char all[160] = "";
    for (size_t i = 0; list[i]; i++)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "", list[i]);
    if (nearest)
        return wrong(r, name, err, "unknown; did you mean %s?", nearest);
    return wrong(r, name, err, "unknown; there are %s", all);
}

/* The tenant's rule, made when there is none. */
static enum kvc_status rule_of(struct kvc_scenario *s, const char *name,
                               struct kvc_tenant_rule **out, struct kvc_error *err)
{
    struct kvc_tenant_rule *r = s->tenants;
    while (r < s->tenants + s->n_tenants && strcmp(r->name, name) != 0)
        r++;
    if (strlen(name) >= sizeof(r->name))
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "tenants",
                           "a tenant's name is longer than %zu characters", sizeof(r->name) - 1);
    if (r == s->tenants + KVC_TENANT_RULES)
        return kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, "tenants",
                           "more than %d tenants with rules: let \"default\" hold for the others",
                           KVC_TENANT_RULES);
    if (r == s->tenants + s->n_tenants) {
        memset(r, 0, sizeof(*r));
        snprintf(r->name, sizeof(r->name), "%s", name);
        s->n_tenants++;
    }
    *out = r;
    return KVC_OK;
}

/* ---- one field ---- */

/* A share ("0.5", "50%") or bytes. */
static enum kvc_status parse_amount(const struct kvc_tenant_rule *r, const char *field,
                                    const char *text, struct kvc_amount *out,
                                    struct kvc_error *err)
{
    struct kvc_amount a = {.kind = KVC_AMOUNT_SHARE};
    char number[64];
    size_t n = text ? strlen(text) : 0;
    bool percent = n && n < sizeof(number) && text[n - 1] == '%';
    snprintf(number, sizeof(number), "%.*s", percent ? (int)n - 1 : 60, text ? text : "");
    if (!text) {
        a.kind = KVC_AMOUNT_NONE;
    } else if (kvc_parse_double(number, "", &a.share, NULL) == KVC_OK) {
        if (percent)
            a.share /= 100;
        if (!(a.share >= 0 && a.share <= 1))
            return wrong(r, field, err, "%.40s is not a share between 0 and 1 (or 100%%); bytes "
                                        "take a unit, as in 20GiB", text);
    } else {
        struct kvc_error e = {0};
        a.kind = KVC_AMOUNT_BYTES;
        if (kvc_parse_bytes(text, "", &a.bytes, &e) != KVC_OK)
            return wrong(r, field, err, "%.300s", e.text);
    }
    *out = a;
    return KVC_OK;
}

/* Of one tier. */
static enum kvc_status set_amount(struct kvc_tenant_rule *r, bool quota, size_t level,
                                  const char *text, struct kvc_error *err)
{
    char field[32];
    snprintf(field, sizeof(field), "%s.%s", quota ? "quota" : "reserve", levels[level]);
    r->named[!quota] |= 1u << level;
    return parse_amount(r, field, text, &(quota ? r->quota : r->reserve)[level], err);
}

/* A plain quota holds in every tier, a plain reservation in HBM. */
static enum kvc_status set_amounts(struct kvc_tenant_rule *r, bool quota, const char *text,
                                   struct kvc_error *err)
{
    struct kvc_amount a, *to = quota ? r->quota : r->reserve;
    enum kvc_status st = parse_amount(r, quota ? "quota" : "reserve", text, &a, err);
    for (size_t k = 0; st == KVC_OK && k < (quota ? KVC_LEVELS : 1); k++)
        to[k] = a;
    r->named[!quota] = 0;
    return st;
}

static enum kvc_status set_mode(struct kvc_tenant_rule *r, const char *text, struct kvc_error *err)
{
    size_t mode = find(modes, text ? text : modes[0]);
    if (!modes[mode])
        return wrong(r, "quota_mode", err, "\"%.40s\" is not known; there are hybrid, soft, hard, "
                     "isolated",
                     text);
    r->quota_mode = (enum kvc_quota_mode)mode;
    for (size_t k = 0; k < KVC_LEVELS; k++)
        if (text && r->quota_mode == KVC_QUOTA_HYBRID && r->quota[k].kind == KVC_AMOUNT_UNSET)
            r->quota[k] = (struct kvc_amount){KVC_AMOUNT_SHARE, USUAL_CAP, 0};
    return KVC_OK;
}

/* true: a namespace of its own; a name: that of all who have the same salt; false: that of all. */
static enum kvc_status set_salt(struct kvc_tenant_rule *r, const char *text, bool shared,
                                struct kvc_error *err)
{
    bool yes = text && kvc_name_equal(text, "true"), no = !text || kvc_name_equal(text, "false");
    if (!shared && text && !text[0])
        return wrong(r, "salt", err, "an empty salt tells nobody apart: true, false or a name is "
                                     "expected");
    if (shared && !yes && !no)
        return wrong(r, "shared", err, "\"%.40s\" is neither true nor false", text);
    if (shared ? yes : no)
        r->salt[0] = '\0';
    else
        snprintf(r->salt, sizeof(r->salt), "%s", shared || yes ? "true" : text);
    return KVC_OK;
}

static enum kvc_status set_field(struct kvc_tenant_rule *r, size_t field, const char *text,
                                 struct kvc_error *err)
{
    static const int bit[] = {-1, KVC_TENANT_MODE, -1, KVC_TENANT_TTL, KVC_TENANT_PRIORITY,
                              KVC_TENANT_SALT, KVC_TENANT_SALT, KVC_TENANT_ALLOW};
    struct kvc_error e = {0};
    uint64_t v = 0;
    enum kvc_status st = KVC_OK;
    if (bit[field] >= 0)
        r->given |= 1u << bit[field];
    switch (field) {
    case 0:
    case 2:
        return set_amounts(r, field == 0, text, err);
    case 1:
        return set_mode(r, text, err);
    case 3:
        r->ttl_ns = 0;
        st = text ? kvc_parse_ns(text, "", &r->ttl_ns, &e) : KVC_OK;
        if (st == KVC_OK && text && !r->ttl_ns)
            return wrong(r, fields[field], err, "%.40s is no time to live: null keeps blocks while "
                                                "there is room", text);
        break;
    case 4:
        st = text ? kvc_parse_u64(text, "", &v, &e) : KVC_OK;
        if (st == KVC_OK && v > UINT32_MAX)
            return wrong(r, fields[field], err, "%.40s is too large", text);
        r->priority = (uint32_t)v;
        break;
    case 5:
    case 6:
        return set_salt(r, text, field == 6, err);
    default:
        if (text && strlen(text) >= sizeof(r->allow))
            return wrong(r, "allow", err, "the names take more than %zu characters",
                         sizeof(r->allow) - 1);
        snprintf(r->allow, sizeof(r->allow), "%s", text ? text : "");
        for (char *p = r->allow; *p; p++) /* of the command line: a,b */
            *p = *p == ',' ? '\n' : *p;
    }
    return st == KVC_OK ? st : wrong(r, fields[field], err, "%.300s", e.text);
}

/* ---- JSON ---- */

static enum kvc_status apply_tiers(struct kvc_tenant_rule *r, bool quota,
                                   const struct kvc_jval *object, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    for (const struct kvc_jval *v = kvc_jval_first(object); v && st == KVC_OK;
         v = kvc_jval_next(v)) {
        size_t k = find(levels, kvc_jval_key(v));
        char buf[64], field[64];
        const char *text;
        snprintf(field, sizeof(field), "%s.%.40s", quota ? "quota" : "reserve", kvc_jval_key(v));
        if (!levels[k])
            return unknown(r, field, levels, err);
        if (!kvc_scenario_value_text(v, buf, sizeof(buf), &text))
            return wrong(r, field, err, "takes a share or bytes");
        st = set_amount(r, quota, k, text, err);
    }
    return st;
}

static enum kvc_status apply_allow(struct kvc_tenant_rule *r, const struct kvc_jval *list,
                                   struct kvc_error *err)
{
    char names[1024] = "";
    for (const struct kvc_jval *v = kvc_jval_first(list); v; v = kvc_jval_next(v)) {
        const char *name = kvc_jval_string(v);
        if (!name || strchr(name, '\n') || strlen(names) + strlen(name) + 2 > sizeof(names))
            return wrong(r, "allow", err, "takes a short list of tenants' names");
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
                 names[0] ? "\n" : "", name);
    }
    return set_field(r, 7, names, err);
}

/* A salt and "shared" of one object that say the opposite of one another. */
static enum kvc_status check_shared(const struct kvc_tenant_rule *r, const struct kvc_jval *object,
                                    struct kvc_error *err)
{
    char buf[64];
    const char *salt = NULL, *shared = NULL;
    const struct kvc_jval *a = kvc_jval_member(object, fields[5]);
    const struct kvc_jval *b = kvc_jval_member(object, fields[6]);
    if (!a || !b || !kvc_scenario_value_text(a, buf, sizeof(buf), &salt))
        return KVC_OK;
    bool salted = salt && !kvc_name_equal(salt, "false");
    if (!kvc_scenario_value_text(b, buf, sizeof(buf), &shared) || !shared)
        return KVC_OK;
    if (salted != kvc_name_equal(shared, "true"))
        return KVC_OK;
    return wrong(r, fields[6], err, "%.8s, while salt says the opposite: leave one of them out",
                 shared);
}

static enum kvc_status apply_rule(struct kvc_tenant_rule *r, const struct kvc_jval *object,
                                  struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    if (kvc_jval_kind(object) != KVC_JOBJECT)
        return wrong(r, "", err, "takes an object, as in { \"quota\": 0.5 }");
    st = check_shared(r, object, err);
    for (const struct kvc_jval *v = kvc_jval_first(object); v && st == KVC_OK;
         v = kvc_jval_next(v)) {
        size_t f = find(fields, kvc_jval_key(v));
        char buf[64];
        const char *text;
        if (!fields[f])
            return unknown(r, kvc_jval_key(v), fields, err);
        if ((f == 0 || f == 2) && kvc_jval_kind(v) == KVC_JOBJECT)
            st = apply_tiers(r, f == 0, v, err);
        else if (f == 7 && kvc_jval_kind(v) == KVC_JARRAY)
            st = apply_allow(r, v, err);
        else if (!kvc_scenario_value_text(v, buf, sizeof(buf), &text))
            st = wrong(r, fields[f], err, "takes one value");
        else
            st = set_field(r, f, text, err);
    }
    return st;
}

/* What a rule says of a tier by name, it says of one that is there. */
static enum kvc_status check_levels(const struct kvc_scenario *s, const struct kvc_tenant_rule *r,
                                    struct kvc_error *err)
{
    for (size_t k = 1; k < KVC_LEVELS; k++)
        for (int reserve = 0; reserve < 2; reserve++) {
            const struct kvc_amount *a = &(reserve ? r->reserve : r->quota)[k];
            char field[32];
            if (s->tiers[k - 1].present || !(r->named[reserve] >> k & 1) ||
                a->kind == KVC_AMOUNT_NONE)
                continue;
            snprintf(field, sizeof(field), "%s.%s", reserve ? "reserve" : "quota", levels[k]);
            return wrong(r, field, err, "the scenario has no tier %s: leave this out, or set "
                                        "tiers.%s.capacity", levels[k], levels[k]);
        }
    return KVC_OK;
}

enum kvc_status kvc_scenario_tenants_check(const struct kvc_scenario *s, struct kvc_error *err)
{
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const struct kvc_tenant_rule *r = &s->tenants[i];
        char field[96];
        snprintf(field, sizeof(field), "tenants.%s.allow", r->name);
        if (r->allow[0] && strcmp(r->name, KVC_TENANT_DEFAULT) == 0)
            return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, field,
                               "whom all others share with can't be said for all at once: give "
                               "each tenant its list, or several one salt");
        if (r->allow[0] && r->salt[0])
            return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, field,
                               "its salt and its list both say with whom it shares a namespace: "
                               "give one of them");
        enum kvc_status st = check_levels(s, r, err);
        if (st != KVC_OK)
            return st;
    }
    return KVC_OK;
}

enum kvc_status kvc_scenario_tenants_apply(struct kvc_scenario *s, const struct kvc_jval *object,
                                           struct kvc_error *err)
{
    struct kvc_scenario next = *s;
    enum kvc_status st = KVC_OK;
    if (kvc_jval_kind(object) == KVC_JNULL)
        next.n_tenants = 0;
    else if (kvc_jval_kind(object) != KVC_JOBJECT)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "tenants",
                           "takes an object, as in { \"gold\": { \"reserve\": \"20GiB\" } }");
    for (const struct kvc_jval *v = kvc_jval_first(object); v && st == KVC_OK;
         v = kvc_jval_next(v)) {
        struct kvc_tenant_rule *r = NULL;
        st = rule_of(&next, kvc_jval_key(v), &r, err);
        if (st == KVC_OK)
            st = apply_rule(r, v, err);
        if (st != KVC_OK && err && !err->line)
            err->line = kvc_jval_line(v);
    }
    if (st == KVC_OK)
        *s = next;
    return st;
}

/* name is TENANT, TENANT.FIELD or TENANT.quota.TIER; a tenant's name may have dots itself. */
enum kvc_status kvc_scenario_tenants_set(struct kvc_scenario *s, const char *name,
                                         const char *value, struct kvc_error *err)
{
    struct kvc_scenario next = *s;
    struct kvc_tenant_rule *r = NULL;
    char tenant[160];
    snprintf(tenant, sizeof(tenant), "%s", name);
    char *dot = strrchr(tenant, '.');
    size_t level = dot ? find(levels, dot + 1) : KVC_LEVELS, field = KVC_TENANT_RULES;
    if (dot && levels[level]) {
        *dot = '\0';
        dot = strrchr(tenant, '.');
    }
    if (dot)
        field = find(fields, dot + 1);
    if (!dot || !fields[field] || (levels[level] && field != 0 && field != 2))
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, name,
                           "unknown; as in tenants.gold.quota or tenants.gold.reserve.hbm (fields: "
                           "quota quota_mode reserve ttl priority salt shared allow)");
    *dot = '\0';
    bool none = kvc_name_equal(value, "null") || kvc_name_equal(value, "none");
    const char *text = none ? NULL : value;
    enum kvc_status st = rule_of(&next, tenant, &r, err);
    if (st == KVC_OK && levels[level])
        st = set_amount(r, field == 0, level, text, err);
    else if (st == KVC_OK)
        st = set_field(r, field, text, err);
    if (st == KVC_OK)
        *s = next;
    return st;
}

static void put_amounts(struct kvc_json *j, const struct kvc_scenario *s, const char *key,
                        const struct kvc_amount *a)
{
    bool any = false;
    for (size_t k = 0; k < KVC_LEVELS; k++)
        any |= a[k].kind != KVC_AMOUNT_UNSET;
    if (!any)
        return;
    kvc_json_open_object(j, key);
    for (size_t k = 0; k < KVC_LEVELS; k++) {
        char text[64];
        if (k && !s->tiers[k - 1].present)
            continue; /* of a rule for all tiers */
        if (a[k].kind == KVC_AMOUNT_BYTES) {
            kvc_format_bytes(a[k].bytes, text, sizeof(text));
            kvc_json_string(j, levels[k], text);
        } else if (a[k].kind == KVC_AMOUNT_SHARE) {
            kvc_json_double(j, levels[k], a[k].share);
        } else if (a[k].kind == KVC_AMOUNT_NONE) {
            kvc_json_null(j, levels[k]);
        }
    }
    kvc_json_close(j);
}

static void put_allow(struct kvc_json *j, const char *names)
{
    kvc_json_open_array(j, "allow");
    while (*names) {
        char name[256];
        size_t n = strcspn(names, "\n");
        snprintf(name, sizeof(name), "%.*s", (int)n, names);
        kvc_json_string(j, NULL, name);
        names += n + (names[n] == '\n');
    }
    kvc_json_close(j);
}

static void put_rule(struct kvc_json *j, const struct kvc_scenario *s,
                     const struct kvc_tenant_rule *r)
{
    char text[64];
    kvc_json_open_object(j, r->name);
    put_amounts(j, s, "quota", r->quota);
    if (r->given >> KVC_TENANT_MODE & 1)
        kvc_json_string(j, "quota_mode", modes[r->quota_mode]);
    put_amounts(j, s, "reserve", r->reserve);
    kvc_format_ns(r->ttl_ns, text, sizeof(text));
    if (r->given >> KVC_TENANT_TTL & 1)
        kvc_json_string(j, "ttl", r->ttl_ns ? text : NULL);
    if (r->given >> KVC_TENANT_PRIORITY & 1)
        kvc_json_u64(j, "priority", r->priority);
    if (r->given >> KVC_TENANT_SALT & 1) {
        if (!r->salt[0] || !strcmp(r->salt, "true"))
            kvc_json_bool(j, "salt", r->salt[0] != '\0');
        else
            kvc_json_string(j, "salt", r->salt);
    }
    if (r->given >> KVC_TENANT_ALLOW & 1)
        put_allow(j, r->allow);
    kvc_json_close(j);
}

void kvc_scenario_tenants_json(struct kvc_json *j, const struct kvc_scenario *s)
{
    if (!s->n_tenants) {
        kvc_json_null(j, "tenants");
        return;
    }
    kvc_json_open_object(j, "tenants");
    for (uint32_t i = 0; i < s->n_tenants; i++)
        put_rule(j, s, &s->tenants[i]);
    kvc_json_close(j);
}
