/* SPDX-License-Identifier: Apache-2.0
 * ceiling --tiers: what no placement in a chain of tiers can beat. */
#include "cli/ceiling/ceiling.h"

#include <math.h>
#include <stdio.h>

enum kvc_status kvc_ceiling_fill_tiers(struct ceiling *c, struct kvc_error *err)
{
    uint64_t blocks[KVC_MAX_TIERS];
    struct kvc_hits hits[KVC_MAX_TIERS];
    for (size_t i = 0; i < c->n_tiers; i++)
        blocks[i] = c->tier[i].capacity.blocks;
    enum kvc_status st = kvc_ceiling_tiers(c->seen, blocks, c->n_tiers, hits, err);
    for (size_t i = 0; i < c->n_tiers && st == KVC_OK; i++)
        c->tier[i].hits = hits[i];
    return st;
}

/* What is found in tier i alone: a share of input tokens or of touched blocks. */
static double share_there(const struct ceiling *c, size_t i, bool tokens)
{
    static const struct kvc_hits none;
    const struct kvc_hits *all = &c->tier[i].hits, *faster = i ? &c->tier[i - 1].hits : &none;
    uint64_t whole = tokens ? all->tokens : all->blocks;
    uint64_t hits = tokens ? all->hit_tokens - faster->hit_tokens
                           : all->raw_hit_blocks - faster->raw_hit_blocks;
    bool known = c->stats.has_prefix && whole && (!tokens || c->stats.has_tokens);
    return known ? (double)hits / (double)whole : (double)NAN;
}

void kvc_ceiling_tiers_json(struct kvc_json *j, const struct ceiling *c)
{
    if (c->n_tiers == 0)
        return;
    kvc_json_open_array(j, "tiers");
    for (size_t i = 0; i < c->n_tiers; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", c->tier[i].name);
        kvc_ceiling_json_capacity(j, c, &c->tier[i].capacity);
        kvc_json_double(j, "token_hit_rate", share_there(c, i, true));
        kvc_json_double(j, "raw_block_hit_rate", share_there(c, i, false));
        kvc_json_open_object(j, "with_faster");
        kvc_ceiling_json_hits(j, &c->tier[i].hits, &c->stats);
        kvc_json_close(j);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

void kvc_ceiling_tiers_text(const struct ceiling *c)
{
    double tokens = 0, blocks = 0;
    if (c->n_tiers == 0)
        return;
    printf("\nthe best of all placements in tiers, each block in one of them: hit there, and there "
           "or faster\n%-12s %14s %21s %21s\n%-12s %14s %10s %10s %10s %10s\n", "", "",
           "input tokens (usable)", "blocks (raw)", "tier", "blocks", "there", "or faster", "there",
           "or faster");
    for (size_t i = 0; i < c->n_tiers; i++) {
        double t = share_there(c, i, true), b = share_there(c, i, false);
        printf("%-12s %14s", c->tier[i].name, ceiling_blocks_text(c->tier[i].capacity.blocks).s);
        printf(" %9s%% %9s%%", kvc_fmt_fixed(100 * t, 3, false).s,
               kvc_fmt_fixed(100 * (tokens += t), 3, false).s);
        printf(" %9s%% %9s%%\n", kvc_fmt_fixed(100 * b, 3, false).s,
               kvc_fmt_fixed(100 * (blocks += b), 3, false).s);
    }
}
