/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/ladder.h"

#include "reports/out.h"

#include <math.h>
#include <string.h>

const char *kvc_gap_name(enum kvc_gap gap)
{
    static const char *const names[KVC_GAPS] = {"sharing", "capacity", "policy", "routing"};
    return names[gap];
}

static uint64_t hits_of(const struct kvc_hits *h, enum kvc_ladder_rate rate)
{
    return rate == KVC_LADDER_TOKENS ? h->hit_tokens : h->raw_hit_blocks;
}

static double share(const struct kvc_ladder *l, double hits, enum kvc_ladder_rate rate)
{
    uint64_t whole = rate == KVC_LADDER_TOKENS ? l->content->tokens : l->content->blocks;
    return whole ? hits / (double)whole : (double)NAN;
}

/* The rung above a gap, or with KVC_GAPS the lowest of all. */
static const struct kvc_hits *above(const struct kvc_ladder *l, unsigned gap)
{
    while (gap > 0)
        if (l->below[--gap])
            return l->below[gap];
    return l->content;
}

double kvc_ladder_gap(const struct kvc_ladder *l, enum kvc_gap gap, enum kvc_ladder_rate rate)
{
    if (!l->below[gap])
        return (double)NAN;
    double upper = (double)hits_of(above(l, gap), rate);
    return share(l, upper - (double)hits_of(l->below[gap], rate), rate);
}

double kvc_ladder_reached(const struct kvc_ladder *l, enum kvc_ladder_rate rate)
{
    return share(l, (double)hits_of(above(l, KVC_GAPS), rate), rate);
}

/* ---- output ---- */

static void json_rate(struct kvc_json *j, const struct kvc_ladder *l, enum kvc_ladder_rate rate,
                      const char *key)
{
    kvc_json_open_object(j, key);
    kvc_json_double(j, "content", share(l, (double)hits_of(l->content, rate), rate));
    for (unsigned g = 0; g < KVC_GAPS; g++)
        kvc_json_double(j, kvc_gap_name(g), kvc_ladder_gap(l, g, rate));
    kvc_json_double(j, "reached", kvc_ladder_reached(l, rate));
    kvc_json_close(j);
}

void kvc_ladder_json(struct kvc_json *j, const struct kvc_ladder *l, bool has_tokens)
{
    kvc_json_open_object(j, "gaps");
    if (has_tokens)
        json_rate(j, l, KVC_LADDER_TOKENS, "token_hit_rate");
    else
        kvc_json_null(j, "token_hit_rate");
    json_rate(j, l, KVC_LADDER_RAW_BLOCKS, "raw_block_hit_rate");
    kvc_json_close(j);
}

static void cell(struct kvc_text *t, double part, const char *unit)
{
    if (isnan(part))
        kvc_text_addf(t, " %10s", "-");
    else
        kvc_text_addf(t, " %*s%s", *unit ? 9 : 10, kvc_fmt_fixed(100 * part, 3, false).s, unit);
}

void kvc_ladder_text(struct kvc_text *t, const struct kvc_ladder *l, size_t n, bool has_tokens)
{
    enum kvc_ladder_rate rate = has_tokens ? KVC_LADDER_TOKENS : KVC_LADDER_RAW_BLOCKS;
    bool shown[KVC_GAPS] = {false};
    int name = 10;
    for (size_t i = 0; i < n; i++)
        name = (int)strlen(l[i].policy) > name ? (int)strlen(l[i].policy) : name;
    for (size_t i = 0; i < n; i++)
        for (unsigned g = 0; g < KVC_GAPS; g++)
            shown[g] |= l[i].below[g] != NULL;
    kvc_text_addf(t, "\nwhat is lost between endless room and each policy, in points of %s\n"
                  "%12s  %-*s %10s", has_tokens ? "input tokens (usable)" : "blocks (raw)",
                  "blocks", name, "policy", "content");
    for (unsigned g = 0; g < KVC_GAPS; g++)
        if (shown[g])
            kvc_text_addf(t, " %10s", kvc_gap_name(g));
    kvc_text_addf(t, " %10s\n", "reached");
    for (size_t i = 0; i < n; i++) {
        bool inf = l[i].capacity_blocks == KVC_CAPACITY_INF;
        kvc_text_addf(t, "%12s  %-*s", inf ? "inf" : kvc_fmt_count(l[i].capacity_blocks).s, name,
                      l[i].policy);
        cell(t, share(&l[i], (double)hits_of(l[i].content, rate), rate), "%");
        for (unsigned g = 0; g < KVC_GAPS; g++)
            if (shown[g])
                cell(t, kvc_ladder_gap(&l[i], g, rate), "");
        cell(t, kvc_ladder_reached(&l[i], rate), "%");
        kvc_text_add(t, "\n");
    }
}
