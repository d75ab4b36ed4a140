/* SPDX-License-Identifier: Apache-2.0
 * 'kvcast policy list': every policy there is, from the tables that also run them. */
#include "cli/policy/parts.h"

#include "base/units.h"
#include "cli/trace_args.h"
#include "policies/eviction/runs.h"
#include "policies/plugins/plugin.h"
#include "policies/policies.h"

#include <stdio.h>
#include <string.h>

static const char *const used[] = {
    [KVC_POLICY_EVICTION] = "kvcast ceiling --policy NAME[:option=value]; in a replay --policy for "
                            "GPU memory, tiers.*.policy",
    [KVC_POLICY_ADMISSION] = "--admission NAME, POLICY+NAME for one policy, tiers.*.admission",
    [KVC_POLICY_ROUTING] = "--router NAME",
    [KVC_POLICY_ORDERING] = "kvcast replay --order NAME",
};

struct row {
    uint32_t kind;
    const char *name, *summary, *source;
    bool closed, replay, single;
    const struct kvc_policy_option *option;
    uint32_t n_options;
};

static void each_eviction(void (*take)(const struct row *, void *), void *user)
{
    for (const char *const *p = kvc_ceiling_policies(); *p; p++) {
        struct row r = {.kind = KVC_POLICY_EVICTION, .name = *p};
        const struct kvc_policy_about *about = kvc_policy_about(*p);
        if (about) {
            r.summary = about->summary;
            r.source = about->source;
            r.closed = about->closed;
        }
        struct kvc_eviction order;
        r.replay = kvc_eviction_of(*p, &order, NULL) == KVC_OK;
        r.single = kvc_runs_single(*p);
        r.option = kvc_runs_options(*p, &r.n_options);
        take(&r, user);
    }
}

static struct row row_of(const struct kvc_plugin *p)
{
    const struct kvc_policy *policy = &p->policy;
    struct row r = {.kind = policy->kind, .name = policy->name, .summary = policy->summary,
                    .source = policy->source, .option = policy->options,
                    .n_options = policy->n_options};
    if (r.kind == KVC_POLICY_EVICTION) {
        r.closed = p->ops.evict.flags & KVC_EVICT_CLOSED;
        r.single = p->ops.evict.flags & KVC_EVICT_SINGLE;
        r.replay = !(p->ops.evict.flags & KVC_EVICT_ORACLE);
    }
    return r;
}

/* Of a plug-in alone where one is given. */
static void each(const struct kvc_plugin *plugin, void (*take)(const struct row *, void *),
                 void *user)
{
    if (plugin) {
        const struct row r = row_of(plugin);
        take(&r, user);
        return;
    }
    each_eviction(take, user);
    for (uint32_t kind = KVC_POLICY_EVICTION + 1; kvc_policy_kind_name(kind); kind++)
        for (const struct kvc_policy *const *p = kvc_policy_table(kind); *p; p++) {
            const struct row r = {.kind = kind, .name = (*p)->name, .summary = (*p)->summary,
                                  .source = (*p)->source, .option = (*p)->options,
                                  .n_options = (*p)->n_options};
            take(&r, user);
        }
}

/* ---- text ---- */

static void print_limit(const struct kvc_policy_option *o, double value)
{
    char text[64];
    if (o->kind == KVC_OPTION_TIME)
        kvc_format_ns((uint64_t)value, text, sizeof(text));
    else
        snprintf(text, sizeof(text), "%.10g", value);
    fputs(text, stdout);
}

static void print_option(const struct kvc_policy_option *o)
{
    printf("  %-14s   %s=%s  %s (", "", o->name, o->default_text, o->help ? o->help : "");
    print_limit(o, o->min);
    fputs(" to ", stdout);
    print_limit(o, o->max);
    puts(")");
}

static void text_row(const struct row *r, void *user)
{
    uint32_t *kind = user;
    if (*kind != r->kind)
        printf("%s%s: %s\n", *kind ? "\n" : "", kvc_policy_kind_name(r->kind), used[r->kind]);
    *kind = r->kind;
    printf("  %-14s %s%s%s%s%s%s%s\n", r->name, r->summary ? r->summary : "", r->source ? " (" : "",
           r->source ? r->source : "", r->source ? ")" : "",
           r->kind == KVC_POLICY_EVICTION && !r->replay ? "; in ceilings only" : "",
           r->single ? "; single blocks" : "", r->closed ? "; closed" : "");
    for (uint32_t i = 0; i < r->n_options; i++)
        print_option(&r->option[i]);
}

void kvc_policy_list_text(const struct kvc_plugin *plugin)
{
    uint32_t kind = 0;
    each(plugin, text_row, &kind);
    if (plugin)
        return;
    printf("\nclosed: what stays are always whole leading parts of prompts. "
           "single blocks: slower, in a\n"
           "replay for one of kvcast's own. Your own: kvcast "
           "policy new.\n");
}

/* ---- JSON ---- */

static void json_row(const struct row *r, void *user)
{
    struct kvc_json *j = user;
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "kind", kvc_policy_kind_name(r->kind));
    kvc_json_string(j, "name", r->name);
    kvc_json_string(j, "summary", r->summary);
    kvc_json_string(j, "source", r->source);
    if (r->kind == KVC_POLICY_EVICTION) {
        kvc_json_bool(j, "prefix_closed", r->closed);
        kvc_json_bool(j, "single_blocks", r->single);
        kvc_json_open_array(j, "runs_in");
        kvc_json_string(j, NULL, "ceiling");
        if (r->replay)
            kvc_json_string(j, NULL, "replay");
        kvc_json_close(j);
    }
    kvc_json_open_array(j, "options");
    for (uint32_t i = 0; i < r->n_options; i++) {
        const struct kvc_policy_option *o = &r->option[i];
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", o->name);
        kvc_json_string(j, "kind", o->kind == KVC_OPTION_COUNT    ? "count"
                                   : o->kind == KVC_OPTION_NUMBER ? "number"
                                                                  : "time");
        kvc_json_string(j, "default", o->default_text);
        kvc_json_double(j, "min", o->min);
        kvc_json_double(j, "max", o->max);
        kvc_json_string(j, "help", o->help);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}

enum kvc_status kvc_policy_list_json(const struct kvc_plugin *plugin, struct kvc_error *err)
{
    struct kvc_json j;
    kvc_cli_json_begin(&j, "kvcast.policy-list.v1");
    kvc_json_open_array(&j, "policies");
    each(plugin, json_row, &j);
    kvc_json_close(&j);
    return kvc_cli_json_print(&j, err);
}

/* ---- names ---- */

struct search {
    const char *name;
    bool found;
};

static void compare(const struct row *r, void *user)
{
    struct search *s = user;
    s->found = s->found || kvc_name_equal(r->name, s->name);
}

bool kvc_policy_built_in(const char *name)
{
    struct search s = {name, false};
    each(NULL, compare, &s);
    return s.found;
}
