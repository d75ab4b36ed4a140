/* SPDX-License-Identifier: Apache-2.0
 * nixlbench: transfers of Batch Size blocks of Block Size bytes, so many threads at once. Columns
 * have changed from version to version, so they are found by their names. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "studies/calibrate/readings.h"

#define MOST_COLUMNS 24

struct table {
    size_t n, block, batch, rate, latency; /* MOST_COLUMNS: not there */
    double unit;                           /* bytes per second of a 1 in the rate's column */
};

struct run {
    struct kvc_readings *r;
    enum kvc_towards direction;
    bool stated; /* the direction */
    bool posix, cached;
    double threads;
    struct table table;
};

/* Names of a header are two blanks or more apart. */
static void read_header(struct table *t, const char *text, size_t n)
{
    static const struct {
        const char *name;
        double unit;
    } rates[] = {{"B/W (GB/Sec)", 1e9}, {"B/W (GiB/Sec)", 1073741824}, {"B/W (MiB/Sec)", 1048576},
                 {"B/W (MB/Sec)", 1e6}};
    size_t best = sizeof rates / sizeof rates[0];

    *t = (struct table){0, MOST_COLUMNS, MOST_COLUMNS, MOST_COLUMNS, MOST_COLUMNS, 0};
    for (size_t i = 0; i < n && t->n < MOST_COLUMNS; t->n++) {
        size_t k = 0;
        while (i + k < n && !(text[i + k] == ' ' && (i + k + 1 == n || text[i + k + 1] == ' ')))
            k++;
        if (k >= 10 && strncmp(text + i, "Block Size", 10) == 0)
            t->block = t->n;
        else if (k >= 10 && strncmp(text + i, "Batch Size", 10) == 0)
            t->batch = t->n;
        else if (k >= 8 && strncmp(text + i, "Avg Lat.", 8) == 0)
            t->latency = t->n;
        for (size_t u = 0; u < best; u++)
            if (k == strlen(rates[u].name) && strncmp(text + i, rates[u].name, k) == 0) {
                t->rate = t->n;
                t->unit = rates[u].unit;
                best = u;
            }
        i += k;
        while (i < n && text[i] == ' ')
            i++;
    }
}

static void begin_table(struct run *x, const char *text, size_t n, uint64_t line)
{
    read_header(&x->table, text, n);
    if (x->table.rate == MOST_COLUMNS)
        kvc_readings_note(x->r, "line %llu: no column B/W in GB/Sec, GiB/Sec, MB/Sec or MiB/Sec: "
                                "its table is left out", (unsigned long long)line);
}

static enum kvc_status read_row(struct run *x, const char *text, size_t n, uint64_t line,
                                struct kvc_error *err)
{
    double v[MOST_COLUMNS];
    size_t got = 0;
    const struct table *t = &x->table;

    for (size_t i = 0; i < n && got < MOST_COLUMNS;) {
        size_t k = 0;
        while (i < n && (text[i] == ' ' || text[i] == '\t'))
            i++;
        while (i + k < n && text[i + k] != ' ' && text[i + k] != '\t')
            k++;
        if (!k)
            break;
        v[got] = kvc_readings_number(text + i, k);
        if (isnan(v[got]) && !got)
            return KVC_OK; /* not a row of figures */
        got++;
        i += k;
    }
    if (got <= t->block || got <= t->rate || !got)
        return KVC_OK;
    if (x->posix && x->cached) {
        kvc_readings_note(x->r, "files without --storage_enable_direct lie in the page cache: run "
                                "nixlbench with it");
        return KVC_OK;
    }
    double batch = t->batch < got ? v[t->batch] : 1;
    const struct kvc_reading row = {.direction = x->direction, .batch = true,
                                    .op_bytes = v[t->block], .depth = batch * x->threads,
                                    .bytes_per_s = v[t->rate] * t->unit, .spread = NAN,
                                    .line = line};
    return kvc_readings_row(x->r, &row, err);
}

/* Storage is another link than the network's, unless the user says which. */
static void take_backend(struct run *x, const char *name, size_t n)
{
    static const struct {
        const char *backend, *link;
    } links[] = {{"POSIX", "nvme-gen5-x4"}, {"GUSLI", "nvme-gen5-x4"}, {"GDS", "gds"},
                 {"GDS_MT", "gds"}, {"AIS_MT", "gds"}, {"OBJ", "object-store"},
                 {"AZURE_BLOB", "object-store"}, {"INFINIA", "object-store"}};
    struct kvc_readings_file *f = &x->r->file[x->r->n_files - 1];

    x->posix = n == 5 && strncmp(name, "POSIX", 5) == 0;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        if (strlen(links[i].backend) == n && strncmp(links[i].backend, name, n) == 0 &&
            f->link == f->reader->link)
            f->link = links[i].link;
}

static void read_setting(struct run *x, const char *text, size_t n)
{
    const char *colon = memchr(text, ':', n);

    for (const char *next;
         colon && (next = memchr(colon + 1, ':', n - (size_t)(colon + 1 - text)));)
        colon = next;
    if (!colon)
        return;
    size_t left = n - (size_t)(colon + 1 - text);
    if (strncmp(text, "Op type", 7) == 0) {
        x->stated = true;
        x->direction = memchr(colon, 'R', left) && !memchr(colon + 1, 'W', left) ? KVC_TOWARDS_GPU
                                                                                : KVC_FROM_GPU;
    } else if (strncmp(text, "Backend", 7) == 0) {
        size_t blanks = strspn(colon + 1, " ");
        take_backend(x, colon + 1 + blanks, left > blanks ? left - blanks : 0);
    } else if (strncmp(text, "Storage enable direct", 21) == 0) {
        x->cached = kvc_readings_number(colon + 1, left) == 0;
    } else if (strncmp(text, "Num threads", 11) == 0) {
        x->threads = kvc_readings_number(colon + 1, left);
    }
}

static bool sniff(const struct kvc_readings_text *t)
{
    return strstr(t->text, "Block Size (B)") && strstr(t->text, "B/W (");
}

static enum kvc_status read(struct kvc_readings *r, const struct kvc_readings_text *t,
                            struct kvc_error *err)
{
    struct run x = {.r = r, .threads = 1, .direction = KVC_FROM_GPU};
    const char *at = t->text, *text;
    uint64_t line = 0;
    size_t n;
    enum kvc_status status = KVC_OK;

    while (status == KVC_OK && (text = kvc_readings_line(&at, &n))) {
        line++;
        if (n > 14 && strncmp(text, "Block Size (B)", 14) == 0)
            begin_table(&x, text, n, line);
        else if (x.table.n)
            status = read_row(&x, text, n, line, err);
        else
            read_setting(&x, text, n);
    }
    if (status == KVC_OK && !x.stated)
        kvc_readings_note(r, "does not state its op type: taken as WRITE, nixlbench's default");
    return status;
}

const struct kvc_reader kvc_reader_nixl = {
    .name = "nixl", .what = "nixlbench", .link = "rdma-400", .sniff = sniff, .read = read};
