/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/report_column.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

/* 64-bit numbers, integers or doubles, in the order of the column: append only. */
static const size_t counts[] = {
#define AT(field) offsetof(struct kvc_import_report, field)
    AT(rows), AT(accepted), AT(bad), AT(blank), AT(odd), AT(inversions), AT(without_ids),
    AT(repeated_ids), AT(floor_rows), AT(ceil_rows), AT(zero_output), AT(unknown_output),
    AT(failed), AT(cancelled), AT(gateway_answered), AT(cached_rows), AT(cached_of_tokens),
    AT(cached_tokens), AT(cache_write_tokens), AT(spend_rows), AT(spend_usd), AT(bytes_in),
    AT(forgotten_blocks), AT(unjudged_rows), AT(unjudged_tokens), AT(linked_turns), AT(branches),
    AT(key_instances), AT(key_stored_blocks), AT(key_copied_blocks), AT(key_hit_blocks_shared),
    AT(key_hit_blocks_apart), AT(filtered),
#undef AT
};
static const size_t facts[] = {
#define AT(field) offsetof(struct kvc_engine_facts, field)
    AT(kv_cache_tokens), AT(kv_cache_bytes), AT(concurrency_tokens), AT(concurrency), AT(lines),
    AT(new_tokens), AT(cached_tokens), AT(running_peak), AT(waiting_peak), AT(preemptions),
    AT(prompt_tokens_per_s_peak), AT(output_tokens_per_s_peak), AT(kv_used_peak),
    AT(hit_rate_last), AT(external_hit_rate_last), AT(stored_tokens), AT(stored_bytes),
    AT(retrieved_tokens), AT(retrieved_bytes),
#undef AT
};
#define COUNTS (sizeof(counts) / sizeof(counts[0]))
#define FACTS (sizeof(facts) / sizeof(facts[0]))

enum { N_COUNTS, N_NOTES, N_TALLIES, N_ENGINES, N_FACTS, HEAD };

static size_t put_text(char *at, const char *text)
{
    size_t n = strlen(text) + 1;
    if (at)
        memcpy(at, text, n);
    return n;
}

/* The bytes of all texts, written where there is room. */
static size_t put_texts(const struct kvc_import_report *r, char *at)
{
    size_t n = 0;
    for (uint32_t i = 0; i < r->n_notes; i++)
        n += put_text(at ? at + n : NULL, r->notes[i]);
    for (uint32_t i = 0; i < r->n_tallies; i++)
        n += put_text(at ? at + n : NULL, r->tallies[i].text);
    for (uint32_t i = 0; i < r->n_engines; i++)
        n += put_text(at ? at + n : NULL, r->engines[i].name);
    return n;
}

bool kvc_report_pack(const struct kvc_import_report *r, struct kvc_packed_report *out)
{
    struct kvc_packed_report p = { .n_texts = put_texts(r, NULL) };
    p.n_numbers = HEAD + COUNTS + r->n_tallies + (size_t)r->n_engines * FACTS;
    p.numbers = kvc_malloc(p.n_numbers, sizeof(*p.numbers));
    p.texts = kvc_malloc(p.n_texts, 1);
    if (!p.numbers || !p.texts) {
        kvc_free(p.numbers);
        kvc_free(p.texts);
        return false;
    }
    uint64_t *v = p.numbers;
    v[N_COUNTS] = COUNTS;
    v[N_NOTES] = r->n_notes;
    v[N_TALLIES] = r->n_tallies;
    v[N_ENGINES] = r->n_engines;
    v[N_FACTS] = FACTS;
    v += HEAD;
    for (size_t i = 0; i < COUNTS; i++)
        memcpy(v++, (const char *)r + counts[i], sizeof(*v));
    for (uint32_t i = 0; i < r->n_tallies; i++)
        *v++ = r->tallies[i].rows;
    for (uint32_t i = 0; i < r->n_engines; i++)
        for (size_t k = 0; k < FACTS; k++)
            memcpy(v++, (const char *)&r->engines[i] + facts[k], sizeof(*v));
    put_texts(r, p.texts);
    *out = p;
    return true;
}

/* Whether as many numbers and texts are there as the head says, none of it absurd. */
static bool sound(const struct kvc_packed_report *p)
{
    const uint64_t *v = p->numbers;
    uint64_t texts = 0;
    if (p->n_numbers < HEAD)
        return false;
    for (size_t i = 0; i < HEAD; i++)
        if (v[i] > 1 << 16)
            return false;
    if (p->n_numbers != HEAD + v[N_COUNTS] + v[N_TALLIES] + v[N_ENGINES] * v[N_FACTS])
        return false;
    for (size_t i = 0; i < p->n_texts; i++)
        texts += p->texts[i] == '\0';
    return texts == v[N_NOTES] + v[N_TALLIES] + v[N_ENGINES] &&
           (!p->n_texts || p->texts[p->n_texts - 1] == '\0');
}

/* The next text, out of which is NULL where there is no room for it. */
static void take_text(const char **at, char *out, size_t size)
{
    if (out)
        snprintf(out, size, "%s", *at);
    *at += strlen(*at) + 1;
}

static void take_engine(const uint64_t *v, uint64_t n, const char **text,
                        struct kvc_engine_facts *e)
{
    take_text(text, e ? e->name : NULL, sizeof(e->name));
    for (size_t k = 0; e && k < FACTS && k < n; k++)
        memcpy((char *)e + facts[k], v + k, sizeof(*v));
}

bool kvc_report_unpack(const struct kvc_packed_report *p, struct kvc_import_report *r)
{
    if (!sound(p))
        return false;
    const uint64_t *head = p->numbers, *v = head + HEAD;
    const char *text = p->texts;
    *r = (struct kvc_import_report){ .stored = true };
    for (size_t i = 0; i < head[N_COUNTS]; i++, v++)
        if (i < COUNTS)
            memcpy((char *)r + counts[i], v, sizeof(*v));
    for (size_t i = 0; i < head[N_NOTES]; i++)
        take_text(&text, i < KVC_REPORT_NOTES ? r->notes[r->n_notes++] : NULL,
                  sizeof(r->notes[0]));
    for (size_t i = 0; i < head[N_TALLIES]; i++, v++) {
        struct kvc_import_tally *t = i < KVC_REPORT_NOTES ? &r->tallies[r->n_tallies++] : NULL;
        take_text(&text, t ? t->text : NULL, sizeof(t->text));
        if (t)
            t->rows = *v;
    }
    for (size_t i = 0; i < head[N_ENGINES]; i++, v += head[N_FACTS])
        take_engine(v, head[N_FACTS], &text,
                    i < KVC_REPORT_ENGINES ? &r->engines[r->n_engines++] : NULL);
    return true;
}
