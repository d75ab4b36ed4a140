/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/twins/block_internal.h"

#include "base/rng.h"

#include <math.h>
/* ---- the policies: one touch of block b, index at on its path ---- */

static void lru(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    if (c->resident[b]) {
        take(c, b);
    } else {
        if (c->size == c->capacity) {
            uint32_t v = c->tail[1];
            take(c, v);
            gone(c, v);
        }
        come(c, b);
    }
    push(c, 1, b);
}

static void fifo(struct block_cache *c, uint32_t b, uint32_t at)
{
    if (!c->resident[b])
        lru(c, b, at);
}

static void by_frequency(struct block_cache *c, uint32_t b, bool forget)
{
    if (!c->resident[b]) {
        if (c->size == c->capacity) {
            uint32_t v = heap_pop(c);
            gone(c, v);
            if (forget)
                c->freq[v] = 0;
        }
        come(c, b);
    }
    heap_put(c, b, ++c->freq[b], c->clock);
}

static void lfu(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    by_frequency(c, b, true);
}

static void plfu(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    by_frequency(c, b, false);
}

/* It was asked for, all the same. */
static void plfu_refused(struct block_cache *c, uint32_t b)
{
    c->freq[b]++;
}

static void lenaware(struct block_cache *c, uint32_t b, uint32_t at)
{
    if (!c->resident[b]) {
        if (c->size == c->capacity)
            gone(c, heap_pop(c));
        come(c, b);
    }
    heap_put(c, b, UINT32_MAX - at, c->clock);
}

static void sieve(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    if (c->resident[b]) {
        c->visited[b] = true;
        return;
    }
    if (c->size == c->capacity) {
        uint32_t v = c->hand != NONE ? c->hand : c->tail[1];
        while (c->visited[v]) {
            c->visited[v] = false;
            v = c->newer[v] != NONE ? c->newer[v] : c->tail[1];
        }
        c->hand = c->newer[v];
        take(c, v);
        gone(c, v);
    }
    c->visited[b] = false;
    come(c, b);
    push(c, 1, b);
}

/* 1 small, 2 main, 3 ghost. As in the paper's algorithm: what small is asked for it looks for to
 * its end, moving to main what was used more than once. */
static bool evict_small(struct block_cache *c, uint64_t ghosts)
{
    while (c->count[1]) {
        uint32_t v = c->tail[1];
        take(c, v);
        if (c->freq[v] >= option(c, "uses", 2)) {
            c->freq[v] = 0;
            push(c, 2, v);
            continue;
        }
        gone(c, v);
        push(c, 3, v);
        if (c->count[3] > ghosts)
            take(c, c->tail[3]);
        return true;
    }
    return false;
}

static void evict_main(struct block_cache *c)
{
    for (;;) {
        uint32_t v = c->tail[2];
        take(c, v);
        if (!c->freq[v]) {
            gone(c, v);
            return;
        }
        c->freq[v]--;
        push(c, 2, v);
    }
}

static void s3fifo(struct block_cache *c, uint32_t b, uint32_t at)
{
    uint64_t small = at_least_one(part((double)c->capacity, option(c, "small", 0.1)));
    uint64_t ghosts = part((double)(c->capacity - small), option(c, "ghosts", 1));
    (void)at;
    if (c->resident[b]) {
        c->freq[b] += c->freq[b] < 3;
        return;
    }
    if (c->size == c->capacity && ((c->count[1] < small && c->count[2]) ||
                                   !evict_small(c, ghosts)))
        evict_main(c);
    bool ghost = c->which[b] == 3;
    if (ghost)
        take(c, b);
    c->freq[b] = 0;
    come(c, b);
    push(c, ghost ? 2 : 1, b);
}

/* 1 in, 2 main, 3 out */
static void twoq(struct block_cache *c, uint32_t b, uint32_t at)
{
    uint64_t in = at_least_one(part((double)c->capacity, option(c, "in", 0.25)));
    uint64_t out = at_least_one(part((double)c->capacity, option(c, "out", 0.5)));
    (void)at;
    if (c->resident[b]) {
        if (c->which[b] == 2) {
            take(c, b);
            push(c, 2, b);
        }
        return;
    }
    bool ghost = c->which[b] == 3;
    if (ghost)
        take(c, b);
    if (c->size == c->capacity) {
        if (c->count[1] > in || !c->count[2]) {
            uint32_t v = c->tail[1];
            take(c, v);
            gone(c, v);
            push(c, 3, v);
            if (c->count[3] > out)
                take(c, c->tail[3]);
        } else {
            uint32_t v = c->tail[2];
            take(c, v);
            gone(c, v);
        }
    }
    come(c, b);
    push(c, ghost ? 2 : 1, b);
}

/* 1 T1, 2 T2, 3 B1, 4 B2 (Megiddo and Modha 2003) */
static void arc_replace(struct block_cache *c, bool in_b2)
{
    double t1 = (double)c->count[1];
    uint8_t from = c->count[1] && (t1 > c->p || (in_b2 && t1 == c->p)) ? 1 : 2;
    if (!c->count[from])
        from = (uint8_t)(3 - from);
    uint32_t v = c->tail[from];
    take(c, v);
    gone(c, v);
    push(c, (uint8_t)(from + 2), v);
}

static void arc(struct block_cache *c, uint32_t b, uint32_t at)
{
    double size = (double)c->capacity;
    uint8_t list = c->which[b];
    (void)at;
    if (list == 1 || list == 2) {
        take(c, b);
        push(c, 2, b);
        return;
    }
    if (list == 3) {
        c->p = fmin(size, c->p + fmax((double)c->count[4] / (double)c->count[3], 1));
        arc_replace(c, false);
    } else if (list == 4) {
        c->p = fmax(0, c->p - fmax((double)c->count[3] / (double)c->count[4], 1));
        arc_replace(c, true);
    } else if (c->count[1] + c->count[3] == c->capacity) {
        if (c->count[1] < c->capacity) {
            take(c, c->tail[3]);
            arc_replace(c, false);
        } else {
            uint32_t v = c->tail[1];
            take(c, v);
            gone(c, v);
        }
    } else if (c->count[1] + c->count[2] + c->count[3] + c->count[4] >= c->capacity) {
        if (c->count[1] + c->count[2] + c->count[3] + c->count[4] == 2 * c->capacity)
            take(c, c->tail[4]);
        arc_replace(c, false);
    }
    if (list)
        take(c, b);
    come(c, b);
    push(c, list ? 2 : 1, b);
}

/* Farthest next use goes; bypass: also when that is the newcomer. */
static void belady(struct block_cache *c, uint32_t b, bool bypass)
{
    uint64_t next = c->next_use[c->clock - 1];
    if (!c->resident[b]) {
        if (c->size == c->capacity) {
            uint32_t v = heap_pop(c);
            if (bypass && next >= c->last[v]) {
                heap_put(c, v, NEVER - c->last[v], v);
                return;
            }
            gone(c, v);
        }
        come(c, b);
    }
    c->last[b] = next;
    heap_put(c, b, NEVER - next, b);
}

static void opt(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    belady(c, b, false);
}

static void optb(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    belady(c, b, true);
}

static const struct block_policy policies[] = {
    {"lru", lru, NULL, NULL, NULL},           {"fifo", fifo, NULL, NULL, NULL},
    {"lfu", lfu, NULL, NULL, NULL},           {"plfu", plfu, NULL, NULL, plfu_refused},
    {"lenaware", lenaware, NULL, NULL, NULL}, {"sieve", sieve, NULL, NULL, NULL},
    {"s3fifo", s3fifo, NULL, NULL, NULL},     {"twoq", twoq, NULL, NULL, NULL},
    {"arc", arc, NULL, NULL, NULL},
    {"optforced", opt, NULL, NULL, NULL}, {"optb", optb, NULL, NULL, NULL},
};

static const struct block_policy *find(const char *name)
{
    const struct block_policy *p = block_policies_more;
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
        if (!strcmp(policies[i].name, name))
            return &policies[i];
    while (p->name && strcmp(p->name, name) != 0)
        p++;
    if (p->name)
        return p;
    for (p = block_policies_learned; strcmp(p->name, name) != 0;)
        p++;
    return p;
}

/* ---- the run ---- */

static void start(struct block_cache *c, uint32_t n_blocks, uint64_t capacity)
{
    memset(c, 0, sizeof(*c));
    c->capacity = capacity;
    c->n_blocks = n_blocks;
    c->resident = array(n_blocks, sizeof(bool));
    c->which = array(n_blocks, 1);
    c->newer = array(n_blocks, 4);
    c->older = array(n_blocks, 4);
    c->freq = array(n_blocks, 4);
    c->visited = array(n_blocks, sizeof(bool));
    c->last = array(n_blocks, 8);
    c->stamp = array(n_blocks, 8);
    c->since = array(n_blocks, 8);
    c->born = array(n_blocks, 8);
    c->touched = array(n_blocks, 16 * 8);
    c->asked = array(n_blocks, 1);
    c->asks = array(n_blocks, 4);
    c->gap = array(n_blocks, 8);
    c->asked_at = array(n_blocks, 8);
    c->parent = array(n_blocks, 4);
    c->place = array(n_blocks, 4);
    c->hand = NONE;
    memset(c->head, 0xff, sizeof(c->head));
    memset(c->tail, 0xff, sizeof(c->tail));
}

static void stop(struct block_cache *c)
{
    free(c->resident);
    free(c->which);
    free(c->newer);
    free(c->older);
    free(c->freq);
    free(c->visited);
    free(c->last);
    free(c->stamp);
    free(c->next_use);
    free(c->since);
    free(c->born);
    free(c->touched);
    free(c->asked);
    free(c->asks);
    free(c->gap);
    free(c->asked_at);
    free(c->parent);
    free(c->place);
    free(c->heap);
    free(c->sessions);
}

static uint32_t nth(const struct block_log *log, uint32_t r, bool leaf_first, uint32_t i)
{
    return leaf_first ? log->length[r] - 1 - i : i;
}

/* By touch: the touch at which its block is touched next. */
static uint64_t *next_uses(const struct block_log *log, bool leaf_first)
{
    uint64_t n = 0, *due = array(log->n_blocks, 8);
    for (uint32_t r = 0; r < log->n_requests; r++)
        n += log->length[r];
    uint64_t *next = array(n, 8);
    for (uint32_t b = 0; b < log->n_blocks; b++)
        due[b] = NEVER;
    for (uint32_t r = log->n_requests; r-- > 0;)
        for (uint32_t i = log->length[r]; i-- > 0;) {
            uint32_t b = log->path[r][nth(log, r, leaf_first, i)];
            next[--n] = due[b];
            due[b] = n;
        }
    free(due);
    return next;
}

struct block_counts block_policy_run(const struct block_log *log, const char *policy,
                                     bool leaf_first, uint64_t capacity, uint32_t *runs)
{
    struct block_counts counts = {0, 0};
    struct block_cache c;
    const struct block_policy *p = find(policy);
    start(&c, log->n_blocks, capacity);
    c.next_use = next_uses(log, leaf_first);
    c.log = log;
    c.left_by = log->left_by;
    c.rng = kvc_rng_stream((uint64_t)option(&c, "seed", 0), policy);
    c.n_sessions = 64 + log->n_requests + 1; /* those named, then one for each request */
    c.sessions = array(c.n_sessions, sizeof(*c.sessions));
    for (uint32_t r = 0; r < log->n_requests; r++) {
        uint32_t run = 0;
        c.path = log->path[r];
        c.length = log->length[r];
        c.request = r + 1;
        c.tokens = log->tokens ? log->tokens[r] : 0;
        c.session = log->session ? log->session[r] : NONE;
        c.tenant = log->tenant ? log->tenant[r] : NONE;
        c.now_ns = log->now_ns ? log->now_ns[r] : 0;
        for (uint32_t i = 0; i < c.length; i++) {
            c.parent[c.path[i]] = i ? c.path[i - 1] : NONE;
            c.place[c.path[i]] = i;
        }
        if (p->arrive && capacity)
            p->arrive(&c);
        c.limit = block_admission(&c);
        while (run < log->length[r] && c.resident[log->path[r][run]])
            run++;
        runs[r] = run;
        if (log->looked)
            log->looked(log->user, r, run);
        for (uint32_t i = 0; i < log->length[r]; i++)
            counts.set += c.resident[log->path[r][i]];
        if (p->whole && capacity && c.length)
            p->whole(&c), counts.access += run;
        for (uint32_t i = 0; capacity && !p->whole && i < log->length[r]; i++) {
            uint32_t at = nth(log, r, leaf_first, i), b = log->path[r][at];
            counts.access += c.resident[b];
            c.clock++;
            if (c.resident[b] || at < c.limit) {
                c.touches++;
                p->touch(&c, b, at);
            } else if (p->refused) {
                p->refused(&c, b);
            }
        }
    }
    stop(&c);
    return counts;
}
