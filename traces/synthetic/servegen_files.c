/* SPDX-License-Identifier: Apache-2.0
 * ServeGen's models from a folder or an archive, and the word to those who try to import them. */
#include "traces/synthetic/servegen.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/import/import_state.h"
#include "traces/parse/tar.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)256 << 20)
#define DEEPEST 6

static enum kvc_status too_large(const char *name, struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, name, 0, NULL, "larger than %zu MiB, which no file of "
                       "these models is", FILE_MAX >> 20);
}

static enum kvc_status whole_stream(struct kvc_stream *s, const char *name, char **text, size_t *n,
                                    struct kvc_error *err)
{
    size_t cap = 0, got = 1;
    for (*n = 0; got; *n += got) {
        if (*n > FILE_MAX)
            return too_large(name, err);
        if (!kvc_grow((void **)text, &cap, *n + ((size_t)1 << 16), 1))
            return kvc_fail_nomem(err);
        enum kvc_status status = kvc_stream_read(s, *text + *n, cap - *n, &got, err);
        if (status != KVC_OK)
            return status;
    }
    return KVC_OK;
}

static enum kvc_status from_file(struct kvc_servegen *m, const char *path, struct kvc_error *err)
{
    struct kvc_stream *s = NULL;
    char *text = NULL;
    size_t n = 0;
    enum kvc_status status = kvc_stream_open(&s, path, err);
    if (status == KVC_OK)
        status = whole_stream(s, path, &text, &n, err);
    if (status == KVC_OK)
        status = kvc_servegen_take(m, path, text, n, err);
    kvc_stream_close(s);
    kvc_free(text);
    return status;
}

static bool wanted(const char *name)
{
    return strncmp(name, "chunk-", 6) == 0 && !strstr(name, ".tmp");
}

static enum kvc_status from_folder(struct kvc_servegen *m, const char *path, unsigned depth,
                                   struct kvc_error *err)
{
    struct dirent **entries = NULL;
    enum kvc_status status = KVC_OK;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        return kvc_fail_errno(err, path, "reading the folder");
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        char full[4096];
        struct stat st;
        int len = snprintf(full, sizeof(full), "%s/%s", path, name);
        if (status == KVC_OK && name[0] != '.' && len < (int)sizeof(full) && stat(full, &st) == 0) {
            if (S_ISDIR(st.st_mode) && depth < DEEPEST)
                status = from_folder(m, full, depth + 1, err);
            else if (S_ISREG(st.st_mode) && wanted(name) && st.st_size)
                status = from_file(m, full, err);
        }
        free(entries[i]); /* scandir's own */
    }
    free(entries);
    return status;
}

static enum kvc_status from_tar(struct kvc_servegen *m, struct kvc_stream *s, const char *path,
                                struct kvc_error *err)
{
    static const struct kvc_import_options defaults = { .struct_size = sizeof(defaults) };
    struct kvc_import im = { .options = &defaults, .paths = &path, .n_paths = 1,
                             .place = KVC_ID_NONE, .lines.stream = s };
    struct kvc_tar tar;
    char *text = NULL;
    size_t cap = 0;
    bool more = true;
    kvc_tar_init(&tar, &im);
    enum kvc_status status = KVC_OK;
    while (status == KVC_OK && (status = kvc_tar_next(&tar, &more, err)) == KVC_OK && more) {
        const char *slash = strrchr(tar.name, '/');
        if (!wanted(slash ? slash + 1 : tar.name))
            continue;
        if (tar.size > FILE_MAX)
            status = too_large(tar.name, err);
        else if (!kvc_grow((void **)&text, &cap, (size_t)tar.size + 1, 1))
            status = kvc_fail_nomem(err);
        else
            status = kvc_tar_read(&tar, text, (size_t)tar.size, err);
        if (status == KVC_OK)
            status = kvc_servegen_take(m, tar.name, text, (size_t)tar.size, err);
    }
    kvc_free(text);
    return status;
}

enum kvc_status kvc_servegen_load(struct kvc_servegen *m, const char *path, struct kvc_error *err)
{
    struct stat st;
    struct kvc_stream *s = NULL;
    *m = (struct kvc_servegen){ 0 };
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        enum kvc_status status = from_folder(m, path, 0, err);
        return status == KVC_OK ? kvc_servegen_settle(m, path, err) : status;
    }
    enum kvc_status status = kvc_stream_open(&s, path, err);
    if (status != KVC_OK)
        return status;
    if (!kvc_stream_is_tar(s))
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "ServeGen's models come as a "
                             "folder or a tar of chunk-N-trace.csv and chunk-N-dataset.json");
    if (status == KVC_OK)
        status = from_tar(m, s, path, err);
    kvc_stream_close(s);
    return status == KVC_OK ? kvc_servegen_settle(m, path, err) : status;
}

/* ---- as an argument of import ---- */

static enum kvc_status refuse(struct kvc_import *im, struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                       "these are ServeGen's rate models, not requests; draw some with kvcast gen "
                       "servegen MODELS -o F.jsonl and import those");
}

/* "0,14.015,1.015,Gamma,0.97,0.0735" */
static bool is_rates(const char *p, size_t n)
{
    char row[200];
    const char *end = memchr(p, '\n', n);
    size_t len = end ? (size_t)(end - p) : n, commas = 0;
    if (len >= sizeof(row))
        return false;
    memcpy(row, p, len);
    row[len] = '\0';
    for (size_t i = 0; i < len; i++)
        commas += row[i] == ',';
    size_t head = strspn(row, "0123456789.,");
    const char *law = row + head;
    return commas == 5 && head >= 4 &&
           (strncmp(law, "Gamma,", 6) == 0 || strncmp(law, "Weibull,", 8) == 0 ||
            (len && row[0] == '0' && strstr(row, ",0,0,,")));
}

static bool sniff(const char *head, size_t n)
{
    if (n > 262 && memcmp(head + 257, "ustar", 5) == 0)
        return memmem(head, n, "chunk-", 6) &&
               (memmem(head, n, "-trace.csv", 10) || memmem(head, n, "-dataset.json", 13));
    size_t i = 0;
    while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r'))
        i++;
    if (i < n && head[i] == '{')
        return memmem(head, n, "\"output_tokens\": \"{", 19) &&
               (memmem(head, n, "\"input_tokens\": \"{", 18) ||
                memmem(head, n, "\"text_tokens\": \"{", 17));
    return is_rates(head + i, n - i);
}

const struct kvc_format kvc_format_servegen = {
    .name = "servegen",
    .summary = "ServeGen's rate models: refused, see kvcast gen servegen",
    .tar = true,
    .sniff = sniff,
    .read = refuse,
};
