/* SPDX-License-Identifier: Apache-2.0
 * The forest against a plain list of prefixes: paths, depths, maximal segments, order, outputs. */
#include "base/alloc.h"
#include "base/rng.h"
#include "traces/forest/forest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MOST_ROWS 40
#define MOST_IDS 14
#define MOST_PREFIXES (MOST_ROWS * MOST_IDS)
#define BLOCK 4

struct row {
    uint64_t time, id[MOST_IDS];
    uint32_t n, root, session, input, output;
};

struct prefix { /* one block, told by all ids up to it */
    uint32_t root, n;
    uint64_t id[MOST_IDS];
    uint64_t rows;   /* bit set of those that pass */
    bool output_end; /* a known output ends here */
    uint32_t seg, offset;
    bool placed;
};

struct twin {
    struct row row[MOST_ROWS];
    uint32_t n_rows, order[MOST_ROWS]; /* by time, stable */
    struct prefix prefix[MOST_PREFIXES];
    uint32_t n;
};

static struct prefix *find(struct twin *t, uint32_t root, const uint64_t *id, uint32_t n)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->prefix[i].root == root && t->prefix[i].n == n &&
            memcmp(t->prefix[i].id, id, n * sizeof(*id)) == 0)
            return &t->prefix[i];
    return NULL;
}

static void draw_rows(struct twin *t, uint64_t *rng)
{
    uint32_t alphabet = 1 + (uint32_t)kvc_rng_below(rng, 4);
    t->n_rows = 1 + (uint32_t)kvc_rng_below(rng, MOST_ROWS);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        struct row *r = &t->row[i];
        *r = (struct row){ .time = kvc_rng_below(rng, 8) + 5,
                           .n = (uint32_t)kvc_rng_below(rng, MOST_IDS + 1),
                           .root = (uint32_t)kvc_rng_below(rng, 2),
                           .session = kvc_rng_below(rng, 3) ? (uint32_t)kvc_rng_below(rng, 4)
                                                            : KVC_ID_NONE };
        for (uint32_t k = 0; k < r->n; k++)
            r->id[k] = kvc_rng_below(rng, alphabet) + (kvc_rng_below(rng, 9) ? 0 : k * 1000);
        if (i && kvc_rng_below(rng, 2)) { /* go on from an earlier row */
            const struct row *from = &t->row[kvc_rng_below(rng, i)];
            uint32_t keep = (uint32_t)kvc_rng_below(rng, from->n + 1);
            memcpy(r->id, from->id, keep * sizeof(r->id[0]));
            r->root = from->root;
            r->session = from->session;
        }
        bool tail = r->n && kvc_rng_below(rng, 2);
        r->input = tail ? r->n * BLOCK - 1 - (uint32_t)kvc_rng_below(rng, BLOCK - 1)
                        : r->n * BLOCK + (uint32_t)kvc_rng_below(rng, BLOCK);
        r->input += r->input == 0;
        r->output = (uint32_t)kvc_rng_below(rng, 3 * BLOCK);
    }
    uint32_t n = 0;
    for (uint64_t time = 0; time < 16; time++)
        for (uint32_t i = 0; i < t->n_rows; i++)
            if (t->row[i].time == time)
                t->order[n++] = i;
}

static void list_prefixes(struct twin *t)
{
    t->n = 0;
    for (uint32_t i = 0; i < t->n_rows; i++)
        for (uint32_t k = 1; k <= t->row[i].n; k++) {
            struct prefix *p = find(t, t->row[i].root, t->row[i].id, k);
            if (!p) {
                p = &t->prefix[t->n++];
                *p = (struct prefix){ .root = t->row[i].root, .n = k };
                memcpy(p->id, t->row[i].id, k * sizeof(p->id[0]));
            }
            p->rows |= (uint64_t)1 << i;
        }
}

/* Ids of the full blocks that row a's answer is known to reach, from b, the session's next turn:
 * the count, 0 when not known to go beyond a's own full blocks; *known tells whether b goes on
 * from a at all. */
static uint32_t reach(const struct row *a, const struct row *b, bool *known)
{
    uint32_t full = a->input / BLOCK;
    *known = a->n && b->n && a->output && a->root == b->root && b->n >= full &&
             b->input >= a->input + a->output &&
             memcmp(a->id, b->id, full * sizeof(a->id[0])) == 0;
    uint32_t n = (a->input + a->output - 1) / BLOCK; /* the last token has no KV */
    return *known && n > full ? (n < b->n ? n : b->n) : 0;
}

static const struct row *next_turn(const struct twin *t, uint32_t position)
{
    const struct row *a = &t->row[t->order[position]];
    for (uint32_t k = position + 1; k < t->n_rows && a->session != KVC_ID_NONE; k++)
        if (t->row[t->order[k]].session == a->session)
            return &t->row[t->order[k]];
    return NULL;
}

static void mark_outputs(struct twin *t)
{
    for (uint32_t k = 0; k < t->n_rows; k++) {
        bool known;
        const struct row *a = &t->row[t->order[k]], *b = next_turn(t, k);
        uint32_t n = b ? reach(a, b, &known) : 0;
        if (n)
            find(t, b->root, b->id, n)->output_end = true;
    }
}

static uint32_t expected_segments(struct twin *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct prefix *p = &t->prefix[i];
        const struct prefix *up = p->n > 1 ? find(t, p->root, p->id, p->n - 1) : NULL;
        n += !up || up->rows != p->rows || up->output_end;
    }
    return n;
}

static struct kvc_row to_row(const struct row *r)
{
    return (struct kvc_row){ .time_ns = r->time, .input_tokens = r->input,
                             .output_tokens = r->output, .ids = r->id, .n_ids = r->n,
                             .root_key = r->root, .session = r->session, .tenant = KVC_ID_NONE,
                             .model = KVC_ID_NONE, .think_ns = KVC_TIME_NONE };
}

static struct kvc_forest *add_all(const struct twin *t, uint64_t without)
{
    struct kvc_forest *f = kvc_forest_create();
    assert_non_null(f);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        struct kvc_row r = to_row(&t->row[i]);
        if (!(without >> i & 1))
            assert_int_equal(kvc_forest_add(f, &r, NULL), KVC_OK);
    }
    return f;
}

/* Every block of the row lies where every other row with the same prefix has it. */
static void check_path(struct twin *t, const struct kvc_trace *trace, const struct row *r,
                       uint32_t seg)
{
    uint32_t path[MOST_IDS], at = 0;
    if (!r->n) {
        assert_int_equal(seg, KVC_SEG_NONE);
        return;
    }
    assert_true(seg < trace->n_segments);
    uint32_t n = kvc_trace_path(trace, seg, path);
    assert_int_equal(n, kvc_trace_path_length(trace, seg));
    for (uint32_t s = 0; s < n; s++) {
        assert_int_equal(trace->seg_depth[path[s]], at);
        assert_true(s == 0 || path[s] > path[s - 1]);
        for (uint32_t o = 0; o < trace->seg_len[path[s]]; o++) {
            assert_true(at < r->n);
            struct prefix *p = find(t, r->root, r->id, ++at);
            if (p->placed)
                assert_true(p->seg == path[s] && p->offset == o);
            p->placed = true;
            p->seg = path[s];
            p->offset = o;
        }
    }
    assert_int_equal(at, r->n);
}

static void check_outputs(struct twin *t, const struct kvc_trace *trace)
{
    for (uint32_t k = 0; k < t->n_rows; k++) {
        bool known = false;
        const struct row *a = &t->row[t->order[k]], *b = next_turn(t, k);
        uint32_t n = b ? reach(a, b, &known) : 0;
        uint32_t seg = trace->output_seg ? trace->output_seg[k] : KVC_SEG_NONE;
        if (!known) {
            assert_int_equal(seg, KVC_SEG_NONE);
        } else if (!n) {
            assert_int_equal(seg, trace->prompt_seg[k]);
        } else {
            const struct prefix *p = find(t, b->root, b->id, n);
            assert_int_equal(seg, p->seg);
            assert_int_equal(p->offset + 1, trace->seg_len[seg]);
        }
    }
}

static void check_trace(struct twin *t, const struct kvc_trace *trace)
{
    assert_int_equal(trace->n_requests, t->n_rows);
    for (uint32_t k = 0; k < t->n_rows; k++) {
        const struct row *r = &t->row[t->order[k]];
        assert_int_equal(trace->arrival_ns[k], r->time - t->row[t->order[0]].time);
        assert_int_equal(trace->input_tokens[k], r->input);
        assert_int_equal(trace->output_tokens[k], r->output);
        check_path(t, trace, r, trace->prompt_seg[k]);
    }
    assert_int_equal(trace->n_segments, expected_segments(t));
    check_outputs(t, trace);
}

static void agrees_with_prefix_list(void **state)
{
    (void)state;
    struct twin *t = kvc_malloc(1, sizeof(*t));
    assert_non_null(t);
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        uint64_t rng = seed;
        struct kvc_trace *trace = NULL;
        draw_rows(t, &rng);
        list_prefixes(t);
        mark_outputs(t);
        struct kvc_forest *f = add_all(t, 0);
        assert_int_equal(kvc_forest_rows(f), t->n_rows);
        assert_int_equal(kvc_forest_finish(f, BLOCK, true, &trace, NULL), KVC_OK);
        check_trace(t, trace);
        kvc_trace_destroy(trace);
    }
    kvc_free(t);
}

static void assert_same(const struct kvc_trace *a, const struct kvc_trace *b)
{
    assert_int_equal(a->n_requests, b->n_requests);
    assert_int_equal(a->n_segments, b->n_segments);
    assert_memory_equal(a->arrival_ns, b->arrival_ns, a->n_requests * 8);
    assert_memory_equal(a->prompt_seg, b->prompt_seg, a->n_requests * 4);
    assert_memory_equal(a->input_tokens, b->input_tokens, a->n_requests * 4);
    assert_memory_equal(a->seg_parent, b->seg_parent, a->n_segments * 4);
    assert_memory_equal(a->seg_len, b->seg_len, a->n_segments * 4);
    assert_int_equal(!a->session, !b->session);
    if (a->session)
        assert_memory_equal(a->session, b->session, a->n_requests * 4);
}

static void removed_rows_leave_no_trace(void **state)
{
    (void)state;
    struct twin *t = kvc_malloc(1, sizeof(*t));
    assert_non_null(t);
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t rng = seed, rows[MOST_ROWS];
        size_t n = 0;
        struct kvc_trace *a = NULL, *b = NULL;
        draw_rows(t, &rng);
        uint64_t without = kvc_rng_next(&rng) & kvc_rng_next(&rng);
        for (uint32_t i = 0; i < t->n_rows; i++)
            if (without >> i & 1)
                rows[n++] = i;
        if (n == t->n_rows)
            continue;
        struct kvc_forest *f = add_all(t, 0);
        assert_int_equal(kvc_forest_remove(&f, rows, n, NULL), KVC_OK);
        assert_int_equal(kvc_forest_rows(f), t->n_rows - n);
        assert_int_equal(kvc_forest_finish(f, BLOCK, true, &a, NULL), KVC_OK);
        assert_int_equal(kvc_forest_finish(add_all(t, without), BLOCK, true, &b, NULL), KVC_OK);
        assert_same(a, b);
        kvc_trace_destroy(a);
        kvc_trace_destroy(b);
    }
    kvc_free(t);
}

static void given_outputs_end_segments(void **state)
{
    (void)state;
    const uint64_t prompt[] = { 1, 2, 9 }, answer[] = { 1, 2, 3, 4 };
    struct kvc_row r = { .input_tokens = 9, .output_tokens = 8, .ids = prompt, .n_ids = 3,
                         .output_ids = answer, .n_output_ids = 4, .session = KVC_ID_NONE,
                         .tenant = KVC_ID_NONE, .model = KVC_ID_NONE, .think_ns = KVC_TIME_NONE };
    struct kvc_trace *t = NULL;
    struct kvc_forest *f = kvc_forest_create();
    assert_int_equal(kvc_forest_add(f, &r, NULL), KVC_OK);
    assert_int_equal(kvc_forest_finish(f, BLOCK, true, &t, NULL), KVC_OK);
    assert_int_equal(t->n_segments, 3); /* 1 2 | 9, 3 4 */
    assert_int_equal(kvc_trace_blocks(t, 0), 3);
    assert_int_equal(kvc_trace_full_blocks(t, 0), 2);
    assert_int_equal(t->seg_depth[t->output_seg[0]] + t->seg_len[t->output_seg[0]], 4);
    assert_int_equal(t->seg_parent[t->output_seg[0]], t->seg_parent[t->prompt_seg[0]]);
    kvc_trace_destroy(t);
}

static void sorts_wide_times_stably(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_trace *t = NULL;
    uint64_t rng = 7, first = UINT64_MAX;
    uint64_t *time = kvc_malloc(N, sizeof(*time));
    for (uint32_t i = 0; i < N; i++) {
        time[i] = kvc_rng_next(&rng) >> kvc_rng_below(&rng, 64);
        first = time[i] < first ? time[i] : first;
        struct kvc_row r = { .time_ns = time[i], .input_tokens = i + 1, .session = KVC_ID_NONE,
                             .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                             .think_ns = i % 5 ? KVC_TIME_NONE : i, .status = i == 2000 };
        assert_int_equal(kvc_forest_add(f, &r, NULL), KVC_OK);
    }
    assert_int_equal(kvc_forest_finish(f, 0, true, &t, NULL), KVC_OK);
    for (uint32_t k = 0; k < N; k++) {
        uint32_t i = t->input_tokens[k] - 1;
        assert_int_equal(t->arrival_ns[k], time[i] - first);
        assert_true(k == 0 || t->arrival_ns[k] > t->arrival_ns[k - 1] ||
                    (t->arrival_ns[k] == t->arrival_ns[k - 1] && i + 1 > t->input_tokens[k - 1]));
        assert_int_equal(t->think_ns[k], i % 5 ? KVC_TIME_NONE : i);
        assert_int_equal(t->row_status[k], i == 2000);
    }
    kvc_free(time);
    kvc_trace_destroy(t);
}

/* So many that the hash table grows in pages: every one is found again, in its own key space. */
static void many_chains_are_found_again(void **state)
{
    enum { CHAINS = 230000, LENGTH = 2 };
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_forest_counts c;
    (void)state;
    assert_non_null(f);
    for (uint64_t pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < CHAINS; i++) {
            uint64_t ids[LENGTH] = { kvc_mix64(i / 2), kvc_mix64(CHAINS + i) };
            struct kvc_row row = { .time_ns = i, .input_tokens = 2, .ids = ids, .n_ids = LENGTH,
                                   .root_key = i % 3, .session = KVC_ID_NONE,
                                   .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                                   .think_ns = KVC_TIME_NONE };
            assert_int_equal(kvc_forest_add(f, &row, NULL), KVC_OK);
        }
        const uint64_t *ignored;
        assert_int_equal(kvc_forest_times(f, &ignored, NULL), KVC_OK); /* settles what is pending */
        kvc_forest_count(f, &c);
        assert_int_equal(c.nodes, CHAINS * LENGTH); /* i and i + 1 never share a key space */
        assert_int_equal(c.chains, CHAINS);
        assert_true(c.hash_bytes * 3 <= (uint64_t)CHAINS * 8 * 8); /* 3/4 full, then doubled */
    }
    kvc_forest_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_prefix_list),
        cmocka_unit_test(removed_rows_leave_no_trace),
        cmocka_unit_test(given_outputs_end_segments),
        cmocka_unit_test(sorts_wide_times_stably),
        cmocka_unit_test(many_chains_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
