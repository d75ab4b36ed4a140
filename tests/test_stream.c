/* SPDX-License-Identifier: Apache-2.0
 * Bytes and lines of logs: packed or not, whole or not, text or not. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/trace_files.h"
#include "traces/parse/stream.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define ROWS 60000

static char *text; /* ROWS lines, each its number */
static size_t text_size;

static int setup(void **state)
{
    text = kvc_malloc(ROWS, 64);
    for (unsigned i = 0; text && i < ROWS; i++)
        text_size += (size_t)sprintf(text + text_size, "%u %.*s%s\n", i, (int)(i * 7 % 40),
                                     "----------------------------------------",
                                     i % 3 ? "" : "\r");
    return text ? trace_files_setup(state) : -1;
}

static int teardown(void **state)
{
    kvc_free(text);
    return trace_files_teardown(state);
}

static size_t pack_zstd(unsigned char *out, size_t cap, const char *from, size_t n)
{
    size_t size = ZSTD_compress(out, cap, from, n, 3);
    assert_false(ZSTD_isError(size));
    return size;
}

static size_t pack_gzip(unsigned char *out, size_t cap, const char *from, size_t n)
{
    z_stream z = { 0 };
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)from;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t size = z.total_out;
    deflateEnd(&z);
    return size;
}

/* Lines of the file; 0 on failure, told in err. */
static uint64_t count_lines(const char *path, bool check, struct kvc_error *err)
{
    struct kvc_stream *s = NULL;
    struct kvc_lines l;
    enum kvc_line_kind kind = KVC_LINE_TEXT;
    const char *p;
    size_t n;
    if (kvc_stream_open(&s, path, err) != KVC_OK)
        return 0;
    assert_true(kvc_lines_init(&l, s));
    enum kvc_status status;
    while ((status = kvc_lines_next(&l, &kind, &p, &n, err)) == KVC_OK && kind != KVC_LINE_END) {
        unsigned i = 0, digits = 0;
        while (digits < n && p[digits] >= '0' && p[digits] <= '9')
            i = i * 10 + (unsigned)(p[digits++] - '0');
        assert_true(!check || (i + 1 == l.line && n == digits + 1 + i * 7 % 40));
    }
    uint64_t lines = status == KVC_OK ? l.line : 0;
    kvc_lines_clear(&l);
    kvc_stream_close(s);
    return lines;
}

static void packed_or_not_the_lines_are_the_same(void **state)
{
    (void)state;
    size_t cap = text_size + 4096, half = text_size / 2;
    unsigned char *out = kvc_malloc(cap, 1);
    static const unsigned char skippable[] = { 0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c' };
    assert_non_null(out);

    assert_int_equal(count_lines(trace_file("plain", text, text_size), true, NULL), ROWS);
    assert_int_equal(count_lines(trace_file("open", text, text_size - 1), true, NULL), ROWS);

    size_t n = pack_zstd(out, cap, text, half);
    n += pack_zstd(out + n, cap - n, text + half, text_size - half);
    assert_int_equal(count_lines(trace_file("z", out, n), true, NULL), ROWS);
    memmove(out + sizeof(skippable), out, n);
    memcpy(out, skippable, sizeof(skippable));
    n += sizeof(skippable);
    assert_int_equal(count_lines(trace_file("zs", out, n), true, NULL), ROWS);

    n = pack_gzip(out, cap, text, half);
    n += pack_gzip(out + n, cap - n, text + half, text_size - half);
    assert_int_equal(count_lines(trace_file("g", out, n), true, NULL), ROWS);
    memset(out + n, 0, 100); /* as tapes pad */
    assert_int_equal(count_lines(trace_file("gp", out, n + 100), true, NULL), ROWS);
    kvc_free(out);
}

static void cut_and_damaged_files_are_told(void **state)
{
    (void)state;
    size_t cap = text_size + 4096;
    unsigned char *out = kvc_malloc(cap, 1);
    assert_non_null(out);
    for (int gzip = 0; gzip < 2; gzip++) {
        size_t n = gzip ? pack_gzip(out, cap, text, text_size)
                        : pack_zstd(out, cap, text, text_size);
        for (size_t cut = 4; cut < n; cut += n / 37) {
            struct kvc_error err = { 0 };
            assert_int_equal(count_lines(trace_file("cut", out, cut), false, &err), 0);
            assert_int_equal(err.status, KVC_ERR_INPUT);
            assert_non_null(strstr(err.text, "cut short"));
            assert_true(err.byte > 0 && err.byte <= cut);
            assert_non_null(strstr(err.file, "/cut"));
        }
        out[n / 2] ^= 0x55; /* may give other lines, never a crash; gzip's sums find it */
        struct kvc_error err = { 0 };
        uint64_t lines = count_lines(trace_file("bad", out, n), false, &err);
        assert_true(!gzip || (lines == 0 && err.status == KVC_ERR_INPUT));
        if (gzip) {
            n = pack_gzip(out, cap, text, text_size);
            memcpy(out + n, "more", 4);
            assert_int_equal(count_lines(trace_file("more", out, n + 4), false, &err), 0);
            assert_non_null(strstr(err.text, "followed by"));
        }
    }
    kvc_free(out);
}

static void what_is_no_log_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } cases[] = {
        { "", 0, "empty" },
        { "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", 60, "Git LFS" },
        { "\xfd" "7zXZ\0\0", 7, "xz" },
        { "BZh91AY", 7, "bzip2" },
        { "PK\x03\x04", 4, "zip" },
        { "PAR1\x15\x04", 6, "Parquet" },
        { "\xff\xfe{\0", 4, "UTF-16" },
        { "{\"timestamp\": 0\0}", 17, "NUL" },
        { "\x7f" "ELF\x02\x01", 6, "program" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *e = trace_import_error(trace_file("alien", cases[i].bytes, cases[i].n), NULL);
        assert_non_null(strstr(e, "/alien"));
        if (!strstr(e, cases[i].says))
            fail_msg("%s: %s", cases[i].says, e);
    }
    unsigned char packed[256]; /* a pointer packed is still a pointer, nothing packed is nothing */
    size_t n = pack_zstd(packed, sizeof(packed), cases[1].bytes, cases[1].n);
    assert_non_null(strstr(trace_import_error(trace_file("p.zst", packed, n), NULL), "Git LFS"));
    n = pack_gzip(packed, sizeof(packed), "", 0);
    assert_non_null(strstr(trace_import_error(trace_file("e.gz", packed, n), NULL), "no text"));
    assert_non_null(strstr(trace_import_error("/tmp", NULL), "directory"));
    assert_non_null(strstr(trace_import_error(trace_path("absent"), NULL), "No such file"));
}

#define GOOD "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,\"hash_ids\":[1]}\n"

static void nul_bytes_in_a_row_are_a_bad_row(void **state)
{
    (void)state;
    char rows[8192];
    size_t n = 0;
    struct kvc_import_report r;
    while (n < 5000)
        n += (size_t)sprintf(rows + n, GOOD);
    memcpy(rows + n, "{\"timestamp\":0,\0\0}\n" GOOD, 19 + sizeof(GOOD) - 1);
    n += 19 + sizeof(GOOD) - 1;
    struct kvc_trace *t = trace_import(trace_file("nul", rows, n), 0, &r);
    assert_int_equal(r.bad, 1);
    assert_non_null(strstr(r.shown[0].text, "NUL"));
    kvc_trace_destroy(t);
}

static void a_byte_order_mark_is_no_row(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(trace_text("bom", "\xef\xbb\xbf" GOOD GOOD), 0, &r);
    assert_int_equal(r.accepted, 2);
    assert_int_equal(r.odd, 0);
    kvc_trace_destroy(t);
}

/* Packs good row, mib x 2^20 bytes in one line, good row. */
static const char *huge_line(const char *name, unsigned mib)
{
    static char chunk[1 << 20];
    const char *path = trace_path(name);
    FILE *f = fopen(path, "wb");
    ZSTD_CCtx *z = ZSTD_createCCtx();
    size_t cap = ZSTD_compressBound(sizeof(chunk)), n;
    char *out = kvc_malloc(cap, 1);
    assert_true(f && z && out);
    memset(chunk, '1', sizeof(chunk));
    static const char begin[] = GOOD "{\"timestamp\":0,\"input_length\":512,\"hash_ids\":[",
                      end[] = "]}\n" GOOD;
    for (unsigned i = 0; i < mib + 2; i++) {
        const char *from = i == 0 ? begin : i == mib + 1 ? end : chunk;
        size_t size = i == 0 ? sizeof(begin) - 1 : i == mib + 1 ? sizeof(end) - 1 : sizeof(chunk);
        n = ZSTD_compressCCtx(z, out, cap, from, size, 1); /* a frame each */
        assert_true(!ZSTD_isError(n) && fwrite(out, 1, n, f) == n);
    }
    assert_int_equal(fclose(f), 0);
    ZSTD_freeCCtx(z);
    kvc_free(out);
    return path;
}

static void a_line_of_a_gibibyte_is_passed_over(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = huge_line("huge", 1024);
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_int_equal(r.accepted, 2);
    assert_int_equal(r.bad, 1);
    assert_int_equal(r.shown[0].line, 2);
    assert_non_null(strstr(r.shown[0].text, "32 MiB"));
    assert_true(r.bytes_in > (uint64_t)1 << 30);
    kvc_trace_destroy(t);
    struct kvc_import_options strict = { .struct_size = sizeof(strict), .strict = true };
    assert_non_null(strstr(trace_import_error(huge_line("huge", 33), &strict), "/huge:2:"));
}

static void stdin_is_read_like_a_file(void **state)
{
    (void)state;
    int pipe_fd[2], saved = dup(STDIN_FILENO);
    size_t cap = text_size + 4096;
    unsigned char *out = kvc_malloc(cap, 1);
    assert_true(out && pipe(pipe_fd) == 0);
    size_t n = pack_zstd(out, cap, text, text_size);
    pid_t child = fork();
    if (child == 0) {
        close(pipe_fd[0]);
        for (size_t i = 0; i < n; i += 1000) /* in small pieces */
            if (write(pipe_fd[1], out + i, n - i < 1000 ? n - i : 1000) < 0)
                _exit(1);
        _exit(0);
    }
    close(pipe_fd[1]);
    dup2(pipe_fd[0], STDIN_FILENO);
    close(pipe_fd[0]);
    uint64_t lines = count_lines("-", true, NULL);
    dup2(saved, STDIN_FILENO);
    close(saved);
    waitpid(child, NULL, 0);
    assert_int_equal(lines, ROWS);
    kvc_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_or_not_the_lines_are_the_same),
        cmocka_unit_test(cut_and_damaged_files_are_told),
        cmocka_unit_test(what_is_no_log_is_named),
        cmocka_unit_test(nul_bytes_in_a_row_are_a_bad_row),
        cmocka_unit_test(a_byte_order_mark_is_no_row),
        cmocka_unit_test(a_line_of_a_gibibyte_is_passed_over),
        cmocka_unit_test(stdin_is_read_like_a_file),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
