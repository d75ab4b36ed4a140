/* SPDX-License-Identifier: Apache-2.0
 * Values of a policy's options, from the words behind its name. */
#include "base/error.h"
#include "base/units.h"
#include "policies/policies.h"

#include <stdio.h>
#include <string.h>

#define VALUE_MOST 64

enum kvc_status kvc_no_options(const char *policy, struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, policy,
                       "no option follows the ':'; write name=value behind it, or leave it out");
}

enum kvc_status kvc_policy_name(const char *spec, char *name, size_t size, const char **options,
                                struct kvc_error *err)
{
    size_t n = strcspn(spec, ":+");
    if (n >= size)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                           "no policy has a name as long as \"%.64s\"", spec);
    memcpy(name, spec, n);
    name[n] = '\0';
    *options = spec[n] == ':' ? spec + n + 1 : "";
    if (spec[n] == ':' && (!spec[n + 1] || spec[n + 1] == '+'))
        return kvc_no_options(name, err);
    return KVC_OK;
}

static double as_number(const struct kvc_policy_option *o, union kvc_option_value v)
{
    return o->kind == KVC_OPTION_NUMBER ? v.number
           : o->kind == KVC_OPTION_TIME ? (double)v.time_ns
                                        : (double)v.count;
}

static void as_text(const struct kvc_policy_option *o, double value, char *buf, size_t size)
{
    if (o->kind == KVC_OPTION_TIME)
        kvc_format_ns((uint64_t)value, buf, size);
    else
        snprintf(buf, size, "%.15g", value);
}

static enum kvc_status take_value(const char *policy, const struct kvc_policy_option *o,
                                  const char *text, union kvc_option_value *out,
                                  struct kvc_error *err)
{
    union kvc_option_value v;
    char field[64], low[32], high[32];
    snprintf(field, sizeof(field), "%.20s:%.20s", policy, o->name);
    enum kvc_status st =
        o->kind == KVC_OPTION_NUMBER ? kvc_parse_double(text, field, &v.number, err)
        : o->kind == KVC_OPTION_TIME ? kvc_parse_ns(text, field, &v.time_ns, err)
                                     : kvc_parse_u64(text, field, &v.count, err);
    if (st != KVC_OK)
        return err ? err->status = KVC_ERR_USAGE : KVC_ERR_USAGE;
    double number = as_number(o, v);
    if (!(number >= o->min && number <= o->max)) {
        as_text(o, o->min, low, sizeof(low));
        as_text(o, o->max, high, sizeof(high));
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, field,
                           "%s is out of range: from %s to %s, %s by default", text, low, high,
                           o->default_text);
    }
    *out = v;
    return KVC_OK;
}

static enum kvc_status no_such_option(const char *policy, const char *name,
                                      const struct kvc_policy_option *table, uint32_t n,
                                      struct kvc_error *err)
{
    char known[256] = "";
    if (!n)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, policy,
                           "it has no options, so no \"%.32s\"", name);
    for (uint32_t i = 0; i < n; i++)
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s=%s", i ? ", " : "",
                 table[i].name, table[i].default_text);
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, policy,
                       "there is no option \"%.32s\"; its options, with their defaults: %s", name,
                       known);
}

/* One "name=value" of length. */
static enum kvc_status take_word(const char *policy, const char *word, size_t length,
                                 const struct kvc_policy_option *table, uint32_t n,
                                 union kvc_option_value *out, uint32_t *given,
                                 struct kvc_error *err)
{
    char copy[2 * VALUE_MOST], *value;
    if (length >= sizeof(copy))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, policy, "no option is as long as \"%.64s\"",
                           word);
    memcpy(copy, word, length);
    copy[length] = '\0';
    if (!(value = strchr(copy, '=')))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, policy,
                           "\"%s\" has no value; write name=value, by colons", copy);
    *value++ = '\0';
    for (uint32_t i = 0; i < n; i++) {
        if (!kvc_name_equal(table[i].name, copy))
            continue;
        if (*given >> i & 1)
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, policy,
                               "the option %s is given twice; once is enough", table[i].name);
        *given |= UINT32_C(1) << i;
        return take_value(policy, &table[i], value, &out[i], err);
    }
    return no_such_option(policy, copy, table, n, err);
}

enum kvc_status kvc_policy_options(const char *policy, const char *text,
                                   const struct kvc_policy_option *table, uint32_t n,
                                   union kvc_option_value *out, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    uint32_t given = 0;
    for (uint32_t i = 0; i < n && st == KVC_OK; i++)
        st = take_value(policy, &table[i], table[i].default_text, &out[i], err);
    while (*text && *text != '+' && st == KVC_OK) {
        size_t length = strcspn(text, ":+");
        st = take_word(policy, text, length, table, n, out, &given, err);
        text += length;
        if (*text == ':' && st == KVC_OK && (!*++text || *text == '+'))
            st = kvc_no_options(policy, err);
    }
    return st;
}
