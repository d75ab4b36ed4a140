/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/options.h"

#include "base/error.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

#define VALUE_BYTES 64

const char *kvc_options_of(const char *spec)
{
    const char *file = strrchr(spec, '/');
    const char *colon = strchr(file ? file : spec, ':');
    return colon ? colon + 1 : NULL;
}

const char *kvc_option_word(uint32_t kind)
{
    return kind == KVC_OPTION_COUNT ? "N" : kind == KVC_OPTION_NUMBER ? "F" : "T";
}

static enum kvc_status read_value(const struct kvc_policy_option *o, const char *text,
                                  union kvc_option_value *out, struct kvc_error *err)
{
    double as_number;
    enum kvc_status st;
    union kvc_option_value v = {0};
    if (o->kind == KVC_OPTION_COUNT) {
        st = kvc_parse_u64(text, o->name, &v.count, err);
        as_number = (double)v.count;
    } else if (o->kind == KVC_OPTION_TIME) {
        st = kvc_parse_ns(text, o->name, &v.time_ns, err);
        as_number = (double)v.time_ns;
    } else {
        st = kvc_parse_double(text, o->name, &v.number, err);
        as_number = v.number;
    }
    if (st != KVC_OK)
        return st;
    if (!(as_number >= o->min && as_number <= o->max)) {
        char low[32], high[32];
        snprintf(low, sizeof(low), "%.17g", o->min);
        snprintf(high, sizeof(high), "%.17g", o->max);
        if (o->kind == KVC_OPTION_TIME) {
            kvc_format_ns((uint64_t)o->min, low, sizeof(low));
            kvc_format_ns((uint64_t)o->max, high, sizeof(high));
        }
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, o->name, "%s is not from %s to %s", text,
                           low, high);
    }
    *out = v;
    return KVC_OK;
}

static enum kvc_status unknown(const struct kvc_option_table *t, const char *policy,
                               const char *name, struct kvc_error *err)
{
    const char *names[KVC_OPTIONS_MOST + 1] = {NULL};
    char known[400] = "";
    for (uint32_t i = 0; i < t->n; i++) {
        size_t n = strlen(known);
        names[i] = t->row[i].name;
        snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = kvc_name_nearest(name, names);
    if (!t->n)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy", "%s has no option \"%s\", nor any",
                           policy, name);
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                       "%s has no option \"%s\"%s%s%s; there are %s", policy, name,
                       near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "",
                       known);
}

/* One "key=value" of n bytes. */
static enum kvc_status take(const struct kvc_option_table *t, const char *policy, const char *text,
                            size_t n, union kvc_option_value *out, struct kvc_error *err)
{
    char word[2 * VALUE_BYTES], *value;
    if (n >= sizeof(word))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                           "an option of %s is longer than %zu characters", policy,
                           sizeof(word) - 1);
    memcpy(word, text, n);
    word[n] = '\0';
    value = strchr(word, '=');
    if (!value)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                           "\"%s\" is no option of %s: name=value is expected", word, policy);
    *value++ = '\0';
    for (uint32_t i = 0; i < t->n; i++)
        if (kvc_name_equal(t->row[i].name, word))
            return read_value(&t->row[i], value, &out[i], err);
    return unknown(t, policy, word, err);
}

enum kvc_status kvc_options_parse(const struct kvc_option_table *t, const char *policy,
                                  const char *text, union kvc_option_value *out,
                                  struct kvc_error *err)
{
    union kvc_option_value v[KVC_OPTIONS_MOST];
    enum kvc_status st = KVC_OK;
    for (uint32_t i = 0; i < t->n && st == KVC_OK; i++)
        st = read_value(&t->row[i], t->row[i].default_text, &v[i], err);
    while (text && st == KVC_OK) {
        size_t n = strcspn(text, ":");
        st = take(t, policy, text, n, v, err);
        text = text[n] ? text + n + 1 : NULL;
    }
    if (st == KVC_OK && t->n)
        memcpy(out, v, t->n * sizeof(*v));
    return st == KVC_ERR_INPUT && err ? (err->status = KVC_ERR_USAGE) : st;
}
