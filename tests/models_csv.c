/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/models_csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static char *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;

    if (!f)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        long n = ftell(f);
        rewind(f);
        text = n >= 0 ? malloc((size_t)n + 1) : NULL;
        if (text) {
            *size = fread(text, 1, (size_t)n, f);
            text[*size] = '\0';
        }
    }
    fclose(f);
    return text;
}

static char *unpack(char *packed, size_t *size)
{
    ZSTD_inBuffer in = {packed, *size, 0};
    size_t cap = *size * 16 + 65536, n = 0;
    char *text = malloc(cap + 1);
    ZSTD_DStream *z = ZSTD_createDStream();

    bool full = false; /* all input may be taken before all output is given */
    while (text && z && (in.pos < in.size || full)) {
        if (cap - n < 65536) {
            char *more = realloc(text, 2 * cap + 1);
            if (!more)
                break;
            text = more;
            cap *= 2;
        }
        ZSTD_outBuffer out = {text, cap, n};
        if (ZSTD_isError(ZSTD_decompressStream(z, &out, &in)))
            break;
        full = out.pos == out.size;
        n = out.pos;
    }
    ZSTD_freeDStream(z);
    free(packed);
    if (text)
        text[n] = '\0';
    *size = n;
    return text;
}

static size_t split(char *line, char **cells)
{
    size_t n = 0;

    for (char *p = line; n < TEST_CSV_COLUMNS;) {
        cells[n++] = p;
        p += strcspn(p, ",");
        if (!*p)
            break;
        *p++ = '\0';
    }
    return n;
}

static char *take_line(struct test_csv *csv)
{
    char *line = csv->next;

    if (!line || !*line)
        return NULL;
    size_t n = strcspn(line, "\n");
    csv->next = line[n] ? line + n + 1 : line + n;
    line[n] = '\0';
    if (n && line[n - 1] == '\r')
        line[n - 1] = '\0';
    return line;
}

bool test_csv_open(struct test_csv *csv, const char *path)
{
    size_t size, n = strlen(path);
    char *line;

    memset(csv, 0, sizeof *csv);
    csv->text = slurp(path, &size);
    if (csv->text && n > 4 && strcmp(path + n - 4, ".zst") == 0)
        csv->text = unpack(csv->text, &size);
    csv->next = csv->text;
    line = take_line(csv);
    if (!line) {
        test_csv_close(csv);
        return false;
    }
    csv->columns = split(line, csv->header);
    return true;
}

bool test_csv_row(struct test_csv *csv)
{
    char *line = take_line(csv);

    if (!line)
        return false;
    for (size_t i = split(line, csv->cell); i < TEST_CSV_COLUMNS; i++)
        csv->cell[i] = NULL;
    return true;
}

const char *test_csv_get(const struct test_csv *csv, const char *column)
{
    for (size_t i = 0; i < csv->columns; i++)
        if (strcmp(csv->header[i], column) == 0)
            return csv->cell[i] ? csv->cell[i] : "";
    return "";
}

double test_csv_number(const struct test_csv *csv, const char *column)
{
    return strtod(test_csv_get(csv, column), NULL);
}

void test_csv_close(struct test_csv *csv)
{
    free(csv->text);
    memset(csv, 0, sizeof *csv);
}
