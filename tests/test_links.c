/* SPDX-License-Identifier: Apache-2.0
 * Links: closed forms, textbook max-min examples, the fairness certificate on random networks, a
 * time-stepped twin, and conservation. */
#include "base/alloc.h"
#include "base/rng.h"
#include "sim/replay/links.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GB 1e9

static struct kvc_links *make(const double *capacity, uint32_t n)
{
    struct kvc_links *l = NULL;
    assert_int_equal(kvc_links_create(&l, NULL), KVC_OK);
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        uint32_t id = 99;
        snprintf(name, sizeof(name), "link%u", i);
        assert_int_equal(kvc_links_add(l, name, capacity[i], &id, NULL), KVC_OK);
        assert_int_equal(id, i);
    }
    return l;
}

static uint64_t start(struct kvc_links *l, uint64_t now, uint32_t n_path, const uint32_t *path,
                      uint64_t bytes, uint64_t latency, double cap, uint64_t tag)
{
    struct kvc_flow_spec s = {.n_path = n_path, .bytes = bytes, .latency_ns = latency,
                              .max_bytes_per_s = cap, .tag = tag};
    memcpy(s.path, path, n_path * sizeof(*path));
    uint64_t flow = UINT64_MAX;
    assert_int_equal(kvc_links_start(l, now, &s, &flow, NULL), KVC_OK);
    return flow;
}

static uint64_t on0(struct kvc_links *l, uint64_t now, uint64_t bytes, uint64_t latency, double cap,
                    uint64_t tag)
{
    return start(l, now, 1, (const uint32_t[]){0}, bytes, latency, cap, tag);
}

/* Runs until the next completion. */
static struct kvc_flow_end next_end(struct kvc_links *l)
{
    struct kvc_flow_end e = {0, 0, 0};
    for (;;) {
        uint64_t t = kvc_links_next(l);
        assert_true(t != KVC_TIME_NONE);
        if (kvc_links_pop(l, t, &e))
            return e;
    }
}

static void expect_end(struct kvc_links *l, uint64_t time_ns, uint64_t tag)
{
    struct kvc_flow_end e = next_end(l);
    assert_int_equal(e.tag, tag);
    assert_int_equal(e.time_ns, time_ns);
}

static void one_flow_takes_latency_plus_bytes_over_rate(void **state)
{
    (void)state;
    struct kvc_links *l = make((const double[]){25 * GB}, 1);
    on0(l, 1000, 1000000000, 5000, 0, 7);
    expect_end(l, 1000 + 5000 + 40000000, 7);
    assert_true(kvc_links_next(l) == KVC_TIME_NONE);
    /* rounds up, once: 1 byte at 25 GB/s is 0.04 ns; 26 bytes are 1.04 ns; 25 bytes 1 ns */
    uint64_t t = 100000000;
    on0(l, t, 1, 0, 0, 1);
    expect_end(l, t + 1, 1);
    on0(l, t + 10, 26, 0, 0, 2);
    expect_end(l, t + 12, 2);
    on0(l, t + 20, 25, 0, 0, 3);
    expect_end(l, t + 21, 3);
    struct kvc_link_usage u;
    kvc_links_usage(l, t + 100, 0, &u);
    assert_int_equal(u.bytes, 1000000052);
    assert_int_equal(u.busy_ns, 40000000 + 1 + 2 + 1);
    assert_int_equal(u.peak_flows, 1);
    assert_int_equal(u.flows, 0);
    assert_string_equal(u.name, "link0");
    kvc_links_destroy(l);
}

static void equal_flows_share_equally_and_end_together_in_start_order(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 100; n += 11) {
        struct kvc_links *l = make((const double[]){10 * GB}, 1);
        for (uint32_t i = 0; i < n; i++)
            on0(l, 50, 10000, 100, 0, 1000 - i);
        for (uint32_t i = 0; i < n; i++)
            expect_end(l, 150 + 1000 * n, 1000 - i);
        struct kvc_link_usage u;
        kvc_links_usage(l, 10000000, 0, &u);
        assert_int_equal(u.bytes, 10000 * n);
        assert_int_equal(u.busy_ns, 1000 * n);
        assert_int_equal(u.peak_flows, n);
        kvc_links_destroy(l);
    }
}

static void a_later_flow_slows_the_first_and_speeds_up_after_it(void **state)
{
    (void)state;
    struct kvc_links *l = make((const double[]){1 * GB}, 1);
    on0(l, 0, 3000, 0, 0, 1);
    on0(l, 1000, 3000, 0, 0, 2);
    /* 1 has 2000 left at t=1000, at half rate: ends 5000; 2 then has 1000 left, ends 6000 */
    expect_end(l, 5000, 1);
    struct kvc_link_usage u;
    kvc_links_usage(l, 5500, 0, &u);
    assert_int_equal(u.bytes, 5500);
    expect_end(l, 6000, 2);
    kvc_links_destroy(l);
}

/* Bertsekas and Gallager's pattern: one long flow over links of 10 and 6, one short on each. */
static void crossing_flows_get_the_textbook_rates(void **state)
{
    (void)state;
    struct kvc_links *l = make((const double[]){10 * GB, 6 * GB}, 2);
    uint64_t across = start(l, 0, 2, (const uint32_t[]){0, 1}, 1000000, 0, 0, 1);
    uint64_t a = start(l, 0, 1, (const uint32_t[]){0}, 1000000, 0, 0, 2);
    uint64_t b = start(l, 0, 1, (const uint32_t[]){1}, 1000000, 0, 0, 3);
    assert_true(kvc_links_rate(l, across) == 3 * GB);
    assert_true(kvc_links_rate(l, a) == 7 * GB);
    assert_true(kvc_links_rate(l, b) == 3 * GB);
    assert_true(kvc_links_cancel(l, 0, b));
    assert_true(kvc_links_rate(l, across) == 5 * GB); /* now link 0 is the narrow one */
    assert_true(kvc_links_rate(l, a) == 5 * GB);
    kvc_links_destroy(l);
    /* parking lot: a flow over four links, one local on each; capacities 4, 6, 8, 10 */
    l = make((const double[]){4 * GB, 6 * GB, 8 * GB, 10 * GB}, 4);
    across = start(l, 0, 4, (const uint32_t[]){0, 1, 2, 3}, 1000000, 0, 0, 1);
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t local = start(l, 0, 1, &i, 1000000, 0, 0, 2);
        assert_true(kvc_links_rate(l, local) == (2 + 2 * i) * GB);
    }
    assert_true(kvc_links_rate(l, across) == 2 * GB);
    kvc_links_destroy(l);
}

static void caps_bind_and_what_they_leave_goes_to_the_others(void **state)
{
    (void)state;
    struct kvc_links *l = make((const double[]){12 * GB}, 1);
    uint64_t a = on0(l, 0, 1000000, 0, 1 * GB, 1);
    assert_true(kvc_links_rate(l, a) == 1 * GB);
    uint64_t b = on0(l, 0, 1000000, 0, 5 * GB, 2);
    uint64_t c = on0(l, 0, 1000000, 0, 0, 3);
    assert_true(kvc_links_rate(l, b) == 5 * GB);
    assert_true(kvc_links_rate(l, c) == 6 * GB);
    uint64_t d = on0(l, 0, 1000000, 0, 0, 4);
    assert_true(kvc_links_rate(l, a) == 1 * GB);
    assert_true(kvc_links_rate(l, b) * 3 > 11 * GB - 1 && kvc_links_rate(l, b) * 3 < 11 * GB + 1);
    assert_true(kvc_links_rate(l, d) == kvc_links_rate(l, b));
    kvc_links_destroy(l);
}

static void empty_flows_end_after_their_latency(void **state)
{
    (void)state;
    struct kvc_links *l = make((const double[]){1 * GB}, 1);
    on0(l, 10, 0, 500, 0, 1);
    on0(l, 10, 0, 0, 0, 2);
    expect_end(l, 10, 2);
    expect_end(l, 510, 1);
    assert_true(kvc_links_next(l) == KVC_TIME_NONE);
    struct kvc_flow_end e;
    on0(l, 600, 0, 50, 0, 3);
    assert_true(kvc_links_pop(l, KVC_TIME_NONE, &e) && e.time_ns == 650);
    assert_false(kvc_links_pop(l, KVC_TIME_NONE, &e));
    on0(l, 700, 100, 0, 0, 4);
    expect_end(l, 800, 4);
    kvc_links_destroy(l);
}

static void cancelling_frees_the_bandwidth_and_keeps_the_bytes_moved(void **state)
{
    (void)state;
    struct kvc_links *l = make((const double[]){1 * GB}, 1);
    uint64_t a = on0(l, 0, 10000, 0, 0, 1), w = on0(l, 0, 10000, 900000, 0, 9);
    on0(l, 0, 10000, 0, 0, 2);
    assert_true(kvc_links_cancel(l, 2000, a)); /* each has moved 1000 */
    assert_false(kvc_links_cancel(l, 2000, a));
    assert_true(kvc_links_cancel(l, 2000, w));
    expect_end(l, 11000, 2);
    struct kvc_link_usage u;
    kvc_links_usage(l, 20000, 0, &u);
    assert_int_equal(u.bytes, 11000);
    assert_true(kvc_links_next(l) == KVC_TIME_NONE);
    kvc_links_destroy(l);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct kvc_links *l = make((const double[]){1 * GB}, 1);
    struct kvc_error err;
    uint32_t id;
    assert_int_equal(kvc_links_add(l, "x", 0, &id, &err), KVC_ERR_USAGE);
    assert_int_equal(kvc_links_add(l, "x", 0.0 / 1 - 5, &id, &err), KVC_ERR_USAGE);
    struct kvc_flow_spec s = {.n_path = 2, .path = {0, 0}, .bytes = 1};
    assert_int_equal(kvc_links_start(l, 0, &s, NULL, &err), KVC_ERR_USAGE);
    s.n_path = 0;
    assert_int_equal(kvc_links_start(l, 0, &s, NULL, &err), KVC_ERR_USAGE);
    s.n_path = 1;
    s.path[0] = 3;
    assert_int_equal(kvc_links_start(l, 0, &s, NULL, &err), KVC_ERR_USAGE);
    s.path[0] = 0;
    assert_int_equal(kvc_links_start(l, 100, &s, NULL, &err), KVC_OK);
    assert_int_equal(kvc_links_start(l, 50, &s, NULL, &err), KVC_ERR_USAGE);
    kvc_links_destroy(l);
}

/* ---- random networks ---- */

#define MAX_FLOWS 40
#define MAX_LINKS 6

struct scene {
    uint32_t n_links, n_flows;
    double capacity[MAX_LINKS];
    struct {
        uint64_t at_ns, id;
        struct kvc_flow_spec spec;
    } flow[MAX_FLOWS]; /* by start */
};

static void draw(struct scene *s, uint64_t *rng)
{
    s->n_links = 1 + (uint32_t)kvc_rng_below(rng, MAX_LINKS);
    s->n_flows = 1 + (uint32_t)kvc_rng_below(rng, MAX_FLOWS);
    for (uint32_t i = 0; i < s->n_links; i++)
        s->capacity[i] = (1 + (double)kvc_rng_below(rng, 20)) * GB;
    uint64_t t = 0;
    bool caps = kvc_rng_below(rng, 2);
    for (uint32_t i = 0; i < s->n_flows; i++) {
        struct kvc_flow_spec *f = &s->flow[i].spec;
        memset(f, 0, sizeof(*f));
        if (kvc_rng_below(rng, 3) > 0)
            t += kvc_rng_below(rng, 40000);
        s->flow[i].at_ns = t;
        f->n_path = 1 + (uint32_t)kvc_rng_below(rng, s->n_links < 4 ? s->n_links : 4);
        for (uint32_t p = 0; p < f->n_path;) {
            f->path[p] = (uint32_t)kvc_rng_below(rng, s->n_links);
            bool again = false;
            for (uint32_t q = 0; q < p; q++)
                again |= f->path[q] == f->path[p];
            p += !again;
        }
        f->bytes = kvc_rng_below(rng, 10) ? kvc_rng_below(rng, 400000) : 0;
        f->latency_ns = kvc_rng_below(rng, 3) ? kvc_rng_below(rng, 20000) : 0;
        f->max_bytes_per_s = caps && kvc_rng_below(rng, 2) ? kvc_rng_unit(rng) * 8 * GB + 1e8 : 0;
        f->tag = i;
    }
}

/* Each moving flow is at its cap, or crosses a full link on which no flow is faster; no link is
 * over its capacity. This is true of exactly one set of rates. */
static void check_fairness(struct kvc_links *l, const struct scene *s, uint32_t started)
{
    double sum[MAX_LINKS] = {0}, top[MAX_LINKS] = {0};
    for (uint32_t i = 0; i < started; i++) {
        double r = kvc_links_rate(l, s->flow[i].id);
        for (uint32_t p = 0; p < s->flow[i].spec.n_path; p++) {
            uint32_t k = s->flow[i].spec.path[p];
            sum[k] += r;
            top[k] = r > top[k] ? r : top[k];
        }
    }
    for (uint32_t k = 0; k < s->n_links; k++)
        assert_true(sum[k] <= s->capacity[k] * (1 + 1e-12));
    for (uint32_t i = 0; i < started; i++) {
        const struct kvc_flow_spec *f = &s->flow[i].spec;
        double r = kvc_links_rate(l, s->flow[i].id);
        if (r == 0)
            continue;
        assert_true(f->max_bytes_per_s <= 0 || r <= f->max_bytes_per_s * (1 + 1e-12));
        bool held = f->max_bytes_per_s > 0 && r >= f->max_bytes_per_s * (1 - 1e-12);
        for (uint32_t p = 0; p < f->n_path; p++) {
            uint32_t k = f->path[p];
            held |= sum[k] >= s->capacity[k] * (1 - 1e-12) && r >= top[k] * (1 - 1e-12);
        }
        assert_true(held);
    }
}

/* Runs the scene; end_ns by flow. check: look at rates and books at every event. */
static void play(struct scene *s, uint64_t *end_ns, bool check)
{
    struct kvc_links *l = make(s->capacity, s->n_links);
    struct kvc_flow_end e, last = {0, 0, 0};
    uint64_t bytes[MAX_LINKS] = {0}, seen_ns = 0;
    uint32_t started = 0, ended = 0;
    while (ended < s->n_flows) {
        uint64_t t = kvc_links_next(l);
        if (started < s->n_flows && s->flow[started].at_ns < t) {
            t = s->flow[started].at_ns;
            assert_int_equal(kvc_links_start(l, t, &s->flow[started].spec, &s->flow[started].id,
                                             NULL), KVC_OK);
            started++;
        }
        assert_true(t != KVC_TIME_NONE);
        for (; kvc_links_pop(l, t, &e); ended++) {
            assert_true(e.time_ns > last.time_ns || ended == 0 ||
                        (e.time_ns == last.time_ns && e.tag > last.tag));
            assert_int_equal(e.flow, s->flow[e.tag].id);
            end_ns[e.tag] = e.time_ns;
            last = e;
        }
        if (!check)
            continue;
        check_fairness(l, s, started);
        for (uint32_t k = 0; k < s->n_links; k++) {
            struct kvc_link_usage u;
            kvc_links_usage(l, t, k, &u);
            assert_true(u.bytes >= bytes[k]);
            /* a byte a flow of rounding, and the last flow may have ended up to 1 ns early */
            double room = s->capacity[k] * (double)(t - seen_ns) / 1e9 + MAX_FLOWS;
            assert_true((double)(u.bytes - bytes[k]) <= room);
            bytes[k] = u.bytes;
        }
        seen_ns = t;
    }
    uint64_t want[MAX_LINKS] = {0};
    for (uint32_t i = 0; i < s->n_flows; i++)
        for (uint32_t p = 0; p < s->flow[i].spec.n_path; p++)
            want[s->flow[i].spec.path[p]] += s->flow[i].spec.bytes;
    for (uint32_t k = 0; k < s->n_links; k++) {
        struct kvc_link_usage u;
        kvc_links_usage(l, last.time_ns, k, &u);
        assert_int_equal(u.bytes, want[k]);
        assert_int_equal(u.flows, 0);
        assert_true((double)u.busy_ns * s->capacity[k] / 1e9 >= (double)want[k] * (1 - 1e-9));
    }
    kvc_links_destroy(l);
}

static void random_networks_are_fair_and_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "links");
        struct scene s;
        uint64_t end_ns[MAX_FLOWS], again[MAX_FLOWS];
        draw(&s, &rng);
        play(&s, end_ns, true);
        play(&s, again, false); /* looking changes nothing */
        assert_memory_equal(end_ns, again, s.n_flows * sizeof(*end_ns));
    }
}

/* Water filling in small steps of rate: every flow rises until its cap or a full link stops it. */
static void slow_rates(const struct scene *s, const bool *moving, double *rate)
{
    const double drop = 1e6;
    double used[MAX_LINKS] = {0};
    bool rising[MAX_FLOWS];
    for (uint32_t i = 0; i < s->n_flows; i++) {
        rate[i] = 0;
        rising[i] = moving[i];
    }
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < s->n_flows; i++) {
            const struct kvc_flow_spec *f = &s->flow[i].spec;
            if (!rising[i])
                continue;
            for (uint32_t p = 0; p < f->n_path; p++)
                rising[i] &= used[f->path[p]] + drop <= s->capacity[f->path[p]];
            rising[i] &= f->max_bytes_per_s <= 0 || rate[i] + drop <= f->max_bytes_per_s;
            if (!rising[i])
                continue;
            any = true;
            rate[i] += drop;
            for (uint32_t p = 0; p < f->n_path; p++)
                used[f->path[p]] += drop;
        }
    }
}

/* Time in fixed steps; flows start, move and end on step borders only. */
static void slow_play(const struct scene *s, double *end_ns)
{
    const double step = 20;
    double left[MAX_FLOWS], rate[MAX_FLOWS] = {0};
    bool moving[MAX_FLOWS] = {false}, over[MAX_FLOWS] = {false};
    for (uint32_t i = 0; i < s->n_flows; i++)
        left[i] = (double)s->flow[i].spec.bytes;
    uint32_t n_over = 0;
    for (double t = 0; n_over < s->n_flows; t += step) {
        bool changed = false;
        for (uint32_t i = 0; i < s->n_flows; i++) {
            double begin = (double)(s->flow[i].at_ns + s->flow[i].spec.latency_ns);
            if (moving[i] && left[i] <= 0) {
                moving[i] = false;
                over[i] = changed = true;
                end_ns[i] = t;
                n_over++;
            }
            if (!over[i] && !moving[i] && begin <= t)
                moving[i] = changed = true;
        }
        if (changed)
            slow_rates(s, moving, rate);
        for (uint32_t i = 0; i < s->n_flows; i++)
            if (moving[i])
                left[i] -= rate[i] * step / 1e9;
    }
}

static void the_time_stepped_twin_agrees(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "twin");
        struct scene s;
        uint64_t end_ns[MAX_FLOWS];
        double slow_ns[MAX_FLOWS];
        draw(&s, &rng);
        play(&s, end_ns, false);
        slow_play(&s, slow_ns);
        for (uint32_t i = 0; i < s.n_flows; i++) {
            double span = slow_ns[i] - (double)s.flow[i].at_ns;
            double off = slow_ns[i] - (double)end_ns[i];
            /* each of the others' ends comes up to a step late, rates are up to 1 MB/s low each */
            double room = 20 * (2 + 2 * (double)s.n_flows) + 0.02 * span;
            if (off < -room || off > room)
                fail_msg("seed %d flow %u: %.0f, twin %.0f", (int)seed, i, (double)end_ns[i],
                         slow_ns[i]);
        }
    }
}

static void more_bandwidth_is_never_later_without_contention(void **state)
{
    (void)state;
    uint64_t rng = kvc_rng_stream(3, "monotone");
    for (int n = 0; n < 2000; n++) {
        uint64_t bytes = kvc_rng_below(&rng, 1u << 30), latency = kvc_rng_below(&rng, 10000);
        double capacity = kvc_rng_unit(&rng) * 100 * GB + 1e6;
        double cap = kvc_rng_unit(&rng) * 50 * GB + 1e6;
        uint64_t before = UINT64_MAX;
        for (int i = 0; i < 4; i++, capacity *= 1 + kvc_rng_unit(&rng)) {
            struct kvc_links *l = make(&capacity, 1);
            on0(l, 0, bytes, latency, cap, 0);
            uint64_t t = next_end(l).time_ns;
            assert_true(t <= before);
            before = t;
            kvc_links_destroy(l);
        }
    }
}

static void steady_state_allocates_nothing_and_failures_leave_it_whole(void **state)
{
    (void)state;
    struct kvc_links *l = make((const double[]){10 * GB, 5 * GB}, 2);
    const uint32_t both[] = {0, 1};
    struct kvc_flow_end e;
    uint64_t t = 0, before = 0;
    for (int i = 0; i < 5000; i++) {
        if (i == 1000)
            before = kvc_alloc_count();
        start(l, t, 1 + (uint32_t)i % 2, both, 10000, 100, 0, 1);
        t += 2500;
        while (kvc_links_pop(l, t, &e))
            ;
    }
    assert_int_equal(kvc_alloc_count(), before);
    kvc_links_destroy(l);
    for (uint64_t nth = 1; nth < 60; nth++) {
        assert_int_equal(kvc_links_create(&l, NULL), KVC_OK);
        kvc_alloc_fail_after(nth);
        uint32_t id, ok = 0, ended = 0;
        if (kvc_links_add(l, "a", GB, &id, NULL) == KVC_OK)
            for (uint64_t i = 0; i < 40; i++) {
                struct kvc_flow_spec s = {.n_path = 1, .bytes = 100, .latency_ns = i % 3, .tag = i};
                ok += kvc_links_start(l, i, &s, NULL, NULL) == KVC_OK;
            }
        kvc_alloc_fail_after(0);
        while (kvc_links_pop(l, 1000000, &e))
            ended++;
        assert_int_equal(ok, ended);
        kvc_links_destroy(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_flow_takes_latency_plus_bytes_over_rate),
        cmocka_unit_test(equal_flows_share_equally_and_end_together_in_start_order),
        cmocka_unit_test(a_later_flow_slows_the_first_and_speeds_up_after_it),
        cmocka_unit_test(crossing_flows_get_the_textbook_rates),
        cmocka_unit_test(caps_bind_and_what_they_leave_goes_to_the_others),
        cmocka_unit_test(empty_flows_end_after_their_latency),
        cmocka_unit_test(cancelling_frees_the_bandwidth_and_keeps_the_bytes_moved),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(random_networks_are_fair_and_lose_nothing),
        cmocka_unit_test(the_time_stepped_twin_agrees),
        cmocka_unit_test(more_bandwidth_is_never_later_without_contention),
        cmocka_unit_test(steady_state_allocates_nothing_and_failures_leave_it_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
