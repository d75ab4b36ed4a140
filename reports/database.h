/* SPDX-License-Identifier: Apache-2.0
 * The results database: its schema, and opening it with errors that say what to do. SQLite stays
 * behind this header. */
#ifndef KVC_REPORTS_DATABASE_H
#define KVC_REPORTS_DATABASE_H

#include <kvcast/kvcast.h>
#include <sqlite3.h>

#define KVC_DB_VERSION 1 /* PRAGMA user_version */

/* Read-only unless write; write creates the file when absent and leaves a transaction open in
 * which the tables exist. */
enum kvc_status kvc_db_open(sqlite3 **out, const char *path, bool write, struct kvc_error *err);
enum kvc_status kvc_db_fail(sqlite3 *db, int rc, const char *path, const char *what,
                            struct kvc_error *err);
enum kvc_status kvc_db_run(sqlite3 *db, const char *path, const char *sql, struct kvc_error *err);
/* True when the file begins as an SQLite database does. */
bool kvc_db_looks_like(const char *path);

#endif
