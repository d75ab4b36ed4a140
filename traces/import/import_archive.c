/* SPDX-License-Identifier: Apache-2.0
 * Archives of logs in any format: each member is read as a file of its own, packed or not. */
#include "traces/import/import_state.h"

#include "base/error.h"
#include "base/units.h"
#include "traces/parse/tar.h"

#include <stdio.h>
#include <string.h>

bool kvc_import_takes_archive(const struct kvc_import *im, const struct kvc_stream *stream)
{
    const char *name = im->options->format;
    bool by_name = name && !kvc_name_equal(name, "auto");
    size_t n;
    const char *head = kvc_stream_head(stream, &n);
    for (const struct kvc_format *const *f = kvc_format_table; *f; f++)
        if ((*f)->tar && (by_name ? kvc_name_equal((*f)->name, name) : (*f)->sniff(head, n)))
            return true;
    return false;
}

static enum kvc_status member_bytes(void *user, void *buf, size_t n, size_t *got,
                                    struct kvc_error *err)
{
    return kvc_tar_some(user, buf, n, got, err);
}

static uint64_t archive_position(const void *user)
{
    return kvc_stream_position(((const struct kvc_tar *)user)->stream);
}

/* Read-me files, which may quote a log's rows, and what systems leave behind. */
static bool passed_over(const struct kvc_import *im, const struct kvc_stream *member,
                        const char *name)
{
    size_t n, length = strlen(name);
    const char *head = kvc_stream_head(member, &n);
    if (length > 3 && strcmp(name + length - 3, ".md") == 0)
        return true;
    if (im->options->format && !kvc_name_equal(im->options->format, "auto"))
        return false;
    for (const struct kvc_format *const *f = kvc_format_table; *f; f++)
        if ((*f)->sniff(head, n))
            return false;
    return true;
}

static bool hidden(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (slash ? slash[1] : path[0]) == '.';
}

enum kvc_status kvc_import_archive(struct kvc_import *im, struct kvc_stream *stream,
                                   struct kvc_error *err)
{
    struct kvc_tar tar;
    const struct kvc_stream_source source = { &tar, member_bytes, archive_position };
    uint64_t read = 0, others = 0, before = im->done_before;
    bool more = true;
    kvc_tar_init_stream(&tar, im, stream);
    for (;;) {
        struct kvc_stream *member = NULL;
        char name[512];
        enum kvc_status status = kvc_tar_next(&tar, &more, err);
        if (status != KVC_OK)
            return status;
        if (!more)
            break;
        if (hidden(tar.name) || !tar.size)
            continue;
        snprintf(name, sizeof(name), "%s:%s", im->paths[im->file], tar.name);
        status = kvc_stream_open_source(&member, &source, name, err);
        if (status != KVC_OK)
            return status;
        if (passed_over(im, member, tar.name)) {
            others++;
        } else {
            read++;
            status = kvc_import_member(im, tar.name, err);
            if (status == KVC_OK)
                status = kvc_import_stream(im, member, err);
        }
        kvc_stream_close(member);
        im->done_before = before; /* positions are the archive's */
        if (status != KVC_OK)
            return status;
    }
    im->done_before = before + kvc_stream_position(stream);
    if (!read)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                           "no member of this archive is a log in a known format; name the format "
                           "with --format when it is one");
    if (others)
        kvc_import_note(im, "%llu members of the archive are documents (.md) or in no known format "
                        "and were passed over", (unsigned long long)others);
    return KVC_OK;
}
