/* SPDX-License-Identifier: Apache-2.0
 * nvbandwidth, text and --json: copies between host and GPU, a matrix of GB/s a test. Each value
 * is a run of copies of one buffer back to back, 512 MiB unless --bufferSize says otherwise. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "studies/calibrate/readings.h"

#define BUFFER_MIB 512.0

static const struct {
    const char *name;
    enum kvc_towards direction;
    bool both;
} tests[] = { /* copies as an engine makes them: by copy engine and by kernel */
    {"host_to_device_memcpy_ce", KVC_TOWARDS_GPU, false},
    {"device_to_host_memcpy_ce", KVC_FROM_GPU, false},
    {"host_to_device_memcpy_sm", KVC_TOWARDS_GPU, false},
    {"device_to_host_memcpy_sm", KVC_FROM_GPU, false},
    {"host_to_device_bidirectional_memcpy_ce", KVC_TOWARDS_GPU, true},
    {"device_to_host_bidirectional_memcpy_ce", KVC_FROM_GPU, true},
};
#define N_TESTS (sizeof tests / sizeof tests[0])

static size_t test_of(const char *name, size_t n)
{
    size_t i = 0;

    while (i < N_TESTS && (strlen(tests[i].name) != n || strncmp(tests[i].name, name, n) != 0))
        i++;
    return i;
}

static bool is_kernel_copy(size_t test)
{
    return strstr(tests[test].name, "_sm") != NULL;
}

/* Copy engines are what a transfer uses; copies by a kernel count only where there is no other. */
struct found {
    struct kvc_readings *r;
    double bytes, unit; /* of the buffer; bytes a second that a 1 of the test's matrix is */
    bool by_engine[2];
    size_t others;
};

/* As stated above a matrix: "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"; NAN: another than
 * is known. */
static double unit_in(const char *text, size_t n)
{
    static const struct {
        const char *name;
        double bytes_per_s;
    } units[] = {{"(GB/s)", 1e9}, {"(MB/s)", 1e6}, {"(GiB/s)", 1073741824}, {"(MiB/s)", 1048576}};
    const char *per = NULL;

    for (size_t i = 0; i + 3 <= n; i++)
        per = strncmp(text + i, "/s)", 3) == 0 ? text + i + 3 : per;
    for (size_t i = 0; per && i < sizeof units / sizeof units[0]; i++) {
        size_t k = strlen(units[i].name);
        if ((size_t)(per - text) >= k && strncmp(per - k, units[i].name, k) == 0)
            return units[i].bytes_per_s;
    }
    return per ? NAN : 1e9;
}

/* A cell of a matrix; N/A stands where there is no such pair. */
static enum kvc_status add(struct found *f, size_t test, const char *text, size_t n, uint64_t line,
                           struct kvc_error *err)
{
    double value = kvc_readings_number(text, n);
    const struct kvc_reading row = {.direction = tests[test].direction, .both = tests[test].both,
                                    .op_bytes = f->bytes,
                                    .depth = INFINITY, .bytes_per_s = value * f->unit,
                                    .spread = NAN,
                                    .line = line};

    if (n == 3 && strncmp(text, "N/A", 3) == 0)
        return KVC_OK;
    if (!isfinite(row.bytes_per_s)) {
        kvc_readings_note(f->r, "line %llu: %s says \"%.*s\", which is no bandwidth in a known "
                                "unit (GB/s): left out; run it again", (unsigned long long)line,
                          tests[test].name, n < 40 ? (int)n : 40, text);
        return KVC_OK;
    }
    if (is_kernel_copy(test) && f->by_engine[row.direction]) {
        kvc_readings_note(f->r, "%s left out beside the copy engine's figure", tests[test].name);
        return KVC_OK;
    }
    f->by_engine[row.direction] |= !is_kernel_copy(test);
    return kvc_readings_row(f->r, &row, err);
}

static void tell(struct found *f, bool stated)
{
    if (!stated)
        kvc_readings_note(f->r,
                          "does not state its buffer; taken as nvbandwidth's default, 512 MiB");
    if (f->others)
        kvc_readings_note(f->r,
                          "%zu tests of other paths (GPU to GPU, latency of loads) are not used",
                          f->others);
}

/* ---- text ---- */

/* "Running NAME.", a line on what is shown and its unit, a line of columns, then rows: index,
 * values. */
static enum kvc_status add_row(struct found *f, size_t test, const char *text, size_t n,
                               uint64_t line, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    bool index = true;

    for (size_t i = 0; i < n && status == KVC_OK;) {
        i += strspn(text + i, " ");
        size_t k = strcspn(text + i, " \r\n");
        if (i >= n || !k)
            break;
        if (!index)
            status = add(f, test, text + i, k, line, err);
        index = false;
        i += k;
    }
    return status;
}

static bool starts_with_number(const char *text, size_t n)
{
    size_t blanks = strspn(text, " ");

    return blanks < n && text[blanks] >= '0' && text[blanks] <= '9';
}

static enum kvc_status read_text(struct found *f, const char *at, struct kvc_error *err)
{
    const char *text;
    size_t n, test = N_TESTS, rows = 0;
    uint64_t line = 0;
    enum kvc_status status = KVC_OK;

    while (status == KVC_OK && (text = kvc_readings_line(&at, &n))) {
        while (n && (*text == ' ' || *text == '\t') &&
               strncmp(text + strspn(text, " \t"), "Running ", 8) == 0)
            text++, n--;
        line++;
        if (strncmp(text, "Running ", 8) == 0) {
            size_t name = strcspn(text + 8, ". \r\n");
            test = test_of(text + 8, name);
            f->others += test == N_TESTS;
            rows = 0;
            f->unit = 1e9;
        } else if (strncmp(text, "SUM ", 4) == 0 || n == 0) {
            test = n ? N_TESTS : test;
        } else if (test < N_TESTS && !starts_with_number(text, n)) {
            f->unit = rows ? f->unit : unit_in(text, n);
        } else if (test < N_TESTS && rows++ > 0) {
            status = add_row(f, test, text, n, line, err);
        }
    }
    return status;
}

/* ---- JSON ---- */

/* Newer versions quote their numbers. */
static enum kvc_status add_cell(struct found *f, size_t test, const struct kvc_jval *v,
                                struct kvc_error *err)
{
    char number[32];
    const char *text = kvc_jval_string(v);
    double value = NAN;

    if (!text) {
        snprintf(number, sizeof number, "%.9g", kvc_jval_number(v, &value) ? value : NAN);
        text = number;
    }
    return add(f, test, text, strlen(text), kvc_jval_line(v), err);
}

static enum kvc_status read_case(struct found *f, const struct kvc_jval *c, struct kvc_error *err)
{
    const struct kvc_jval *name = kvc_jval_member(c, "name"), *m, *m_unit;
    const char *text = name ? kvc_jval_string(name) : NULL;
    size_t test = text ? test_of(text, strlen(text)) : N_TESTS;
    enum kvc_status status = KVC_OK;

    if (test == N_TESTS) {
        f->others++;
        return KVC_OK;
    }
    m = kvc_jval_member(c, "bandwidth_matrix");
    if (!m) {
        kvc_readings_note(f->r, "%s has no figures: it was waived or failed", text);
        return KVC_OK;
    }
    m_unit = kvc_jval_member(c, "bandwidth_description");
    text = m_unit ? kvc_jval_string(m_unit) : NULL;
    f->unit = text ? unit_in(text, strlen(text)) : 1e9;
    for (const struct kvc_jval *row = kvc_jval_first(m); row; row = kvc_jval_next(row))
        for (const struct kvc_jval *v = kvc_jval_first(row); v && status == KVC_OK;
             v = kvc_jval_next(v))
            status = add_cell(f, test, v, err);
    return status;
}

static const struct kvc_jval *json_of(const struct kvc_readings_text *t)
{
    return t->json ? kvc_jval_member(t->json, "nvbandwidth") : NULL;
}

static enum kvc_status read_json(struct found *f, const struct kvc_jval *root, bool *stated,
                                 struct kvc_error *err)
{
    const struct kvc_jval *cases = kvc_jval_member(root, "testcases");
    const struct kvc_jval *size = kvc_jval_member(root, "bufferSize");
    enum kvc_status status = KVC_OK;
    double mib;

    if (size && kvc_jval_number(size, &mib) && mib >= 1) {
        f->bytes = mib * 1048576;
        *stated = true;
    }
    for (const struct kvc_jval *c = cases ? kvc_jval_first(cases) : NULL; c && status == KVC_OK;
         c = kvc_jval_next(c))
        status = read_case(f, c, err);
    return status;
}

static bool sniff(const struct kvc_readings_text *t)
{
    return json_of(t) || strstr(t->text, "nvbandwidth Version") ||
           strstr(t->text, "_memcpy_ce.\n") || strstr(t->text, "_memcpy_sm.\n");
}

static enum kvc_status read(struct kvc_readings *r, const struct kvc_readings_text *t,
                            struct kvc_error *err)
{
    struct found f = {.r = r, .bytes = BUFFER_MIB * 1048576};
    bool stated = false;
    enum kvc_status status = json_of(t) ? read_json(&f, json_of(t), &stated, err)
                                        : read_text(&f, t->text, err);

    if (status == KVC_OK)
        tell(&f, stated);
    return status;
}

const struct kvc_reader kvc_reader_nvbandwidth = {
    .name = "nvbandwidth", .what = "nvbandwidth, text or --json", .link = NULL,
    .sniff = sniff, .read = read};
