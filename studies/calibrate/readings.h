/* SPDX-License-Identifier: Apache-2.0
 * What tools that measure copies and storage have to say, as one kind of row: operations of so
 * many bytes, so many under way, that reach so many bytes a second. One file a tool, each ending in
 * a const struct kvc_reader listed in readings.c. */
#ifndef KVC_STUDIES_READINGS_H
#define KVC_STUDIES_READINGS_H

#include "base/json.h"
#include "base/text.h"
#include "models/own_kernels.h"

enum kvc_towards { KVC_TOWARDS_GPU, KVC_FROM_GPU }; /* read and write of a link's profile */

struct kvc_reading {
    enum kvc_towards direction;
    bool batch;         /* depth operations begin together and are waited for together; else a new
                           one begins when one ends */
    bool both;          /* while as much goes the other way; the rate is this direction's */
    double op_bytes, depth; /* depth INFINITY: more than it takes */
    double bytes_per_s;
    double spread;      /* of repeats, as a share; NAN: not stated */
    uint32_t file;      /* index into kvc_readings.file */
    uint64_t line;      /* 0: not known */
    char link[32];      /* of a file that names it itself; "" = the reader's */
};

struct kvc_reader;
struct kvc_readings_file {
    const char *path;   /* borrowed */
    const char *name;   /* its last part */
    const struct kvc_reader *reader;
    const char *link;   /* name of its link's profile */
    char version[64];   /* of the tool, "" = not stated */
    size_t rows, notes;
    size_t repeats;    /* of its rows; one of them stands in file number repeated, too */
    uint32_t repeated;
};

/* The GPU that kernels were measured on, where it is another than the one named: */
struct kvc_readings_device {
    char gpu[32];      /* that one's name; "": not stated */
    char name[256];    /* what its driver calls it; "": it is that one */
    double memory_bytes, multiprocessors; /* 0: not stated */
};

struct kvc_readings { /* all zero = empty */
    struct kvc_reading *row;
    size_t n, cap;
    struct kvc_readings_file *file;
    size_t n_files, cap_files;
    struct kvc_own_row *kernel; /* of a GPU */
    size_t n_kernels, cap_kernels;
    struct kvc_text kernel_json; /* the same as objects, apart by commas */
    struct kvc_readings_device device;
    struct kvc_text notes; /* lines: what was left out, and why; what had to be assumed */
};

/* A file in memory while a reader looks at it. */
struct kvc_readings_text {
    const char *path;
    char *text; /* NUL-terminated */
    size_t n;
    struct kvc_jval *json; /* NULL: not JSON */
    uint64_t json_line;    /* of the text on which it begins */
};

struct kvc_reader {
    const char *name, *what; /* "fio", "fio --output-format=json" */
    const char *link;        /* the profile that its rows are about unless another is named; NULL:
                                the GPU's host link */
    bool bare;              /* tells the latency of the wire, not that of a transfer */
    bool (*sniff)(const struct kvc_readings_text *t);
    enum kvc_status (*read)(struct kvc_readings *r, const struct kvc_readings_text *t,
                            struct kvc_error *err);
};

extern const struct kvc_reader kvc_reader_nvbandwidth, kvc_reader_fio, kvc_reader_perftest,
    kvc_reader_nixl, kvc_reader_bench;
/* Ends with NULL. */
extern const struct kvc_reader *const kvc_readers[];

/* Adds a file's rows; reader NULL: told from what it holds. link NULL: the reader's own. path and
 * link are borrowed. */
enum kvc_status kvc_readings_add(struct kvc_readings *r, const char *path,
                                 const struct kvc_reader *reader, const char *link,
                                 struct kvc_error *err);
/* A whole file, plain, .zst or .gz, at most most bytes; clear it in any case. */
enum kvc_status kvc_readings_open(struct kvc_readings_text *t, const char *path, size_t most,
                                  struct kvc_error *err);
void kvc_readings_text_clear(struct kvc_readings_text *t);
/* Rows that equal an earlier one in all figures are that measurement again: they go, with a note.
 * Links must be named. */
enum kvc_status kvc_readings_drop_repeats(struct kvc_readings *r, struct kvc_error *err);
/* Seven digits: more than any measurement is worth, and what profiles keep of one. */
double kvc_readings_rounded(double v);
void kvc_readings_clear(struct kvc_readings *r);

/* For readers: a row of the file that is being read, left out with a note where it makes no sense;
 * a note on that file. */
enum kvc_status kvc_readings_row(struct kvc_readings *r, const struct kvc_reading *row,
                                 struct kvc_error *err);
/* A kernel's time: family, the columns that 'kvcast calibrate --kernels' reads, and ns. Left out
 * with a note where it makes no sense. */
enum kvc_status kvc_readings_kernel(struct kvc_readings *r, const struct kvc_jval *v,
                                    struct kvc_error *err);
KVC_PRINTF(2, 3)
void kvc_readings_note(struct kvc_readings *r, const char *fmt, ...);
/* The next line of text from *at on, its length in *n; NULL: there is none. */
const char *kvc_readings_line(const char **at, size_t *n);
/* A number that a span holds and nothing else but blanks; NAN: it doesn't. */
double kvc_readings_number(const char *text, size_t n);

#endif
