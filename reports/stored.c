/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "reports/database.h"
#include "reports/load.h"
#include "sim/replay/result.h"
#include "traces/parse/stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define JSON_LIMIT (256u << 20)

static const char a_log[] =
    "is a log or trace, not a run; make one with kvcast replay --json or --db";

struct kvc_stored {
    char *json;
    struct kvc_jval *figures, *detail;
    struct kvc_result result;
    struct kvc_findings findings;
};

static enum kvc_status parse_figures(struct kvc_stored *s, const char *path, struct kvc_error *err)
{
    enum kvc_status status =
        kvc_json_parse(&s->figures, s->json, strlen(s->json), false, path, 1, err);
    if (status != KVC_OK)
        return status;
    const struct kvc_jval *v = kvc_jval_kind(s->figures) == KVC_JOBJECT
                                   ? kvc_jval_member(s->figures, "schema") : NULL;
    const char *schema = v ? kvc_jval_string(v) : NULL;
    if (!schema || strcmp(schema, "kvcast.replay.v1") != 0)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, "schema",
                           "is not the JSON of a replay (schema kvcast.replay.v1); make one with "
                           "kvcast replay --json, or give a results database");
    return KVC_OK;
}

/* The whole text of a file, plain or packed. */
static enum kvc_status read_text(struct kvc_stored *s, const char *path, struct kvc_error *err)
{
    struct kvc_stream *stream = NULL;
    struct kvc_text t = {0};
    char chunk[65536];
    size_t got = 1;
    enum kvc_status status = kvc_stream_open(&stream, path, err);
    if (status == KVC_OK && kvc_stream_is_kvt(stream))
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "%s", a_log);
    while (status == KVC_OK && got) {
        status = kvc_stream_read(stream, chunk, sizeof(chunk), &got, err);
        if (status == KVC_OK)
            kvc_text_addn(&t, chunk, got);
        if (status == KVC_OK && t.failed)
            status = kvc_fail_nomem(err);
        if (status == KVC_OK && t.len > JSON_LIMIT)
            status = kvc_fail_at(err, KVC_ERR_LIMIT, path, 0, NULL,
                                 "larger than %u MiB: this is not the JSON of a replay",
                                 JSON_LIMIT >> 20);
    }
    kvc_stream_close(stream);
    if (status != KVC_OK) {
        kvc_text_clear(&t);
        return status;
    }
    s->json = t.buf;
    if (strlen(s->json) != t.len)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                           "is neither the JSON of a replay nor a results database");
    return KVC_OK;
}

static enum kvc_status read_file(struct kvc_stored *s, const char *path, int64_t run_id,
                                 struct kvc_error *err)
{
    struct kvc_jval *row = NULL;
    if (run_id)
        return kvc_fail_at(err, KVC_ERR_USAGE, path, 0, NULL,
                           "holds one run; a run number is for results databases");
    enum kvc_status status = read_text(s, path, err);
    if (status != KVC_OK)
        return status;
    status = parse_figures(s, path, err);
    /* Where the first line is JSON for itself, the user gave a log. */
    const char *end = status == KVC_ERR_INPUT ? strchr(s->json, '\n') : NULL;
    if (end && end[1] &&
        kvc_json_parse(&row, s->json, (size_t)(end - s->json), false, path, 1, NULL) == KVC_OK)
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "%s", a_log);
    kvc_json_free(row);
    return status;
}

/* ---- rows ---- */

static enum kvc_status copy_text(char **out, sqlite3_stmt *q, int column, struct kvc_error *err)
{
    const unsigned char *text = sqlite3_column_text(q, column);
    *out = kvc_strdup(text ? (const char *)text : "");
    return *out ? KVC_OK : kvc_fail_nomem(err);
}

static enum kvc_status read_row(struct kvc_stored *s, sqlite3 *db, const char *path,
                                int64_t *run_id, struct kvc_error *err)
{
    sqlite3_stmt *q = NULL;
    char *detail = NULL;
    enum kvc_status status = KVC_OK;
    int rc = sqlite3_prepare_v2(db,
                                "SELECT id, figures, detail FROM runs WHERE id = ?1 OR ?1 = 0"
                                " ORDER BY id DESC LIMIT 1",
                                -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(q, 1, *run_id);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_DONE && *run_id)
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "holds no run %lld",
                             (long long)*run_id);
    else if (rc == SQLITE_DONE)
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "holds no runs yet");
    else if (rc != SQLITE_ROW)
        status = kvc_db_fail(db, rc, path, "cannot read the run", err);
    else {
        *run_id = sqlite3_column_int64(q, 0);
        status = copy_text(&s->json, q, 1, err);
        if (status == KVC_OK)
            status = copy_text(&detail, q, 2, err);
    }
    sqlite3_finalize(q);
    if (status == KVC_OK)
        status = parse_figures(s, path, err);
    if (status == KVC_OK)
        status = kvc_json_parse(&s->detail, detail, strlen(detail), false, path, 1, err);
    kvc_free(detail);
    return status;
}

static enum kvc_status read_points(struct kvc_series *s, sqlite3_stmt *q, const char *path,
                                   struct kvc_error *err)
{
    size_t times = 0, values = 0;
    int rc;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        if (!kvc_grow((void **)&s->time_ns, &times, s->n + 1, sizeof(*s->time_ns)) ||
            !kvc_grow((void **)&s->value, &values, s->n + 1, sizeof(*s->value)))
            return kvc_fail_nomem(err);
        bool known = sqlite3_column_type(q, 1) != SQLITE_NULL;
        s->time_ns[s->n] = (uint64_t)sqlite3_column_int64(q, 0);
        s->value[s->n++] = known ? sqlite3_column_double(q, 1) : (double)NAN;
    }
    return rc == SQLITE_DONE ? KVC_OK : kvc_db_fail(sqlite3_db_handle(q), rc, path,
                                                    "cannot read a time series", err);
}

static enum kvc_status read_series(struct kvc_stored *s, sqlite3 *db, const char *path,
                                   int64_t run_id, struct kvc_error *err)
{
    struct kvc_result *r = &s->result;
    const struct kvc_jval *units = kvc_jval_kind(s->detail) == KVC_JOBJECT
                                       ? kvc_jval_member(s->detail, "series_units") : NULL;
    size_t n = units && kvc_jval_kind(units) == KVC_JARRAY ? kvc_jval_count(units) : 0;
    sqlite3_stmt *q = NULL;
    enum kvc_status status = KVC_OK;
    r->series = kvc_calloc(n, sizeof(*r->series));
    if (!r->series)
        return kvc_fail_nomem(err);
    int rc = sqlite3_prepare_v2(db,
                                "SELECT time_ns, value FROM series WHERE run_id = ? AND name = ?"
                                " ORDER BY time_ns, rowid",
                                -1, &q, NULL);
    if (rc != SQLITE_OK)
        return kvc_db_fail(db, rc, path, "cannot read the time series", err);
    for (const struct kvc_jval *v = n ? kvc_jval_first(units) : NULL; v && status == KVC_OK;
         v = kvc_jval_next(v)) {
        struct kvc_series *one = &r->series[r->n_series++];
        const struct kvc_jval *name = kvc_jval_kind(v) == KVC_JARRAY ? kvc_jval_first(v) : NULL;
        const struct kvc_jval *unit = name ? kvc_jval_next(name) : NULL;
        snprintf(one->name, sizeof(one->name), "%s",
                 name && kvc_jval_string(name) ? kvc_jval_string(name) : "");
        snprintf(one->unit, sizeof(one->unit), "%s",
                 unit && kvc_jval_string(unit) ? kvc_jval_string(unit) : "");
        sqlite3_reset(q);
        sqlite3_bind_int64(q, 1, run_id);
        sqlite3_bind_text(q, 2, one->name, -1, SQLITE_STATIC);
        status = read_points(one, q, path, err);
    }
    sqlite3_finalize(q);
    return status;
}

static enum kvc_status read_database(struct kvc_stored *s, const char *path, int64_t run_id,
                                     struct kvc_error *err)
{
    sqlite3 *db = NULL;
    enum kvc_status status = kvc_db_open(&db, path, false, err);
    if (status == KVC_OK)
        status = read_row(s, db, path, &run_id, err);
    if (status == KVC_OK)
        status = kvc_load_result(&s->result, s->figures, s->detail, err);
    if (status == KVC_OK)
        status = read_series(s, db, path, run_id, err);
    sqlite3_close(db);
    return status;
}

enum kvc_status kvc_stored_open(struct kvc_stored **out, const char *path, int64_t run_id,
                                struct kvc_error *err)
{
    struct kvc_stored *s = kvc_calloc(1, sizeof(*s));
    if (!s)
        return kvc_fail_nomem(err);
    enum kvc_status status;
    if (kvc_db_looks_like(path))
        status = read_database(s, path, run_id, err);
    else {
        status = read_file(s, path, run_id, err);
        if (status == KVC_OK)
            status = kvc_load_result(&s->result, s->figures, NULL, err);
    }
    if (status == KVC_OK)
        status = kvc_findings_make(&s->findings, &s->result, err);
    if (status != KVC_OK) {
        kvc_stored_close(s);
        return status;
    }
    if (s->detail)
        kvc_load_ttft(&s->findings, s->detail);
    *out = s;
    return KVC_OK;
}

const struct kvc_result *kvc_stored_result(const struct kvc_stored *stored)
{
    return &stored->result;
}

const struct kvc_findings *kvc_stored_findings(const struct kvc_stored *stored)
{
    return &stored->findings;
}

const struct kvc_jval *kvc_stored_figures(const struct kvc_stored *stored)
{
    return stored->figures;
}

const char *kvc_stored_json(const struct kvc_stored *stored)
{
    return stored->json;
}

void kvc_stored_close(struct kvc_stored *stored)
{
    if (!stored)
        return;
    kvc_result_clear(&stored->result);
    kvc_json_free(stored->figures);
    kvc_json_free(stored->detail);
    kvc_free(stored->json);
    kvc_free(stored);
}
