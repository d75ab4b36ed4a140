/* SPDX-License-Identifier: Apache-2.0
 * Imports of formats that have a document a session: places, block size and starts. */
#include "traces/import/import_state.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT_GAP_NS ((uint64_t)60 * 1000000000) /* between starts of sessions */

const char *kvc_import_place_name(const struct kvc_import *im, uint32_t place, size_t file)
{
    return place == KVC_ID_NONE ? im->paths[file] : im->places.bytes + im->places.at[place];
}

enum kvc_status kvc_import_bytes(struct kvc_import *im, void *buf, size_t n, size_t *got,
                                 struct kvc_error *err)
{
    struct kvc_lines *l = &im->lines;
    enum kvc_status status = kvc_stream_read(l->stream, buf, n, got, err);
    if (status != KVC_OK)
        return status;
    l->bytes += *got;
    if (l->tick && !l->tick(l->tick_user, kvc_stream_position(l->stream)))
        return kvc_fail(err, KVC_ERR_CANCELLED, "cancelled");
    return KVC_OK;
}

bool kvc_import_is_tar(const struct kvc_import *im)
{
    return kvc_stream_is_tar(im->lines.stream);
}

enum kvc_status kvc_import_member(struct kvc_import *im, const char *member,
                                  struct kvc_error *err)
{
    char name[sizeof(err->file)];
    snprintf(name, sizeof(name), "%s:%s", im->paths[im->file], member);
    if (!kvc_intern_get(&im->places, name, strlen(name), &im->place))
        return kvc_fail_nomem(err);
    kvc_import_clock_start(im);
    im->where[0] = '\0';
    im->lines.line = 0;
    return KVC_OK;
}

/* Nothing of the documents before is of use to the next, whose clock begins at 0 again. */
static enum kvc_status close_documents(struct kvc_import *im, struct kvc_error *err)
{
    kvc_recent_clear(&im->sessions);
    im->sessions.window = im->recent.window = 0;
    return kvc_forest_close_spaces(im->forest, err);
}

enum kvc_status kvc_import_document(struct kvc_import *im, const char *member,
                                    uint64_t *number_from_1, struct kvc_error *err)
{
    char name[sizeof(err->file)];
    if (im->window.streaming)
        return kvc_fail(err, KVC_ERR_USAGE, "--window with --forget needs to know when rows "
                        "arrive, and %s logs get the starts of their sessions when all are read; "
                        "name one of the two", im->format->name);
    snprintf(name, sizeof(name), member ? "%s:%s" : "%s", im->paths[im->file], member);
    if (!kvc_intern_get(&im->places, name, strlen(name), &im->place) ||
        !kvc_grow((void **)&im->documents, &im->documents_cap, im->n_documents + 1,
                  sizeof(*im->documents)))
        return kvc_fail_nomem(err);
    im->documents[im->n_documents++] =
        (struct kvc_document){ im->place, kvc_forest_rows(im->forest) };
    *number_from_1 = im->n_documents;
    enum kvc_status status = im->options->forget_ns ? close_documents(im, err) : KVC_OK;
    if (status != KVC_OK)
        return status;
    kvc_import_clock_start(im);
    im->where[0] = '\0';
    im->lines.line = 0;
    return KVC_OK;
}

enum kvc_status kvc_import_block_size(struct kvc_import *im, uint32_t tokens,
                                      struct kvc_error *err)
{
    if (im->options->block_tokens || im->stated == tokens)
        return KVC_OK;
    if (im->stated)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line,
                           "block_size", "blocks of %u tokens here, of %u before; import them "
                           "apart", tokens, im->stated);
    im->stated = im->supposed = tokens;
    return KVC_OK;
}

void kvc_import_begin_row(struct kvc_import *im, uint64_t line, const char *where)
{
    im->report.rows++;
    im->lines.line = line;
    snprintf(im->where, sizeof(im->where), "%s", where);
}

struct named {
    const char *name;
    size_t document;
};

static int order_names(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->document < y->document ? -1 : 1;
}

/* Documents all begin at 0: no log of them says when. They start a minute apart, names sorted. */
enum kvc_status kvc_import_start_documents(struct kvc_import *im, struct kvc_error *err)
{
    size_t n = im->n_documents;
    struct named *named = n > 1 ? kvc_malloc(n, sizeof(*named)) : NULL;
    if (n < 2)
        return KVC_OK;
    if (!named)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        named[i] = (struct named){ kvc_import_place_name(im, im->documents[i].place, 0), i };
    qsort(named, n, sizeof(*named), order_names);
    enum kvc_status status = KVC_OK;
    for (size_t k = 0; k < n && status == KVC_OK; k++) {
        size_t d = named[k].document;
        uint64_t first = im->documents[d].first_row;
        uint64_t end = d + 1 < n ? im->documents[d + 1].first_row : kvc_forest_rows(im->forest);
        status = kvc_forest_delay(im->forest, first, end - first, k * DOCUMENT_GAP_NS, err);
    }
    kvc_free(named);
    kvc_import_note(im, "%s logs say nothing of when sessions start: session k of %zu, by name "
                    "from 0, starts at k x %llu s", im->format->name, n,
                    (unsigned long long)(DOCUMENT_GAP_NS / 1000000000));
    return status;
}
