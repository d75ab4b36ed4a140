/* SPDX-License-Identifier: Apache-2.0
 * A scenario as JSON: from a file, and back. */
#include "sim/scenario/scenario_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "traces/parse/stream.h"
#include "traces/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILE (1u << 22)
#define SNIFF_BYTES (1u << 20)

/* Promised keys that can't be honoured yet: null is fine, anything else is refused. */
static const char *const later[] = {"disaggregation", "models", "plan", "where", NULL};

static const char *later_group(const char *name)
{
    for (const char *const *p = later; *p; p++) {
        size_t n = strlen(*p);
        if (strncmp(*p, name, n) == 0 && (name[n] == '.' || name[n] == '\0'))
            return *p;
    }
    return NULL;
}

enum kvc_status kvc_scenario_unknown(const char *name, struct kvc_error *err)
{
    size_t n;
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    const char *list[160], *nearest, *group = later_group(name);
    if (group)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, name,
                           "not yet supported: remove %s or set it to null", group);
    for (size_t i = 0; i < n; i++) {
        if (kvc_name_equal(keys[i].name, name))
            return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, name, "takes a value, not an object");
        if (strncmp(keys[i].name, name, strlen(name)) == 0 && keys[i].name[strlen(name)] == '.')
            return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, name,
                               "is a group of keys, like %s: give an object", keys[i].name);
        list[i] = keys[i].name;
    }
    list[n] = NULL;
    nearest = kvc_name_nearest(name, list);
    if (nearest)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, name, "unknown key; did you mean %s?",
                           nearest);
    return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, name,
                       "unknown key ('kvcast replay --help' lists them)");
}

static bool has_keys(const char *prefix)
{
    size_t n;
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(keys[i].name, prefix, strlen(prefix)) == 0)
            return true;
    }
    return false;
}

bool kvc_scenario_key_group(const char *name)
{
    char prefix[96];
    snprintf(prefix, sizeof(prefix), "%.90s.", name);
    return later_group(name) || has_keys(prefix) || !strcmp(name, "tenants") ||
           !strncmp(name, "tenants.", 8);
}

/* ---- reading ---- */

bool kvc_scenario_value_text(const struct kvc_jval *v, char *buf, size_t size, const char **out)
{
    uint64_t u;
    double d;
    bool b;
    *out = buf;
    switch (kvc_jval_kind(v)) {
    case KVC_JNULL:
        *out = NULL;
        return true;
    case KVC_JSTRING:
        *out = kvc_jval_string(v);
        return true;
    case KVC_JBOOL:
        kvc_jval_bool(v, &b);
        snprintf(buf, size, "%s", b ? "true" : "false");
        return true;
    case KVC_JNUMBER:
        if (kvc_jval_u64(v, &u))
            snprintf(buf, size, "%llu", (unsigned long long)u);
        else if (kvc_jval_number(v, &d))
            snprintf(buf, size, "%.17g", d);
        else
            return false;
        return true;
    default:
        return false;
    }
}

/* "tiers": { "dram": null } takes the tier away. */
static const struct kvc_scenario_key *tier_capacity(const char *name)
{
    char full[176];
    snprintf(full, sizeof(full), "%s.capacity", name);
    return strncmp(name, "tiers.", 6) == 0 ? kvc_scenario_key_find(full) : NULL;
}

static enum kvc_status apply_member(struct kvc_scenario *s, const struct kvc_jval *v,
                                    const char *name, const char *file, struct kvc_error *err)
{
    const struct kvc_scenario_key *key = kvc_scenario_key_find(name);
    enum kvc_jkind kind = kvc_jval_kind(v);
    char buf[64];
    const char *text;
    if (!strcmp(name, "tenants"))
        return kvc_scenario_tenants_apply(s, v, err);
    if (key && !kvc_name_equal(key->name, name)) /* short flags are not keys of a file */
        key = NULL;
    if (kind == KVC_JNULL && !key) {
        if (later_group(name))
            return KVC_OK;
        if ((key = tier_capacity(name)) == NULL)
            return kvc_scenario_unknown(name, err);
        return kvc_scenario_set_key(s, key, NULL, err);
    }
    if (kind == KVC_JOBJECT && later_group(name))
        return kvc_jval_count(v) ? kvc_scenario_unknown(name, err) : KVC_OK;
    if (kind == KVC_JOBJECT) {
        char prefix[128];
        if ((size_t)snprintf(prefix, sizeof(prefix), "%s.", name) >= sizeof(prefix))
            return kvc_scenario_unknown(name, err);
        return kvc_scenario_apply_json(s, v, prefix, file, err);
    }
    if (!key)
        return kvc_scenario_unknown(name, err);
    if (!kvc_scenario_value_text(v, buf, sizeof(buf), &text))
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, name,
                           kind == KVC_JARRAY ? "takes one value, not a list" : "is out of range");
    return kvc_scenario_set_key(s, key, text, err);
}

enum kvc_status kvc_scenario_apply_json(struct kvc_scenario *s, const struct kvc_jval *object,
                                        const char *prefix, const char *file,
                                        struct kvc_error *err)
{
    for (const struct kvc_jval *v = kvc_jval_first(object); v; v = kvc_jval_next(v)) {
        char name[160];
        enum kvc_status st;
        snprintf(name, sizeof(name), "%s%s", prefix, kvc_jval_key(v));
        if (prefix[0] && !has_keys(prefix)) /* the group itself is unknown: name that */
            snprintf(name, sizeof(name), "%.*s", (int)strlen(prefix) - 1, prefix);
        st = prefix[0] && !has_keys(prefix) ? kvc_scenario_unknown(name, err)
                                            : apply_member(s, v, name, file, err);
        if (st != KVC_OK && err) {
            err->line = err->line ? err->line : kvc_jval_line(v);
            snprintf(err->file, sizeof(err->file), "%s", file ? file : "");
        }
        if (st != KVC_OK)
            return st;
    }
    return KVC_OK;
}

enum kvc_status kvc_scenario_read(const char *path, size_t limit, char **out, size_t *n,
                                  struct kvc_error *err)
{
    struct kvc_stream *stream = NULL;
    char *text = NULL;
    size_t have = 0, got = 1;
    enum kvc_status st = kvc_stream_open(&stream, path, err);
    if (st == KVC_OK && kvc_stream_is_kvt(stream))
        st = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "a trace, not a scenario");
    if (st == KVC_OK && !(text = kvc_malloc(limit + 1, 1)))
        st = kvc_fail_nomem(err);
    for (; st == KVC_OK && got && have <= limit; have += got)
        st = kvc_stream_read(stream, text + have, limit + 1 - have, &got, err);
    kvc_stream_close(stream);
    if (st != KVC_OK) {
        kvc_free(text);
        return st;
    }
    *out = text;
    *n = have;
    return KVC_OK;
}

/* A file is named as seen from the scenario's folder. */
static enum kvc_status resolve(const char *key, const char *name, const char *path, char *out,
                               size_t size, struct kvc_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!name[0] || name[0] == '/' || !strcmp(name, "-") || !slash)
        return KVC_OK;
    int n = snprintf(out, size, "%.*s%s", (int)(slash - path + 1), path, name);
    if (n < 0 || (size_t)n >= size)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, key, "the path is too long");
    return KVC_OK;
}

enum kvc_status kvc_scenario_load(struct kvc_scenario **out, const char *path,
                                  struct kvc_error *err)
{
    struct kvc_scenario *s = NULL;
    struct kvc_jval *root = NULL;
    char *text = NULL;
    size_t n = 0;
    enum kvc_status st = kvc_scenario_read(path, MAX_FILE, &text, &n, err);
    if (st == KVC_OK && n > MAX_FILE)
        st = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                         "larger than 4 MiB: this is not a scenario");
    if (st == KVC_OK)
        st = kvc_json_parse(&root, text, n, true, path, 1, err);
    if (st == KVC_OK && kvc_jval_kind(root) != KVC_JOBJECT)
        st = kvc_fail_at(err, KVC_ERR_INPUT, path, kvc_jval_line(root), NULL,
                         "a scenario is a JSON object: { \"model\": .. }");
    if (st == KVC_OK)
        st = kvc_scenario_create(&s, NULL, err);
    if (st == KVC_OK)
        st = kvc_scenario_apply_json(s, root, "", path, err);
    if (st == KVC_OK)
        st = resolve("trace", s->trace, path, s->trace_path, sizeof(s->trace_path), err);
    if (st == KVC_OK)
        st = resolve("profile", s->profile, path, s->profile_path, sizeof(s->profile_path), err);
    kvc_json_free(root);
    kvc_free(text);
    if (st == KVC_OK)
        *out = s;
    else
        kvc_scenario_destroy(s);
    return st;
}

/* A log has a whole JSON object on its first line, without any of our keys in it. */
static bool ends_with(const char *path, size_t n, const char *ending)
{
    size_t k = strlen(ending);
    return n >= k && strncmp(path + n - k, ending, k) == 0;
}

static bool named_json(const char *path)
{
    size_t n = strlen(path);
    n -= ends_with(path, n, ".zst") ? 4 : ends_with(path, n, ".gz") ? 3 : 0;
    return ends_with(path, n, ".json");
}

/* By what the file holds; one that holds nothing known goes by its name, so that what is wrong
 * with a scenario is said of it as a scenario. */
bool kvc_scenario_sniff(const char *path)
{
    char *text = NULL, *p;
    size_t n = 0;
    bool scenario = false, json = named_json(path);
    struct kvc_jval *root = NULL;
    struct stat info;
    if (kvc_trace_recognised(path)) /* rows of many logs have a "model" or "engine", as scenarios
                                       do */
        return false;
    /* what a pipe has given can't be read again */
    if (!strcmp(path, "-") || stat(path, &info) != 0 || !S_ISREG(info.st_mode) ||
        kvc_scenario_read(path, SNIFF_BYTES, &text, &n, NULL) != KVC_OK)
        return json && strcmp(path, "-") != 0;
    text[n < SNIFF_BYTES ? n : SNIFF_BYTES] = '\0';
    for (p = text; *p && strchr(" \t\r\n", *p);)
        p++;
    char *end = strchr(p, '\n');
    size_t len = end ? (size_t)(end - p) : strlen(p);
    if (strncmp(p, "//", 2) == 0) {
        scenario = true;
    } else if (*p == '{' && (end || n < SNIFF_BYTES)) {
        if (kvc_json_parse(&root, p, len, true, NULL, 1, NULL) != KVC_OK) {
            scenario = memchr(p, '\0', len) == NULL && !strstr(p, "\"hash_ids\"");
        } else {
            scenario = kvc_jval_count(root) == 0;
            for (const struct kvc_jval *v = kvc_jval_first(root); v; v = kvc_jval_next(v)) {
                const char *key = kvc_jval_key(v);
                scenario = scenario || kvc_scenario_key_find(key) || kvc_scenario_key_group(key);
            }
        }
    }
    if (!scenario && json)
        scenario = !strstr(p, "\"hash_ids\"") && !strstr(p, "\"input_length\"");
    kvc_json_free(root);
    kvc_free(text);
    return scenario;
}

/* ---- writing ---- */

static void write_key(struct kvc_json *j, const struct kvc_scenario *s,
                      const struct kvc_scenario_key *key, const char *name)
{
    char text[1100];
    bool quoted = key->kind == KVC_KEY_TEXT || key->kind == KVC_KEY_NAME ||
                  key->kind == KVC_KEY_ENUM || key->kind == KVC_KEY_BYTES ||
                  key->kind == KVC_KEY_RATE || key->kind == KVC_KEY_NS;
    if (!kvc_scenario_text(s, key, text, sizeof(text)))
        kvc_json_null(j, name);
    else if (quoted)
        kvc_json_string(j, name, text);
    else
        kvc_json_raw(j, name, text);
}

static const struct kvc_tier_config *tier_of(const struct kvc_scenario *s, const char *name)
{
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(s->tiers[i].name);
        if (strncmp(name, "tiers.", 6) == 0 && strncmp(name + 6, s->tiers[i].name, n) == 0 &&
            name[6 + n] == '.')
            return &s->tiers[i];
    }
    return NULL;
}

/* Keys that say nothing here: of an absent tier but its capacity, of the link form not used. */
static bool hidden(const struct kvc_scenario *s, const char *name)
{
    const struct kvc_tier_config *t = tier_of(s, name);
    const char *link = t ? strstr(name, ".link") : NULL;
    if ((!strcmp(name, "trace") && !s->trace[0]) || (!strcmp(name, "profile") && !s->profile[0]))
        return true;
    if (!t)
        return false;
    if (!t->present)
        return strstr(name, ".capacity") == NULL;
    return link && (link[5] == '\0') == (t->link[0] == '\0');
}

/* Opens and closes objects so that name's groups, and only they, are open; returns its last
 * part. */
static const char *enter(struct kvc_json *j, char *open, const char *name)
{
    size_t same = 0;
    for (size_t i = 0; open[i] && open[i] == name[i]; i++) {
        if (name[i] == '.')
            same = i + 1;
    }
    for (size_t i = same; open[i]; i++) {
        if (open[i] == '.')
            kvc_json_close(j);
    }
    open[same] = '\0';
    for (const char *dot = strchr(name + same, '.'); dot; dot = strchr(name + same, '.')) {
        char group[64];
        snprintf(group, sizeof(group), "%.*s", (int)(dot - (name + same)), name + same);
        kvc_json_open_object(j, group);
        same = (size_t)(dot - name) + 1;
    }
    memcpy(open, name, same);
    open[same] = '\0';
    return name + same;
}

enum kvc_status kvc_scenario_json(const struct kvc_scenario *s, char **out, struct kvc_error *err)
{
    struct kvc_json j;
    size_t n;
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    char open[160] = "";
    kvc_json_init(&j, true);
    kvc_json_open_object(&j, NULL);
    for (size_t i = 0; i < n; i++) {
        const struct kvc_tier_config *t = tier_of(s, keys[i].name);
        if (hidden(s, keys[i].name))
            continue;
        if (t && !t->present) {
            enter(&j, open, "tiers.");
            kvc_json_null(&j, t->name);
        } else {
            const char *last = enter(&j, open, keys[i].name);
            write_key(&j, s, &keys[i], last);
        }
        if (!strcmp(keys[i].name, "router.latency")) {
            enter(&j, open, "");
            kvc_json_null(&j, "disaggregation");
            kvc_scenario_tenants_json(&j, s);
        }
    }
    enter(&j, open, "");
    kvc_json_close(&j);
    char *text = kvc_json_take(&j);
    if (!text)
        return kvc_fail_nomem(err);
    *out = text;
    return KVC_OK;
}
