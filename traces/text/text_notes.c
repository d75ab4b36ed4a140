/* SPDX-License-Identifier: Apache-2.0
 * What an import of texts assumed and how far off that is, in words. */
#include "traces/import/anonymize.h"
#include "traces/text/text_state.h"

#include <stdio.h>
#include <string.h>

#define MODELS_SHOWN 4

/* The p-th of the errors, in percent, by nearest rank; steps are 0.1 %. */
static double error_at(const struct kvc_text_import *t, double p)
{
    uint64_t rank = (uint64_t)(p * (double)t->stated_rows + 0.999999), sum = 0;
    size_t i = 0;
    for (; i < KVC_TEXT_ERROR_STEPS; i++)
        if ((sum += t->error[i]) >= rank)
            break;
    return 100.0 * (double)(i + 1) / KVC_TEXT_ERROR_STEPS;
}

static void note_rates(struct kvc_import *im, const struct kvc_text_import *t)
{
    char list[160] = "";
    size_t n = 0, shown = 0;
    for (size_t i = 0; i < t->n_rates && shown < MODELS_SHOWN; i++) {
        const struct kvc_text_rate *r = &t->rates[i];
        const char *name = t->models.bytes + t->models.at[i];
        if (!r->calibrated || n >= sizeof(list) - 1)
            continue;
        char model[KVC_SHOWN_NAME];
        kvc_import_shown_name(im, "model", name, strlen(name), model);
        int k = snprintf(list + n, sizeof(list) - n, "%s%.3f%s%s", shown ? ", " : "",
                         r->bytes_per_token, *name ? " for " : "", *name ? model : "");
        n += k > 0 ? (size_t)k : 0;
        shown++;
    }
    if (shown)
        kvc_import_note(im, "bytes a token: %s%s; learned from the tokens that %llu of the first "
                        "rows state", list, t->n_rates > MODELS_SHOWN ? " .." : "",
                        (unsigned long long)t->pooled.rows);
    if (!t->pooled.rows && t->estimated_rows)
        kvc_import_note(im, "no row says how many tokens its text has: %.1f bytes a token assumed; "
                        "--tokenizer bytes:R or a tokenizer.json tells better",
                        KVC_TEXT_DEFAULT_RATE);
}

static void note_lengths(struct kvc_import *im, const struct kvc_text_import *t)
{
    unsigned long long estimated = t->estimated_rows, stated = t->stated_rows;
    double of = t->input_tokens ? (double)t->input_tokens : 1;
    if (estimated)
        kvc_import_note(im, "prompt lengths of %llu rows are estimated from their text%s",
                        estimated,
                        t->chats ? ", 3 tokens around each message and before the answer (OpenAI's "
                                   "cookbook; other templates: 2 to 6)"
                                 : "");
    if (stated)
        kvc_import_note(im, "prompt lengths of %llu rows are stated; the estimate from text is off "
                        "by %.1f %% (median), %.1f %% (p90)", stated, error_at(t, 0.5),
                        error_at(t, 0.9));
    if (t->padded_tokens || t->cut_tokens)
        kvc_import_note(im, "%llu stated tokens are not in the text and taken as new, %llu tokens "
                        "of text are beyond the stated length and cut off: hit rates may be up to "
                        "%.2f points too low or %.2f too high",
                        (unsigned long long)t->padded_tokens, (unsigned long long)t->cut_tokens,
                        100 * (double)t->padded_tokens / of, 100 * (double)t->cut_tokens / of);
    if (t->short_rows)
        kvc_import_note(im, "%llu rows show less than half of the text their token count stands "
                        "for: shortened in the log? what isn't there counts as new",
                        (unsigned long long)t->short_rows);
    if (t->media_rows)
        kvc_import_note(im, "%llu rows hold images or files whose tokens nobody states: their "
                        "lengths are too small", (unsigned long long)t->media_rows);
}

void kvc_text_notes(struct kvc_import *im, const struct kvc_text_import *t)
{
    if (t->encoder)
        kvc_import_note(im, "texts cut by the tokenizer.json given; what a chat template adds is "
                        "not known, 3 tokens around each message and before the answer assumed");
    else if (t->given_rate > 0)
        kvc_import_note(im, "texts cut at %.3g bytes a token, as --tokenizer says", t->given_rate);
    else
        note_rates(im, t);
    note_lengths(im, t);
    if (t->answers_carried || t->answers_stripped)
        kvc_import_note(im, "%llu later turns repeat the answer before them; %llu show only a part "
                        "of what was generated, thinking stripped say: no reuse of those",
                        (unsigned long long)t->answers_carried,
                        (unsigned long long)t->answers_stripped);
}
