/* SPDX-License-Identifier: Apache-2.0
 * Lines of the file in hand, as readers ask for them. */
#include "traces/import/import_state.h"

#include "base/error.h"

static bool blank(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r'))
        i++;
    return i == n;
}

enum kvc_status kvc_import_line(struct kvc_import *im, const char **text, size_t *n,
                                struct kvc_error *err)
{
    for (;;) {
        enum kvc_line_kind kind;
        enum kvc_status status = kvc_lines_next(&im->lines, &kind, text, n, err);
        if (status != KVC_OK)
            return status;
        if (kind == KVC_LINE_END) {
            *text = NULL;
            return KVC_OK;
        }
        if (kind == KVC_LINE_TEXT && !blank(*text, *n)) {
            im->report.rows++;
            return KVC_OK;
        }
        if (kind == KVC_LINE_TEXT) {
            im->report.blank++;
            continue;
        }
        struct kvc_error bad;
        im->report.rows++;
        kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line, NULL,
                    "the line is longer than %zu MiB, which no request is; is this one row a line?",
                    KVC_LINE_MAX >> 20);
        status = kvc_import_bad(im, &bad, err);
        if (status != KVC_OK)
            return status;
    }
}

enum kvc_status kvc_import_each_line(struct kvc_import *im,
                                     enum kvc_status (*one)(struct kvc_import *im, void *user,
                                                            const char *text, size_t n,
                                                            struct kvc_error *err),
                                     void *user, struct kvc_error *err)
{
    const char *text;
    size_t n;
    enum kvc_status status;
    while ((status = kvc_import_line(im, &text, &n, err)) == KVC_OK && text)
        if ((status = one(im, user, text, n, err)) != KVC_OK)
            break;
    return status;
}

size_t kvc_import_ahead(const struct kvc_import *im, const char **text)
{
    *text = im->lines.buf + im->lines.begin;
    return im->lines.end - im->lines.begin;
}

void kvc_import_line_ahead(struct kvc_import *im, size_t bytes)
{
    im->lines.begin += bytes;
    im->lines.line++;
    im->report.rows++;
}

enum kvc_status kvc_import_line_within(struct kvc_import *im, const char **text, size_t *n,
                                       struct kvc_error *err)
{
    enum kvc_line_kind kind;
    enum kvc_status status = kvc_lines_next(&im->lines, &kind, text, n, err);
    if (status != KVC_OK)
        return status;
    if (kind == KVC_LINE_TOO_LONG)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line, NULL,
                           "the line is longer than %zu MiB", KVC_LINE_MAX >> 20);
    if (kind == KVC_LINE_END)
        *text = NULL;
    return KVC_OK;
}
