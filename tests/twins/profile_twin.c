/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/twins/profile_twin.h"

#include <math.h>
#include <string.h>

#define BLOCKS (TWIN_ROWS * TWIN_DEPTH)
#define S 1000000000ull

struct block { /* first touched by this row at this depth */
    uint32_t row, depth, root;
    uint32_t requests, sessions, tenants;
    uint64_t seen; /* full ones */
};

struct twin {
    const struct tiny_row *rows;
    const uint32_t *tenant;
    uint32_t n, b, n_blocks;
    struct block block[BLOCKS];
    uint32_t id[TWIN_ROWS][TWIN_DEPTH]; /* of the row's block at a depth */
};

static bool has(const struct twin *w, uint32_t row, uint32_t block)
{
    uint32_t depth = w->block[block].depth;
    return depth < w->rows[row].n_ids && w->id[row][depth] == block;
}

static uint32_t full(const struct twin *w, uint32_t row)
{
    uint32_t blocks = w->rows[row].input_tokens / w->b;
    return blocks < w->rows[row].n_ids ? blocks : w->rows[row].n_ids;
}

static void number_blocks(struct twin *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        for (uint32_t d = 0; d < w->rows[i].n_ids; d++) {
            uint32_t k = 0;
            for (; k < w->n_blocks; k++)
                if (w->block[k].depth == d && !memcmp(w->rows[w->block[k].row].ids,
                                                      w->rows[i].ids, (d + 1) * sizeof(uint64_t)))
                    break;
            if (k == w->n_blocks)
                w->block[w->n_blocks++] = (struct block){.row = i, .depth = d};
            w->id[i][d] = k;
            w->block[k].root = w->id[i][0];
        }
    }
}

static uint64_t session_of(const struct twin *w, uint32_t row)
{
    uint32_t s = w->rows[row].session;
    return s == KVC_ID_NONE ? 1000ull + row : s;
}

static uint32_t tenant_of(const struct twin *w, uint32_t row)
{
    return w->tenant ? w->tenant[row] : 0;
}

static void count_passes(struct twin *w)
{
    for (uint32_t k = 0; k < w->n_blocks; k++) {
        struct block *o = &w->block[k];
        for (uint32_t i = 0; i < w->n; i++) {
            bool new_session = true, new_tenant = true;
            if (!has(w, i, k))
                continue;
            for (uint32_t j = 0; j < i; j++) {
                new_session &= !(has(w, j, k) && session_of(w, j) == session_of(w, i));
                new_tenant &= !(has(w, j, k) && tenant_of(w, j) == tenant_of(w, i));
            }
            o->requests++;
            o->sessions += new_session;
            o->tenants += new_tenant;
        }
    }
}

static bool any_session(const struct twin *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->rows[i].session != KVC_ID_NONE)
            return true;
    return false;
}

static enum kvc_content kind_of(const struct twin *w, uint32_t k)
{
    const struct block *o = &w->block[k], *root = &w->block[o->root];
    bool by = any_session(w);
    double part = by ? (double)o->sessions / root->sessions : (double)o->requests / root->requests;
    if (part >= 0.1 && (by ? o->sessions >= 3 : o->requests >= 10))
        return KVC_CONTENT_SYSTEM;
    return (by ? o->sessions : o->requests) > 1 ? KVC_CONTENT_DOCUMENT : KVC_CONTENT_HISTORY;
}

static uint32_t depth_class(uint32_t depth)
{
    uint32_t i = 0;
    while (depth >> i)
        i++;
    return i;
}

/* The latest row before i that has block k; of tenant only, unless KVC_ID_NONE. */
static uint32_t before(const struct twin *w, uint32_t i, uint32_t k, uint32_t tenant)
{
    while (i-- > 0)
        if (has(w, i, k) && (tenant == KVC_ID_NONE || tenant_of(w, i) == tenant))
            return i;
    return KVC_ID_NONE;
}

static void content(struct twin *w, struct kvc_profile *p)
{
    p->by_session = any_session(w);
    for (uint32_t i = 0; i < w->n; i++) {
        const struct tiny_row *row = &w->rows[i];
        uint64_t rest = row->input_tokens;
        for (uint32_t d = 0; d < row->n_ids; d++) {
            uint32_t k = w->id[i][d], was = before(w, i, k, KVC_ID_NONE), c = depth_class(d);
            bool seen = was != KVC_ID_NONE, whole = d < full(w, i);
            enum kvc_content kind = seen ? kind_of(w, k) : KVC_CONTENT_NEW;
            p->depth_touches[c]++;
            p->depth_reused[c] += seen;
            p->reused_touches += seen;
            for (int a = 0; seen && a < KVC_PROFILE_AGES; a++) {
                if (row->time_ns - w->rows[was].time_ns > p->age_limit_ns[a])
                    continue;
                p->age_touches[a]++;
                p->age_tokens[a] += whole ? w->b : 0;
            }
            if (!whole)
                continue;
            p->content_tokens[kind] += w->b;
            p->depth_tokens[c][kind] += w->b;
            p->seen_tokens += seen ? w->b : 0;
            w->block[k].seen += seen;
            rest -= w->b;
        }
        p->content_tokens[row->n_ids ? KVC_CONTENT_PARTIAL : KVC_CONTENT_UNKNOWN] += rest;
    }
    for (uint32_t k = 0; k < w->n_blocks; k++) {
        p->touched_blocks++;
        p->one_hit_blocks += w->block[k].requests == 1;
        p->system_roots += w->block[k].depth == 0 && kind_of(w, k) == KVC_CONTENT_SYSTEM;
    }
}

/* What a sliding TTL holds, by looking every second, and after every request. */
static void held(struct twin *w, struct kvc_profile *p, uint32_t a)
{
    uint64_t limit = p->age_limit_ns[a], end = w->rows[w->n - 1].time_ns, sum = 0, peak = 0;
    for (uint64_t now = 0; now < end; now += S) {
        for (uint32_t k = 0; k < w->n_blocks; k++) {
            bool live = false;
            for (uint32_t i = 0; i < w->n && w->rows[i].time_ns <= now; i++)
                live |= has(w, i, k) && now - w->rows[i].time_ns < limit;
            sum += live;
        }
    }
    for (uint32_t r = 0; r < w->n; r++) {
        uint64_t live_now = 0, now = w->rows[r].time_ns;
        for (uint32_t k = 0; k < w->n_blocks; k++) {
            bool live = false;
            for (uint32_t i = 0; i <= r; i++)
                live |= has(w, i, k) && now - w->rows[i].time_ns <= limit;
            live_now += live;
        }
        peak = live_now > peak ? live_now : peak;
    }
    p->held_mean_blocks[a] = end ? (double)sum * 1e9 / (double)end : (double)NAN;
    p->held_peak_blocks[a] = peak;
}

static void working_set(struct twin *w, struct kvc_profile *p, uint32_t a)
{
    uint64_t window = p->working_set[a].window_ns, sum = 0, peak = 0;
    uint64_t n = w->rows[w->n - 1].time_ns / window + 1;
    for (uint64_t at = 0; at < n; at++) {
        uint64_t in = 0;
        for (uint32_t k = 0; k < w->n_blocks; k++) {
            bool touched = false;
            for (uint32_t i = 0; i < w->n; i++)
                touched |= has(w, i, k) && w->rows[i].time_ns / window == at;
            in += touched;
        }
        sum += in;
        peak = in > peak ? in : peak;
    }
    p->working_set[a].mean_blocks = (double)sum / (double)n;
    p->working_set[a].peak_blocks = peak;
}

static void hottest(struct twin *w, struct kvc_profile *p)
{
    bool taken[BLOCKS] = {false};
    while (p->n_hot < KVC_PROFILE_HOT) {
        uint32_t best = KVC_ID_NONE;
        for (uint32_t k = 0; k < w->n_blocks; k++) {
            const struct block *o = &w->block[k], *top = &w->block[best % BLOCKS];
            if (!taken[k] && o->seen &&
                (best == KVC_ID_NONE || o->seen > top->seen ||
                 (o->seen == top->seen && o->depth < top->depth)))
                best = k;
        }
        if (best == KVC_ID_NONE)
            return;
        const struct block *o = &w->block[best];
        taken[best] = true;
        p->hot[p->n_hot++] = (struct kvc_hot_prefix){
            .from_block = o->depth, .blocks = 1, .requests = o->requests,
            .sessions = any_session(w) ? o->sessions : 0, .tenants = o->tenants,
            .seen_tokens = o->seen * w->b, .kind = kind_of(w, best)};
    }
}

/* ---- tenants ---- */

static uint32_t group_of(const struct kvc_profile *p, uint32_t tenant)
{
    for (uint32_t i = 0; i < p->n_top; i++)
        if (p->top[i] == tenant)
            return i;
    return KVC_PROFILE_TENANTS;
}

static bool group_has(struct twin *w, const struct kvc_profile *p, uint32_t group, uint32_t k)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (has(w, i, k) && group_of(p, tenant_of(w, i)) == group)
            return true;
    return false;
}

static void tenants(struct twin *w, struct kvc_profile *p)
{
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t me = w->tenant[i];
        p->tenants[me].requests++;
        p->tenants[me].input_tokens += w->rows[i].input_tokens;
        for (uint32_t d = 0; d < full(w, i); d++) {
            bool seen = before(w, i, w->id[i][d], KVC_ID_NONE) != KVC_ID_NONE;
            bool own = before(w, i, w->id[i][d], me) != KVC_ID_NONE;
            p->tenants[me].seen_tokens += seen ? w->b : 0;
            p->tenants[me].own_seen_tokens += own ? w->b : 0;
        }
    }
    for (bool found = true; found && p->n_top < KVC_PROFILE_TENANTS;) {
        uint32_t best = KVC_ID_NONE;
        for (uint32_t i = 0; i < TWIN_TENANTS; i++)
            if (p->tenants[i].requests && group_of(p, i) == KVC_PROFILE_TENANTS &&
                (best == KVC_ID_NONE || p->tenants[i].input_tokens > p->tenants[best].input_tokens))
                best = i;
        found = best != KVC_ID_NONE;
        if (found)
            p->top[p->n_top++] = best;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t g = group_of(p, w->tenant[i]);
        for (uint32_t d = 0; g < KVC_PROFILE_TENANTS && d < full(w, i); d++) {
            uint32_t was = before(w, i, w->id[i][d], KVC_ID_NONE);
            if (was != KVC_ID_NONE && before(w, i, w->id[i][d], w->tenant[i]) == KVC_ID_NONE)
                p->from_tokens[g][group_of(p, w->tenant[was])] += w->b;
        }
    }
    for (uint32_t a = 0; a <= KVC_PROFILE_TENANTS; a++)
        for (uint32_t b = 0; b <= KVC_PROFILE_TENANTS; b++)
            for (uint32_t k = 0; k < w->n_blocks; k++)
                p->both_blocks[a][b] += group_has(w, p, a, k) && group_has(w, p, b, k);
}

void profile_twin(const struct tiny_row *rows, uint32_t n, uint32_t block_tokens,
                  const uint32_t *tenant, const struct kvc_profile *limits,
                  struct kvc_profile *out)
{
    static struct twin w;
    memset(&w, 0, sizeof(w));
    w.rows = rows;
    w.n = n;
    w.b = block_tokens;
    w.tenant = tenant;
    memcpy(out->age_limit_ns, limits->age_limit_ns, sizeof(out->age_limit_ns));
    number_blocks(&w);
    count_passes(&w);
    content(&w, out);
    for (uint32_t a = 0; a < KVC_PROFILE_AGES; a++)
        held(&w, out, a);
    for (uint32_t a = 0; a < KVC_PROFILE_WINDOWS; a++) {
        out->working_set[a].window_ns = limits->working_set[a].window_ns;
        working_set(&w, out, a);
    }
    hottest(&w, out);
    if (tenant)
        tenants(&w, out);
}
