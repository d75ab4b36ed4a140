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
    static const char *const names[] = {"no hook", "load", "create", "destroy", "request", "stored",
                                        "touched", "victim", "removed", "admits", "rank", "arrived",
                                        "admitted", "served", "ended", "pick"};
    return hook < sizeof(names) / sizeof(names[0]) ? names[hook] : "no hook";
}

void kvc_hook_where(const struct kvc_plugged_place *place, char *buf, size_t size)
{
    uint32_t hook = place->hook;
    int n = snprintf(buf, size, " in %s", kvc_hook_name(hook));
    if (hook > KVC_HOOK_CREATE && hook != KVC_HOOK_DESTROY && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, ", at request %llu",
                 (unsigned long long)place->request);
}

static uint64_t seed_of(const struct kvc_policy *policy, const union kvc_option_value *value)
{
    for (uint32_t i = 0; i < policy->n_options; i++)
        if (!strcmp(policy->options[i].name, "seed") && policy->options[i].kind == KVC_OPTION_COUNT)
            return value[i].count;
    return 0;
}

enum kvc_status kvc_guest_choose(struct kvc_policy_choice *out,
                                 const struct kvc_plugged_trial *trial, const char *spec,
                                 struct kvc_error *err)
{
    const struct kvc_policy *policy = &trial->plugin->policy;
    out->policy = policy;
    out->ops = &trial->plugin->ops;
    return kvc_policy_options(policy->name, kvc_plugin_options(spec), policy->options,
                              policy->n_options, out->option, err);
}

void kvc_guest_begin(struct kvc_guest *g, const struct kvc_policy_choice *choice,
                     struct kvc_plugged_trial *trial, bool *failed)
{
    const struct kvc_plugin *plugin = trial ? trial->plugin : choice->opened;
    g->path = plugin ? plugin->path : NULL;
    g->name = choice->policy->name;
    g->trial = trial;
    g->slot = plugin && !trial ? kvc_watch_take(g->path, g->name) : NULL;
    g->place = trial && trial->place ? trial->place : g->slot ? &g->slot->place : &g->own;
    g->rng = kvc_rng_stream(seed_of(choice->policy, choice->option), "plug-in");
    g->failed = failed;
}

/* ---- memory ---- */

#define HEAD ((sizeof(struct kvc_guest_memory) + 15) / 16 * 16)
#define GIVEN 0x6b7663617374206bu
#define FREED 0x6b76636173742066u

static unsigned char *behind(struct kvc_guest_memory *m)
{
    return (unsigned char *)m + HEAD + m->bytes;
}

/* Whether nobody wrote over it. */
static bool whole(const struct kvc_guest_memory *m)
{
    return m->magic == (GIVEN ^ m->bytes);
}

static void look_behind(struct kvc_guest *g, struct kvc_guest_memory *m)
{
    const uint64_t mark = GIVEN;
    if (memcmp(behind(m), &mark, sizeof(mark)) != 0)
        kvc_guest_breach(g, "it wrote beyond the %zu bytes that alloc gave it", m->bytes);
}

void *kvc_guest_alloc(struct kvc_guest *g, size_t n, size_t size)
{
    const uint64_t mark = GIVEN;
    if (size && n > (SIZE_MAX - HEAD - sizeof(mark)) / size)
        return NULL;
    struct kvc_guest_memory *m = kvc_calloc(1, HEAD + n * size + sizeof(mark));
    if (!m)
        return NULL;
    m->bytes = n * size;
    m->magic = GIVEN ^ m->bytes;
    memcpy(behind(m), &mark, sizeof(mark));
    m->next = g->given;
    m->link = &g->given;
    if (m->next)
        m->next->link = &m->next;
    g->given = m;
    return (unsigned char *)m + HEAD;
}

void kvc_guest_free(struct kvc_guest *g, void *memory)
{
    struct kvc_guest_memory said, *m;
    if (!memory)
        return;
    unsigned char *head = (unsigned char *)memory - HEAD;
    memcpy(&said, head, sizeof(said));
    if (!whole(&said)) {
        kvc_guest_breach(g, said.magic == FREED ? "free was given the same memory twice"
                                           : "free was given memory that alloc did not give, or it "
                                             "wrote in front of what it gave");
        return;
    }
    m = (void *)head;
    look_behind(g, m);
    *m->link = m->next;
    if (m->next)
        m->next->link = m->link;
    m->magic = FREED;
    m->next = g->freed;
    if (g->trial)
        g->freed = m;
    else
        kvc_free(m);
}

static void clear(struct kvc_guest_memory *m)
{
    for (struct kvc_guest_memory *next; m; m = next) {
        next = m->next;
        kvc_free(m);
    }
}

static bool lend(struct kvc_guest_lent *lent, const char *name, const uint32_t **array, size_t n)
{
    if (!*array)
        return true;
    *lent = (struct kvc_guest_lent){
        .name = name, .own = *array, .copy = kvc_malloc(n, sizeof(**array)), .n = n};
    if (!lent->copy)
        return false;
    memcpy(lent->copy, *array, n * sizeof(**array));
    *array = lent->copy;
    return true;
}

bool kvc_guest_lend(struct kvc_guest *g, size_t n_segments, const uint32_t **seg_blocks,
                    const uint32_t **seg_depth, const uint32_t **seg_parent)
{
    return !g->path || (lend(&g->lent[0], "seg_blocks", seg_blocks, n_segments) &&
                        lend(&g->lent[1], "seg_depth", seg_depth, n_segments) &&
                        lend(&g->lent[2], "seg_parent", seg_parent, n_segments));
}

static void look_at_lent(struct kvc_guest *g)
{
    for (size_t i = 0; i < sizeof(g->lent) / sizeof(g->lent[0]); i++) {
        const struct kvc_guest_lent *l = &g->lent[i];
        if (l->copy && memcmp(l->copy, l->own, l->n * sizeof(*l->own)) != 0)
            kvc_guest_breach(g, "it wrote to %s, which it may only read", l->name);
    }
}

void kvc_guest_look(struct kvc_guest *g)
{
    look_at_lent(g);
    for (struct kvc_guest_memory *m = g->given; m; m = m->next) {
        if (!whole(m)) {
            kvc_guest_breach(g, "it wrote in front of the memory that alloc gave it");
            g->given = NULL; /* where the others are is no longer known */
            return;
        }
        look_behind(g, m);
    }
}

void kvc_guest_end(struct kvc_guest *g)
{
    kvc_guest_look(g);
    for (struct kvc_guest_memory *m = g->given; g->trial && m; m = m->next)
        g->trial->leaks++;
    if (g->trial && g->trial->error.status == KVC_OK)
        g->trial->error = g->error;
    clear(g->given);
    clear(g->freed);
    g->given = g->freed = NULL;
    for (size_t i = 0; i < sizeof(g->lent) / sizeof(g->lent[0]); i++)
        kvc_free(g->lent[i].copy);
    memset(g->lent, 0, sizeof(g->lent));
    g->place = &g->own;
    kvc_watch_give(g->slot);
    g->slot = NULL;
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
    else if (g->place->hook == KVC_HOOK_NONE)
        kvc_fail_at(&g->error, KVC_ERR_PLUGIN, g->path, 0, NULL, "%s, by the end of the run: %s",
                    g->name, text);
    else
        kvc_fail_at(&g->error, KVC_ERR_PLUGIN, g->path, 0, NULL, "%s, in %s, at request %llu: %s",
                    g->name, kvc_hook_name(g->place->hook), (unsigned long long)g->place->request,
                    text);
}
