/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/log_checks.h"

#include "base/alloc.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void log_need(const char *path)
{
    if (access(path, R_OK) == 0)
        return;
    print_message("[  SKIPPED ] no %s\n", path);
    skip();
}

uint64_t log_tally(const struct kvc_import_report *r, const char *words)
{
    for (uint32_t i = 0; i < r->n_tallies; i++)
        if (strstr(r->tallies[i].text, words))
            return r->tallies[i].rows;
    return 0;
}

bool log_note(const struct kvc_import_report *r, const char *words)
{
    for (uint32_t i = 0; i < r->n_notes; i++)
        if (strstr(r->notes[i], words))
            return true;
    return false;
}

uint32_t log_common_path(const struct kvc_trace *t, uint32_t a, uint32_t b)
{
    uint32_t n = 0;
    if (a == KVC_SEG_NONE || b == KVC_SEG_NONE)
        return 0;
    uint32_t na = kvc_trace_path_length(t, a), nb = kvc_trace_path_length(t, b);
    uint32_t *pa = calloc(na + nb, sizeof(*pa)), *pb = pa + na;
    assert_non_null(pa);
    kvc_trace_path(t, a, pa);
    kvc_trace_path(t, b, pb);
    for (uint32_t i = 0; i < na && i < nb && pa[i] == pb[i]; i++)
        n += t->seg_len[pa[i]];
    free(pa);
    return n;
}

uint32_t log_common(const struct kvc_trace *t, uint64_t a, uint64_t b)
{
    return log_common_path(t, t->prompt_seg[a], t->prompt_seg[b]);
}

uint32_t log_output_blocks(const struct kvc_trace *t, uint64_t r)
{
    uint32_t s = t->output_seg ? t->output_seg[r] : KVC_SEG_NONE;
    return s == KVC_SEG_NONE ? 0 : t->seg_depth[s] + t->seg_len[s];
}

struct kvc_trace *log_import(const char *const *paths, size_t n,
                             const struct kvc_import_options *options,
                             struct kvc_import_report *report)
{
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    if (kvc_trace_import(&t, paths, n, options, report, &err) != KVC_OK) {
        char text[900];
        kvc_error_format(&err, text, sizeof(text));
        fail_msg("import: %s", text);
    }
    return t;
}

void log_import_without_memory(const char *path, const struct kvc_import_options *options)
{
    enum kvc_status status = KVC_ERR_NOMEM;
    uint64_t k = 0;
    while (status != KVC_OK) {
        struct kvc_trace *t = NULL;
        kvc_alloc_fail_after(++k);
        status = kvc_trace_import(&t, &path, 1, options, NULL, NULL);
        kvc_alloc_fail_after(0);
        if (status != KVC_OK)
            assert_int_equal(status, KVC_ERR_NOMEM);
        kvc_trace_destroy(t);
    }
    assert_true(k > 10);
}
