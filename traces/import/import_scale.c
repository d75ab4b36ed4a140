/* SPDX-License-Identifier: Apache-2.0
 * What lets a log pass that is larger than memory: arrays that may become files, forgetting, and a
 * forecast of where the import will end. */
#include "traces/import/import_state.h"

#include "base/error.h"

#define FIRST_FORECAST ((uint64_t)64 << 20) /* bytes of text: read within a second, enough for a
                                               slope */
#define SEGMENT_PACKED_BYTES 1.2 /* in a .kvt; about as measured on the conversation trace */

enum kvc_status kvc_import_prepare(struct kvc_import *im, struct kvc_error *err)
{
    const struct kvc_import_options *o = im->options;
    struct kvc_forest_options f = { .spill = &im->spill, .forget_ns = o->forget_ns,
                                    .infer_sessions = o->infer_sessions,
                                    .draws = !o->anonymize,
                                    .sample_weight = o->sample_weight, .seed = o->seed };
    if (o->sample_weight && (o->sample_weight < KVC_SAMPLES || o->forget_ns))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--sample", o->forget_ns
                           ? "and --forget both bound memory, each by figures of its own: give one"
                           : "one in 8 or less is a sample");
    f.draws = f.draws || o->sample_weight;
    im->window.streaming = kvc_import_streams_by(im) && (o->window_begin_ns || o->window_end_ns);
    im->recent.forget_ns = o->forget_ns;
    kvc_import_recent(im, &im->sessions, sizeof(struct kvc_session_entry));
    if (!kvc_spill_init(&im->spill, o->spill_folder, o->spill_over_bytes) ||
        !(im->forest = kvc_forest_create_with(&f)))
        return kvc_fail_nomem(err);
    return KVC_OK;
}

bool kvc_import_suspect_room(struct kvc_import *im)
{
    size_t have = im->held_suspects.bytes / sizeof(*im->suspects);
    size_t want = have + (have < 1024 ? 16 + have : have / 8);
    return im->n_suspects < have ||
           kvc_spill_grow(&im->spill, &im->suspects, &im->held_suspects,
                          want * sizeof(*im->suspects), false);
}

bool kvc_import_misfit(const struct kvc_import *im, const struct kvc_log_row *row)
{
    return kvc_import_streams_by(im) && im->options->block_tokens && row->n_ids &&
           !kvc_block_fits_row(im->supposed, row->input_tokens, row->n_ids);
}

/* ---- forecast ---- */

/* What a figure that was a at from bytes and is b at to will be at end: on along that line. */
static uint64_t line(uint64_t a, uint64_t b, uint64_t from, uint64_t to, uint64_t end)
{
    double slope = b > a && to > from ? (double)(b - a) / (double)(to - from) : 0;
    return end > to ? b + (uint64_t)(slope * (double)(end - to)) : b;
}

static void names_memory(const struct kvc_import *im, uint64_t *bytes)
{
    const struct kvc_intern *const all[] = { &im->tenants, &im->models };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        *bytes += all[i]->bytes_cap + all[i]->at_cap * sizeof(*all[i]->at) + all[i]->mask * 4;
    *bytes += im->recent.bytes;
}

/* What grows with the rows stays in memory up to the limit; tables and names do not leave. */
static void share_memory(const struct kvc_import *im, struct kvc_import_estimate *e)
{
    uint64_t held = im->spill.held, limit = im->spill.limit, more;
    uint64_t room = held < limit ? limit - held : 0;
    more = (uint64_t)((double)(e->memory_total_bytes - e->memory_bytes) * (double)held /
                      ((double)e->memory_bytes + 1));
    if (more > room) {
        e->memory_total_bytes -= more - room;
        e->file_total_bytes += more - room;
    }
}

static uint64_t packed_bytes(const struct kvc_import *im, const struct kvc_forest_counts *c,
                             const struct kvc_import_estimate *e)
{
    double chains = c->nodes ? (double)c->chains * (double)e->blocks_total / (double)c->nodes : 0;
    return (uint64_t)(im->packed_row_bytes * (double)e->requests_total +
                      chains * 2 * SEGMENT_PACKED_BYTES);
}

static void forecast(struct kvc_import *im, uint64_t position, struct kvc_import_estimate *e)
{
    const struct kvc_import_estimate *last = &im->estimate;
    struct kvc_forest_counts c;
    kvc_forest_count(im->forest, &c);
    uint64_t end = im->total > position ? im->total : position, from = last->done_bytes;
    e->done_bytes = position;
    e->total_bytes = im->total;
    e->requests = c.rows;
    e->blocks = c.nodes;
    e->memory_bytes = c.hash_bytes + im->spill.held;
    names_memory(im, &e->memory_bytes);
    e->file_bytes = im->spill.on_disk;
    e->requests_total = line(last->requests, e->requests, from, position, end);
    e->blocks_total = line(last->blocks, e->blocks, from, position, end);
    e->memory_total_bytes = line(last->memory_bytes, e->memory_bytes, from, position, end);
    e->file_total_bytes = line(last->file_bytes, e->file_bytes, from, position, end);
    share_memory(im, e);
    e->output_bytes_total = packed_bytes(im, &c, e);
}

void kvc_import_forecast(struct kvc_import *im, uint64_t position)
{
    struct kvc_import_estimate e = { .text_bytes = im->report.bytes_in + im->lines.bytes };
    uint64_t due = im->estimated_bytes ? im->estimated_bytes * 2 : FIRST_FORECAST;
    if (!im->options->estimate)
        return;
    e.fresh = e.text_bytes >= due;
    if (e.fresh)
        im->packed_row_bytes = kvc_forest_packed_row_bytes(im->forest);
    forecast(im, position, &e);
    if (e.fresh) {
        im->estimated_bytes = e.text_bytes;
        im->estimate = e;
    }
    im->options->estimate(im->options->estimate_user, &e);
}

/* ---- a sample ---- */

void kvc_import_total(struct kvc_import *im, uint32_t input_tokens, uint32_t output_tokens,
                      size_t n)
{
    struct kvc_sample_totals *s = &im->totals;
    uint64_t whole = (uint64_t)n * im->supposed;
    if (!im->options->sample_weight)
        return;
    s->requests++;
    s->input_tokens += input_tokens;
    s->output_tokens += output_tokens == KVC_TOKENS_UNKNOWN ? 0 : output_tokens;
    s->block_touches += n;
    s->block_tokens += whole < input_tokens ? whole : input_tokens;
}

enum kvc_status kvc_import_tell_sample(struct kvc_import *im, struct kvc_trace *t,
                                       struct kvc_error *err)
{
    const struct kvc_sample_totals *s = &im->totals;
    if (!t->sample.weight)
        return KVC_OK;
    if (!t->n_requests && !s->block_touches)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, "--sample", "no prompt of "
                           "the log has block ids to draw by: import it without --sample");
    if (!t->n_requests)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, "--sample", "none of the "
                           "log's prompts with block ids were drawn: take a larger share");
    if (t->block_tokens != im->supposed)
        return kvc_fail_at(err, KVC_ERR_USAGE, kvc_import_file(im), 0, "--sample", "blocks have %u "
                           "tokens, which shows at the end only: name it with --block-tokens",
                           t->block_tokens);
    uint64_t kept = 0;
    for (uint64_t r = 0; r < t->n_requests; r++) { /* prompts of which the beginning is kept */
        uint32_t n = kvc_trace_blocks(t, r);
        kept += n;
        if (n < t->input_tokens[r] / t->block_tokens)
            t->input_tokens[r] = n * t->block_tokens;
    }
    if (2 * kept > s->block_touches && t->sample.weight >= 4 * KVC_SAMPLES)
        kvc_import_note(im, "the sample keeps %.0f %% of the log's block touches, for little of "
                            "the log is in prefix trees large enough to draw from: rates of it "
                            "mean little, import the log without --sample",
                        100.0 * (double)kept / (double)s->block_touches);
    t->sample.requests = s->requests;
    t->sample.input_tokens = s->input_tokens;
    t->sample.output_tokens = s->output_tokens;
    t->sample.block_touches = s->block_touches;
    t->sample.block_tokens = s->block_tokens;
    return KVC_OK;
}

/* ---- what became of it ---- */

void kvc_import_tell(struct kvc_import *im, const struct kvc_forest_counts *c, struct kvc_trace *t)
{
    struct kvc_import_report *r = &im->report;
    r->forgotten_blocks = c->forgotten_blocks;
    r->unjudged_rows = c->unjudged_rows;
    r->unjudged_tokens = c->unjudged_input_tokens - c->unjudged_known_blocks * t->block_tokens;
    r->linked_turns = c->linked_turns;
    r->branches = c->branches;
    if (r->forgotten_blocks) {
        t->forget_ns = im->options->forget_ns;
        t->forgotten_blocks = r->forgotten_blocks;
        t->unjudged_tokens = r->unjudged_tokens;
    }
    if (im->options->infer_sessions && im->n_sessions)
        kvc_import_note(im, "the log names sessions; none were inferred");
    else if (im->options->infer_sessions)
        kvc_import_note(im, "sessions inferred from prefix growth: %llu turns linked to the one "
                        "before, %llu sessions begun beside another that went on from the same "
                        "prompt", (unsigned long long)r->linked_turns,
                        (unsigned long long)r->branches);
    else if (c->sample_linked * 5 >= c->sample && c->sample_linked)
        kvc_import_note(im, "no session ids, but %.0f %% of the first %llu requests extend an "
                        "earlier prompt: --infer-sessions would link them as turns",
                        100.0 * (double)c->sample_linked / (double)c->sample,
                        (unsigned long long)c->sample);
}
