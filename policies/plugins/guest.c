/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/plugins/guest.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *kvc_hook_name(uint32_t hook)
{
    static const char *const names[] = {"no hook", "create", "destroy", "request", "stored",
                                        "touched", "victim", "removed", "admits"};
    return hook < sizeof(names) / sizeof(names[0]) ? names[hook] : "no hook";
}

static uint64_t seed_of(const struct kvc_policy *policy, const union kvc_option_value *value)
{
    for (uint32_t i = 0; i < policy->n_options; i++)
        if (!strcmp(policy->options[i].name, "seed") && policy->options[i].kind == KVC_OPTION_COUNT)
            return value[i].count;
    return 0;
}

void kvc_guest_begin(struct kvc_guest *g, const char *path, const struct kvc_policy *policy,
                     const union kvc_option_value *value, struct kvc_plugged_trial *trial,
                     bool *failed)
{
    g->path = path;
    g->name = policy->name;
    g->trial = trial;
    g->place = trial && trial->place ? trial->place : &g->own;
    g->rng = kvc_rng_stream(seed_of(policy, value), "plug-in");
    g->failed = failed;
}

void kvc_guest_end(struct kvc_guest *g)
{
    for (struct kvc_guest_memory *m = g->given, *next; m; m = next) {
        next = m->next;
        if (g->trial)
            g->trial->leaks++;
        kvc_free(m);
    }
    g->given = NULL;
}

void kvc_guest_breach(struct kvc_guest *g, const char *fmt, ...)
{
    char text[400];
    va_list args;
    if (g->error.status != KVC_OK)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    *g->failed = true;
    if (!g->path)
        kvc_fail_nomem(&g->error); /* nothing else goes wrong in those that are built in */
    else if (g->place->hook == KVC_HOOK_CREATE || g->place->hook == KVC_HOOK_DESTROY)
        kvc_fail_at(&g->error, KVC_ERR_PLUGIN, g->path, 0, NULL, "%s, in %s: %s", g->name,
                    kvc_hook_name(g->place->hook), text);
    else
        kvc_fail_at(&g->error, KVC_ERR_PLUGIN, g->path, 0, NULL, "%s, in %s, at request %llu: %s",
                    g->name, kvc_hook_name(g->place->hook), (unsigned long long)g->place->request,
                    text);
}

#define HEAD ((sizeof(struct kvc_guest_memory) + 15) / 16 * 16)

void *kvc_guest_alloc(struct kvc_guest *g, size_t n, size_t size)
{
    if (size && n > (SIZE_MAX - HEAD) / size)
        return NULL;
    struct kvc_guest_memory *m = kvc_calloc(1, HEAD + n * size);
    if (!m)
        return NULL;
    m->next = g->given;
    m->link = &g->given;
    if (m->next)
        m->next->link = &m->next;
    g->given = m;
    return (unsigned char *)m + HEAD;
}

void kvc_guest_free(void *memory)
{
    if (!memory)
        return;
    struct kvc_guest_memory *m = (void *)((unsigned char *)memory - HEAD);
    *m->link = m->next;
    if (m->next)
        m->next->link = m->link;
    kvc_free(m);
}
