/* SPDX-License-Identifier: Apache-2.0
 * What links give by size, number and devices: closed forms, laws that hold for every profile, and
 * points that others measured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/connector.h"
#include "models/link_use.h"

static struct kvc_link_use use(const struct kvc_link_profile *l, double op, double depth,
                               double devices)
{
    struct kvc_link_profile at = *l;
    struct kvc_link_use u;

    at.queue_depth.value = depth;
    kvc_link_use_of(&u, &at, false, op, devices);
    return u;
}

static double rate(const struct kvc_link_profile *l, double op, double depth, double devices)
{
    return use(l, op, depth, devices).bytes_per_s;
}

static void every_link_obeys_the_laws(void **state)
{
    (void)state;
    for (const char *const *n = kvc_link_names(); *n; n++) {
        const struct kvc_link_profile *l = kvc_link_find(*n);
        for (double devices = 1; devices < 32; devices *= 2)
            for (double depth = 0; depth < 300; depth = depth > 0 ? depth * 2 : 1)
                for (double op = 512; op < 1e8; op *= 2) {
                    double r = rate(l, op, depth, devices);
                    struct kvc_link_use u = use(l, op, depth, devices);
                    assert_true(r > 0 && r <= devices * l->read_bytes_per_s.value);
                    assert_true(r <= rate(l, 2 * op, depth, devices) * (1 + 1e-12));
                    assert_true(r <= rate(l, op, depth, 2 * devices) * (1 + 1e-12));
                    assert_true(r <= rate(l, op, 0, devices) * (1 + 1e-12));
                    if (depth > 0) {
                        assert_true(r <= rate(l, op, 2 * depth, devices) * (1 + 1e-12));
                        /* no more under way than there may be: rate x time = number */
                        assert_true(r / op * u.each_ns / 1e9 <= depth * devices * (1 + 1e-9));
                    }
                }
    }
}

/* One at a time, one after the other: the time of n is n times that of one. (Where that is but one,
 * the device still counts the time until it could begin another.) */
static void one_under_way_is_bound_by_its_latency(void **state)
{
    static const char *const names[] = {"nvme-gen4-x4", "nvme-gen5-x4", "gds", "object-store"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct kvc_link_profile *l = kvc_link_find(names[i]);
        double stream = l->stream_bytes_per_s.value > 0 ? l->stream_bytes_per_s.value
                                                        : l->read_bytes_per_s.value;
        for (double op = 4096; op < 1e8; op *= 4)
            for (uint64_t n = 1; n < 100; n += 7) {
                struct kvc_link_use u = use(l, op, 1, 1);
                double each = l->latency_ns.value + op / stream * 1e9;
                uint64_t bytes = n * (uint64_t)op;
                double all = (double)kvc_link_ahead_ns(&u, bytes) +
                             (double)bytes / u.bytes_per_s * 1e9;
                double next = n == 1 ? kvc_link_op_ns(l) : 0;
                assert_true(fabs(all - (double)n * each) <= 1 + 1e-9 * all + next);
            }
    }
}

/* q under way on d devices: rounds of q d of them, and never less than the bytes take. */
static void rounds_and_bytes_bound_a_transfer(void **state)
{
    (void)state;
    for (const char *const *n = kvc_link_names(); *n; n++) {
        const struct kvc_link_profile *l = kvc_link_find(*n);
        double before = 0;
        for (uint64_t ops = 1; ops < 200; ops++) {
            struct kvc_link_use u = use(l, 65536, 8, 2);
            double bytes = (double)ops * 65536;
            double all = (double)kvc_link_ahead_ns(&u, ops * 65536) + bytes / u.bytes_per_s * 1e9;
            double rounds = ceil((double)ops / 16) * u.each_ns + u.setup_ns;
            double wide = l->latency_ns.value + bytes / u.wide_bytes_per_s * 1e9;
            assert_true(fabs(all - fmax(rounds, wide)) <= 1 + 1e-9 * all);
            assert_true(all >= before - 1);
            before = all;
        }
    }
}

/* Lexar NM790 (KitGuru): a drive is known by its latency with one under way; with more it does what
 * Little's law says until they get in each other's way. 4 KiB, threads x depth. */
static void drives_follow_littles_law(void **state)
{
    static const struct {
        double under_way, reads_per_s, most_off;
    } seen[] = {{1, 20176, 0.05}, {4, 87037, 0.15}, {8, 132941, 0.25}, {32, 479318, 0.4}};
    const struct kvc_link_profile *l = kvc_link_find("nvme-gen4-x4");
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        double off = rate(l, 4096, seen[i].under_way, 1) / 4096 / seen[i].reads_per_s - 1;
        print_message("nvme-gen4-x4, %g under way: %+.0f %%\n", seen[i].under_way, 100 * off);
        assert_true(fabs(off) < seen[i].most_off);
    }
}

/* UCCL issue 931, GH200 with 400 Gb/s, one message under way: the first one gives the latency. */
static void messages_one_by_one(void **state)
{
    static const struct {
        double kb, gb_s;
    } seen[] = {{32, 3.08}, {128, 9.02}, {512, 20.42}, {2048, 35.53}, {8192, 47.66}};
    const struct kvc_link_profile *l = kvc_link_find("rdma-400");
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        double off = rate(l, seen[i].kb * 1024, 1, 1) / 1e9 / seen[i].gb_s - 1;
        print_message("rdma-400, %g KiB: %+.0f %%\n", seen[i].kb, 100 * off);
        assert_true(fabs(off) < 0.25);
    }
}

/* LMCache pull request 4161: 256 pieces at a time over NIXL and UCX, one rail of 100 Gb/s, GB/s. */
static void pieces_of_a_transfer(void **state)
{
    static const struct {
        double kb, gb_s, most_off;
    } seen[] = {{1, 0.715, 0.05}, {4, 4.688, 0.45}, {16, 11.667, 0.05}, {64, 12.091, 0.05},
                {256, 12.217, 0.05}};
    const struct kvc_link_profile *l = kvc_link_find("rdma-100");
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        double off = rate(l, seen[i].kb * 1024, 0, 1) / 1e9 / seen[i].gb_s - 1;
        print_message("rdma-100, %g KiB: %+.0f %%\n", seen[i].kb, 100 * off);
        assert_true(fabs(off) < seen[i].most_off);
    }
}

/* What vLLM's connectors made of pieces, GB/s: by what was published of others than set the rates.
 * Links of 400 Gb/s; H20 with 16 KiB, 65,536 tokens in some 0.85 s (agentic-kvc @dc8e6dd); slices
 * of 64 KiB (Mooncake issue 1668); whole pages of 1.04 MB, 73 MB in 2.1 ms (vLLM pull request
 * 53825). */
static void connectors_send_piece_by_piece(void **state)
{
    static const struct {
        double bytes, gb_s, most_off;
    } seen[] = {{16384, 7.6, 0.2}, {65536, 37, 0.05}, {1.04e6, 73 / 2.1, 0.25}};
    struct kvc_link_profile l = *kvc_link_find("rdma-400");
    double own = l.ops_per_s.value;
    (void)state;
    kvc_connector_limit(KVC_CONNECTOR_NONE, &l);
    assert_true(l.ops_per_s.value == own);
    kvc_connector_limit(KVC_CONNECTOR_MOONCAKE, &l);
    assert_true(l.ops_per_s.value < own && l.ops_per_s.source);
    for (size_t i = 0; i < 3; i++) {
        double off = rate(&l, seen[i].bytes, 0, 1) / 1e9 / seen[i].gb_s - 1;
        print_message("mooncake, %g bytes: %+.0f %%\n", seen[i].bytes, 100 * off);
        assert_true(fabs(off) < seen[i].most_off);
    }
    l = *kvc_link_find("rdma-200-efa"); /* its own limit is lower */
    own = l.ops_per_s.value;
    kvc_connector_limit(KVC_CONNECTOR_NIXL, &l);
    assert_true(l.ops_per_s.value == own);
    /* Qwen3-30B-A3B: 96 KiB a token in 48 layers' keys and values, 16 tokens a page */
    assert_true(kvc_connector_piece_bytes(98304, 16, 1, 96) == 16384);
    assert_true(kvc_connector_piece_bytes(98304, 16, 2, 96) == 8192);
}

/* Eight drives of the fourth generation, as Azure reads and writes them; GB/s. */
static void devices_add_up_to_what_they_reach_together(void **state)
{
    const struct kvc_link_profile *drive = kvc_link_find("nvme-gen4-x4");
    const struct kvc_link_profile *gds = kvc_link_find("gds"), *nic = kvc_link_find("rdma-400");
    struct kvc_link_use out;
    (void)state;
    assert_true(fabs(rate(drive, 1048576, 0, 8) / 55.3e9 - 1) < 0.02);
    kvc_link_use_of(&out, drive, true, 1048576, 8);
    assert_true(fabs(out.bytes_per_s / 33.9e9 - 1) < 0.02);
    assert_true(rate(gds, 8388608, 0, 4) == gds->all_read_bytes_per_s.value);
    assert_true(rate(nic, 1048576, 0, 4) == 4 * nic->read_bytes_per_s.value);
    assert_true(rate(nic, 1048576, 0, 8) == nic->all_read_bytes_per_s.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_link_obeys_the_laws),
        cmocka_unit_test(one_under_way_is_bound_by_its_latency),
        cmocka_unit_test(rounds_and_bytes_bound_a_transfer),
        cmocka_unit_test(drives_follow_littles_law),
        cmocka_unit_test(messages_one_by_one),
        cmocka_unit_test(pieces_of_a_transfer),
        cmocka_unit_test(connectors_send_piece_by_piece),
        cmocka_unit_test(devices_add_up_to_what_they_reach_together),
    };

    return cmocka_run_group_tests_name("link_use", tests, NULL, NULL);
}
