/* SPDX-License-Identifier: Apache-2.0
 * Forgetting against a list of prefixes with their latest touch; inferring sessions against all
 * pairs; arrays in files against arrays in memory. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/trace_files.h"
#include "traces/forest/forest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_ROWS 120
#define MOST_IDS 12
#define MOST_BLOCKS (MOST_ROWS * MOST_IDS)
#define BLOCK 4
#define NONE UINT32_MAX

struct row {
    uint64_t time, id[MOST_IDS];
    uint32_t n, root, input, output;
};

struct block { /* one life of a block */
    uint64_t id, touched;
    uint32_t parent, root, depth;
    bool came_back;      /* it was made where something had been forgotten */
    bool forgotten;
    uint32_t seg, offset; /* in the trace, once seen */
    bool placed;
};

struct twin {
    struct row row[MOST_ROWS];
    uint32_t n_rows;
    struct block block[MOST_BLOCKS];
    uint32_t n, end[MOST_ROWS]; /* block where each row's prompt ends */
    uint32_t path[MOST_ROWS][MOST_IDS];
    uint64_t unjudged_rows, unjudged_tokens, truly_known_tokens;
};

static void draw(struct twin *t, uint64_t *rng)
{
    uint64_t now = 1000, step = 1 + kvc_rng_below(rng, 40);
    uint32_t alphabet = 1 + (uint32_t)kvc_rng_below(rng, 4);
    memset(t, 0, sizeof(*t));
    t->n_rows = 1 + (uint32_t)kvc_rng_below(rng, MOST_ROWS);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        struct row *r = &t->row[i];
        now += kvc_rng_below(rng, step);
        r->time = kvc_rng_below(rng, 7) ? now : now - kvc_rng_below(rng, 60);
        r->n = (uint32_t)kvc_rng_below(rng, MOST_IDS + 1);
        r->root = (uint32_t)kvc_rng_below(rng, 2);
        for (uint32_t k = 0; k < r->n; k++)
            r->id[k] = kvc_rng_below(rng, alphabet) + (kvc_rng_below(rng, 5) ? 0 : k * 100);
        if (i && kvc_rng_below(rng, 3)) { /* go on from an earlier row */
            const struct row *from = &t->row[kvc_rng_below(rng, i)];
            uint32_t keep = (uint32_t)kvc_rng_below(rng, from->n + 1);
            memcpy(r->id, from->id, keep * sizeof(r->id[0]));
            r->n = r->n < keep ? keep : r->n;
            r->root = from->root;
        }
        bool tail = r->n && kvc_rng_below(rng, 2);
        r->input = tail ? r->n * BLOCK - 1 - (uint32_t)kvc_rng_below(rng, BLOCK - 1)
                        : r->n * BLOCK + (uint32_t)kvc_rng_below(rng, BLOCK);
        r->input += r->input == 0;
        r->output = (uint32_t)kvc_rng_below(rng, 3 * BLOCK);
    }
}

/* ---- forgetting ---- */

static uint32_t live_child(struct twin *t, uint32_t parent, const struct row *r, uint32_t depth,
                           uint64_t clock, uint64_t forget, bool *had)
{
    for (uint32_t b = 0; b < t->n; b++) {
        struct block *k = &t->block[b];
        if (k->parent != parent || k->id != r->id[depth] || k->depth != depth ||
            k->root != r->root)
            continue;
        k->forgotten = k->forgotten || clock - k->touched > forget;
        if (!k->forgotten)
            return b;
        *had = true;
    }
    return NONE;
}

/* Whether this prefix occurred in an earlier row, forgotten or not. */
static bool ever_known(const struct twin *t, uint32_t row, uint32_t n)
{
    const struct row *r = &t->row[row];
    for (uint32_t i = 0; i < row; i++)
        if (t->row[i].root == r->root && t->row[i].n >= n &&
            memcmp(t->row[i].id, r->id, n * sizeof(r->id[0])) == 0)
            return true;
    return false;
}

static void play(struct twin *t, uint64_t forget)
{
    uint64_t clock = 0;
    for (uint32_t i = 0; i < t->n_rows; i++) {
        const struct row *r = &t->row[i];
        uint32_t at = NONE;
        bool fresh = false, open = false;
        clock = r->time > clock ? r->time : clock;
        for (uint32_t k = 0; k < r->n; k++) {
            bool had = false;
            uint32_t child = fresh ? NONE : live_child(t, at, r, k, clock, forget, &had);
            if (child == NONE) {
                if (!fresh) {
                    open = had || (at != NONE && t->block[at].came_back);
                    t->unjudged_rows += open;
                    t->unjudged_tokens += open ? r->input - k * BLOCK : 0;
                }
                fresh = true;
                child = t->n++;
                t->block[child] = (struct block){ .id = r->id[k], .parent = at, .root = r->root,
                                                  .depth = k, .came_back = open };
                uint32_t end = (k + 1) * BLOCK < r->input ? (k + 1) * BLOCK : r->input;
                t->truly_known_tokens += ever_known(t, i, k + 1) ? end - k * BLOCK : 0;
            }
            t->block[child].touched = clock;
            t->path[i][k] = at = child;
        }
        t->end[i] = at;
    }
}

static struct kvc_row to_row(const struct row *r)
{
    return (struct kvc_row){ .time_ns = r->time, .input_tokens = r->input,
                             .output_tokens = r->output, .ids = r->id, .n_ids = r->n,
                             .root_key = r->root, .session = KVC_ID_NONE, .tenant = KVC_ID_NONE,
                             .model = KVC_ID_NONE, .think_ns = KVC_TIME_NONE };
}

static struct kvc_trace *build(const struct twin *t, const struct kvc_forest_options *o,
                               struct kvc_forest_counts *counts)
{
    struct kvc_trace *trace = NULL;
    struct kvc_forest *f = kvc_forest_create_with(o);
    assert_non_null(f);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        struct kvc_row r = to_row(&t->row[i]);
        assert_int_equal(kvc_forest_add(f, &r, NULL), KVC_OK);
    }
    assert_int_equal(kvc_forest_finish_with(f, BLOCK, true, NULL, NULL, counts, &trace, NULL),
                     KVC_OK);
    return trace;
}

static void time_order(const struct twin *t, uint32_t *order)
{
    for (uint32_t i = 0; i < t->n_rows; i++) {
        uint32_t k = i;
        for (; k && t->row[order[k - 1]].time > t->row[i].time; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

/* Each life of a block is one place of the trace, and no place is two blocks. */
static void check_paths(struct twin *t, const struct kvc_trace *trace)
{
    uint32_t order[MOST_ROWS], path[MOST_IDS];
    uint64_t blocks = 0;
    time_order(t, order);
    for (uint32_t k = 0; k < t->n_rows; k++) {
        uint32_t i = order[k], at = 0;
        uint32_t n = t->row[i].n ? kvc_trace_path(trace, trace->prompt_seg[k], path) : 0;
        assert_int_equal(trace->input_tokens[k], t->row[i].input);
        for (uint32_t s = 0; s < n; s++)
            for (uint32_t o = 0; o < trace->seg_len[path[s]]; o++, at++) {
                assert_true(at < t->row[i].n);
                struct block *b = &t->block[t->path[i][at]];
                if (b->placed)
                    assert_true(b->seg == path[s] && b->offset == o);
                b->placed = true;
                b->seg = path[s];
                b->offset = o;
            }
        assert_int_equal(at, t->row[i].n);
    }
    for (uint32_t s = 0; s < trace->n_segments; s++)
        blocks += trace->seg_len[s];
    assert_int_equal(blocks, t->n);
}

static void assert_same(const struct kvc_trace *a, const struct kvc_trace *b)
{
    assert_int_equal(a->n_requests, b->n_requests);
    assert_int_equal(a->n_segments, b->n_segments);
    assert_memory_equal(a->arrival_ns, b->arrival_ns, a->n_requests * 8);
    assert_memory_equal(a->prompt_seg, b->prompt_seg, a->n_requests * 4);
    assert_memory_equal(a->input_tokens, b->input_tokens, a->n_requests * 4);
    if (a->n_segments) {
        assert_memory_equal(a->seg_parent, b->seg_parent, a->n_segments * 4);
        assert_memory_equal(a->seg_len, b->seg_len, a->n_segments * 4);
    }
    assert_int_equal(!a->session, !b->session);
    if (a->session)
        assert_memory_equal(a->session, b->session, a->n_requests * 4);
    assert_int_equal(!a->output_seg, !b->output_seg);
    if (a->output_seg)
        assert_memory_equal(a->output_seg, b->output_seg, a->n_requests * 4);
}

static void forgets_as_the_twin_does(void **state)
{
    (void)state;
    struct twin *t = kvc_malloc(1, sizeof(*t));
    uint64_t forgotten = 0, unjudged = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        uint64_t rng = seed, forget;
        struct kvc_forest_counts c;
        draw(t, &rng);
        forget = 1 + kvc_rng_below(&rng, 400);
        play(t, forget);
        struct kvc_forest_options o = { .forget_ns = forget };
        struct kvc_trace *trace = build(t, &o, &c);
        check_paths(t, trace);
        assert_int_equal(c.unjudged_rows, t->unjudged_rows);
        assert_int_equal(c.unjudged_input_tokens - c.unjudged_known_blocks * BLOCK,
                         t->unjudged_tokens);
        assert_true(t->unjudged_tokens >= t->truly_known_tokens); /* a bound */
        forgotten += c.forgotten_blocks;
        unjudged += t->unjudged_rows;
        kvc_trace_destroy(trace);
    }
    assert_true(forgotten > 1000 && unjudged > 1000);
    kvc_free(t);
}

static void forgetting_nothing_changes_nothing(void **state)
{
    (void)state;
    struct twin *t = kvc_malloc(1, sizeof(*t));
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t rng = seed;
        struct kvc_forest_counts c;
        draw(t, &rng);
        struct kvc_trace *a = build(t, &(struct kvc_forest_options){ 0 }, &c);
        struct kvc_trace *b = build(t, &(struct kvc_forest_options){ .forget_ns = 1000000 }, &c);
        assert_int_equal(c.forgotten_blocks, 0);
        assert_int_equal(c.unjudged_input_tokens, 0);
        assert_same(a, b);
        kvc_trace_destroy(a);
        kvc_trace_destroy(b);
    }
    kvc_free(t);
}

/* Tables are swept when they would grow: with many chains that happens often. */
static void endless_logs_keep_a_small_table(void **state)
{
    (void)state;
    struct kvc_forest_options o = { .forget_ns = 50 };
    struct kvc_forest *f = kvc_forest_create_with(&o);
    struct kvc_forest_counts c;
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t ids[3] = { 1, i, i };
        struct kvc_row r = { .time_ns = i, .input_tokens = 3 * BLOCK, .ids = ids, .n_ids = 3,
                             .session = KVC_ID_NONE, .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                             .think_ns = KVC_TIME_NONE };
        assert_int_equal(kvc_forest_add(f, &r, NULL), KVC_OK);
    }
    kvc_forest_count(f, &c);
    assert_true(c.hash_bytes < (66 << 20)); /* 64 MiB of filter, and a table for some 50 chains */
    assert_true(c.forgotten_blocks > 2 * 190000 && c.unjudged_rows < 100);
    kvc_forest_destroy(f);
}

/* ---- sessions ---- */

/* By all pairs: the latest earlier q without a successor whose full blocks are a proper prefix. */
static void infer_slowly(const struct twin *t, uint32_t *session, uint64_t *linked,
                         uint64_t *branches)
{
    uint32_t order[MOST_ROWS], sessions = 0;
    bool taken[MOST_ROWS] = { false };
    time_order(t, order);
    *linked = *branches = 0;
    for (uint32_t k = 0; k < t->n_rows; k++) {
        const struct row *r = &t->row[order[k]];
        uint32_t found = NONE;
        bool any = false;
        session[k] = KVC_ID_NONE;
        if (!r->n)
            continue;
        for (uint32_t q = k; q-- > 0 && found == NONE;) {
            const struct row *p = &t->row[order[q]];
            uint32_t full = p->input / BLOCK < p->n ? p->input / BLOCK : p->n;
            bool prefix = full && full < r->n && p->root == r->root &&
                          memcmp(p->id, r->id, full * sizeof(r->id[0])) == 0;
            any = any || prefix;
            if (prefix && !taken[q])
                found = q;
        }
        if (found != NONE)
            taken[found] = true;
        session[k] = found != NONE ? session[found] : sessions++;
        *linked += found != NONE;
        *branches += found == NONE && any;
    }
}

static void infers_sessions_as_the_twin_does(void **state)
{
    (void)state;
    struct twin *t = kvc_malloc(1, sizeof(*t));
    uint64_t total = 0, branched = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        uint64_t rng = seed, linked, branches;
        uint32_t session[MOST_ROWS];
        bool any = false;
        struct kvc_forest_counts c;
        draw(t, &rng);
        infer_slowly(t, session, &linked, &branches);
        struct kvc_trace *trace = build(t, &(struct kvc_forest_options){ .infer_sessions = true },
                                        &c);
        assert_int_equal(c.linked_turns, linked);
        assert_int_equal(c.branches, branches);
        for (uint32_t k = 0; k < t->n_rows; k++)
            any = any || session[k] != KVC_ID_NONE;
        if (any)
            assert_memory_equal(trace->session, session, t->n_rows * sizeof(session[0]));
        total += linked;
        branched += branches;
        kvc_trace_destroy(trace);
    }
    assert_true(total > 1000 && branched > 100);
    kvc_free(t);
}

/* ---- files in place of memory ---- */

static struct kvc_trace *build_many(uint64_t seed, uint64_t limit, uint32_t rows,
                                    uint64_t forget_ns, uint64_t *on_disk)
{
    struct kvc_spill spill;
    struct kvc_forest_counts c;
    struct kvc_trace *t = NULL;
    uint64_t rng = seed, ids[16], disorder = 1 + kvc_rng_below(&rng, 3) * 400000;
    assert_true(kvc_spill_init(&spill, NULL, limit));
    struct kvc_forest_options o = { .spill = &spill, .forget_ns = forget_ns };
    struct kvc_forest *f = kvc_forest_create_with(&o);
    for (uint32_t i = 0; i < rows; i++) {
        size_t n = 1 + (size_t)kvc_rng_below(&rng, 16);
        for (size_t k = 0; k < n; k++)
            ids[k] = kvc_rng_below(&rng, 3) ? 1 : kvc_rng_below(&rng, 1000);
        struct kvc_row r = { .time_ns = i + kvc_rng_below(&rng, disorder),
                             .input_tokens = (uint32_t)n * BLOCK, .output_tokens = i, .ids = ids,
                             .n_ids = n, .session = i % 3 ? i / 5 : KVC_ID_NONE,
                             .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                             .think_ns = KVC_TIME_NONE };
        assert_int_equal(kvc_forest_add(f, &r, NULL), KVC_OK);
    }
    *on_disk = spill.on_disk;
    assert_int_equal(kvc_forest_finish_with(f, BLOCK, true, NULL, NULL, &c, &t, NULL), KVC_OK);
    assert_int_equal(spill.on_disk, 0);
    kvc_spill_clear(&spill);
    return t;
}

static void files_hold_what_memory_would(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint64_t disk_a, disk_b, forget_ns = seed > 3 ? 20000 : 0;
        uint32_t rows = 200000; /* more than the sorter's heap */
        struct kvc_trace *a = build_many(seed, (uint64_t)1 << 40, rows, forget_ns, &disk_a);
        struct kvc_trace *b = build_many(seed, 1 << 20, rows, forget_ns, &disk_b);
        assert_int_equal(disk_a, 0);
        assert_true(disk_b > 2 << 20 && b->n_mapped > 3);
        assert_same(a, b);
        assert_memory_equal(a->output_tokens, b->output_tokens, a->n_requests * 4);
        kvc_trace_destroy(a);
        kvc_trace_destroy(b);
    }
}

static void no_folder_is_an_error(void **state)
{
    (void)state;
    struct kvc_spill s;
    struct kvc_spill_array held = { 0 };
    struct kvc_error err = { 0 };
    char *p = NULL;
    assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0);
    assert_true(kvc_spill_init(&s, "/nowhere/else", 1));
    assert_false(kvc_spill_grow(&s, &p, &held, 1 << 20, false));
    assert_int_equal(kvc_spill_fail(&s, &err), KVC_ERR_IO);
    assert_non_null(strstr(err.text, "TMPDIR"));
    assert_null(p);
    unsetenv("TMPDIR");
    kvc_spill_clear(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgets_as_the_twin_does),
        cmocka_unit_test(forgetting_nothing_changes_nothing),
        cmocka_unit_test(endless_logs_keep_a_small_table),
        cmocka_unit_test(infers_sessions_as_the_twin_does),
        cmocka_unit_test(files_hold_what_memory_would),
        cmocka_unit_test(no_folder_is_an_error),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
