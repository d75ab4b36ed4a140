/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/twins/closeup_twin.h"

#include "base/rng.h"
#include "tests/twins/block_policies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void closeup_log_draw(struct closeup_log *l, uint64_t seed)
{
    uint64_t rng = kvc_rng_stream(seed, "closeup");
    memset(l, 0, sizeof(*l));
    twin_draw(&l->rows, &rng, 36, 12);
    l->t = twin_trace(&l->rows);
    l->n_tenants = 1 + (uint32_t)kvc_rng_below(&rng, MOST_TENANTS);
    for (uint32_t i = 0; i < l->n_tenants; i++) {
        snprintf(l->names[i], sizeof(l->names[i]), "t%u", i);
        l->name[i] = l->names[i];
    }
    for (uint32_t r = 0; r < l->rows.n; r++) {
        l->tenant[r] = (uint32_t)kvc_rng_below(&rng, l->n_tenants);
        l->session[r] = kvc_rng_below(&rng, 5) ? (uint32_t)kvc_rng_below(&rng, 6) : KVC_ID_NONE;
        l->t->arrival_ns[r] = r * (uint64_t)60000000000; /* the TTL is five of them */
        for (uint32_t i = 0; i < l->rows.row[r].n; i++)
            if (l->rows.row[r].ids[i] >= l->n_blocks)
                l->n_blocks = (uint32_t)l->rows.row[r].ids[i] + 1;
    }
    assert_true(l->n_blocks <= MOST_BLOCKS);
    l->t->tenant = l->tenant;
    l->t->session = l->session;
    l->t->tenant_names = l->name;
    l->t->n_tenants = l->n_tenants;
    l->t->n_sessions = 6;
}

void closeup_log_clear(struct closeup_log *l)
{
    twin_trace_free(l->t);
    twin_clear(&l->rows);
}

uint32_t closeup_usable(const struct closeup_log *l, uint32_t r, uint32_t run)
{
    uint32_t full = l->rows.row[r].tokens / l->rows.block_tokens;
    return (run < full ? run : full) * l->rows.block_tokens;
}

static uint32_t block_of(const struct closeup_log *l, bool isolated, uint32_t r, uint32_t i)
{
    uint32_t b = (uint32_t)l->rows.row[r].ids[i];
    return isolated ? b * MOST_TENANTS + l->tenant[r] : b;
}

static void miss(struct causes *c, uint32_t tenant, enum kvc_miss_cause cause, uint64_t tokens)
{
    c->missed[cause] += tokens;
    c->by_tenant[tenant][cause] += tokens;
}

void closeup_judge(struct watching *w, uint32_t r, uint32_t run, uint32_t elsewhere)
{
    const struct closeup_log *l = w->l;
    const struct twin_row *row = &l->rows.row[r];
    uint32_t size = l->rows.block_tokens, full = row->tokens / size, who = l->tenant[r];
    bool known = true;
    full = full < row->n ? full : row->n;
    for (uint32_t i = 0; i < full; i++) {
        uint32_t b = block_of(l, w->isolated, r, i), left = w->left_by[b];
        known = known && w->seen_by_any[row->ids[i]];
        if (i < run)
            w->causes->hit += size;
        else if (i < elsewhere)
            miss(w->causes, who, KVC_MISS_OTHER_REPLICA, size);
        else if (w->seen[b] && left & BLOCK_EXPIRED)
            miss(w->causes, who, KVC_MISS_TTL, size);
        else if (w->seen[b]) {
            miss(w->causes, who, KVC_MISS_EVICTED, size);
            w->causes->evicted[who][left ? l->tenant[left - 1] : MOST_TENANTS] += size;
        } else
            miss(w->causes, who, w->seen_by_any[row->ids[i]] ? KVC_MISS_SALTED
                                                             : KVC_MISS_FIRST_SIGHT, size);
    }
    miss(w->causes, who, known && full ? KVC_MISS_PARTIAL_BLOCK : KVC_MISS_FIRST_SIGHT,
         row->tokens - full * size);
    w->causes->tokens += row->tokens;
    for (uint32_t i = 0; i < row->n; i++)
        w->seen[block_of(l, w->isolated, r, i)] = w->seen_by_any[row->ids[i]] = true;
}

static void judge_alone(void *user, uint32_t r, uint32_t run)
{
    closeup_judge(user, r, run, 0);
}

void closeup_watch(const struct closeup_log *l, const char *policy, bool isolated,
                   uint64_t capacity, struct causes *out, uint32_t *runs)
{
    static struct watching w;
    uint32_t *path[MOST_ROWS], length[MOST_ROWS];
    memset(&w, 0, sizeof(w));
    memset(out, 0, sizeof(*out));
    w.l = l;
    w.isolated = isolated;
    w.causes = out;
    for (uint32_t r = 0; r < l->rows.n; r++) {
        length[r] = l->rows.row[r].n;
        path[r] = calloc(length[r] + 1u, sizeof(*path[r]));
        assert_non_null(path[r]);
        for (uint32_t i = 0; i < length[r]; i++)
            path[r][i] = block_of(l, isolated, r, i);
    }
    const struct block_option tokens[] = { /* in blocks */
        {"tokens", 32768 / l->rows.block_tokens},
        {"head", (1024 + l->rows.block_tokens - 1) / l->rows.block_tokens},
    };
    const struct block_log log = {
        .n_requests = l->rows.n, .n_blocks = MOST_BLOCKS * MOST_TENANTS,
        .path = (const uint32_t *const *)path, .length = length, .now_ns = l->t->arrival_ns,
        .session = l->session, .tenant = l->tenant, .option = tokens, .n_options = 2,
        .left_by = w.left_by, .looked = judge_alone, .user = &w,
    };
    block_policy_run(&log, policy, true, capacity, runs);
    for (uint32_t r = 0; r < l->rows.n; r++)
        free(path[r]);
}

uint32_t closeup_tenant(const char *name)
{
    assert_true(name[0] == 't' && name[1] >= '0' && name[1] < '0' + MOST_TENANTS);
    return (uint32_t)(name[1] - '0');
}

void closeup_expect(const struct kvc_closeup_result *got, const struct causes *want,
                          const char *policy, uint64_t seed)
{
    bool same = got->all.hits.hit_tokens == want->hit && got->all.hits.tokens == want->tokens &&
                memcmp(got->all.missed_tokens, want->missed, sizeof(want->missed)) == 0;
    for (uint32_t i = 0; i < got->n_tenants; i++)
        same = same && memcmp(got->tenants[i].missed_tokens,
                              want->by_tenant[closeup_tenant(got->tenants[i].name)],
                              sizeof(want->by_tenant[0])) == 0;
    for (uint32_t i = 0; i < got->n_evictors; i++)
        for (uint32_t k = 0; k <= got->n_evictors; k++)
            same = same && got->evicted_tokens[i][k] ==
                               want->evicted[closeup_tenant(got->evictor[i])]
                                            [k < got->n_evictors ? closeup_tenant(got->evictor[k])
                                                                 : MOST_TENANTS];
    if (same)
        return;
    for (unsigned i = 0; i < KVC_MISS_CAUSES; i++)
        print_message("  %s: %llu, twin %llu\n", kvc_miss_cause_name(i),
                      (unsigned long long)got->all.missed_tokens[i],
                      (unsigned long long)want->missed[i]);
    fail_msg("%s, seed %llu", policy, (unsigned long long)seed);
}

struct kvc_closeup *closeup_open(const struct closeup_log *l, const char *isolate,
                                 uint32_t replicas, const char *router)
{
    const struct kvc_closeup_options o = {
        .struct_size = sizeof(o), .by = "session", .isolate = isolate, .replicas = replicas,
        .router = router, .why = true,
    };
    struct kvc_closeup *c;
    assert_int_equal(kvc_closeup_create(&c, l->t, &o, NULL), KVC_OK);
    return c;
}

bool closeup_drawn(const char *policy)
{
    return strcmp(policy, "random") == 0;
}
