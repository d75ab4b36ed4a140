/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/database.h"

#include "base/error.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUSY_MS 10000 /* a sweep's other processes write too */

static const char schema[] =
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, created TEXT NOT NULL, version TEXT NOT NULL,"
    " scenario TEXT NOT NULL, digests TEXT NOT NULL, figures TEXT NOT NULL, detail TEXT NOT NULL);"
    "CREATE TABLE series (run_id INTEGER NOT NULL REFERENCES runs(id), name TEXT NOT NULL,"
    " time_ns INTEGER NOT NULL, value REAL);"
    "CREATE INDEX series_by_run ON series (run_id, name, time_ns);"
    "PRAGMA user_version = 1;";

enum kvc_status kvc_db_fail(sqlite3 *db, int rc, const char *path, const char *what,
                            struct kvc_error *err)
{
    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                           "is not an SQLite database; it was left as it is, name another file");
    case SQLITE_CORRUPT:
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                           "is a damaged database; restore it or name another file");
    case SQLITE_FULL:
        return kvc_fail_at(err, KVC_ERR_IO, path, 0, NULL,
                           "%s: the disk is full; the database is as it was", what);
    case SQLITE_BUSY:
        return kvc_fail_at(err, KVC_ERR_IO, path, 0, NULL,
                           "%s: another program held the database for %d s; try again", what,
                           BUSY_MS / 1000);
    case SQLITE_NOMEM:
        return kvc_fail_nomem(err);
    case SQLITE_READONLY:
        return kvc_fail_at(err, KVC_ERR_IO, path, 0, NULL,
                           "%s: it may not be written; check the permissions of file and folder",
                           what);
    default:
        return kvc_fail_at(err, KVC_ERR_IO, path, 0, NULL, "%s: %s", what,
                           db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
    }
}

enum kvc_status kvc_db_run(sqlite3 *db, const char *path, const char *sql, struct kvc_error *err)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? KVC_OK : kvc_db_fail(db, rc, path, "cannot write the database", err);
}

static int one_integer(sqlite3 *db, const char *sql, int64_t *out)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* Refuses databases of others and of later versions; creates the tables in an empty one. */
static enum kvc_status check_schema(sqlite3 *db, const char *path, bool write,
                                    struct kvc_error *err)
{
    int64_t version = 0, tables = 0;
    int rc = one_integer(db, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = one_integer(db, "SELECT count(*) FROM sqlite_master", &tables);
    if (rc != SQLITE_OK)
        return kvc_db_fail(db, rc, path, "cannot read the database", err);
    if (version > KVC_DB_VERSION)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                           "was written by a later kvcast (database version %lld, this one knows "
                           "%d); use that one, or another file",
                           (long long)version, KVC_DB_VERSION);
    if (version == KVC_DB_VERSION)
        return KVC_OK;
    if (tables || !write)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                           "is a database, but holds no kvcast runs; name another file");
    return kvc_db_run(db, path, schema, err);
}

enum kvc_status kvc_db_open(sqlite3 **out, const char *path, bool write, struct kvc_error *err)
{
    sqlite3 *db = NULL;
    enum kvc_status status;
    int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    int rc = sqlite3_open_v2(path, &db, flags, NULL);
    if (rc != SQLITE_OK) {
        status = kvc_db_fail(db, rc, path, "cannot open the database", err);
        sqlite3_close(db);
        return status;
    }
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, BUSY_MS);
    /* The write lock comes before the look at the schema, or two first writers would both
     * create it. */
    status = write ? kvc_db_run(db, path, "BEGIN IMMEDIATE", err) : KVC_OK;
    if (status == KVC_OK)
        status = check_schema(db, path, write, err);
    if (status != KVC_OK) {
        sqlite3_close(db);
        return status;
    }
    *out = db;
    return KVC_OK;
}

bool kvc_db_looks_like(const char *path)
{
    char head[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, head, sizeof(head));
    close(fd);
    return n == 16 && memcmp(head, "SQLite format 3", 16) == 0;
}
