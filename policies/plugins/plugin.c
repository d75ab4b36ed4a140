/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/plugins/plugin.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "policies/eviction/runs.h"
#include "policies/plugins/guest.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ENTRY "kvc_policy_plugin"

static bool listed(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (kvc_name_equal(*names, name))
            return true;
    return false;
}

static bool built_in(uint32_t kind, const char *name)
{
    static const char *const bounds[] = {"opt", "optforced", "content", "all", NULL};
    return kind == KVC_POLICY_EVICTION ? listed(kvc_runs_policies(), name) || listed(bounds, name)
                                       : kvc_policy_find(kind, name) != NULL;
}

/* Of "PATH.so[:options][+..]", for folders may hold a ':' or '+'; without .so, to the first of them
 * in the file's own name. */
static size_t path_length(const char *spec)
{
    for (const char *end = spec; (end = strstr(end, ".so")) != NULL;) {
        end += strlen(".so");
        if (*end == ':' || *end == '+' || !*end)
            return (size_t)(end - spec);
    }
    const char *file = strrchr(spec, '/');
    file = file ? file : spec;
    return (size_t)(file - spec) + strcspn(file, ":+");
}

const char *kvc_plugin_options(const char *spec)
{
    size_t n = path_length(spec);
    return spec[n] == ':' ? spec + n + 1 : "";
}

/* "lru+./mine.so" is lru with a plug-in behind it, "c++/mine.so" is a path. */
static bool begins_with_name(const char *spec)
{
    char name[32];
    size_t n = strcspn(spec, ":+/");
    if (n >= sizeof(name) || (spec[n] != ':' && spec[n] != '+'))
        return false;
    memcpy(name, spec, n);
    name[n] = '\0';
    for (uint32_t kind = KVC_POLICY_EVICTION; kvc_policy_kind_name(kind); kind++)
        if (built_in(kind, name))
            return true;
    return false;
}

bool kvc_plugin_is(const char *spec)
{
    size_t n = path_length(spec);
    return !begins_with_name(spec) &&
           (memchr(spec, '/', n) || (n > 3 && memcmp(spec + n - 3, ".so", 3) == 0));
}

const char *kvc_policy_admission(const char *spec)
{
    const char *plus = strchr(spec + (kvc_plugin_is(spec) ? path_length(spec) : 0), '+');
    return plus ? plus + 1 : NULL;
}

KVC_PRINTF(3, 4)
static enum kvc_status bad(const struct kvc_plugin *p, struct kvc_error *err, const char *fmt, ...)
{
    char text[480];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return kvc_fail_at(err, KVC_ERR_INPUT, p->path, 0, NULL, "%s", text);
}

/* ---- what it says of itself ---- */

static bool is_word(const char *name, const char *also)
{
    for (; islower((unsigned char)*name) || isdigit((unsigned char)*name) ||
           (*name && strchr(also, *name)); name++)
        ;
    return !*name;
}

static enum kvc_status check_options(const struct kvc_plugin *p, struct kvc_error *err)
{
    union kvc_option_value value[KVC_POLICY_OPTIONS];
    const struct kvc_policy *policy = &p->policy;
    if (policy->n_options > KVC_POLICY_OPTIONS)
        return bad(p, err, "%u options; there may be %u", policy->n_options, KVC_POLICY_OPTIONS);
    if (policy->n_options && !policy->options)
        return bad(p, err, "n_options is %u, but options is NULL", policy->n_options);
    for (uint32_t i = 0; i < policy->n_options; i++) {
        const struct kvc_policy_option *o = &policy->options[i];
        if (!o->name || !*o->name || !o->default_text || !o->help)
            return bad(p, err, "option %u lacks a name, a default_text or help", i);
        if (!is_word(o->name, "_-"))
            return bad(p, err, "option %u's name, \"%.40s\", is not of small letters, digits, '-' "
                               "and '_' alone", i, o->name);
        if (o->kind < KVC_OPTION_COUNT || o->kind > KVC_OPTION_TIME)
            return bad(p, err, "option %s is of kind %u, which is none", o->name, o->kind);
        for (uint32_t k = 0; k < i; k++)
            if (kvc_name_equal(o->name, policy->options[k].name))
                return bad(p, err, "there are two options called %s", o->name);
        struct kvc_error why = {0};
        if (kvc_policy_options(policy->name, "", o, 1, value, &why) != KVC_OK)
            return bad(p, err, "option %s: its own default_text is refused: %s", o->name, why.text);
    }
    return KVC_OK;
}

static enum kvc_status check_name(const struct kvc_plugin *p, struct kvc_error *err)
{
    const char *name = p->policy.name;
    if (!name || !*name || !p->policy.summary)
        return bad(p, err, "it has no name, or no summary: set both in its struct kvc_policy");
    if (!is_word(name, "-"))
        return bad(p, err, "its name, \"%.40s\", is not of small letters, digits and '-' alone",
                   name);
    if (strlen(name) > 30)
        return bad(p, err, "its name is longer than 30 characters");
    if (built_in(p->policy.kind, name))
        return bad(p, err, "it calls itself \"%s\", which is the name of a built-in policy: give "
                           "it another name", name);
    return KVC_OK;
}

/* ---- tables ---- */

/* Copies a table that says its size, of which this version needs least bytes. */
static enum kvc_status take_table(const struct kvc_plugin *p, void *out, const void *table,
                                  size_t size, const char *what, struct kvc_error *err)
{
    uint32_t given;
    if (!table)
        return bad(p, err, "its ops are NULL");
    memcpy(&given, table, sizeof(given));
    if (given < size)
        return bad(p, err, "%s: struct_size is %u, and %zu is the least: set it to sizeof(%s) and "
                           "compile against this version's kvcast/policy.h", what, given, size,
                           what);
    memcpy(out, table, size);
    return KVC_OK;
}

static enum kvc_status unknown_flags(const struct kvc_plugin *p, uint32_t flags,
                                     struct kvc_error *err)
{
    return bad(p, err, "flags are 0x%x, of which this version (%s) does not know all: get a newer "
                       "kvcast, or leave them out", flags, kvc_version());
}

static enum kvc_status check_pair(const struct kvc_plugin *p, bool create, bool destroy,
                                  struct kvc_error *err)
{
    return create == destroy ? KVC_OK
                             : bad(p, err, "one of create and destroy is missing: give both, or "
                                           "neither");
}

static enum kvc_status no_hook(const struct kvc_plugin *p, const char *hook, struct kvc_error *err)
{
    return bad(p, err, "the hook %s is missing; every policy of %s needs it", hook,
               kvc_policy_kind_name(p->policy.kind));
}

static enum kvc_status check_eviction(struct kvc_plugin *p, struct kvc_error *err)
{
    const struct kvc_evict_ops *o = &p->ops.evict;
    enum kvc_status st = take_table(p, &p->ops, p->policy.ops, sizeof(*o), "struct kvc_evict_ops",
                                    err);
    if (st != KVC_OK)
        return st;
    if (!o->stored || !o->victim)
        return no_hook(p, o->stored ? "victim" : "stored", err);
    if (o->piece_bytes > KVC_PIECE_BYTES_MOST)
        return bad(p, err, "piece_bytes is %u, and %u is the most", o->piece_bytes,
                   KVC_PIECE_BYTES_MOST);
    if (o->queues > KVC_QUEUES_MOST || o->ghost_queues > KVC_QUEUES_MOST)
        return bad(p, err, "%u queues and %u ghost queues; %u of each is the most", o->queues,
                   o->ghost_queues, KVC_QUEUES_MOST);
    if (o->flags >= 2 * KVC_EVICT_ORACLE)
        return unknown_flags(p, o->flags, err);
    return check_pair(p, o->create, o->destroy, err);
}

static enum kvc_status check_admission(struct kvc_plugin *p, struct kvc_error *err)
{
    const struct kvc_admission_ops *o = &p->ops.admission;
    enum kvc_status st = take_table(p, &p->ops, p->policy.ops, sizeof(*o),
                                    "struct kvc_admission_ops", err);
    if (st != KVC_OK)
        return st;
    if (!o->admits)
        return no_hook(p, "admits", err);
    if (o->flags >= 2 * KVC_ADMISSION_REQUEST)
        return unknown_flags(p, o->flags, err);
    return check_pair(p, o->create, o->destroy, err);
}

static enum kvc_status check_router(struct kvc_plugin *p, struct kvc_error *err)
{
    const struct kvc_router_ops *o = &p->ops.router;
    enum kvc_status st = take_table(p, &p->ops, p->policy.ops, sizeof(*o), "struct kvc_router_ops",
                                    err);
    if (st != KVC_OK)
        return st;
    return o->pick ? check_pair(p, o->create, o->destroy, err) : no_hook(p, "pick", err);
}

static enum kvc_status check_ordering(struct kvc_plugin *p, struct kvc_error *err)
{
    const struct kvc_ordering_ops *o = &p->ops.ordering;
    enum kvc_status st = take_table(p, &p->ops, p->policy.ops, sizeof(*o),
                                    "struct kvc_ordering_ops", err);
    if (st != KVC_OK)
        return st;
    if (!o->rank)
        return no_hook(p, "rank", err);
    if (o->flags >= 2 * KVC_ORDERING_ORACLE)
        return unknown_flags(p, o->flags, err);
    if (o->flags & KVC_ORDERING_ONCE && o->flags & (KVC_ORDERING_EACH | KVC_ORDERING_PREFIX))
        return bad(p, err, "KVC_ORDERING_ONCE goes with neither KVC_ORDERING_EACH nor "
                           "KVC_ORDERING_PREFIX: a prefix is known, and may change, while a "
                           "request waits");
    return check_pair(p, o->create, o->destroy, err);
}

static enum kvc_status check(struct kvc_plugin *p, const struct kvc_policy *said, uint32_t kind,
                             struct kvc_error *err)
{
    if (!said)
        return bad(p, err, ENTRY "() returned NULL");
    if (said->abi != KVC_POLICY_ABI)
        return bad(p, err, "it is made for version %u of the plug-in interface, this is version "
                           "%u: compile it against the kvcast/policy.h of kvcast %s", said->abi,
                   KVC_POLICY_ABI, kvc_version());
    if (said->struct_size < sizeof(*said))
        return bad(p, err, "struct kvc_policy: struct_size is %u, and %zu is the least: set it to "
                           "sizeof(struct kvc_policy)", said->struct_size, sizeof(*said));
    memcpy(&p->policy, said, sizeof(p->policy));
    if (!kvc_policy_kind_name(said->kind))
        return bad(p, err, "it is a policy of kind %u, which this version (%s) does not know",
                   said->kind, kvc_version());
    if (kind && said->kind != kind)
        return bad(p, err, "it is a policy of %s, and one of %s is wanted here",
                   kvc_policy_kind_name(said->kind), kvc_policy_kind_name(kind));
    enum kvc_status st = check_name(p, err);
    if (st == KVC_OK)
        st = check_options(p, err);
    if (st != KVC_OK)
        return st;
    return said->kind == KVC_POLICY_EVICTION    ? check_eviction(p, err)
           : said->kind == KVC_POLICY_ADMISSION ? check_admission(p, err)
           : said->kind == KVC_POLICY_ROUTING   ? check_router(p, err)
                                                : check_ordering(p, err);
}

/* ---- loading ---- */

static enum kvc_status load(struct kvc_plugin *p, uint32_t kind, struct kvc_error *err)
{
    char file[sizeof(p->path) + 2];
    union { /* ISO C has no cast from an object's pointer to a function's */
        void *symbol;
        const struct kvc_policy *(*entry)(void);
    } u;
    FILE *there = fopen(p->path, "rb");
    if (!there)
        return bad(p, err, "opening the plug-in: %s; check the name, and that it is built",
                   strerror(errno));
    fclose(there);
    snprintf(file, sizeof(file), "%s%s", strchr(p->path, '/') ? "" : "./", p->path);
    p->object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!p->object) {
        const char *why = dlerror(); /* it says "no such file" of one that is there */
        return bad(p, err, "it can't be loaded: %.300s; make it with cc -shared -fPIC",
                   strstr(why, "No such file") ? "it, or a library it needs, is for another machine"
                                               : why);
    }
    u.symbol = dlsym(p->object, ENTRY);
    if (!u.symbol)
        return bad(p, err, "it has no function " ENTRY ", so it is no plug-in of kvcast: declare "
                                                       "it as kvcast/policy.h does, or begin with "
                                                       "'kvcast policy new'");
    return check(p, u.entry(), kind, err);
}

/* Its code runs already here, so that a watcher is to know. */
static enum kvc_status watched_load(struct kvc_plugin *p, uint32_t kind, struct kvc_error *err)
{
    struct kvc_watch_slot *slot = kvc_watch_take(p->path, "plug-in");
    if (slot)
        slot->place.hook = KVC_HOOK_LOAD;
    enum kvc_status st = load(p, kind, err);
    kvc_watch_give(slot);
    return st;
}

enum kvc_status kvc_plugin_open(struct kvc_plugin **out, const char *spec, uint32_t kind,
                                struct kvc_error *err)
{
    size_t n = path_length(spec);
    if (spec[n] == ':' && (!spec[n + 1] || spec[n + 1] == '+'))
        return kvc_no_options(spec, err);
    struct kvc_plugin *p = kvc_calloc(1, sizeof(*p));
    if (!p)
        return kvc_fail_nomem(err);
    enum kvc_status st = n < sizeof(p->path)
                             ? KVC_OK
                             : kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                                           "a path of %zu characters; %zu is the most", n,
                                           sizeof(p->path) - 1);
    if (st == KVC_OK) {
        memcpy(p->path, spec, n);
        st = watched_load(p, kind, err);
    }
    if (st == KVC_OK)
        *out = p;
    else
        kvc_plugin_close(p);
    return st;
}

void kvc_plugin_close(struct kvc_plugin *p)
{
    if (p && p->object)
        dlclose(p->object);
    kvc_free(p);
}
