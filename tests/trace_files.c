/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/trace_files.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

int trace_files_setup(void **state)
{
    (void)state;
    /* In memory where that is possible: writers sync, and disks are slow at it. */
    strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/kvcast-test-XXXXXX"
                                                 : "/tmp/kvcast-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

int trace_files_teardown(void **state)
{
    (void)state;
    char path[400];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    return rmdir(folder);
}

size_t trace_folder_count(void)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

const char *trace_path(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof(paths[0]), "%s/%s", folder, name);
    return p;
}

const char *trace_file(const char *name, const void *bytes, size_t n)
{
    const char *path = trace_path(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(n == 0 || fwrite(bytes, 1, n, f) == n);
    assert_int_equal(fclose(f), 0);
    return path;
}

const char *trace_text(const char *name, const char *text)
{
    return trace_file(name, text, strlen(text));
}

struct kvc_trace *trace_import(const char *path, uint32_t block_tokens,
                               struct kvc_import_report *report)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = block_tokens,
                                    .compare_readers = true };
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    if (kvc_trace_import(&t, &path, 1, &o, report, &err) != KVC_OK) {
        char text[900];
        kvc_error_format(&err, text, sizeof(text));
        fail_msg("import: %s", text);
    }
    return t;
}

const char *trace_import_error(const char *path, const struct kvc_import_options *options)
{
    static char text[900];
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    assert_int_equal(kvc_trace_import(&t, &path, 1, options, NULL, &err), KVC_ERR_INPUT);
    assert_null(t);
    kvc_error_format(&err, text, sizeof(text));
    assert_null(strchr(text, '\n'));
    return text;
}
