/* SPDX-License-Identifier: Apache-2.0
 * The block size of an import: stated, inferred, or contradicted by rows that then leave. */
#include "traces/import/import_state.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>

enum kvc_status kvc_import_suspect_error(const struct kvc_import *im, const struct kvc_suspect *s,
                                         uint32_t block, const char *advice,
                                         struct kvc_error *err)
{
    uint32_t full = s->tokens / block, most = full + (s->tokens % block != 0);
    char expected[48], field[64];
    snprintf(expected, sizeof(expected), full == most ? "%u" : "%u or %u", full, most);
    snprintf(field, sizeof(field), "%s%shash_ids", s->where, s->where[0] ? "." : "");
    return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_place_name(im, s->place, s->file), s->line,
                       field, "%zu ids for %u input tokens; blocks of %u tokens give %s%s", s->ids,
                       s->tokens, block, expected, advice);
}

/* Rows that contradict the block size become bad rows and leave the forest. */
static enum kvc_status reject_suspects(struct kvc_import *im, struct kvc_error *err)
{
    uint64_t *rows = kvc_malloc(im->n_suspects, sizeof(*rows));
    if (!rows)
        return kvc_fail_nomem(err);
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < im->n_suspects && status == KVC_OK; i++) {
        struct kvc_error bad;
        rows[i] = im->suspects[i].row;
        im->report.repeated_ids -= im->suspects[i].repeated;
        kvc_import_suspect_error(im, &im->suspects[i], im->supposed, "; the row is left out", &bad);
        status = kvc_import_bad(im, &bad, err);
    }
    if (status == KVC_OK)
        status = kvc_forest_remove(&im->forest, rows, im->n_suspects, err);
    im->report.accepted -= im->n_suspects;
    kvc_free(rows);
    return status;
}

enum kvc_status kvc_import_settle_block_size(struct kvc_import *im, uint32_t *block,
                                             struct kvc_error *err)
{
    uint32_t given = im->options->block_tokens ? im->options->block_tokens : im->stated;
    struct kvc_block_range range;
    *block = im->rows_with_ids ? im->supposed : 0;
    if (!im->n_suspects) {
        if (!given && im->rows_with_ids && im->format->cuts_blocks)
            kvc_import_note(im, "%s cut into blocks of %u tokens; --block-tokens chooses "
                            "another size", im->text ? "prompts" : "token ids", *block);
        else if (!given && im->rows_with_ids)
            kvc_import_note(im, "blocks of %u tokens assumed, as %s logs have; all rows agree",
                            *block, im->format->name);
        return KVC_OK;
    }
    uint32_t fitting = kvc_block_fit_choose(&im->fit, &range);
    char advice[200];
    bool some_fit = range.low <= range.high;
    if (!given && fitting) {
        kvc_import_note(im, "blocks of %u tokens inferred from lengths and ids (%llu to %llu fit "
                        "every row, %u does not)", fitting, (unsigned long long)range.low,
                        (unsigned long long)range.high, im->supposed);
        *block = fitting;
        return KVC_OK;
    }
    if (some_fit && range.low == range.high)
        snprintf(advice, sizeof(advice), "; --block-tokens %llu fits every row",
                 (unsigned long long)range.low);
    else if (some_fit)
        snprintf(advice, sizeof(advice), "; sizes from %llu to %llu fit every row%s, name it with "
                 "--block-tokens", (unsigned long long)range.low, (unsigned long long)range.high,
                 fitting ? "" : " and none stands out");
    else
        snprintf(advice, sizeof(advice), "; no size fits every row and %zu of %llu rows contradict "
                 "this one: name the right one with --block-tokens", im->n_suspects,
                 (unsigned long long)im->rows_with_ids);
    if (!some_fit && kvc_import_streams_by(im))
        snprintf(advice, sizeof(advice), "; with --forget or --sample rows can't be taken out "
                 "at the end: name the size with --block-tokens");
    if (some_fit || im->n_suspects * 2 > im->rows_with_ids || kvc_import_streams_by(im))
        return kvc_import_suspect_error(im, &im->suspects[0], im->supposed, advice, err);
    return reject_suspects(im, err);
}
