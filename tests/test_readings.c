/* SPDX-License-Identifier: Apache-2.0
 * What is read from the output of nvbandwidth, fio, perftest, nixlbench and of a profile: small
 * files in the tools' own forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "studies/calibrate/readings.h"

static char path[64];

static void write_text(const char *text)
{
    snprintf(path, sizeof path, "/tmp/kvcast-readings-%d", (int)getpid());
    unlink(path); /* a file that is written over is flushed by some file systems */
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void read_text(struct kvc_readings *r, const char *text, const struct kvc_reader *expected)
{
    struct kvc_error err = {0};
    write_text(text);
    memset(r, 0, sizeof *r);
    if (kvc_readings_add(r, path, NULL, NULL, &err) != KVC_OK)
        fail_msg("%s", err.text);
    assert_ptr_equal(r->file[0].reader, expected);
}

static void expect(const struct kvc_readings *r, size_t i, enum kvc_towards direction,
                   double op_bytes, double depth, double bytes_per_s)
{
    const struct kvc_reading *row = &r->row[i];
    if (i >= r->n || row->direction != direction || fabs(row->op_bytes / op_bytes - 1) > 1e-4 ||
        !(row->depth == depth || fabs(row->depth / depth - 1) < 1e-9) ||
        fabs(row->bytes_per_s / bytes_per_s - 1) > 1e-4)
        fail_msg("row %zu of %zu: direction %d, %g bytes, depth %g, %g bytes/s", i, r->n,
                 row->direction, row->op_bytes, row->depth, row->bytes_per_s);
}

static bool noted(const struct kvc_readings *r, const char *words)
{
    return r->notes.buf && strstr(r->notes.buf, words);
}

static void nvbandwidth_text(void **state)
{
    struct kvc_readings r;
    (void)state;
    read_text(&r,
              "nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\n"
              "Device 0: NVIDIA H100 80GB HBM3 (00000009:01:00)\n\n"
              "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth ("
              "GB/s)\n"
              "           0         1\n 0     55.37       N/A\n\nSUM host_to_device_memcpy_ce 5"
              "5.37\n\n"
              "Running device_to_host_memcpy_ce.\nmemcpy CE CPU(row) <- GPU(column) bandwidth ("
              "GB/s)\n"
              "           0         1\n 0     55.06     52.01\n\nSUM device_to_host_memcpy_ce 1"
              "07.07\n\n"
              "Running host_to_device_memcpy_sm.\nmemcpy SM CPU(row) -> GPU(column) bandwidth ("
              "GB/s)\n"
              "           0\n 0     35.20\n\nSUM host_to_device_memcpy_sm 35.20\n"
              "Running host_to_device_bidirectional_memcpy_ce.\nmemcpy CE CPU(row) <-> "
              "GPU(column)\n"
              "           0\n 0     41.02\n\nSUM host_to_device_bidirectional_memcpy_ce 41.02\n"
              "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) band"
              "width (GB/s)\n"
              "           0         1\n 0       N/A    396.40\n 1    396.40       N/A\n",
              &kvc_reader_nvbandwidth);
    assert_int_equal(r.n, 4);
    expect(&r, 0, KVC_TOWARDS_GPU, 512 << 20, INFINITY, 55.37e9);
    expect(&r, 1, KVC_FROM_GPU, 512 << 20, INFINITY, 55.06e9);
    expect(&r, 2, KVC_FROM_GPU, 512 << 20, INFINITY, 52.01e9);
    expect(&r, 3, KVC_TOWARDS_GPU, 512 << 20, INFINITY, 41.02e9);
    assert_true(r.row[3].both && !r.row[2].both);
    assert_true(noted(&r, "host_to_device_memcpy_sm left out"));
    assert_true(noted(&r, "1 tests of other paths"));
    kvc_readings_clear(&r);
}

static void nvbandwidth_json(void **state)
{
    struct kvc_readings r;
    (void)state;
    read_text(&r,
              "WARNING: something\n{\n \"nvbandwidth\" : {\n \"CUDA Runtime Version\" : 12040,\n"
              " \"bufferSize\" : 64,\n \"testcases\" : [\n {\n \"bandwidth_description\" : \"me"
              "mcpy CE CPU(row) -> "
              "GPU(column) bandwidth (GB/s)\",\n \"bandwidth_matrix\" : [ [ \"26.03\", \"N/A\" "
              "] ],\n \"name\" : "
              "\"host_to_device_memcpy_ce\",\n \"status\" : \"Passed\", \"sum\": 26.03 },\n"
              "{ \"name\" : \"device_to_host_memcpy_ce\", \"status\" : \"Waived\" },\n"
              "{ \"name\" : \"device_to_host_memcpy_sm\", \"bandwidth_matrix\": [[25.5]], \"sta"
              "tus\" : \"Passed\" }]}}\n",
              &kvc_reader_nvbandwidth);
    assert_int_equal(r.n, 2);
    expect(&r, 0, KVC_TOWARDS_GPU, 64 << 20, INFINITY, 26.03e9);
    expect(&r, 1, KVC_FROM_GPU, 64 << 20, INFINITY, 25.5e9);
    assert_true(noted(&r, "device_to_host_memcpy_ce has no figures"));
    kvc_readings_clear(&r);
}

#define FIO_JOB(group, options, read, write)                                                     \
    "{\"jobname\":\"j\",\"groupid\":" group ",\"error\":0,\"job options\":{" options "}," \
    "\"read\":{" read "},\"write\":{" write "}}"
#define SIDE(bytes, iops) "\"bw_bytes\":" bytes ",\"iops\":" iops

static void fio_jobs(void **state)
{
    struct kvc_readings r;
    (void)state;
    read_text(&r,
              "fio: this is a warning\n{\"fio version\":\"fio-3.36\",\"global options\":{\"dire"
              "ct\":\"1\","
              "\"ioengine\":\"io_uring\",\"iodepth\":\"32\"},\"jobs\":["
              FIO_JOB("0", "\"rw\":\"randread\"", SIDE("1310720000", "320000"), SIDE("0", "0")) ","
              FIO_JOB("1", "\"rw\":\"write\",\"iodepth\":\"8\",\"numjobs\":\"4\"", SIDE("0", "0"),
                      SIDE("6000000000", "5722.0459")) ","
              /* two clones, each its own entry */
              FIO_JOB("2", "\"rw\":\"read\",\"numjobs\":\"2\"", SIDE("1000000000", "1000"), "") ","
              FIO_JOB("2", "\"rw\":\"read\",\"numjobs\":\"2\"", SIDE("1200000000", "1200"), "") ","
              FIO_JOB("3", "\"rw\":\"randrw\"", SIDE("1000", "1"), SIDE("1000", "1")) ","
              FIO_JOB("4", "\"rw\":\"read\",\"direct\":\"0\"", SIDE("90000000000", "1000"), "") ","
              FIO_JOB("5", "\"rw\":\"read\",\"ioengine\":\"psync\"", SIDE("40960000", "1000"
              "0"), "") ","
              FIO_JOB("6", "\"rw\":\"read\"", SIDE("4096000", "1000"), "") ","
              FIO_JOB("6", "\"rw\":\"read\"", SIDE("65536000", "1000"), "") "]}",
              &kvc_reader_fio);
    assert_int_equal(r.n, 4);
    expect(&r, 0, KVC_TOWARDS_GPU, 4096, 32, 1310720000);
    expect(&r, 1, KVC_FROM_GPU, 1048576, 32, 6e9);
    expect(&r, 2, KVC_TOWARDS_GPU, 1e6, 64, 2.2e9);
    expect(&r, 3, KVC_TOWARDS_GPU, 4096, 1, 40960000); /* psync waits for each */
    assert_true(noted(&r, "reads and writes at once"));
    assert_true(noted(&r, "page cache"));
    assert_true(noted(&r, "--stonewall"));
    kvc_readings_clear(&r);
}

static void perftest_tables(void **state)
{
    struct kvc_readings r;
    (void)state;
    read_text(&r,
              "----\n                    RDMA_Read BW Test\n Dual-port       : OFF\t\tDevice   "
              "      : mlx5_0\n"
              " Number of qps   : 2\t\tTransport type : IB\n Outstand reads  : 16\n TX depth   "
              "     : 128\n"
              " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
              "Conflicting CPU frequency values detected: 1846.550000 != 2596.396000. CPU Frequ"
              "ency is not max.\n"
              " 65536      1000             46567.34            40000.00\t\t     0.640000\n"
              "----\n                    RDMA_Write BW Test\n TX depth        : 128\n"
              " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
              " 1048576      1000             390.34            388.00\t\t     0.046253\n"
              "----\n                    RDMA_Write Bidirectional BW Test\n"
              " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
              " 1048576      1000             700.34            700.00\t\t     0.083446\n"
              "----\n                    RDMA_Read Latency Test\n"
              " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec"
              "]    t_stdev[usec]   "
              "99% percentile[usec]   99.9% percentile[usec] \n"
              " 4096       1000          2.10           3.05         2.51     \t       2.50    "
              "    \t0.00   \t\t2.9    \t\t3.0 \n",
              &kvc_reader_perftest);
    assert_int_equal(r.n, 3);
    expect(&r, 0, KVC_TOWARDS_GPU, 65536, 32, 40000.0 * 1048576);
    expect(&r, 1, KVC_FROM_GPU, 1048576, 128, 48.5e9);
    expect(&r, 2, KVC_TOWARDS_GPU, 4096, 1, 4096 / 2.5e-6);
    assert_true(noted(&r, "bidirectional"));
    kvc_readings_clear(&r);
}

static void perftest_json_tells_its_unit_by_the_messages(void **state)
{
    struct kvc_readings r;
    (void)state;
    read_text(&r, "{\"test_info\":{\"test\":\"RDMA_Write_BW_Test\",\"Number_of_qps\":1,\"TX_dep"
    "th\":128},"
                  "\"results\":{\"MsgSize\":65536,\"BW_peak\":5293.52,\"BW_average\":2229.27,\""
                  "MsgRate\":0.035668}}",
              &kvc_reader_perftest);
    expect(&r, 0, KVC_FROM_GPU, 65536, 128, 2229.27 * 1048576);
    kvc_readings_clear(&r);
    read_text(&r, "{\"test_info\":{\"test\":\"RDMA_Read_BW_Test\",\"TX_depth\":128},"
                  "\"results\":[{\"MsgSize\":65536,\"BW_average\":388.2,\"MsgRate\":0.740433}]}",
              &kvc_reader_perftest);
    expect(&r, 0, KVC_TOWARDS_GPU, 65536, 128, 388.2e9 / 8);
    kvc_readings_clear(&r);
}

static void nixlbench_tables_of_old_and_new(void **state)
{
    struct kvc_readings r;
    (void)state;
    read_text(&r,
              "Mode (--mode=[SG,MG])                                       : SG\n"
              "Op type (--op_type=[READ,WRITE])                            : READ\n"
              "Num threads (--num_threads=N)                               : 4\n-----\n"
              "Block Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)  Avg Prep (us)\n"
              "-----\n"
              "4096                1              0.027182       602.8          492.5\n"
              "67108864            1              22.96          11691.7        500.1\n",
              &kvc_reader_nixl);
    assert_int_equal(r.n, 2);
    expect(&r, 0, KVC_TOWARDS_GPU, 4096, 4, 27182000);
    expect(&r, 1, KVC_TOWARDS_GPU, 67108864, 4, 22.96e9);
    assert_true(r.row[0].batch);
    assert_string_equal(r.file[0].link, "rdma-400");
    kvc_readings_clear(&r);
    read_text(&r,
              "Backend (--backend=[UCX,GDS,GDS_MT,POSIX,Mooncake,HF3FS,OBJ,AZURE_BLOB]): GDS_MT\n"
              "Storage enable direct (--storage_enable_direct=[0,1])       : 0\n"
              "Op type (--op_type=[READ,WRITE])                            : READ\n-----\n"
              "Block Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)\n-----\n"
              "1048576             1              12.5           83.9\n", &kvc_reader_nixl);
    assert_string_equal(r.file[0].link, "gds");
    expect(&r, 0, KVC_TOWARDS_GPU, 1048576, 1, 12.5e9);
    kvc_readings_clear(&r);
    read_text(&r,
              "Block Size (B)      Batch Size     Avg Lat. (us)  B/W (MiB/Sec)  B/W (GiB/Sec)  "
              "B/W (GB/Sec)\n"
              "-----\n4096                64             3.11355        1254.6         1.22519 "
              "       1.31554\n",
              &kvc_reader_nixl);
    expect(&r, 0, KVC_FROM_GPU, 4096, 64, 1.31554e9);
    assert_true(noted(&r, "does not state its op type"));
    kvc_readings_clear(&r);
}

/* Held back on purpose; of all clients at once; with text behind that holds a brace. */
static void fio_of_other_ways_to_run_it(void **state)
{
    struct kvc_readings r;
    (void)state;
    read_text(&r,
              "{\"fio version\":\"fio-3.38\",\"global options\":{\"direct\":\"1\"},"
              "\"client_stats\":["
              FIO_JOB("0", "\"rw\":\"read\"", SIDE("4096000", "1000"), "") ","
              FIO_JOB("1", "\"rw\":\"read\",\"rate_iops\":\"10\"", SIDE("40960", "10"), "") ","
              "{\"jobname\":\"All clients\",\"read\":{" SIDE("4136960", "1010") "}}]}\n"
              "Run status group 0 {all jobs}:\n", &kvc_reader_fio);
    assert_int_equal(r.n, 1);
    expect(&r, 0, KVC_TOWARDS_GPU, 4096, 1, 4096000);
    assert_true(noted(&r, "held the job back"));
    kvc_readings_clear(&r);
}

static void perftest_latency_of_a_duration(void **state)
{
    struct kvc_readings r;
    (void)state;
    read_text(&r,
              "                    RDMA_Read Latency Test\n"
              " #bytes        #iterations       t_avg[usec]    tps average\n"
              " 4096          3000000           4.00           250000.00\n", &kvc_reader_perftest);
    expect(&r, 0, KVC_TOWARDS_GPU, 4096, 1, 4096 / 4e-6);
    kvc_readings_clear(&r);
}

static void what_is_none_of_them_is_refused(void **state)
{
    static const struct {
        const char *text, *words;
        const struct kvc_reader *reader;
    } c[] = {
        {"hello\n", "no output of a tool known here", NULL},
        {"{\"fio version\": \"fio-3.36\", \"jobs\": [", "If it was cut short", NULL},
        {"{\"fio version\": \"fio-3.36\", \"jobs\": 1}", "is no list", NULL},
        {"{\"fio version\": \"fio-3.36\", \"jobs\": []}", "no usable measurement", NULL},
        {"hello\n", "does not look like the output of fio", &kvc_reader_fio},
        {"Backend (--backend=[UCX,POSIX])    : POSIX\nStorage enable direct (..) : 0\n"
         "Block Size (B)      B/W (GB/Sec)\n4096                1\n", "page cache", NULL},
        {"{\"fio version\":\"fio-3.36\",\"jobs\":["
         FIO_JOB("0", "\"rw\":\"read\"", SIDE("1000000", "100"), "") "]}",
         "run fio with --direct=1", NULL},
        {"{\"nvbandwidth\":{\"testcases\":[{\"name\":\"host_to_device_memcpy_ce\","
         "\"bandwidth_matrix\":[[1e9]]}]}}", "make no sense", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        struct kvc_readings r = {0};
        struct kvc_error err = {0};
        write_text(c[i].text);
        assert_int_equal(kvc_readings_add(&r, path, c[i].reader, NULL, &err), KVC_ERR_INPUT);
        assert_string_equal(err.file, path);
        if (!strstr(err.text, c[i].words))
            fail_msg("%s: %s", c[i].text, err.text);
        kvc_readings_clear(&r);
    }
}

/* Beside a row that makes sense each of these stands with one that doesn't: that one is named, with
 * its line, and the other counts. */
static void what_makes_no_sense_is_left_out_and_named(void **state)
{
#define FIO(jobs)                                                                                  \
    "{\"fio version\":\"fio-3.36\",\"global options\":{\"direct\":\"1\"},\"jobs\":[\n" \
    FIO_JOB("0", "\"rw\":\"read\"", SIDE("1000000", "100"), "") ",\n" jobs "]}"
    static const struct {
        const char *text, *words;
    } c[] = {
        {FIO(FIO_JOB("1", "\"rw\":\"read\",\"iodepth\":\"1e20\"", SIDE("9000000", "100"), "")),
         "line 3: iodepth \"1e20\" is no whole number"},
        {FIO(FIO_JOB("1", "\"rw\":\"read\"", SIDE("-5", "100"), "")), "line 3: -0.05 bytes an"},
        {FIO(FIO_JOB("1", "\"rw\":\"read\"", SIDE("0", "0"), "")), "line 3: the job read and wrote "
         "nothing"},
        {"nvbandwidth Version: v0.8\nRunning host_to_device_memcpy_ce.\nmemcpy CE (GB/s)\n    0    "
         "1\n"
         " 0    55.37    nan\n", "line 5: host_to_device_memcpy_ce says \"nan\""},
        {"nvbandwidth Version: v0.8\nRunning host_to_device_memcpy_ce.\nmemcpy CE (GB/s)\n    0\n"
         " 0    55.37\nRunning device_to_host_memcpy_ce.\nmemcpy CE (Tb/s)\n    0\n 0    5.1\n",
         "line 9: device_to_host_memcpy_ce says \"5.1\", which is no bandwidth in a known unit"},
        {" RDMA_Read BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] "
         "MsgRate[Mpps]\n"
         " 65536 1000 390.3 388.0 0.740\n 131072 1000 0 0 0\n",
         "line 4: 131072 bytes an operation"},
        {" RDMA_Read BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] "
         "MsgRate[Mpps]\n"
         " 65536 1000 390.3 388.0 0.740\n 131072 1000 48500 48500 0.370\n",
         "line 4: bandwidth and messages a second are a factor of 125 apart"},
        {"Op type : READ\nBlock Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)\n"
         "4096                1              0.027182       602.8\n"
         "8192                1              nan            602.8\n", "line 4: 8192 bytes an"},
        {"{\"schema\":\"kvcast.profile.v1\",\"measurements\":[\n{\"link\":\"gds\","
         "\"op_bytes\":4096,\"bytes_per_s\":1e9},\n{\"link\":\"gds\",\"op_bytes\":4096,"
         "\"bytes_per_s\":0}]}",
         "line 3: 4096 bytes an"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        struct kvc_readings r = {0};
        struct kvc_error err = {0};
        write_text(c[i].text);
        if (kvc_readings_add(&r, path, NULL, NULL, &err) != KVC_OK)
            fail_msg("%zu: %s", i, err.text);
        if (r.n != 1 || !noted(&r, c[i].words))
            fail_msg("%zu: %zu rows; %s", i, r.n, r.notes.buf);
        kvc_readings_clear(&r);
    }
#undef FIO
}

/* A file again, a row again in one file, and another that differs in one figure. */
static void the_same_measurement_counts_once(void **state)
{
#define ROW(bytes, rate) "{\"link\":\"gds\",\"op_bytes\":" bytes ",\"bytes_per_s\":" rate "}"
    struct kvc_readings r;
    struct kvc_error err = {0};
    (void)state;
    read_text(&r, "{\"schema\":\"kvcast.profile.v1\",\"measurements\":[" ROW("4096", "1e9") ","
              ROW("8192", "1e9") "," ROW("4096", "1.000001e9") "," ROW("4096", "1000000000.4") "]}",
              &kvc_reader_bench);
    assert_int_equal(kvc_readings_add(&r, path, NULL, NULL, &err), KVC_OK);
    assert_int_equal(r.n, 8);
    assert_int_equal(kvc_readings_drop_repeats(&r, &err), KVC_OK);
    assert_int_equal(r.n, 3);
    expect(&r, 0, KVC_TOWARDS_GPU, 4096, INFINITY, 1e9);
    expect(&r, 1, KVC_TOWARDS_GPU, 8192, INFINITY, 1e9);
    expect(&r, 2, KVC_TOWARDS_GPU, 4096, INFINITY, 1.000001e9);
    assert_true(noted(&r, ": 1 of 4 rows stood in"));
    assert_true(noted(&r, ": 4 of 4 rows stood in"));
    kvc_readings_clear(&r);
#undef ROW
}

/* Damaged files of each tool: read or refused, never worse. */
static void damage_does_no_harm(void **state)
{
    static const char *const whole[] = {
        "nvbandwidth Version: v0.8\nRunning host_to_device_memcpy_ce.\nmemcpy CE\n    0    1\n"
        " 0     55.37       N/A\n\nSUM host_to_device_memcpy_ce 55.37\n",
        "{\"nvbandwidth\":{\"bufferSize\":64,\"testcases\":[{\"name\":\"host_to_device_memcpy_ce\","
        "\"bandwidth_matrix\":[[\"26.03\",\"N/A\"],[25]]}]}}",
        "{\"fio version\":\"fio-3.36\",\"global options\":{\"direct\":\"1\"},\"jobs\":["
        FIO_JOB("0", "\"rw\":\"read\",\"iodepth\":\"8\"", SIDE("1000000", "100"), "") "]}",
        " RDMA_Read BW Test\n TX depth        : 128\n #bytes #iterations BW peak[Gb/sec] "
        "BW average[Gb/sec] MsgRate[Mpps]\n 65536 1000 390.3 388.0 0.740\n",
        "{\"test_info\":{\"test\":\"RDMA_Read_BW_Test\"},\"results\":[{\"MsgSize\":65536,"
        "\"BW_average\":388.2,\"MsgRate\":0.740433}]}",
        "Op type : READ\nNum threads : 4\nBlock Size (B)      Batch Size     B/W (GB/Sec)   "
        "Avg Lat. (us)\n4096                1              0.027182       602.8\n",
        "{\"schema\":\"kvcast.profile.v1\",\"measurements\":[{\"link\":\"gds\",\"direction\":"
        "\"read\",\"op_bytes\":4096,\"depth\":null,\"batch\":false,\"bytes_per_s\":1e9}]}"};
    uint64_t rng = kvc_rng_stream(3, "readings");
    char text[1024];
    size_t read = 0;
    (void)state;
    for (size_t i = 0; i < 7 * 150; i++) {
        struct kvc_readings r = {0};
        struct kvc_error err = {0};
        snprintf(text, sizeof text, "%s", whole[i % 7]);
        size_t n = strlen(text);
        for (uint64_t k = i < 7 ? 0 : 1 + kvc_rng_below(&rng, 4); k; k--) {
            size_t at = (size_t)kvc_rng_below(&rng, n);
            if (kvc_rng_below(&rng, 8) == 0)
                text[n = at + 1] = '\0';
            text[at] = "0-9.eE {}[]\",:\nNaninf/A"[kvc_rng_below(&rng, 24)];
        }
        write_text(text);
        enum kvc_status status = kvc_readings_add(&r, path, NULL, NULL, &err);
        assert_true(status == KVC_OK || status == KVC_ERR_INPUT);
        assert_true(i >= 7 || status == KVC_OK);
        for (size_t k = 0; k < r.n && status == KVC_OK; k++)
            assert_true(r.row[k].bytes_per_s > 0 && r.row[k].op_bytes >= 1 && r.row[k].depth >= 1);
        read += status == KVC_OK;
        kvc_readings_clear(&r);
    }
    assert_in_range(read, 50, 7 * 150 - 50);
}

static int cleanup(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvbandwidth_text),
        cmocka_unit_test(nvbandwidth_json),
        cmocka_unit_test(fio_jobs),
        cmocka_unit_test(fio_of_other_ways_to_run_it),
        cmocka_unit_test(perftest_latency_of_a_duration),
        cmocka_unit_test(perftest_tables),
        cmocka_unit_test(perftest_json_tells_its_unit_by_the_messages),
        cmocka_unit_test(nixlbench_tables_of_old_and_new),
        cmocka_unit_test(what_is_none_of_them_is_refused),
        cmocka_unit_test(what_makes_no_sense_is_left_out_and_named),
        cmocka_unit_test(the_same_measurement_counts_once),
        cmocka_unit_test(damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, cleanup);
}
