/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/readings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "traces/parse/stream.h"

#define MOST_BYTES ((size_t)64 << 20)
#define MOST_DEPTH 1e6
#define MOST_NOTES 12 /* of a file */

const struct kvc_reader *const kvc_readers[] = {
    &kvc_reader_bench, &kvc_reader_nvbandwidth, &kvc_reader_fio, &kvc_reader_perftest,
    &kvc_reader_nixl, NULL};

enum kvc_status kvc_readings_open(struct kvc_readings_text *t, const char *path, size_t most,
                                  struct kvc_error *err)
{
    struct kvc_stream *stream = NULL;
    size_t cap = 0, got = 1;
    enum kvc_status status;

    memset(t, 0, sizeof *t);
    t->path = path;
    status = kvc_stream_open(&stream, path, err);
    if (status == KVC_OK && kvc_stream_is_kvt(stream))
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "a trace, not a measurement");
    while (status == KVC_OK && got && t->n <= most) {
        if (!kvc_grow((void **)&t->text, &cap, t->n + 65536 + 1, 1))
            status = kvc_fail_nomem(err);
        else
            status = kvc_stream_read(stream, t->text + t->n, 65536, &got, err);
        t->n += status == KVC_OK ? got : 0;
    }
    kvc_stream_close(stream);
    if (status == KVC_OK && t->n > most)
        status = kvc_fail_at(err, KVC_ERR_LIMIT, path, 0, NULL,
                             "larger than %zu MiB: no tool's output is", most >> 20);
    if (status == KVC_OK)
        t->text[t->n] = '\0';
    return status;
}

/* Where the object that begins here ends; the text's end where it doesn't. */
static const char *end_of(const char *at, const char *end)
{
    size_t depth = 0;
    bool quoted = false;

    for (; at < end; at++) {
        if (quoted && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && *at == '{')
            depth++;
        else if (!quoted && *at == '}' && --depth == 0)
            return at + 1;
    }
    return end;
}

/* Tools print warnings in front of their JSON, and sometimes behind it. */
static enum kvc_status find_json(struct kvc_readings_text *t, struct kvc_error *err)
{
    const char *begin = t->text, *end = t->text + t->n;
    uint64_t line = 1;

    while (*begin && *begin != '{') {
        begin += strcspn(begin, "\n");
        line += *begin == '\n';
        begin += *begin == '\n';
        while (*begin == ' ' || *begin == '\t')
            begin++;
    }
    if (!*begin)
        return KVC_OK;
    end = end_of(begin, end);
    t->json_line = line;
    return kvc_json_parse(&t->json, begin, (size_t)(end - begin), false, t->path, line, err);
}

void kvc_readings_text_clear(struct kvc_readings_text *t)
{
    kvc_json_free(t->json);
    kvc_free(t->text);
    memset(t, 0, sizeof *t);
}

void kvc_readings_clear(struct kvc_readings *r)
{
    kvc_free(r->row);
    kvc_free(r->file);
    kvc_free(r->kernel);
    kvc_text_clear(&r->kernel_json);
    kvc_text_clear(&r->notes);
    memset(r, 0, sizeof *r);
}

static enum kvc_status unknown(const struct kvc_readings_text *t, const struct kvc_error *json,
                               struct kvc_error *err)
{
    struct kvc_text list = {0};

    for (const struct kvc_reader *const *k = kvc_readers; *k; k++)
        kvc_text_addf(&list, "%s%s (--%s)", k == kvc_readers ? "" : ", ", (*k)->what, (*k)->name);
    enum kvc_status status =
        json->text[0]
            ? kvc_fail_at(err, KVC_ERR_INPUT, t->path, json->line, NULL,
                          "no whole output of a tool known here: as JSON it fails (%.200s). If it "
                          "was cut short, run the tool again", json->text)
            : kvc_fail_at(err, KVC_ERR_INPUT, t->path, 0, NULL,
                          "no output of a tool known here: %s", list.buf ? list.buf : "");
    kvc_text_clear(&list);
    return status;
}

static enum kvc_status choose(const struct kvc_reader **reader, struct kvc_readings_text *t,
                              struct kvc_error *err)
{
    struct kvc_error json = {0};
    enum kvc_status status = find_json(t, &json);

    if (status == KVC_ERR_NOMEM)
        return kvc_fail_nomem(err);
    if (*reader && !(*reader)->sniff(t))
        return kvc_fail_at(err, KVC_ERR_INPUT, t->path, json.line, NULL,
                           "does not look like the output of %s%s%.200s", (*reader)->what,
                           json.text[0] ? "; as JSON it fails: " : "", json.text);
    for (const struct kvc_reader *const *k = kvc_readers; *k && !*reader; k++)
        if ((*k)->sniff(t))
            *reader = *k;
    return *reader ? KVC_OK : unknown(t, &json, err);
}

enum kvc_status kvc_readings_add(struct kvc_readings *r, const char *path,
                                 const struct kvc_reader *reader, const char *link,
                                 struct kvc_error *err)
{
    struct kvc_readings_text t;
    const char *slash = strrchr(path, '/');
    enum kvc_status status = kvc_readings_open(&t, path, MOST_BYTES, err);

    if (status == KVC_OK)
        status = choose(&reader, &t, err);
    if (status == KVC_OK && !kvc_grow((void **)&r->file, &r->cap_files, r->n_files + 1,
                                      sizeof *r->file))
        status = kvc_fail_nomem(err);
    if (status == KVC_OK) {
        struct kvc_readings_file *f = &r->file[r->n_files++];
        *f = (struct kvc_readings_file){.path = path, .name = slash ? slash + 1 : path,
                                        .reader = reader, .link = link ? link : reader->link};
        status = reader->read(r, &t, err);
        f = &r->file[r->n_files - 1];
        if (f->notes > MOST_NOTES)
            kvc_text_addf(&r->notes, "%s: %zu more such notes\n", f->name, f->notes - MOST_NOTES);
        if (status == KVC_OK && !f->rows)
            status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                                 "no usable measurement in it%s%.300s%s",
                                 r->notes.len ? ": " : "", r->notes.buf ? r->notes.buf : "",
                                 reader == &kvc_reader_bench
                                     ? "; of a profile its measurements are fitted again, not its "
                                       "figures: name --requests or --prometheus once more"
                                     : "");
    }
    if (status == KVC_OK && r->notes.failed)
        status = kvc_fail_nomem(err);
    kvc_readings_text_clear(&t);
    return status;
}

/* ---- the same measurement twice ---- */

static int compare(const struct kvc_reading *a, const struct kvc_reading *b)
{
    const double x[] = {a->direction, a->both, a->batch, a->op_bytes, a->depth, a->bytes_per_s};
    const double y[] = {b->direction, b->both, b->batch, b->op_bytes, b->depth, b->bytes_per_s};
    int order = strcmp(a->link, b->link);

    for (size_t i = 0; i < sizeof x / sizeof x[0] && !order; i++)
        order = (x[i] > y[i]) - (x[i] < y[i]);
    return order;
}

static int by_figures(const void *a, const void *b)
{
    const struct kvc_reading *x = *(struct kvc_reading *const *)a;
    const struct kvc_reading *y = *(struct kvc_reading *const *)b;
    int order = compare(x, y);

    return order ? order : (x > y) - (x < y);
}

static void say_repeats(struct kvc_readings *r, const struct kvc_readings_file *f)
{
    if (f->repeats)
        kvc_text_addf(&r->notes, "%s: %zu of %zu rows stood in %s already, to the last digit: the "
                      "same measurement, which counts once\n", f->name, f->repeats, f->rows,
                      r->file[f->repeated].name);
}

enum kvc_status kvc_readings_drop_repeats(struct kvc_readings *r, struct kvc_error *err)
{
    struct kvc_reading **sorted = kvc_calloc(r->n + 1, sizeof *sorted);
    size_t kept = 0;

    if (!sorted)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        sorted[i] = &r->row[i];
    qsort(sorted, r->n, sizeof *sorted, by_figures);
    for (size_t i = 1, first = 0; i < r->n; i++) {
        if (compare(sorted[first], sorted[i]) != 0) {
            first = i;
            continue;
        }
        struct kvc_readings_file *f = &r->file[sorted[i]->file];
        f->repeats++;
        f->repeated = sorted[first]->file;
        sorted[i]->bytes_per_s = NAN;
    }
    kvc_free(sorted);
    for (size_t i = 0; i < r->n; i++)
        if (!isnan(r->row[i].bytes_per_s))
            r->row[kept++] = r->row[i];
    r->n = kept;
    for (size_t i = 0; i < r->n_files; i++)
        say_repeats(r, &r->file[i]);
    return r->notes.failed ? kvc_fail_nomem(err) : KVC_OK;
}

/* ---- for readers ---- */

double kvc_readings_rounded(double v)
{
    char text[32];
    double back = v;

    snprintf(text, sizeof text, "%.7g", v);
    sscanf(text, "%lf", &back);
    return back;
}

/* Wider than any link, storage or queue there is; endless depth stands for "as many as it
 * takes". */
static bool is_sensible(const struct kvc_reading *row)
{
    return row->bytes_per_s >= 1e3 && row->bytes_per_s <= 1e13 && row->op_bytes >= 1 &&
           row->op_bytes <= 1e12 && row->depth >= 1 &&
           (row->depth <= MOST_DEPTH || isinf(row->depth));
}

enum kvc_status kvc_readings_row(struct kvc_readings *r, const struct kvc_reading *row,
                                 struct kvc_error *err)
{
    struct kvc_readings_file *f = &r->file[r->n_files - 1];

    if (!is_sensible(row)) {
        kvc_readings_note(r, "line %llu: %g bytes an operation, %g at once, at %g bytes per second "
                          "make no sense: left out; measure it again",
                          (unsigned long long)row->line, row->op_bytes, row->depth,
                          row->bytes_per_s);
        return KVC_OK;
    }
    if (!kvc_grow((void **)&r->row, &r->cap, r->n + 1, sizeof *r->row))
        return kvc_fail_nomem(err);
    struct kvc_reading *to = &r->row[r->n++];
    *to = *row;
    to->op_bytes = round(row->op_bytes);
    to->bytes_per_s = kvc_readings_rounded(row->bytes_per_s);
    to->file = (uint32_t)(r->n_files - 1);
    f->rows++;
    return KVC_OK;
}

void kvc_readings_note(struct kvc_readings *r, const char *fmt, ...)
{
    struct kvc_readings_file *f = &r->file[r->n_files - 1];
    char text[320], line[480];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(line, sizeof line, "%s: %s\n", f->name, text);
    if (r->notes.buf && strstr(r->notes.buf, line)) /* the same said once */
        return;
    if (f->notes++ < MOST_NOTES)
        kvc_text_add(&r->notes, line);
}

const char *kvc_readings_line(const char **at, size_t *n)
{
    const char *begin = *at;

    if (!*begin)
        return NULL;
    *n = strcspn(begin, "\n");
    *at = begin + *n + (begin[*n] == '\n');
    if (*n && begin[*n - 1] == '\r')
        --*n;
    return begin;
}

double kvc_readings_number(const char *text, size_t n)
{
    char buf[64], *end;

    while (n && (*text == ' ' || *text == '\t'))
        text++, n--;
    if (!n || n >= sizeof buf)
        return NAN;
    memcpy(buf, text, n);
    buf[n] = '\0';
    double v = strtod(buf, &end);
    end += strspn(end, " \t");
    return *end || end == buf ? NAN : v;
}
