/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "reports/database.h"
#include "reports/reports.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct row { /* the texts of one run */
    char created[32];
    char *digests, *figures, *detail;
};

static void clear_row(struct row *row)
{
    kvc_free(row->digests);
    kvc_free(row->figures);
    kvc_free(row->detail);
}

static enum kvc_status make_row(struct row *row, const struct kvc_result *r, struct kvc_error *err)
{
    struct kvc_json j;
    struct tm tm;
    time_t now = time(NULL);
    memset(row, 0, sizeof(*row));
    struct kvc_findings *f = kvc_malloc(1, sizeof(*f));
    if (!f)
        return kvc_fail_nomem(err);
    enum kvc_status status = kvc_findings_make(f, r, err);
    if (status == KVC_OK) {
        if (gmtime_r(&now, &tm))
            strftime(row->created, sizeof(row->created), "%Y-%m-%dT%H:%M:%SZ", &tm);
        kvc_json_init(&j, false);
        kvc_json_open_object(&j, NULL);
        kvc_json_string(&j, "trace", r->trace_digest);
        kvc_json_string(&j, "profiles", r->profiles_digest);
        kvc_json_close(&j);
        row->digests = kvc_json_take(&j);
        kvc_json_init(&j, false);
        kvc_result_to_json(&j, r);
        row->figures = kvc_json_take(&j);
        kvc_json_init(&j, false);
        kvc_detail_to_json(&j, r, f);
        row->detail = kvc_json_take(&j);
        if (!row->digests || !row->figures || !row->detail)
            status = kvc_fail_nomem(err);
    }
    kvc_free(f);
    return status;
}

static int insert_run(sqlite3 *db, const struct kvc_result *r, const struct row *row)
{
    const char *texts[] = {row->created,
                           kvc_version(),
                           r->scenario_json ? r->scenario_json : "null",
                           row->digests,
                           row->figures,
                           row->detail};
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(db,
                                "INSERT INTO runs (created, version, scenario, digests, figures,"
                                " detail) VALUES (?, ?, ?, ?, ?, ?)",
                                -1, &q, NULL);
    for (int i = 0; rc == SQLITE_OK && i < 6; i++)
        rc = sqlite3_bind_text(q, i + 1, texts[i], -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    sqlite3_finalize(q);
    return rc;
}

static int insert_series(sqlite3 *db, const struct kvc_result *r, int64_t run_id)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(
        db, "INSERT INTO series (run_id, name, time_ns, value) VALUES (?, ?, ?, ?)", -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = SQLITE_DONE;
    for (uint32_t i = 0; rc == SQLITE_DONE && i < r->n_series; i++) {
        const struct kvc_series *s = &r->series[i];
        for (size_t k = 0; rc == SQLITE_DONE && k < s->n; k++) {
            sqlite3_reset(q);
            sqlite3_bind_int64(q, 1, run_id);
            rc = sqlite3_bind_text(q, 2, s->name, -1, SQLITE_STATIC);
            sqlite3_bind_int64(q, 3, (int64_t)s->time_ns[k]);
            sqlite3_bind_double(q, 4, s->value[k]); /* NAN becomes NULL */
            if (rc == SQLITE_OK)
                rc = sqlite3_step(q);
        }
    }
    sqlite3_finalize(q);
    return rc;
}

enum kvc_status kvc_report_sqlite(const struct kvc_result *result, const char *path,
                                  int64_t *run_id, struct kvc_error *err)
{
    struct row row;
    struct stat st;
    sqlite3 *db = NULL;
    bool existed = stat(path, &st) == 0;
    enum kvc_status status = make_row(&row, result, err);
    if (status != KVC_OK)
        goto out;
    status = kvc_db_open(&db, path, true, err);
    if (status != KVC_OK)
        goto out;
    int rc = insert_run(db, result, &row);
    int64_t id = sqlite3_last_insert_rowid(db);
    if (rc == SQLITE_DONE)
        rc = insert_series(db, result, id);
    if (rc != SQLITE_DONE)
        status = kvc_db_fail(db, rc, path, "cannot add the run", err);
    else
        status = kvc_db_run(db, path, "COMMIT", err);
    if (status == KVC_OK && run_id)
        *run_id = id;
out:
    sqlite3_close(db); /* rolls back what was not committed */
    if (status != KVC_OK && !existed && stat(path, &st) == 0 && st.st_size == 0)
        unlink(path);
    clear_row(&row);
    return status;
}
