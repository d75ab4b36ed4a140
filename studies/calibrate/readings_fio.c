/* SPDX-License-Identifier: Apache-2.0
 * fio 3 --output-format=json: storage by I/O size and queue depth. A run of several jobs at once
 * is one row; jobs of other shapes beside it would share the drive unseen, so such runs are left
 * out, as are those through the page cache. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/units.h"
#include "studies/calibrate/readings.h"

struct group { /* jobs that ran at once */
    double id;
    size_t jobs;
    double bytes_per_s[2], ops_per_s[2], depth, numjobs, op_bytes;
    bool mixed, failed, cached, many_sizes, held_back;
    const char *wrong, *value; /* an option that is no number, and what it says */
    uint64_t line;
};

static const char *option(const struct kvc_jval *job, const struct kvc_jval *all, const char *a,
                          const char *b)
{
    const struct kvc_jval *own = kvc_jval_member(job, "job options");
    const struct kvc_jval *where[] = {own, all};
    const char *keys[] = {a, b};

    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2 && where[i]; k++) {
            const struct kvc_jval *v = keys[k] ? kvc_jval_member(where[i], keys[k]) : NULL;
            if (v && kvc_jval_string(v))
                return kvc_jval_string(v);
        }
    return NULL;
}

/* 1 where it is not stated, fio's default. */
static double whole_option(struct group *g, const struct kvc_jval *job, const struct kvc_jval *all,
                           const char *name)
{
    const char *text = option(job, all, name, NULL);
    uint64_t v = 1;

    if (text && (kvc_parse_u64(text, name, &v, NULL) != KVC_OK || v < 1 || v > 1000000)) {
        g->wrong = name;
        g->value = text;
    }
    return (double)v;
}

static double number(const struct kvc_jval *v, const char *key)
{
    const struct kvc_jval *m = v ? kvc_jval_member(v, key) : NULL;
    double value = 0;

    return m && kvc_jval_number(m, &value) ? value : 0;
}

/* Bytes per second; fio before 3.0 states KiB per second only. */
static double rate_of(const struct kvc_jval *side)
{
    double bytes = number(side, "bw_bytes");

    return bytes != 0 ? bytes : number(side, "bw") * 1024;
}

static bool waits_for_each(const char *engine)
{
    static const char *const names[] = {"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"};

    for (size_t i = 0; engine && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], engine) == 0)
            return true;
    return !engine; /* psync is fio's default */
}

static bool truth(const char *text)
{
    return text && (!*text || strtod(text, NULL) != 0 || strcasecmp(text, "true") == 0);
}

static void add_job(struct group *g, const struct kvc_jval *job, const struct kvc_jval *all)
{
    const char *rw = option(job, all, "rw", "readwrite");
    double depth = whole_option(g, job, all, "iodepth"), ops = 0, bytes = 0;
    const char *const sides[] = {"read", "write"};

    if (waits_for_each(option(job, all, "ioengine", NULL)))
        depth = 1;
    for (size_t i = 0; i < 2; i++) {
        const struct kvc_jval *side = kvc_jval_member(job, sides[i]);
        g->bytes_per_s[i] += rate_of(side);
        g->ops_per_s[i] += number(side, "iops");
        bytes += rate_of(side);
        ops += number(side, "iops");
    }
    double size = ops > 0 ? bytes / ops : 0;
    g->many_sizes |= g->jobs && fabs(size - g->op_bytes) > 0.02 * g->op_bytes;
    g->op_bytes = g->jobs ? g->op_bytes : size;
    g->mixed |= rw && (strcmp(rw, "rw") == 0 || strcmp(rw, "readwrite") == 0 ||
                       strncmp(rw, "randrw", 6) == 0);
    g->failed |= number(job, "error") != 0;
    g->cached |= !truth(option(job, all, "direct", NULL));
    g->held_back |= option(job, all, "rate", "rate_iops") || option(job, all, "thinktime", NULL);
    g->depth += depth;
    g->numjobs = whole_option(g, job, all, "numjobs");
    g->jobs++;
}

static enum kvc_status end_group(struct kvc_readings *r, const struct group *g,
                                 struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    bool both = g->bytes_per_s[0] > 0 && g->bytes_per_s[1] > 0;
    unsigned long long line = g->line;

    if (g->failed)
        kvc_readings_note(r, "line %llu: the job ended with an error: left out; run it again",
                          line);
    else if (g->wrong)
        kvc_readings_note(r, "line %llu: %s \"%.40s\" is no whole number from 1 to 1000000: left "
                          "out; run the job again", line, g->wrong, g->value);
    else if (g->bytes_per_s[0] == 0 && g->bytes_per_s[1] == 0)
        kvc_readings_note(r, "line %llu: the job read and wrote nothing: left out; run it again",
                          line);
    else if (g->cached)
        kvc_readings_note(r,
                          "jobs without direct=1 measure the page cache: run fio with --direct=1");
    else if (g->held_back)
        kvc_readings_note(r, "line %llu: rate, rate_iops or thinktime held the job back, so it "
                          "doesn't tell what the drive can: left out", line);
    else if (g->mixed || both)
        kvc_readings_note(r, "reads and writes at once: a link's profile has each by itself");
    else if (g->many_sizes)
        kvc_readings_note(r,
                          "jobs of other sizes ran at the same time: put --stonewall between them");
    else
        for (int i = 0; i < 2 && status == KVC_OK; i++) {
            const struct kvc_reading row = {
                .direction = i ? KVC_FROM_GPU : KVC_TOWARDS_GPU, .op_bytes = g->op_bytes,
                /* one entry stands for all of its clones, unless each has its own */
                .depth = g->depth * (g->jobs == 1 ? g->numjobs : 1),
                .bytes_per_s = g->bytes_per_s[i], .spread = NAN, .line = g->line};
            if (row.bytes_per_s != 0)
                status = kvc_readings_row(r, &row, err);
        }
    return status;
}

/* With --client the jobs of all machines stand under another name, and their sum behind them. */
static const struct kvc_jval *jobs_of(const struct kvc_jval *root)
{
    const struct kvc_jval *jobs = kvc_jval_member(root, "jobs");

    return jobs ? jobs : kvc_jval_member(root, "client_stats");
}

static bool is_sum(const struct kvc_jval *job)
{
    const struct kvc_jval *name = kvc_jval_member(job, "jobname");

    return name && kvc_jval_string(name) && strcmp(kvc_jval_string(name), "All clients") == 0;
}

static bool sniff(const struct kvc_readings_text *t)
{
    return t->json && kvc_jval_member(t->json, "fio version") && jobs_of(t->json);
}

static enum kvc_status read(struct kvc_readings *r, const struct kvc_readings_text *t,
                            struct kvc_error *err)
{
    const struct kvc_jval *jobs = jobs_of(t->json);
    const struct kvc_jval *all = kvc_jval_member(t->json, "global options");
    enum kvc_status status = KVC_OK;
    struct group g = {0};

    if (kvc_jval_kind(jobs) != KVC_JARRAY)
        return kvc_fail_at(err, KVC_ERR_INPUT, t->path, kvc_jval_line(jobs), "jobs", "is no list");
    for (const struct kvc_jval *j = kvc_jval_first(jobs); j && status == KVC_OK;
         j = kvc_jval_next(j)) {
        double id = number(j, "groupid");
        if (is_sum(j))
            continue;
        if (g.jobs && id != g.id) {
            status = end_group(r, &g, err);
            g = (struct group){0};
        }
        g.id = id;
        g.line = g.line ? g.line : kvc_jval_line(j);
        add_job(&g, j, all);
    }
    if (status == KVC_OK && g.jobs)
        status = end_group(r, &g, err);
    return status;
}

const struct kvc_reader kvc_reader_fio = {
    .name = "fio", .what = "fio 3 --output-format=json", .link = "nvme-gen5-x4",
    .sniff = sniff, .read = read};
