/* SPDX-License-Identifier: Apache-2.0
 * Reports on disk: whole files or none, a database that survives kills, and reports rebuilt from
 * it. */
#include "base/alloc.h"
#include "base/outfile.h"
#include "base/rng.h"
#include "reports/reports.h"
#include "tests/report_sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static const char *file(const char *name)
{
    static char path[4][400];
    static unsigned next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
    return p;
}

static char *read_back(const char *name)
{
    struct kvc_error err;
    char *text;
    size_t n;
    assert_int_equal(kvc_file_get(file(name), 1u << 28, &text, &n, &err), KVC_OK);
    return text;
}

static void put(const char *name, const char *text)
{
    struct kvc_error err;
    assert_int_equal(kvc_outfile_put(file(name), text, strlen(text), &err), KVC_OK);
}

static int64_t query(const char *name, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open_v2(file(name), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

static void empty_folder(void)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] != '.')
            unlink(file(e->d_name));
    }
    closedir(d);
}

static size_t files_here(void)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* ---- files ---- */

static void files_are_replaced_whole(void **state)
{
    (void)state;
    struct stat st;
    empty_folder();
    put("a", "old");
    assert_int_equal(chmod(file("a"), 0640), 0);
    assert_int_equal(symlink("a", file("link")), 0);
    put("link", "new");
    char *text = read_back("a");
    assert_string_equal(text, "new");
    kvc_free(text);
    assert_int_equal(lstat(file("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(file("a"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(files_here(), 2);
}

static void impossible_places_are_told(void **state)
{
    (void)state;
    struct kvc_result *r = report_sample(1, 30, 2);
    struct kvc_error err;
    struct stat st;
    assert_int_equal(kvc_report_json(r, folder, &err), KVC_ERR_IO);
    assert_non_null(strstr(err.text, "folder"));
    assert_int_equal(kvc_report_json(r, file("no/such/place"), &err), KVC_ERR_IO);
    assert_int_equal(kvc_report_json(r, "/dev/full", &err), KVC_ERR_IO);
    assert_non_null(strstr(err.text, "disk is full"));
    assert_int_equal(kvc_report_requests_csv(r, "/dev/full", &err), KVC_ERR_IO);
    assert_int_equal(kvc_report_json(r, "/dev/null", &err), KVC_OK);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode)); /* written to, not replaced */
    kvc_result_destroy(r);
}

/* Runs fn in a child that cannot make a file longer than limit bytes; returns its exit code. */
static int with_small_files(int (*fn)(void), rlim_t limit)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit rl = {limit, limit};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &rl);
        _exit(fn());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int write_csv(void)
{
    struct kvc_error err;
    struct kvc_result *r = report_sample(1, 5000, 2);
    return kvc_report_requests_csv(r, file("big.csv"), &err) == KVC_ERR_IO ? 0 : 1;
}

static int add_run(void)
{
    struct kvc_error err;
    struct kvc_result *r = report_sample(1, 100, 4);
    enum kvc_status status = kvc_report_sqlite(r, file("runs.db"), NULL, &err);
    return status == KVC_OK ? 2 : status == KVC_ERR_IO ? 0 : 1;
}

static void no_room_leaves_the_old_file(void **state)
{
    (void)state;
    empty_folder();
    put("big.csv", "old\n");
    assert_int_equal(with_small_files(write_csv, 100000), 0);
    char *text = read_back("big.csv");
    assert_string_equal(text, "old\n");
    kvc_free(text);
    assert_int_equal(files_here(), 1);
}

/* ---- database ---- */

static void runs_are_added_one_by_one(void **state)
{
    (void)state;
    empty_folder();
    struct kvc_error err;
    struct kvc_result *r = report_sample(1, 100, 4);
    for (int64_t want = 1; want <= 3; want++) {
        int64_t id = 0;
        assert_int_equal(kvc_report_sqlite(r, file("runs.db"), &id, &err), KVC_OK);
        assert_int_equal(id, want);
    }
    size_t points = 0;
    for (uint32_t i = 0; i < r->n_series; i++)
        points += r->series[i].n;
    assert_int_equal(query("runs.db", "PRAGMA user_version"), 1);
    assert_int_equal(query("runs.db", "SELECT count(*) FROM series WHERE run_id = 2"), points);
    assert_int_equal(query("runs.db", "SELECT json_extract(figures, '$.hits.hit_tokens') "
                                      "FROM runs"), r->hit_tokens);
    static const char good[] = "SELECT count(*) FROM runs WHERE version = '" KVC_VERSION_STRING "' "
                               "AND created GLOB '20[0-9][0-9]-[01][0-9]-*T*Z' "
                               "AND json_valid(scenario) AND json_valid(digests)";
    assert_int_equal(query("runs.db", good), 3);
    kvc_result_destroy(r);
}

static void no_room_leaves_the_database(void **state)
{
    (void)state;
    empty_folder();
    assert_int_equal(with_small_files(add_run, RLIM_INFINITY), 2);
    struct stat before, after;
    assert_int_equal(stat(file("runs.db"), &before), 0);
    assert_int_equal(with_small_files(add_run, (rlim_t)before.st_size + 8192), 0);
    assert_int_equal(query("runs.db", "SELECT count(*) FROM runs"), 1);
    assert_int_equal(query("runs.db", "SELECT count(DISTINCT run_id) FROM series"), 1);
    assert_int_equal(stat(file("runs.db"), &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    empty_folder();
    assert_int_equal(with_small_files(add_run, 20000), 0); /* a new one does not stay, half made */
    assert_int_equal(files_here(), 0);
}

static void kills_leave_whole_runs(void **state)
{
    (void)state;
    empty_folder();
    struct kvc_result *r = report_sample(1, 2000, 4);
    int64_t points = 0, killed = 0;
    for (uint32_t i = 0; i < r->n_series; i++)
        points += (int64_t)r->series[i].n;
    uint64_t rng = kvc_rng_stream(9, "kill");
    for (int i = 0; i < 25; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct kvc_error err;
            for (;;) {
                if (kvc_report_sqlite(r, file("runs.db"), NULL, &err) != KVC_OK)
                    _exit(1);
            }
        }
        struct timespec nap = {0, (long)(5000000 + kvc_rng_below(&rng, 30000000))};
        nanosleep(&nap, NULL);
        kill(pid, SIGKILL);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        killed += WIFSIGNALED(status);
    }
    assert_int_equal(killed, 25);
    int64_t id = 0;
    struct kvc_error err;
    assert_int_equal(kvc_report_sqlite(r, file("runs.db"), &id, &err), KVC_OK);
    assert_int_equal(query("runs.db", "SELECT count(*) FROM runs"), id);
    assert_int_equal(query("runs.db", "SELECT count(*) FROM series"), id * points);
    assert_int_equal(query("runs.db", "SELECT count(*) FROM pragma_integrity_check "
                                      "WHERE integrity_check = 'ok'"), 1);
    kvc_result_destroy(r);
}

static void two_writers_wait_for_one_another(void **state)
{
    (void)state;
    empty_folder();
    struct kvc_result *r = report_sample(1, 50, 2);
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            struct kvc_error err;
            int failed = 0;
            for (int k = 0; k < 5; k++)
                failed |= kvc_report_sqlite(r, file("runs.db"), NULL, &err) != KVC_OK;
            _exit(failed);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(query("runs.db", "SELECT count(*) FROM runs"), 20);
    kvc_result_destroy(r);
}

static void other_files_are_refused_and_kept(void **state)
{
    (void)state;
    empty_folder();
    struct kvc_result *r = report_sample(1, 50, 2);
    struct kvc_error err;
    put("notes.txt", "These are the notes of somebody, longer than a header of sixteen bytes.\n");
    assert_int_equal(kvc_report_sqlite(r, file("notes.txt"), NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "not an SQLite database"));
    char *text = read_back("notes.txt");
    assert_int_equal(strncmp(text, "These are", 9), 0);
    kvc_free(text);

    sqlite3 *db;
    assert_int_equal(sqlite3_open(file("other.db"), &db), SQLITE_OK);
    sqlite3_exec(db, "CREATE TABLE people (name TEXT)", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_int_equal(kvc_report_sqlite(r, file("other.db"), NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "holds no kvcast runs"));
    assert_int_equal(query("other.db", "SELECT count(*) FROM sqlite_master"), 1);

    assert_int_equal(sqlite3_open(file("late.db"), &db), SQLITE_OK);
    sqlite3_exec(db, "CREATE TABLE runs (id); PRAGMA user_version = 99", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_int_equal(kvc_report_sqlite(r, file("late.db"), NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "later kvcast"));
    kvc_result_destroy(r);
}

/* ---- rebuilt reports ---- */

static char *render(const struct kvc_result *r, const struct kvc_findings *f, int form)
{
    struct kvc_text t = {0};
    struct kvc_error err;
    if (form == 0)
        kvc_text_summary(&t, r, f);
    else if (form == 1)
        kvc_markdown(&t, r, f);
    else
        assert_int_equal(kvc_html(&t, r, f, NULL, &err), KVC_OK);
    assert_false(t.failed);
    return t.buf;
}

static void a_row_gives_the_very_same_reports(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        empty_folder();
        struct kvc_result *r = report_sample(20 + i, i ? 400 * i : 0, 1 + i % 4);
        struct kvc_error err;
        struct kvc_stored *stored;
        struct kvc_findings f;
        r->has_prefix = i != 4;
        r->n_tenants = i == 2 ? 2 : 0;
        assert_int_equal(kvc_report_sqlite(r, file("runs.db"), NULL, &err), KVC_OK);
        if (kvc_stored_open(&stored, file("runs.db"), 0, &err) != KVC_OK)
            fail_msg("%s", err.text);
        assert_int_equal(kvc_findings_make(&f, r, &err), KVC_OK);
        for (int form = 0; form < 3; form++) {
            char *one = render(r, &f, form);
            char *two = render(kvc_stored_result(stored), kvc_stored_findings(stored), form);
            assert_string_equal(one, two);
            kvc_free(one);
            kvc_free(two);
        }
        struct kvc_text csv = {0};
        kvc_figures_csv(&csv, kvc_stored_figures(stored));
        assert_non_null(strstr(csv.buf, "\r\nhits.hit_tokens,"));
        kvc_text_clear(&csv);
        kvc_stored_close(stored);
        kvc_result_destroy(r);
    }
}

static void the_json_of_a_run_gives_what_it_holds(void **state)
{
    (void)state;
    empty_folder();
    struct kvc_result *r = report_sample(31, 500, 4);
    struct kvc_error err;
    struct kvc_stored *stored;
    assert_int_equal(kvc_report_json(r, file("run.json"), &err), KVC_OK);
    assert_int_equal(kvc_stored_open(&stored, file("run.json"), 0, &err), KVC_OK);
    const struct kvc_result *back = kvc_stored_result(stored);
    assert_int_equal(back->hit_tokens, r->hit_tokens);
    assert_int_equal(back->n_tiers, 4);
    assert_true(back->ttft_ms.p99 == r->ttft_ms.p99);
    assert_true(back->content_token_hit_rate == r->content_token_hit_rate);
    assert_memory_equal(back->missed_tokens, r->missed_tokens, sizeof(r->missed_tokens));
    char *html = render(back, kvc_stored_findings(stored), 2);
    assert_non_null(strstr(html, "Where the prompt tokens went"));
    kvc_free(html);
    kvc_stored_close(stored);
    assert_int_equal(kvc_stored_open(&stored, file("run.json"), 4, &err), KVC_ERR_USAGE);
    kvc_result_destroy(r);
}

/* A stored run may have been cut or changed by anyone: any answer but a crash. */
static void damaged_runs_do_not_crash(void **state)
{
    (void)state;
    empty_folder();
    struct kvc_result *r = report_sample(31, 50, 3);
    struct kvc_error err;
    assert_int_equal(kvc_report_json(r, file("run.json"), &err), KVC_OK);
    char *json = read_back("run.json");
    size_t n = strlen(json), opened = 0;
    uint64_t rng = kvc_rng_stream(5, "damage");
    for (int i = 0; i < 400; i++) {
        char *bad = kvc_strdup(json);
        struct kvc_stored *stored;
        static const char odd[] = "{}[]\",:0-9nullx";
        for (int k = 0; k < 1 + i % 3; k++)
            bad[kvc_rng_below(&rng, n)] = odd[kvc_rng_below(&rng, sizeof(odd) - 1)];
        put("bad.json", bad);
        kvc_free(bad);
        if (kvc_stored_open(&stored, file("bad.json"), 0, &err) != KVC_OK)
            continue;
        char *text = render(kvc_stored_result(stored), kvc_stored_findings(stored), i % 2);
        kvc_free(text);
        kvc_stored_close(stored);
        opened++;
    }
    assert_true(opened > 10);
    kvc_free(json);
    kvc_result_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_replaced_whole),
        cmocka_unit_test(impossible_places_are_told),
        cmocka_unit_test(no_room_leaves_the_old_file),
        cmocka_unit_test(runs_are_added_one_by_one),
        cmocka_unit_test(no_room_leaves_the_database),
        cmocka_unit_test(kills_leave_whole_runs),
        cmocka_unit_test(two_writers_wait_for_one_another),
        cmocka_unit_test(other_files_are_refused_and_kept),
        cmocka_unit_test(a_row_gives_the_very_same_reports),
        cmocka_unit_test(the_json_of_a_run_gives_what_it_holds),
        cmocka_unit_test(damaged_runs_do_not_crash),
    };
    snprintf(folder, sizeof(folder), "/tmp/kvcast-test-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    empty_folder();
    rmdir(folder);
    return failed;
}
