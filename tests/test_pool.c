/* SPDX-License-Identifier: Apache-2.0
 * The block pool against a list of single blocks: random holds, publications, releases and
 * evictions, every invariant checked after each. */
#include "base/alloc.h"
#include "base/rng.h"
#include "sim/replay/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* after the three above */
#include <cmocka.h>

/* A small forest by hand: root (4 blocks) with children of 3 and 5, the latter with one of 2. */
static uint32_t parent[] = {KVC_SEG_NONE, 0, 0, 2};
static uint32_t len[] = {4, 3, 5, 2};
static uint32_t depth[] = {0, 4, 4, 9};
static struct kvc_trace forest = {.n_segments = 4, .seg_parent = parent, .seg_len = len,
                                  .seg_depth = depth};
static struct kvc_span paths[3][3] = {{{0, 0, 4}, {1, 4, 3}, {0, 0, 0}},
                                      {{0, 0, 4}, {2, 4, 5}, {0, 0, 0}},
                                      {{0, 0, 4}, {2, 4, 5}, {3, 9, 2}}};
static const uint32_t path_n[3] = {2, 2, 3}, path_blocks[3] = {7, 9, 11};

/* ---- the slow twin: copies of single blocks in one list, oldest free first ---- */

struct copy {
    uint32_t seg, at, owner, age;
    int holders;
};
#define MAX_COPIES 512
struct twin {
    struct copy v[MAX_COPIES]; /* free ones in queue order come before held ones */
    int n;
    uint64_t plain;
    uint32_t ages;
    uint32_t per_block;
};

static int oldest(struct twin *t, uint32_t seg, uint32_t at)
{
    int best = -1;
    for (int i = 0; i < t->n; i++)
        if (t->v[i].seg == seg && t->v[i].at == at &&
            (best < 0 || t->v[i].age < t->v[best].age))
            best = i;
    return best;
}

static void to_end(struct twin *t, int i)
{
    struct copy c = t->v[i];
    memmove(&t->v[i], &t->v[i + 1], (size_t)(t->n - i - 1) * sizeof(c));
    t->v[t->n - 1] = c;
}

static void twin_take(struct twin *t, uint64_t pages)
{
    while (t->plain < pages) {
        int i = 0;
        while (t->v[i].holders)
            i++;
        to_end(t, i);
        t->n--;
        t->plain += t->per_block;
    }
    t->plain -= pages;
}

static uint64_t twin_available(const struct twin *t)
{
    uint64_t n = t->plain;
    for (int i = 0; i < t->n; i++)
        n += t->v[i].holders ? 0 : t->per_block;
    return n;
}

static void locate(int p, uint32_t b, uint32_t *seg, uint32_t *at)
{
    for (uint32_t k = 0; k < path_n[p]; k++) {
        uint32_t s = paths[p][k].seg;
        if (b >= depth[s] && b < depth[s] + len[s]) {
            *seg = s;
            *at = b - depth[s];
        }
    }
}

static uint32_t twin_reach(struct twin *t, int p, uint32_t limit)
{
    uint32_t b = 0, seg, at;
    for (; b < limit; b++) {
        locate(p, b, &seg, &at);
        if (oldest(t, seg, at) < 0)
            break;
    }
    return b;
}

struct client { /* a request: holds blocks [0, held) of path p */
    int p;
    uint32_t held;
    bool live, copies;
    uint32_t mine[16]; /* age of the copy held at each block */
};

static void twin_release(struct twin *t, struct client *c)
{
    for (uint32_t b = c->held; b-- > 0;)
        for (int i = 0; i < t->n; i++)
            if (t->v[i].age == c->mine[b] && --t->v[i].holders == 0) {
                to_end(t, i);
                break;
            } else if (t->v[i].age == c->mine[b]) {
                break;
            }
}

static void step(struct kvc_pool *pool, struct twin *t, struct client *c, uint32_t id,
                 uint64_t *rng)
{
    struct kvc_path path = {paths[c->p], path_n[c->p]};
    if (!c->live) { /* hit and hold a prefix */
        c->p = (int)kvc_rng_below(rng, 3);
        path = (struct kvc_path){paths[c->p], path_n[c->p]};
        uint32_t reach = kvc_pool_reach(pool, path, 0, path_blocks[c->p]);
        assert_int_equal(reach, twin_reach(t, c->p, path_blocks[c->p]));
        uint32_t h = (uint32_t)kvc_rng_below(rng, reach + 1), seg, at;
        kvc_pool_hold(pool, path, 0, h);
        for (uint32_t b = 0; b < h; b++) {
            locate(c->p, b, &seg, &at);
            int i = oldest(t, seg, at);
            t->v[i].holders++;
            c->mine[b] = t->v[i].age;
        }
        c->live = true;
        c->copies = false;
        c->held = h;
    } else if (c->held < path_blocks[c->p] && kvc_rng_below(rng, 3)) { /* compute some more */
        uint32_t more = 1 + (uint32_t)kvc_rng_below(rng, path_blocks[c->p] - c->held), seg, at;
        uint64_t pages = more * t->per_block;
        if (twin_available(t) < pages)
            return;
        kvc_pool_take(pool, pages);
        twin_take(t, pages);
        c->copies |= kvc_pool_publish(pool, path, c->held, c->held + more, id, false, c->copies);
        for (uint32_t b = c->held; b < c->held + more; b++) {
            locate(c->p, b, &seg, &at);
            t->v[t->n++] = (struct copy){seg, at, id, ++t->ages, 1};
            c->mine[b] = t->ages;
        }
        c->held += more;
    } else {
        kvc_pool_release(pool, path, 0, c->held, id, c->copies);
        twin_release(t, c);
        c->live = false;
    }
}

static void agrees_with_single_blocks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "pool");
        struct kvc_pool pool;
        struct twin twin = {.per_block = 1 + (uint32_t)kvc_rng_below(&rng, 3)};
        forest.block_tokens = 4 * twin.per_block;
        twin.plain = (12 + kvc_rng_below(&rng, 40)) * twin.per_block;
        assert_true(kvc_pool_init(&pool, &forest, 4, twin.plain, true));
        struct client clients[3] = {0};
        for (int i = 0; i < 60; i++) {
            uint32_t id = (uint32_t)kvc_rng_below(&rng, 3);
            step(&pool, &twin, &clients[id], id, &rng);
            const char *wrong = kvc_pool_check(&pool);
            if (wrong || kvc_pool_available(&pool) != twin_available(&twin))
                fail_msg("seed %llu step %d: %s", (unsigned long long)seed, i,
                         wrong ? wrong : "free pages differ");
            for (int p = 0; p < 3; p++) {
                struct kvc_path path = {paths[p], path_n[p]};
                if (kvc_pool_reach(&pool, path, 0, path_blocks[p]) !=
                    twin_reach(&twin, p, path_blocks[p]))
                    fail_msg("seed %llu step %d: path %d reaches elsewhere",
                             (unsigned long long)seed, i, p);
            }
        }
        kvc_pool_clear(&pool);
    }
}

/* Pages that do not divide blocks: a page belongs to the block that holds its last token, so the
 * pages of any cut of a path add up, whatever the sizes. */
static void pages_add_up(void **state)
{
    (void)state;
    for (uint32_t block = 1; block < 40; block++)
        for (uint32_t page = 1; page < 40; page++) {
            forest.block_tokens = block;
            struct kvc_pool pool;
            assert_true(kvc_pool_init(&pool, &forest, page, 100, true));
            for (uint64_t b = 0; b < 12; b++)
                assert_int_equal(kvc_pool_pages(&pool, b), b * block / page);
            kvc_pool_clear(&pool);
        }
}

static void gaps_are_found_and_pending_blocks_wait(void **state)
{
    (void)state;
    forest.block_tokens = 4;
    struct kvc_pool pool;
    assert_true(kvc_pool_init(&pool, &forest, 4, 100, true));
    struct kvc_path path = {paths[2], path_n[2]};
    kvc_pool_take(&pool, 4);
    kvc_pool_publish(&pool, path, 3, 7, 9, true, false);
    uint32_t from = 0, to = 0;
    assert_true(kvc_pool_gap(&pool, path, &from, &to, 11));
    assert_int_equal(from, 0);
    assert_int_equal(to, 3);
    from = to;
    assert_true(kvc_pool_gap(&pool, path, &from, &to, 11));
    assert_int_equal(from, 7);
    assert_int_equal(to, 11);
    assert_int_equal(kvc_pool_reach(&pool, path, 3, 11), 3);
    kvc_pool_settle(&pool, path, 3, 7, 9);
    assert_int_equal(kvc_pool_reach(&pool, path, 3, 11), 7);
    assert_null(kvc_pool_check(&pool));
    assert_int_equal(pool.queued, 4);
    kvc_pool_drop(&pool, path, 3, 7);
    assert_int_equal(pool.plain, 100);
    kvc_pool_clear(&pool);
}

/* In order of insertion a touch and a hold change nothing about who goes next. */
static void fifo_keeps_the_order_of_insertion(void **state)
{
    (void)state;
    forest.block_tokens = 4;
    struct kvc_pool pool;
    assert_true(kvc_pool_init(&pool, &forest, 4, 7, false));
    struct kvc_path a = {paths[0], 1}, b = {paths[0], 2};
    kvc_pool_take(&pool, 7);
    kvc_pool_publish(&pool, a, 0, 4, 1, false, false);
    kvc_pool_release(&pool, a, 0, 4, 1, false);
    kvc_pool_publish(&pool, b, 4, 7, 2, false, false);
    kvc_pool_release(&pool, b, 4, 7, 2, false);
    kvc_pool_touch(&pool, a, 4, false);
    kvc_pool_hold(&pool, a, 0, 4);
    kvc_pool_release(&pool, a, 0, 4, 3, false);
    kvc_pool_take(&pool, 2);
    assert_int_equal(kvc_pool_reach(&pool, a, 0, 4), 2);
    assert_int_equal(kvc_pool_reach(&pool, b, 4, 7), 7);
    kvc_pool_hold(&pool, a, 0, 2); /* held: eviction steps over it */
    kvc_pool_take(&pool, 1);
    assert_int_equal(kvc_pool_reach(&pool, b, 4, 7), 6);
    assert_null(kvc_pool_check(&pool));
    kvc_pool_clear(&pool);
}

/* What is published comes in deepest first, copies and blocks that are new alike: of three blocks
 * the second writer makes two copies and the third block anew, and that one goes first. */
static void fifo_takes_in_the_deepest_first(void **state)
{
    (void)state;
    forest.block_tokens = 4;
    struct kvc_pool pool;
    assert_true(kvc_pool_init(&pool, &forest, 4, 6, false));
    struct kvc_path a = {paths[0], 1};
    kvc_pool_take(&pool, 3);
    kvc_pool_publish(&pool, a, 0, 3, 1, false, false);
    kvc_pool_release(&pool, a, 0, 3, 1, false);
    kvc_pool_take(&pool, 4); /* the third block goes */
    kvc_pool_give(&pool, 1);
    assert_true(kvc_pool_publish(&pool, a, 0, 3, 2, false, false));
    kvc_pool_release(&pool, a, 0, 3, 2, true);
    kvc_pool_take(&pool, 4); /* a free one, the first writer's two (copies stay), one more */
    assert_int_equal(kvc_pool_reach(&pool, a, 0, 3), 2);
    assert_null(kvc_pool_check(&pool));
    kvc_pool_clear(&pool);
}

/* ---- rounds ---- */

/* LMCache's server, a page a key of 5 bytes: t1 of limit 100 has 85 and loses int(17 * 0.2) = 3
 * keys, t2 is not registered and loses all, t3 of limit 100 has 75 and keeps it. */
static void a_round_takes_a_fifth(void **state)
{
    static uint32_t roots[] = {KVC_SEG_NONE, KVC_SEG_NONE, KVC_SEG_NONE};
    static uint32_t lens[] = {17, 8, 15}, depths[] = {0, 0, 0};
    struct kvc_trace trace = {.n_segments = 3, .seg_parent = roots, .seg_len = lens,
                              .seg_depth = depths, .block_tokens = 16};
    const struct kvc_pool_limits limits[] = {{20, 0, KVC_QUOTA_ISOLATED, 0},
                                             {0, 0, KVC_QUOTA_ISOLATED, 0},
                                             {20, 0, KVC_QUOTA_ISOLATED, 0}};
    const uint32_t classes[] = {0, 1, 2}, forever[] = {0, 0, 0};
    const uint64_t now = 0, kept[] = {14, 0, 15};
    const struct kvc_pool_rules rules = {.n_classes = 3, .class_of = classes, .limits = limits,
                                         .ttl_of = forever, .rounds = true, .now = &now};
    struct kvc_pool pool;

    (void)state;
    assert_true(kvc_pool_init(&pool, &trace, 16, 100, true));
    assert_true(kvc_pool_set_rules(&pool, &rules));
    for (uint32_t t = 0; t < 3; t++) {
        struct kvc_span span = {t, 0, lens[t]};
        struct kvc_path path = {&span, 1};

        pool.by = t;
        kvc_pool_take(&pool, lens[t]);
        kvc_pool_publish(&pool, path, 0, lens[t], t, false, false);
        assert_int_equal(kvc_pool_round_due(&pool), t > 0); /* nothing that is held goes */
        kvc_pool_release(&pool, path, 0, lens[t], t, false);
        assert_true(kvc_pool_round_due(&pool));
    }
    kvc_pool_round(&pool);
    assert_null(kvc_pool_check(&pool));
    for (uint32_t t = 0; t < 3; t++) {
        struct kvc_span span = {t, 0, lens[t]};

        assert_int_equal(pool.classes[t].used, kept[t]);
        assert_int_equal(kvc_pool_reach(&pool, (struct kvc_path){&span, 1}, 0, lens[t]), kept[t]);
    }
    assert_false(kvc_pool_round_due(&pool)); /* 14 of 20 is less than four fifths */
    kvc_pool_clear(&pool);
}

/* ---- blocks without pages ---- */

/* Blocks of 2 tokens, pages of 16: of 8 blocks the last one has the page. What tenants without
 * reservation have goes in order of age, page or not, whether a pool counts them as one or not. */
static void blocks_without_pages_go_in_turn(void **state)
{
    static uint32_t roots[] = {KVC_SEG_NONE, KVC_SEG_NONE}, lens[] = {8, 8}, depths[] = {0, 0};
    struct kvc_trace trace = {.n_segments = 2, .seg_parent = roots, .seg_len = lens,
                              .seg_depth = depths, .block_tokens = 2};
    const struct kvc_pool_limits limits[] = {{KVC_CAPACITY_INF, 0, KVC_QUOTA_HYBRID, 0},
                                             {0, 0, KVC_QUOTA_HYBRID, 0},
                                             {KVC_CAPACITY_INF, 0, KVC_QUOTA_HYBRID, 0}};
    const uint32_t classes[2][3] = {{0, 0, 1}, {0, 2, 1}}, forever[] = {0, 0, 0};
    const uint64_t now = 0;

    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        const struct kvc_pool_rules rules = {.n_classes = 2 + (uint32_t)apart,
                                             .class_of = classes[apart], .limits = limits,
                                             .ttl_of = forever, .now = &now};
        struct kvc_pool pool;

        assert_true(kvc_pool_init(&pool, &trace, 16, 2, true));
        assert_true(kvc_pool_set_rules(&pool, &rules));
        for (uint32_t t = 0; t < 2; t++) {
            struct kvc_span span = {t, 0, 8};

            pool.by = t;
            kvc_pool_take(&pool, 1);
            kvc_pool_publish(&pool, (struct kvc_path){&span, 1}, 0, 8, t, false, false);
            kvc_pool_release(&pool, (struct kvc_path){&span, 1}, 0, 8, t, false);
        }
        pool.by = 2;
        for (uint32_t taken = 1; taken <= 2; taken++) {
            struct kvc_span old = {0, 0, 8}, young = {1, 0, 8};

            kvc_pool_take(&pool, 1);
            assert_null(kvc_pool_check(&pool));
            assert_int_equal(kvc_pool_reach(&pool, (struct kvc_path){&old, 1}, 0, 8),
                             taken == 1 ? 7 : 0);
            assert_int_equal(kvc_pool_reach(&pool, (struct kvc_path){&young, 1}, 0, 8),
                             taken == 1 ? 8 : 7);
        }
        kvc_pool_clear(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_takes_a_fifth),
        cmocka_unit_test(blocks_without_pages_go_in_turn),
        cmocka_unit_test(agrees_with_single_blocks),
        cmocka_unit_test(pages_add_up),
        cmocka_unit_test(gaps_are_found_and_pending_blocks_wait),
        cmocka_unit_test(fifo_keeps_the_order_of_insertion),
        cmocka_unit_test(fifo_takes_in_the_deepest_first),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
