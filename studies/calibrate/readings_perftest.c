/* SPDX-License-Identifier: Apache-2.0
 * perftest (ib_read_bw, ib_write_bw, ib_read_lat, ib_write_lat), its tables and --out_json: RDMA by
 * message size. The unit of a bandwidth is told by the messages per second beside it, since JSON
 * names none and old tables call MiB MB. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "studies/calibrate/readings.h"

#define SEND_TEST "send tests involve the other side's CPU: use ib_read_bw, ib_write_bw"

enum tool { NONE, BW, LAT };

struct test { /* what the lines above a table say */
    enum tool tool;
    enum kvc_towards direction;
    bool both, send;
    double depth, qps, outstanding;
    char unit; /* of a table's bandwidths: G(bit), M(iB), 0: not stated, ?: another */
    size_t mean; /* its column of mean latencies */
};

static double under_way(const struct test *t)
{
    double depth = t->depth > 0 ? t->depth : INFINITY;

    if (t->direction == KVC_TOWARDS_GPU && t->outstanding > 0 && t->outstanding < depth)
        depth = t->outstanding;
    return depth * (t->qps > 0 ? t->qps : 1);
}

/* bytes a second: average is in Gbit/s or MiB/s, and messages (of 1e6 a second) tell in which. */
static double rate_of(double average, double size, double messages, char unit)
{
    double by_messages = messages * 1e6 * size;

    if (unit == 'G' || (!unit && fabs(average * 0.125e9 / by_messages - 1) < 0.05))
        return average * 0.125e9;
    if (unit == 'M' || (!unit && fabs(average * 1048576 / by_messages - 1) < 0.05))
        return average * 1048576;
    return by_messages;
}

/* Messages a second are rounded to one a second: few of them tell little. */
static bool is_unit_wrong(double rate, double size, double messages)
{
    double by_messages = messages * 1e6 * size;

    return messages >= 1e-4 && rate > 0 && !(fabs(log(rate / by_messages)) < 0.1);
}

static enum kvc_status add_bw(struct kvc_readings *r, const struct test *t, double size,
                              double average, double messages, uint64_t line,
                              struct kvc_error *err)
{
    struct kvc_reading row = {.direction = t->direction, .op_bytes = size, .depth = under_way(t),
                              .bytes_per_s = rate_of(average, size, messages, t->unit),
                              .spread = NAN, .line = line};

    if (t->both) {
        kvc_readings_note(r,
                          "a bidirectional test (-b) measures both directions' sum: run without");
        return KVC_OK;
    }
    if (t->send) {
        kvc_readings_note(r, SEND_TEST);
        return KVC_OK;
    }
    if (is_unit_wrong(row.bytes_per_s, size, messages)) {
        kvc_readings_note(r, "line %llu: bandwidth and messages a second are a factor of %.3g "
                             "apart, so its unit isn't sure: left out; run with --report_gbits",
                          (unsigned long long)line, row.bytes_per_s / (messages * 1e6 * size));
        return KVC_OK;
    }
    return kvc_readings_row(r, &row, err);
}

/* ib_write_lat states half of a round trip, ib_read_lat a whole one: what an operation waits. */
static enum kvc_status add_lat(struct kvc_readings *r, const struct test *t, double size,
                               double us, uint64_t line, struct kvc_error *err)
{
    const struct kvc_reading row = {.direction = t->direction, .op_bytes = size, .depth = 1,
                                    .bytes_per_s = size / us * 1e6, .spread = NAN, .line = line};

    if (t->send) {
        kvc_readings_note(r, SEND_TEST);
        return KVC_OK;
    }
    if (!(us > 0)) {
        kvc_readings_note(r, "line %llu: a latency of %g us makes no sense: left out; run it again",
                          (unsigned long long)line, us);
        return KVC_OK;
    }
    return kvc_readings_row(r, &row, err);
}

static void name_test(struct test *t, const char *name)
{
    bool lat = strstr(name, "Latency") || strstr(name, "_lat") || strstr(name, "LAT");

    t->tool = lat ? LAT : BW;
    t->direction = strstr(name, "Read") || strstr(name, "read") ? KVC_TOWARDS_GPU : KVC_FROM_GPU;
    t->both = strstr(name, "Bidirectional") || strstr(name, "bidirectional");
    t->send = strstr(name, "Send") != NULL;
}

/* ---- tables ---- */

static double behind(const char *text, size_t n, const char *label)
{
    const char *at = strstr(text, label), *end = text + n;

    if (!at || at >= end || !(at = strchr(at, ':')) || at >= end)
        return 0;
    at += 1 + strspn(at + 1, " \t");
    double v = kvc_readings_number(at, strcspn(at, " \t\r\n"));
    return v > 0 ? v : 0;
}

static void read_setting(struct test *t, const char *text, size_t n)
{
    static const struct {
        const char *label;
        size_t offset;
    } labels[] = {{"TX depth", offsetof(struct test, depth)},
                  {"Number of qps", offsetof(struct test, qps)},
                  {"Outstand reads", offsetof(struct test, outstanding)}};

    for (size_t i = 0; i < 3; i++) {
        double v = behind(text, n, labels[i].label);
        if (v > 0)
            memcpy((char *)t + labels[i].offset, &v, sizeof v);
    }
}

static size_t numbers(const char *text, size_t n, double *out, size_t most)
{
    size_t got = 0;

    for (size_t i = 0; i < n && got < most;) {
        while (i < n && (text[i] == ' ' || text[i] == '\t'))
            i++;
        size_t k = 0;
        while (i + k < n && text[i + k] != ' ' && text[i + k] != '\t')
            k++;
        if (!k)
            break;
        out[got] = kvc_readings_number(text + i, k);
        if (isnan(out[got++]))
            return 0;
        i += k;
    }
    return got;
}

static bool has(const char *text, size_t n, const char *word)
{
    const char *at = strstr(text, word);

    return at && at + strlen(word) <= text + n;
}

static char unit_of(const char *header, size_t n)
{
    if (has(header, n, "Gb/sec"))
        return 'G';
    if (has(header, n, "MiB/sec") || has(header, n, "MB/sec"))
        return 'M';
    return has(header, n, "/sec]") ? '?' : 0;
}

static enum kvc_status read_tables(struct kvc_readings *r, const char *at, struct kvc_error *err)
{
    struct test t = {0};
    bool table = false;
    uint64_t line = 0;
    const char *text;
    size_t n;
    enum kvc_status status = KVC_OK;

    while (status == KVC_OK && (text = kvc_readings_line(&at, &n))) {
        double v[8];
        line++;
        if (has(text, n, " Test") && (has(text, n, "BW") || has(text, n, "Latency"))) {
            char name[96] = "";
            memcpy(name, text, n < sizeof name ? n : sizeof name - 1);
            t = (struct test){0};
            name_test(&t, name);
            table = false;
        } else if (has(text, n, "#bytes")) {
            table = true;
            t.unit = unit_of(text, n);
            t.mean = has(text, n, "tps average") ? 2 : 5; /* runs of a duration (-D) say less */
            if (t.unit == '?')
                kvc_readings_note(r, "line %llu: its bandwidths are neither in Gb/sec nor in "
                                  "MiB/sec: the messages per second count",
                                  (unsigned long long)line);
            if (!t.tool)
                kvc_readings_note(r, "does not say which test it is: taken as ib_write_bw");
            if (!t.tool)
                name_test(&t, has(text, n, "t_min") ? "Latency" : "BW");
        } else if (table && t.tool == BW && numbers(text, n, v, 8) >= 5) {
            status = add_bw(r, &t, v[0], v[3], v[4], line, err);
        } else if (table && t.tool == LAT && numbers(text, n, v, 8) > t.mean) {
            status = add_lat(r, &t, v[0], v[t.mean], line, err);
        } else if (!table) {
            read_setting(&t, text, n);
        }
    }
    return status;
}

/* ---- JSON ---- */

static double number(const struct kvc_jval *v, const char *key)
{
    const struct kvc_jval *m = kvc_jval_member(v, key);
    double value = NAN;

    return m && kvc_jval_number(m, &value) ? value : NAN;
}

static enum kvc_status read_json(struct kvc_readings *r, const struct kvc_jval *root,
                                 struct kvc_error *err)
{
    const struct kvc_jval *info = kvc_jval_member(root, "test_info");
    const struct kvc_jval *results = kvc_jval_member(root, "results");
    const struct kvc_jval *name = info ? kvc_jval_member(info, "test") : NULL;
    bool list = kvc_jval_kind(results) == KVC_JARRAY;
    struct test t = {.depth = info ? number(info, "TX_depth") : 0,
                     .qps = info ? number(info, "Number_of_qps") : 0,
                     .outstanding = info ? number(info, "Outstand_reads") : 0};
    enum kvc_status status = KVC_OK;

    name_test(&t, name && kvc_jval_string(name) ? kvc_jval_string(name) : "");
    for (const struct kvc_jval *v = list ? kvc_jval_first(results) : results;
         v && status == KVC_OK; v = list ? kvc_jval_next(v) : NULL) {
        if (kvc_jval_member(v, "BW_average"))
            status = add_bw(r, &t, number(v, "MsgSize"), number(v, "BW_average"),
                            number(v, "MsgRate"), kvc_jval_line(v), err);
        else
            status =
                add_lat(r, &t, number(v, "MsgSize"), number(v, "t_avg"), kvc_jval_line(v), err);
    }
    return status;
}

static bool is_json(const struct kvc_readings_text *t)
{
    const struct kvc_jval *results = t->json ? kvc_jval_member(t->json, "results") : NULL;

    if (results && kvc_jval_kind(results) == KVC_JARRAY)
        results = kvc_jval_first(results);
    return results && kvc_jval_kind(results) == KVC_JOBJECT && kvc_jval_member(results, "MsgSize");
}

static bool sniff(const struct kvc_readings_text *t)
{
    return is_json(t) || (strstr(t->text, "#bytes") && strstr(t->text, "#iterations"));
}

static enum kvc_status read(struct kvc_readings *r, const struct kvc_readings_text *t,
                            struct kvc_error *err)
{
    return is_json(t) ? read_json(r, t->json, err) : read_tables(r, t->text, err);
}

const struct kvc_reader kvc_reader_perftest = {
    .name = "perftest", .what = "ib_read_bw, ib_write_bw and alike, tables or --out_json",
    .link = "rdma-400", .bare = true, .sniff = sniff, .read = read};
