/* SPDX-License-Identifier: Apache-2.0
 * Random logs with tenants, and why their tokens miss, block by block, for tests of closeups. */
#ifndef KVC_TESTS_CLOSEUP_TWIN_H
#define KVC_TESTS_CLOSEUP_TWIN_H

#include "sim/ceiling/ceiling_cluster.h"
#include "tests/twins/ceiling_twin.h"

#define MOST_ROWS 48
#define MOST_BLOCKS 512 /* distinct */
#define MOST_TENANTS 3

/* A random log with tenants and sessions. */
struct closeup_log {
    struct twin_rows rows;
    struct kvc_trace *t;
    uint32_t tenant[MOST_ROWS], session[MOST_ROWS], n_tenants, n_blocks;
    char names[MOST_TENANTS][16], *name[MOST_TENANTS];
};

struct causes {
    uint64_t hit, tokens, missed[KVC_MISS_CAUSES];
    uint64_t by_tenant[MOST_TENANTS][KVC_MISS_CAUSES];
    uint64_t evicted[MOST_TENANTS][MOST_TENANTS + 1]; /* the last: nobody's */
};

struct watching {
    const struct closeup_log *l;
    bool isolated;
    uint32_t left_by[MOST_BLOCKS * MOST_TENANTS];
    bool seen[MOST_BLOCKS * MOST_TENANTS], seen_by_any[MOST_BLOCKS];
    struct causes *causes;
};

void closeup_log_draw(struct closeup_log *l, uint64_t seed);
void closeup_log_clear(struct closeup_log *l);

/* Tokens of the full blocks among the first run of request r. */
uint32_t closeup_usable(const struct closeup_log *l, uint32_t r, uint32_t run);
/* Request r of which run blocks hit, where another cache has the first elsewhere. */
void closeup_judge(struct watching *w, uint32_t r, uint32_t run, uint32_t elsewhere);
/* One cache under a policy: causes, and blocks that hit by request. */
void closeup_watch(const struct closeup_log *l, const char *policy, bool isolated,
                   uint64_t capacity, struct causes *out, uint32_t *runs);
/* Fails the test where they differ. */
void closeup_expect(const struct kvc_closeup_result *got, const struct causes *want,
                    const char *policy, uint64_t seed);
struct kvc_closeup *closeup_open(const struct closeup_log *l, const char *isolate,
                                 uint32_t replicas, const char *router);
uint32_t closeup_tenant(const char *name);
/* Victims of random depend on the order of segments, which blocks here don't know. */
bool closeup_drawn(const char *policy);

#endif
