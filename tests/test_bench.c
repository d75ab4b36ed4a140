/* SPDX-License-Identifier: Apache-2.0
 * What bench measures with: reads under way really read, by io_uring and by threads; medians and
 * spreads; the CPUs of a node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/measure.h"
#include "bench/uring.h"

#define OP 4096
#define BLOCKS 64
#define DEPTH 8

/* Block i of the file holds i everywhere. */
static int make_file(void)
{
    char name[] = "/tmp/kvcast-test-XXXXXX", block[OP];
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    for (int i = 0; i < BLOCKS; i++) {
        memset(block, i, OP);
        assert_int_equal(write(fd, block, OP), OP);
    }
    return fd;
}

static void check_run(bool uring)
{
    int fd = make_file();
    char *buffer = calloc(DEPTH, OP);
    struct kvc_uring_job job = {.fd = fd, .op_bytes = OP, .file_bytes = OP * BLOCKS, .depth = DEPTH,
                                .buffer = buffer, .seconds = 0.02, .seed = 1};
    struct kvc_uring_result r;
    bool different = false;
    assert_non_null(buffer);
    memset(buffer, 0xff, DEPTH * OP);
    if (!uring) {
        kvc_uring_run_threads(&job, &r);
    } else if (!kvc_uring_run(&job, &r)) {
        free(buffer);
        close(fd);
        print_message("SKIPPED: no io_uring here\n");
        skip();
    }
    assert_int_equal(r.error, 0);
    assert_true(r.ops >= (uring ? DEPTH : 1) && r.seconds >= 0.02 && r.seconds < 5);
    for (size_t i = 0; i < DEPTH; i++) {
        const char *slot = buffer + i * OP;
        if (!uring && slot[0] == (char)0xff)
            continue; /* a thread that came too late */
        assert_in_range(slot[0], 0, BLOCKS - 1);
        for (size_t k = 1; k < OP; k++)
            assert_int_equal(slot[k], slot[0]);
        different |= slot[0] != buffer[0];
    }
    assert_true(different || !uring);
    job.file_bytes *= 2; /* half of it lies beyond the end */
    if (uring)
        kvc_uring_run(&job, &r);
    else
        kvc_uring_run_threads(&job, &r);
    assert_int_not_equal(r.error, 0);
    free(buffer);
    close(fd);
}

static void reads_by_io_uring_read(void **state)
{
    (void)state;
    check_run(true);
}

static void reads_by_threads_read(void **state)
{
    (void)state;
    check_run(false);
}

static void medians_and_spreads(void **state)
{
    struct kvc_bench_row row = {0};
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, median;
    (void)state;
    kvc_bench_settle(odd, 3, &median, &row);
    assert_true(median == 2 && row.spread == 1 && row.repeats == 3);
    kvc_bench_settle(even, 4, &median, &row);
    assert_true(median == 2.5 && row.spread == 3 / 2.5);
}

static void the_machine_has_cpus(void **state)
{
    struct kvc_bench_machine m;
    int cpu[1024];
    (void)state;
    kvc_bench_machine(&m);
    assert_true(m.nodes >= 1 && m.cpus >= 1);
    assert_true(kvc_bench_node_cpus(0, cpu, 1024) >= 1);
    assert_int_equal(kvc_bench_node_cpus(4000, cpu, 1024), 0);
}

struct heard {
    size_t rows;
    double least;
};

static bool hear(void *user, const struct kvc_bench_row *row)
{
    struct heard *h = user;
    h->rows++;
    h->least = row->rate < h->least ? row->rate : h->least;
    return h->rows < 2; /* and stop */
}

static void say(void *user, const char *text)
{
    (void)user;
    (void)text;
}

static void a_sink_can_stop_it(void **state)
{
    struct heard h = {0, 1e18};
    const struct kvc_bench_options o = {.quick = true};
    const struct kvc_bench_sink sink = {.user = &h, .row = hear, .note = say};
    (void)state;
    assert_int_equal(kvc_bench_zstd(&o, &sink, NULL), KVC_ERR_CANCELLED);
    assert_int_equal(h.rows, 2);
    assert_true(h.least > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_by_io_uring_read),
        cmocka_unit_test(reads_by_threads_read),
        cmocka_unit_test(medians_and_spreads),
        cmocka_unit_test(the_machine_has_cpus),
        cmocka_unit_test(a_sink_can_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
