/* SPDX-License-Identifier: Apache-2.0
 * Import of Azure's conversation trace, a day after the other for 420 days (300 MB), to .kvt. CPU
 * time of the whole process, user and system. */
#include "base/alloc.h"
#include "tests/bench/bench.h"
#include "traces/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_DAY 1700092800 /* 2023-11-16 */
#define DAYS 420

static int fail(const char *what)
{
    fprintf(stderr, "bench_csv: %s\n", what);
    return 1;
}

/* The whole text, with a newline behind it. */
static char *read_text(const char *path, size_t *n)
{
    struct kvc_stream *s = NULL;
    size_t cap = (size_t)1 << 20, got = 1;
    char *text = kvc_malloc(cap + 1, 1);
    *n = 0;
    if (text && kvc_stream_open(&s, path, NULL) == KVC_OK)
        while (got && *n < cap && kvc_stream_read(s, text + *n, cap - *n, &got, NULL) == KVC_OK)
            *n += got;
    kvc_stream_close(s);
    if (text && *n)
        text[(*n)++] = '\n';
    return text;
}

static bool write_days(FILE *f, char *text, size_t n)
{
    char *rows = memchr(text, '\n', n);
    char date[32];
    if (!rows)
        return false;
    rows++;
    bool ok = fwrite(text, 1, (size_t)(rows - text), f) == (size_t)(rows - text);
    for (uint64_t day = 0; day < DAYS && ok; day++) {
        time_t at = FIRST_DAY + (time_t)day * 86400;
        struct tm tm;
        gmtime_r(&at, &tm);
        strftime(date, sizeof(date), "%Y-%m-%d", &tm);
        for (char *row = rows; row < text + n;
             row = memchr(row, '\n', (size_t)(text + n - row)) + 1)
            memcpy(row, date, 10);
        ok = fwrite(rows, 1, (size_t)(text + n - rows), f) == (size_t)(text + n - rows);
    }
    return ok;
}

int main(void)
{
    const char *trace = "../shared/traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv.zst";
    const char *tmp = getenv("TMPDIR");
    char folder[200], log[256], out[256];
    size_t n;
    if (access(trace, R_OK) != 0) {
        printf("skip\timport, Azure CSV\t%s is not there\n", trace);
        return 0;
    }
    snprintf(folder, sizeof(folder), "%s/kvcast-bench-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return fail("no temporary folder");
    snprintf(log, sizeof(log), "%s/log.csv", folder);
    snprintf(out, sizeof(out), "%s/t.kvt", folder);
    char *text = read_text(trace, &n);
    FILE *f = fopen(log, "w");
    bool ok = f && text && write_days(f, text, n);
    if (f && fclose(f) != 0)
        ok = false;
    kvc_free(text);
    int rc = ok ? bench_import("import, Azure CSV, conversation x 420 (302 MB)", log, out, "CSV",
                               true, ">=400") : fail("can't make the log");
    unlink(log);
    unlink(out);
    rmdir(folder);
    return rc;
}
