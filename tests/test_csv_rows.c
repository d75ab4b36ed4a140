/* SPDX-License-Identifier: Apache-2.0
 * Rows of CSV: against a slow twin, a character at a time, on random texts; what was written comes
 * back; headers and values. */
#include "base/error.h"
#include "base/rng.h"
#include "traces/parse/csv_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- lines in memory, as kvc_lines hands them out ---- */

struct source {
    const char *text;
    size_t n, at;
    char line[4096];
};

static enum kvc_status next_line(void *user, const char **text, size_t *n, struct kvc_error *err)
{
    struct source *s = user;
    (void)err;
    *text = NULL;
    if (s->at == s->n)
        return KVC_OK;
    const char *from = s->text + s->at;
    const char *newline = memchr(from, '\n', s->n - s->at);
    size_t len = newline ? (size_t)(newline - from) : s->n - s->at;
    s->at += len + (newline != NULL);
    memset(s->line, '#', sizeof(s->line)); /* what was handed out before is gone */
    memcpy(s->line, from, len);
    s->line[len] = '\n';
    *n = len && s->line[len - 1] == '\r' ? len - 1 : len;
    *text = s->line;
    return KVC_OK;
}

/* ---- the twin: one character after the other, a list of fields ---- */

struct twin {
    char text[64][512];
    size_t len[64];
    bool quoted[64];
    size_t n;
    bool right;
};

/* Reads the record at *at. */
static void twin_read(const char *s, size_t n, size_t *at, struct twin *t)
{
    enum { START, BARE, QUOTED, CLOSED } state = START;
    size_t i = *at;
    memset(t, 0, sizeof(*t));
    t->n = 1;
    t->right = true;
    for (; i < n; i++) {
        char c = s[i];
        size_t f = t->n - 1;
        bool line_end = c == '\n' || (c == '\r' && (i + 1 == n || s[i + 1] == '\n'));
        if (state == QUOTED) {
            if (c != '"')
                t->text[f][t->len[f]++] = c;
            else if (i + 1 < n && s[i + 1] == '"')
                t->text[f][t->len[f]++] = s[i++];
            else
                state = CLOSED;
            continue;
        }
        if (line_end) {
            i += c == '\r' && i + 1 < n;
            break;
        }
        if (c == ',') {
            t->n++;
            state = START;
        } else if (state == CLOSED) {
            t->right = false;
            while (i < n && s[i] != '\n')
                i++;
            break;
        } else if (state == START && c == '"') {
            state = QUOTED;
            t->quoted[f] = true;
        } else {
            t->text[f][t->len[f]++] = c;
            state = BARE;
        }
    }
    if (state == QUOTED) /* never closed */
        t->right = false;
    *at = i < n ? i + 1 : n;
}

static void make_header(struct kvc_csv *csv, size_t columns)
{
    char text[256];
    size_t n = 0;
    for (size_t i = 0; i < columns; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%sc%zu", i ? "," : "", i);
    assert_int_equal(kvc_csv_header(csv, text, n, "mem", NULL), KVC_OK);
    assert_int_equal(csv->n_columns, columns);
}

static void same_as_twin(const char *text, size_t n, size_t columns)
{
    struct kvc_csv csv;
    struct source src = { .text = text, .n = n };
    struct kvc_error err;
    static struct twin t;
    size_t at = 0, length;
    const char *line;
    make_header(&csv, columns);
    while (next_line(&src, &line, &length, NULL) == KVC_OK && line) {
        enum kvc_status status = kvc_csv_split(&csv, line, length, next_line, &src, &err);
        twin_read(text, n, &at, &t);
        assert_int_equal(status == KVC_OK, t.right && t.n == columns);
        assert_int_equal(src.at, at);
        for (size_t f = 0; status == KVC_OK && f < columns; f++) {
            assert_int_equal(csv.field[f].n, t.len[f]);
            assert_int_equal(csv.field[f].text != NULL, t.len[f] || t.quoted[f]);
            if (t.len[f])
                assert_memory_equal(csv.field[f].text, t.text[f], t.len[f]);
        }
    }
    assert_int_equal(at, n);
    kvc_csv_clear(&csv);
}

static void random_texts(void **state)
{
    static const char letters[] = "a,\"\"\n\r{,b\n ,\"";
    uint64_t rng = kvc_rng_stream(3, "csv texts");
    char text[64];
    (void)state;
    for (int k = 0; k < 300000; k++) {
        size_t n = kvc_rng_below(&rng, sizeof(text));
        for (size_t i = 0; i < n; i++)
            text[i] = letters[kvc_rng_below(&rng, sizeof(letters) - 1)];
        same_as_twin(text, n, 1 + kvc_rng_below(&rng, 3));
    }
}

/* Fields of any bytes, quoted as they must be or needlessly, come back as they were. */
static void what_was_written(void **state)
{
    static const char letters[] = "a{}:\"\",\n\r xyz\xc3\xa9";
    uint64_t rng = kvc_rng_stream(4, "csv fields");
    (void)state;
    for (int k = 0; k < 30000; k++) {
        size_t columns = 1 + kvc_rng_below(&rng, 5), n = 0, length, len[5], off[5];
        char text[512], want[200];
        size_t used = 0;
        for (size_t f = 0; f < columns; f++) {
            bool quote = kvc_rng_below(&rng, 2);
            len[f] = kvc_rng_below(&rng, 20);
            off[f] = used;
            for (size_t i = 0; i < len[f]; i++) {
                char c = letters[kvc_rng_below(&rng, sizeof(letters) - 1)];
                want[used++] = c;
                quote = quote || c == ',' || c == '"' || c == '\n' || c == '\r';
            }
            if (f)
                text[n++] = ',';
            if (quote)
                text[n++] = '"';
            for (size_t i = 0; i < len[f]; i++) {
                if (want[off[f] + i] == '"')
                    text[n++] = '"';
                text[n++] = want[off[f] + i];
            }
            if (quote)
                text[n++] = '"';
        }
        if (kvc_rng_below(&rng, 2))
            text[n++] = '\r';
        if (kvc_rng_below(&rng, 2))
            text[n++] = '\n';
        struct source src = { .text = text, .n = n };
        struct kvc_csv csv;
        const char *line;
        make_header(&csv, columns);
        assert_int_equal(next_line(&src, &line, &length, NULL), KVC_OK);
        if (line) {
            assert_int_equal(kvc_csv_split(&csv, line, length, next_line, &src, NULL), KVC_OK);
            for (size_t f = 0; f < columns; f++) {
                assert_int_equal(csv.field[f].n, len[f]);
                if (len[f])
                    assert_memory_equal(csv.field[f].text, want + off[f], len[f]);
            }
        }
        assert_int_equal(src.at, n);
        kvc_csv_clear(&csv);
    }
}

/* ---- headers ---- */

static void open_header(struct kvc_csv *csv, const char *text)
{
    assert_int_equal(kvc_csv_header(csv, text, strlen(text), "log.csv", NULL), KVC_OK);
}

static void columns_by_name(void **state)
{
    struct kvc_csv csv;
    struct kvc_error err;
    size_t c;
    (void)state;
    open_header(&csv, "\xef\xbb\xbfTimeStamp,\"Session ID\",request_tokens, Log-Type ,start,Start "
                      "Time");
    assert_int_equal(csv.n_columns, 6);
    assert_int_equal(kvc_csv_column(&csv, "timestamp", true, &c, &err), KVC_OK);
    assert_int_equal(c, 0);
    assert_int_equal(kvc_csv_column(&csv, "session_id", true, &c, &err), KVC_OK);
    assert_int_equal(c, 1);
    assert_int_equal(kvc_csv_column(&csv, "Request tokens", true, &c, &err), KVC_OK);
    assert_int_equal(c, 2);
    assert_int_equal(kvc_csv_column(&csv, "LogType", true, &c, &err), KVC_OK);
    assert_int_equal(c, 3);
    assert_int_equal(kvc_csv_column(&csv, "nope|startTime|start", true, &c, &err), KVC_OK);
    assert_int_equal(c, 5);
    assert_int_equal(kvc_csv_column(&csv, "model", false, &c, &err), KVC_OK);
    assert_true(c == KVC_CSV_NONE);
    assert_int_equal(kvc_csv_column(&csv, "model|engine", true, &c, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "no column \"model\""));
    assert_non_null(strstr(err.text, "Session ID"));
    kvc_csv_clear(&csv);
    open_header(&csv, "a,Tokens,b,tokens");
    assert_int_equal(kvc_csv_column(&csv, "tokens", true, &c, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "two columns are named \"tokens\" (number 2 and 4)"));
    assert_int_equal(kvc_csv_column(&csv, "b", true, &c, &err), KVC_OK); /* nobody asked for them */
    kvc_csv_clear(&csv);
    open_header(&csv, "a;b;c,d");
    assert_int_equal(csv.delimiter, ';');
    assert_int_equal(csv.n_columns, 3);
    kvc_csv_clear(&csv);
    open_header(&csv, "a\t\"b,c,d\"\tc");
    assert_int_equal(csv.delimiter, '\t');
    kvc_csv_clear(&csv);
}

static void sniffing(void **state)
{
    static const char *const want[] = { "timestamp", "context_tokens|tokens", NULL };
    static const char good[] = "\xef\xbb\xbf\r\nTIMESTAMP,x,ContextTokens\r\n1,2,3";
    static const char bare[] = "timestamp,tokens";
    static const char other[] = "timestamp,lengths\n";
    static const char json[] = "{\"timestamp\": 1, \"tokens\": 2}\n";
    (void)state;
    assert_true(kvc_csv_sniff(good, strlen(good), want));
    assert_true(kvc_csv_sniff(bare, strlen(bare), want));
    assert_false(kvc_csv_sniff(other, strlen(other), want));
    assert_false(kvc_csv_sniff(json, strlen(json), want));
    assert_false(kvc_csv_sniff("", 0, want));
    assert_false(kvc_csv_sniff("\xef\xbb\xbf", 3, want));
}

static void field_counts(void **state)
{
    struct kvc_csv csv;
    struct kvc_error err;
    (void)state;
    open_header(&csv, "a,b");
    assert_int_equal(kvc_csv_split(&csv, "1,2,3", 5, NULL, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "3 fields, where the header names 2 columns"));
    assert_int_equal(kvc_csv_split(&csv, "\"1\"", 3, NULL, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "1 field, where"));
    assert_int_equal(kvc_csv_split(&csv, "\"1,2", 4, NULL, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "not closed"));
    assert_int_equal(kvc_csv_split(&csv, "\"1\"x,2", 6, NULL, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "closing quote of field 1"));
    kvc_csv_clear(&csv);
}

/* ---- values ---- */

static void split_row(struct kvc_csv *csv, const char *text)
{
    assert_int_equal(kvc_csv_split(csv, text, strlen(text), NULL, NULL, NULL), KVC_OK);
}

static void values(void **state)
{
    struct kvc_csv csv;
    struct kvc_error err;
    uint32_t tokens;
    uint64_t u;
    double d;
    bool given;
    (void)state;
    open_header(&csv, "a,b,c,d");
    split_row(&csv, "128.0, 12 ,1e3,-1");
    assert_int_equal(kvc_csv_tokens(&csv, 0, 1, &tokens, &err), KVC_OK);
    assert_int_equal(tokens, 128);
    assert_int_equal(kvc_csv_tokens(&csv, 1, 1, &tokens, &err), KVC_OK);
    assert_int_equal(tokens, 12);
    assert_int_equal(kvc_csv_tokens(&csv, 2, 1, &tokens, &err), KVC_OK);
    assert_int_equal(tokens, 1000);
    assert_int_equal(kvc_csv_tokens(&csv, 3, 0, &tokens, &err), KVC_ERR_INPUT);
    assert_string_equal(err.field, "d");
    assert_non_null(strstr(err.text, "\"-1\" is wrong"));
    assert_int_equal(kvc_csv_double(&csv, 3, &given, &d, &err), KVC_OK);
    assert_true(given && d == -1);
    split_row(&csv, "NULL,,\"\",nan");
    for (size_t c = 0; c < 4; c++) {
        assert_true(kvc_csv_absent(&csv, c));
        assert_int_equal(kvc_csv_u64(&csv, c, &given, &u, &err), KVC_OK);
        assert_false(given);
        assert_int_equal(kvc_csv_tokens(&csv, c, 0, &tokens, &err), KVC_ERR_INPUT);
        assert_non_null(strstr(err.text, "empty"));
    }
    assert_null(csv.field[1].text);
    assert_non_null(csv.field[2].text);
    split_row(&csv, "0.5,1e400,2147483648,99999999999999999999");
    for (size_t c = 0; c < 4; c++)
        assert_int_equal(kvc_csv_tokens(&csv, c, 0, &tokens, &err), KVC_ERR_INPUT);
    assert_int_equal(kvc_csv_double(&csv, 1, &given, &d, &err), KVC_ERR_INPUT);
    kvc_csv_clear(&csv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_texts),  cmocka_unit_test(what_was_written),
        cmocka_unit_test(columns_by_name), cmocka_unit_test(sniffing),
        cmocka_unit_test(field_counts),  cmocka_unit_test(values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
