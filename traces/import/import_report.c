/* SPDX-License-Identifier: Apache-2.0
 * What an import has to say: notes, tallies, rows that could not be used. */
#include "traces/import/import_state.h"

#include "base/error.h"
#include "traces/import/anonymize.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void kvc_import_note(struct kvc_import *im, const char *fmt, ...)
{
    char text[sizeof(im->report.notes[0])];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (uint32_t i = 0; i < im->report.n_notes; i++)
        if (strcmp(im->report.notes[i], text) == 0)
            return;
    if (im->report.n_notes < KVC_REPORT_NOTES)
        memcpy(im->report.notes[im->report.n_notes++], text, sizeof(text));
}

void kvc_import_tally(struct kvc_import *im, const char *text)
{
    kvc_import_tally_rows(im, text, 1);
}

void kvc_import_tally_rows(struct kvc_import *im, const char *text, uint64_t rows)
{
    struct kvc_import_tally *all = im->report.tallies;
    uint32_t i = 0;
    while (i < im->report.n_tallies &&
           strncmp(all[i].text, text, sizeof(all[i].text) - 1) != 0)
        i++;
    if (i == KVC_REPORT_NOTES || !rows)
        return;
    if (i == im->report.n_tallies)
        snprintf(all[im->report.n_tallies++].text, sizeof(all[i].text), "%s", text);
    all[i].rows += rows;
}

void kvc_import_gateway_answered(struct kvc_import *im)
{
    im->report.gateway_answered++;
}

void kvc_import_failed_unseen(struct kvc_import *im)
{
    im->report.failed++;
    kvc_import_tally(im, "failed before any token was counted; left out");
}

enum kvc_status kvc_import_bad(struct kvc_import *im, const struct kvc_error *bad,
                               struct kvc_error *err)
{
    if (bad->status == KVC_ERR_NOMEM || im->options->strict) {
        if (err) {
            *err = *bad;
            kvc_import_hide(im, err);
        }
        return bad->status;
    }
    im->report.bad++;
    if (im->report.n_shown < KVC_REPORT_SHOWN) {
        im->report.shown[im->report.n_shown++] = *bad;
        kvc_import_hide(im, &im->report.shown[im->report.n_shown - 1]);
    }
    return KVC_OK;
}
