/* SPDX-License-Identifier: Apache-2.0
 * Admission policies: which blocks of a request a cache stores. Blocks of a segment are always asked
 * for together, so what is known is kept by segment.
 *
 * second: a block that was asked for before (a doorkeeper; selective writes of engines).
 * depth, size: blocks not too deep in their prompt; of prompts not too long.
 * tinylfu: counters of the last touches (Einziger, Friedman and Manes, ACM TOS 2017: 15 at most,
 * halved when sample x capacity touches were added), and a block is stored while it is among the
 * capacity that were asked for most often: when all blocks with as many touches or more have
 * room together. The paper asks the victim, which not every eviction policy can name beforehand.
 * ttl: a block that is expected again before it is too old: after as long as since it was last asked
 * for; asked for the first time, after the mean pause of its session, without one after that of all;
 * without any it is stored. */
#include "policies/policies.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

struct pauses {
    uint64_t sum_ns, last_ns, n;
    bool asked;
};

struct kvc_admission {
    const struct kvc_admission_ops *ops;
    union kvc_option_value option[KVC_POLICY_OPTIONS];
    uint64_t capacity;
    uint32_t n_segments, block_tokens;
    const uint32_t *seg_len, *seg_depth, *seg_parent;
    uint8_t *asked;          /* by segment */
    uint64_t counted, blocks[16], least; /* tinylfu: blocks by counter; the least that is stored */
    uint64_t *last_ns;       /* ttl, by segment: when it was last asked for + 1; 0: never */
    uint64_t *gap_ns;        /* ttl, by segment: since the request before */
    struct pauses *session, all;
    size_t n_sessions, room;
    bool failed;
};

static bool nothing(struct kvc_admission *a)
{
    (void)a;
    return true;
}

static bool always(const struct kvc_admission *a, const struct kvc_admission_request *r,
                   uint32_t seg)
{
    (void)a, (void)r, (void)seg;
    return true;
}

static bool count_start(struct kvc_admission *a)
{
    a->asked = kvc_calloc(a->n_segments, sizeof(*a->asked));
    return a->asked != NULL;
}

/* ---- second ---- */

enum { TIMES, MEMORY };

static const struct kvc_policy_option second_options[] = {
    {"times", KVC_OPTION_COUNT, "2", 1, 255, "the request that stores a block"},
    {"memory", KVC_OPTION_COUNT, "0", 0, 1e9,
     "all counts are forgotten after so many capacities of touches; 0: never"},
};

static void second_ask(struct kvc_admission *a, const struct kvc_admission_request *r)
{
    uint64_t memory = a->option[MEMORY].count;
    if (memory && a->counted / memory >= a->capacity) {
        memset(a->asked, 0, a->n_segments);
        a->counted = 0;
    }
    for (uint32_t s = r->seg; s != UINT32_MAX; s = a->seg_parent[s]) {
        a->asked[s] = (uint8_t)(a->asked[s] + (a->asked[s] < 255));
        a->counted += a->seg_len[s];
    }
}

static bool second_admits(const struct kvc_admission *a, const struct kvc_admission_request *r,
                          uint32_t seg)
{
    (void)r;
    return a->asked[seg] >= a->option[TIMES].count;
}

/* ---- depth, size ---- */

static const struct kvc_policy_option tokens_option[] = {
    {"tokens", KVC_OPTION_COUNT, "32768", 0, 1e12, "of a prompt, the most"},
};

static uint64_t depth_bound(const struct kvc_admission *a)
{
    return a->option[0].count / a->block_tokens;
}

static bool size_admits(const struct kvc_admission *a, const struct kvc_admission_request *r,
                        uint32_t seg)
{
    (void)seg;
    return r->seg == UINT32_MAX || (uint64_t)a->seg_depth[r->seg] + a->seg_len[r->seg] <=
                                       a->option[0].count / a->block_tokens;
}

/* ---- tinylfu ---- */

static const struct kvc_policy_option tinylfu_options[] = {
    {"sample", KVC_OPTION_COUNT, "10", 1, 1e9,
     "counters are halved after so many capacities of touches"},
};

static void halve(struct kvc_admission *a)
{
    a->counted /= 2;
    memset(a->blocks, 0, sizeof(a->blocks));
    for (uint32_t s = 0; s < a->n_segments; s++) {
        a->asked[s] /= 2;
        a->blocks[a->asked[s]] += a->seg_len[s];
    }
}

static void tinylfu_ask(struct kvc_admission *a, const struct kvc_admission_request *r)
{
    for (uint32_t s = r->seg; s != UINT32_MAX; s = a->seg_parent[s]) {
        a->counted += a->seg_len[s];
        if (a->asked[s] == 15)
            continue;
        a->blocks[a->asked[s]++] -= a->seg_len[s]; /* of 0 nobody reads what is left */
        a->blocks[a->asked[s]] += a->seg_len[s];
    }
    if (a->counted / a->option[0].count >= a->capacity)
        halve(a);
    uint64_t above = 0;
    a->least = 16;
    while (a->least > 1 && above + a->blocks[a->least - 1] <= a->capacity)
        above += a->blocks[--a->least];
}

static bool tinylfu_admits(const struct kvc_admission *a, const struct kvc_admission_request *r,
                           uint32_t seg)
{
    (void)r;
    return a->asked[seg] >= a->least;
}

/* ---- ttl ---- */

static const struct kvc_policy_option ttl_options[] = {
    {"ttl", KVC_OPTION_TIME, "5m", 1, 1e18, "age at which a block is of no use"},
};

static bool ttl_start(struct kvc_admission *a)
{
    a->last_ns = kvc_calloc(a->n_segments, sizeof(*a->last_ns));
    a->gap_ns = kvc_calloc(a->n_segments, sizeof(*a->gap_ns));
    return a->last_ns && a->gap_ns;
}

static void note_pause(struct kvc_admission *a, const struct kvc_admission_request *r)
{
    if (r->session == KVC_ID_NONE)
        return;
    if (!kvc_grow((void **)&a->session, &a->room, (size_t)r->session + 1, sizeof(*a->session))) {
        a->failed = true;
        return;
    }
    for (; a->n_sessions <= r->session; a->n_sessions++)
        a->session[a->n_sessions] = (struct pauses){0};
    struct pauses *s = &a->session[r->session];
    if (s->asked) {
        s->sum_ns += r->now_ns - s->last_ns;
        a->all.sum_ns += r->now_ns - s->last_ns;
        s->n++;
        a->all.n++;
    }
    s->asked = true;
    s->last_ns = r->now_ns;
}

static void ttl_ask(struct kvc_admission *a, const struct kvc_admission_request *r)
{
    note_pause(a, r);
    for (uint32_t s = r->seg; s != UINT32_MAX; s = a->seg_parent[s]) {
        a->gap_ns[s] = a->last_ns[s] ? r->now_ns - (a->last_ns[s] - 1) : UINT64_MAX;
        a->last_ns[s] = r->now_ns + 1;
    }
}

static bool ttl_admits(const struct kvc_admission *a, const struct kvc_admission_request *r,
                       uint32_t seg)
{
    uint64_t gap = a->last_ns[seg] ? a->gap_ns[seg] : UINT64_MAX;
    if (gap == UINT64_MAX) {
        const struct pauses *s = r->session < a->n_sessions ? &a->session[r->session] : &a->all;
        s = s->n ? s : &a->all;
        gap = s->n ? s->sum_ns / s->n : 0;
    }
    return gap < a->option[0].time_ns;
}

/* ---- by name ---- */

#define OPTIONS(table) .options = table, .n_options = sizeof(table) / sizeof((table)[0])

static const struct kvc_admission_ops table[] = {
    {.name = "always", .summary = "all that is asked for", .start = nothing, .admits = always},
    {.name = "second", .summary = "what was asked for before", OPTIONS(second_options),
     .start = count_start, .ask = second_ask, .admits = second_admits},
    {.name = "depth", .summary = "the first tokens of each prompt", OPTIONS(tokens_option),
     .start = nothing, .admits = always, .bound = depth_bound},
    {.name = "size", .summary = "prompts that are not too long", OPTIONS(tokens_option),
     .start = nothing, .admits = size_admits},
    {.name = "tinylfu", .summary = "what is asked for often enough of late to fit",
     OPTIONS(tinylfu_options), .start = count_start, .ask = tinylfu_ask, .admits = tinylfu_admits},
    {.name = "ttl", .summary = "what is expected again before it is too old", OPTIONS(ttl_options),
     .start = ttl_start, .ask = ttl_ask, .admits = ttl_admits},
};

const char *const *kvc_admission_names(void)
{
    static const char *const names[] = {"always", "second", "depth", "size", "tinylfu", "ttl", NULL};
    return names;
}

static const struct kvc_admission_ops *find(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (kvc_name_equal(table[i].name, name))
            return &table[i];
    return NULL;
}

const struct kvc_policy_option *kvc_admission_options(const char *name, uint32_t *n)
{
    const struct kvc_admission_ops *ops = find(name);
    *n = ops ? ops->n_options : 0;
    return ops ? ops->options : NULL;
}

static enum kvc_status parse(const char *spec, const struct kvc_admission_ops **ops,
                             union kvc_option_value *option, struct kvc_error *err)
{
    char name[32];
    const char *options;
    enum kvc_status st = kvc_policy_name(spec, name, sizeof(name), &options, err);
    if (st != KVC_OK)
        return st;
    if (strchr(spec, '+'))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "admission",
                           "\"%.64s\" is more than one; a policy takes one admission policy", spec);
    const char *near = kvc_name_nearest(name, kvc_admission_names());
    if (!(*ops = find(name)))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "admission",
                           "there is no admission policy \"%s\"%s%s%s; known are always, second, "
                           "depth, size, tinylfu, ttl", name, near ? " (did you mean \"" : "",
                           near ? near : "", near ? "\"?)" : "");
    return kvc_policy_options((*ops)->name, options, (*ops)->options, (*ops)->n_options, option,
                              err);
}

enum kvc_status kvc_admission_check(const char *spec, struct kvc_error *err)
{
    const struct kvc_admission_ops *ops;
    union kvc_option_value option[KVC_POLICY_OPTIONS];
    return parse(spec, &ops, option, err);
}

struct kvc_admission *kvc_admission_create(const char *spec, uint64_t capacity, uint32_t n_segments,
                                           const uint32_t *seg_len, const uint32_t *seg_depth,
                                           const uint32_t *seg_parent, uint32_t block_tokens)
{
    struct kvc_admission *a = kvc_calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->capacity = capacity;
    a->n_segments = n_segments;
    a->seg_len = seg_len;
    a->seg_depth = seg_depth;
    a->seg_parent = seg_parent;
    a->block_tokens = block_tokens ? block_tokens : 1;
    if (parse(spec, &a->ops, a->option, NULL) != KVC_OK || !a->ops->start(a)) {
        kvc_admission_destroy(a);
        return NULL;
    }
    return a;
}

void kvc_admission_destroy(struct kvc_admission *a)
{
    if (!a)
        return;
    kvc_free(a->asked);
    kvc_free(a->last_ns);
    kvc_free(a->gap_ns);
    kvc_free(a->session);
    kvc_free(a);
}

bool kvc_admission_ask(struct kvc_admission *a, const struct kvc_admission_request *request)
{
    if (a->ops->ask)
        a->ops->ask(a, request);
    return !a->failed;
}

uint64_t kvc_admission_limit(const struct kvc_admission *a,
                             const struct kvc_admission_request *request, uint32_t leaf,
                             uint32_t (*held)(const void *user, uint32_t seg), const void *user)
{
    uint64_t limit = a->ops->bound ? a->ops->bound(a) : UINT64_MAX;
    if (a->ops->admits == always)
        return limit;
    for (uint32_t s = leaf; s != UINT32_MAX; s = a->seg_parent[s]) {
        uint32_t lead = a->ops->admits(a, request, s) ? a->seg_len[s] : held(user, s);
        if (lead < a->seg_len[s] && a->seg_depth[s] + lead < limit)
            limit = a->seg_depth[s] + lead;
    }
    return limit;
}

uint64_t kvc_admission_alone(const struct kvc_admission *a, uint32_t seg)
{
    const struct kvc_admission_request none = {UINT32_MAX, KVC_ID_NONE, 0};
    if (!a->ops->admits(a, &none, seg))
        return 0;
    return a->ops->bound ? a->ops->bound(a) : UINT64_MAX;
}
