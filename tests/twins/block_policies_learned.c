/* SPDX-License-Identifier: Apache-2.0
 * Policies that learn, or know of levels and sessions. */
#include "tests/twins/block_internal.h"

#include "base/rng.h"

#include <math.h>

/* ---- random: freq is a table of the resident blocks ---- */

static void random_one(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    if (c->resident[b])
        return;
    uint64_t place = c->size;
    if (c->size == c->capacity) {
        place = kvc_rng_below(&c->rng, c->size);
        gone(c, c->freq[place]);
    }
    c->freq[place] = b;
    come(c, b);
}

/* ---- lirs: list 1 is the stack, visited says LIR, since when a HIR block joined the queue ---- */

static void prune(struct block_cache *c)
{
    while (c->tail[1] != NONE && !c->visited[c->tail[1]])
        take(c, c->tail[1]);
}

static void become_lir(struct block_cache *c, uint32_t b)
{
    c->visited[b] = true;
    c->since[b] = 0;
    uint32_t v = c->tail[1]; /* the oldest LIR block */
    c->visited[v] = false;
    take(c, v);
    c->since[v] = ++c->nodes;
}

static void evict_hir(struct block_cache *c)
{
    uint32_t v = NONE;
    for (uint32_t i = 0; i < c->n_blocks; i++)
        if (c->resident[i] && !c->visited[i] && (v == NONE || c->since[i] < c->since[v]))
            v = i;
    gone(c, v);
}

static void lirs(struct block_cache *c, uint32_t b, uint32_t at)
{
    uint64_t hir = at_least_one(part((double)c->capacity, option(c, "hir", 0.01)));
    bool stacked = c->which[b] == 1, lir = c->resident[b] && c->visited[b];
    (void)at;
    if (!c->resident[b]) {
        if (c->size == c->capacity)
            evict_hir(c);
        else if (c->size < c->capacity - hir)
            lir = c->visited[b] = true;
        come(c, b);
    }
    if (stacked)
        take(c, b);
    push(c, 1, b);
    if (stacked && !lir)
        become_lir(c, b);
    else if (!lir)
        c->since[b] = ++c->nodes;
    prune(c);
}

/* ---- lecar: list 1 residents, 2 evicted by LRU, 3 by LFU ---- */

static uint32_t least_touched(const struct block_cache *c)
{
    uint32_t v = NONE;
    for (uint32_t i = 0; i < c->n_blocks; i++)
        if (c->resident[i] && (v == NONE || c->freq[i] < c->freq[v] ||
                               (c->freq[i] == c->freq[v] && c->last[i] < c->last[v])))
            v = i;
    return v;
}

static void regret(struct block_cache *c, uint32_t b)
{
    double d = pow(option(c, "discount", 0.005), 1.0 / (double)c->capacity);
    double x = exp(-option(c, "learning", 0.45) * pow(d, (double)(c->touches - c->since[b])));
    double lru = c->p * (c->which[b] == 2 ? x : 1), lfu = (1 - c->p) * (c->which[b] == 3 ? x : 1);
    c->p = fmin(0.99, fmax(0.01, lru / (lru + lfu)));
}

static void lecar(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    if (c->touches == 1)
        c->p = 0.5;
    if (c->resident[b]) {
        take(c, b);
    } else {
        uint8_t list = c->which[b];
        if (list)
            regret(c, b);
        if (list)
            take(c, b);
        else
            c->freq[b] = 0;
        if (c->size == c->capacity) {
            uint32_t lru = c->tail[1], lfu = least_touched(c);
            uint8_t by = kvc_rng_unit(&c->rng) < c->p ? 2 : 3;
            uint32_t v = by == 2 ? lru : lfu;
            take(c, v);
            gone(c, v);
            c->since[v] = c->touches;
            if (lru != lfu && c->count[by] == c->capacity)
                take(c, c->tail[by]);
            if (lru != lfu)
                push(c, by, v);
        }
        come(c, b);
    }
    c->freq[b]++;
    c->last[b] = c->clock;
    push(c, 1, b);
}

/* ---- priority: freq is the level, born the order of release, since its time ---- */

static void priority_arrive(struct block_cache *c)
{
    uint64_t duration = (uint64_t)option(c, "duration", 0);
    while (duration) {
        uint32_t due = NONE;
        for (uint32_t b = 0; b < c->n_blocks; b++)
            if (c->resident[b] && c->freq[b] != 35 && c->since[b] + duration <= c->now_ns &&
                (due == NONE || c->born[b] < c->born[due]))
                due = b;
        if (due == NONE)
            return;
        c->freq[due] = 35;
        c->born[due] = ++c->nodes;
    }
}

/* Without the blocks of the request's path. */
static uint32_t lowest_level(const struct block_cache *c)
{
    uint32_t v = NONE;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->resident[b] && !on_path(c, b) &&
            (v == NONE || c->freq[b] < c->freq[v] ||
             (c->freq[b] == c->freq[v] && c->born[b] < c->born[v])))
            v = b;
    return v;
}

static void gone_with_all_below(struct block_cache *c, uint32_t v)
{
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        uint32_t up = b;
        while (up != NONE && up != v)
            up = c->resident[b] ? c->parent[up] : NONE;
        if (up == v)
            gone(c, b);
    }
}

static void priority(struct block_cache *c)
{
    uint32_t i = leading(c), v;
    while (i < c->limit) {
        if (c->size == c->capacity) {
            if ((v = lowest_level(c)) == NONE)
                break;
            gone_with_all_below(c, v);
        }
        come(c, c->path[i++]);
    }
    while (i-- > 0) {
        uint32_t b = c->path[i];
        bool ours = c->tenant == option(c, "tenant", -1);
        c->freq[b] = (uint32_t)(i < option(c, "head", 1024) ? option(c, "headlevel", 80)
                                : ours ? option(c, "tenantlevel", 60) : option(c, "level", 35));
        c->born[b] = ++c->nodes;
        c->since[b] = c->now_ns;
    }
}

/* ---- thinktime: since is when a block was left by its last session, 0: it has one ---- */

static bool has(const struct block_cache *c, uint32_t session, uint32_t b)
{
    const struct block_session *s = &c->sessions[session];
    const struct block_log *log = c->log;
    return s->live && c->place[b] < log->length[s->asked - 1] &&
           log->path[s->asked - 1][c->place[b]] == b;
}

static bool held(const struct block_cache *c, uint32_t b, uint32_t but)
{
    for (uint32_t s = 0; s < c->n_sessions; s++)
        if (s != but && has(c, s, b))
            return true;
    return on_path(c, b);
}

static double away(const struct block_cache *c, uint32_t s)
{
    return fabs((double)c->sessions[s].back - (double)c->now_ns);
}

static uint32_t farthest(const struct block_cache *c)
{
    uint32_t f = NONE;
    for (uint32_t s = 0; s < c->n_sessions; s++)
        if (c->sessions[s].live &&
            (f == NONE || away(c, s) > away(c, f) ||
             (away(c, s) == away(c, f) && c->sessions[s].asked < c->sessions[f].asked)))
            f = s;
    return f;
}

static uint32_t left_or_farthest(struct block_cache *c)
{
    uint32_t v = NONE, f;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->resident[b] && c->since[b] && (v == NONE || c->since[b] < c->since[v]))
            v = b;
    while (v == NONE && (f = farthest(c)) != NONE) {
        uint32_t asked = c->sessions[f].asked - 1;
        for (uint32_t i = c->log->length[asked]; v == NONE && i-- > 0;) {
            uint32_t b = c->log->path[asked][i];
            if (c->resident[b] && !held(c, b, f))
                v = b;
        }
        c->sessions[f].live = v != NONE;
    }
    return v;
}

static void thinktime(struct block_cache *c)
{
    uint32_t run = leading(c), id = c->session, v;
    struct block_session *s = &c->sessions[id == NONE ? 64 + c->request : id];
    bool live = s->live;
    s->live = false;
    for (uint32_t i = 0; i < c->length; i++)
        c->since[c->path[i]] = 0;
    for (uint32_t i = live ? c->log->length[s->asked - 1] : 0; i-- > 0;) {
        uint32_t b = c->log->path[s->asked - 1][i];
        if (c->resident[b] && !held(c, b, NONE))
            c->since[b] = ++c->nodes;
    }
    for (uint32_t i = run; i < c->limit; i++) {
        if (c->size == c->capacity) {
            if ((v = left_or_farthest(c)) == NONE)
                break;
            gone(c, v);
        }
        come(c, c->path[i]);
    }
    if (s->asked && id != NONE) {
        s->sum += c->now_ns - s->last;
        s->pauses++;
        c->sum += c->now_ns - s->last;
        c->pauses++;
    }
    s->back = c->now_ns + (s->pauses ? s->sum / s->pauses : c->pauses ? c->sum / c->pauses
                                     : (uint64_t)option(c, "pause", 60e9));
    s->last = c->now_ns;
    s->asked = c->request;
    s->live = true;
}

const struct block_policy block_policies_learned[] = {
    {"random", random_one, NULL, NULL, NULL},
    {"lirs", lirs, NULL, NULL, NULL},
    {"lecar", lecar, NULL, NULL, NULL},
    {"priority", NULL, priority_arrive, priority, NULL},
    {"thinktime", NULL, NULL, thinktime, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
