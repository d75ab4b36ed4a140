/* SPDX-License-Identifier: Apache-2.0
 * ceiling --sample: rates with bands, from samples of whole prefix trees. */
#include "cli/ceiling/ceiling.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"
#include "cli/trace_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FEW_SUBTREES 10   /* in a sample; with fewer the spread of samples says little */
#define MOST_KEPT 0.5     /* of the touches; beyond it the exact run costs little more */

/* What samples can't tell is not asked for. */
static enum kvc_status check_others(const struct ceiling *c, struct kvc_error *err)
{
    static const char *const others[] = {"certify", "tiers", "cost", "gpu", "curve", "by",
                                         "replicas", "router", "isolate", "why"};
    const bool own = c->stats.sample.weight != 0; /* drawn by the import, so not asked for here */
    const char *file = own ? c->path : NULL, *what = own ? "a trace of samples" : "--sample";

    if (!kvc_cli_value(c->cli, "capacity"))
        return kvc_fail_at(err, KVC_ERR_USAGE, file, 0, what, "needs --capacity: which "
                           "capacities are worth a look takes the exact curve");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (kvc_cli_flag(c->cli, others[i]))
            return kvc_fail_at(err, KVC_ERR_USAGE, file, 0, what, "goes with --capacity and "
                               "--policy only, not with --%s, which is exact", others[i]);
    return KVC_OK;
}

enum kvc_status kvc_ceiling_sample_words(struct ceiling *c, struct kvc_error *err)
{
    enum kvc_status st = kvc_cli_sample(c->cli, &c->sample_weight, err);
    return st == KVC_OK && c->sample_weight ? check_others(c, err) : st;
}

enum kvc_status kvc_ceiling_sample_opened(struct ceiling *c, struct kvc_error *err)
{
    uint32_t own = c->stats.sample.weight;
    if (own && c->sample_weight && own != c->sample_weight)
        return kvc_fail_at(err, KVC_ERR_USAGE, c->path, 0, "--sample", "these are samples of one "
                           "in %" PRIu32 " already, and can be taken for nothing else", own);
    if (!own)
        return KVC_OK;
    c->sample_weight = own;
    return check_others(c, err);
}

static bool worth_sampling(const struct ceiling *c, const struct kvc_sampling *how)
{
    return how->kept_share <= MOST_KEPT &&
           how->subtrees >= FEW_SUBTREES * (uint64_t)c->sample_weight;
}

/* In the text beside the figures, which mean little then: --quiet does not take it away. */
static void doubt(FILE *f, const char *lead, const struct ceiling *c,
                  const struct kvc_sampling *how)
{
    const char *cure = c->stats.sample.weight ? "import the log again, with a larger --sample or "
                       "without" : "take a larger share, or run without --sample";
    if (worth_sampling(c, how))
        return;
    if (how->kept_share > MOST_KEPT)
        fprintf(f, "%sfew families of prompts hold most of this trace, so that a sample keeps %s "
                "of its touches: %s\n", lead, kvc_fmt_percent(how->kept_share).s, cure);
    else
        fprintf(f, "%s%s subtrees are too few to draw one in %" PRIu32 " of, bands say little: "
                "%s\n", lead, kvc_fmt_count(how->subtrees).s, c->sample_weight, cure);
}

static enum kvc_status print_json(const struct ceiling *c, const struct kvc_sampled *s,
                                  const struct kvc_sampling *how, struct kvc_error *err)
{
    struct kvc_json j;
    kvc_cli_json_begin(&j, "kvcast.ceiling.v1");
    kvc_cli_json_trace(&j, &c->stats);
    kvc_json_open_object(&j, "sample");
    kvc_json_u64(&j, "one_in", c->sample_weight);
    kvc_json_u64(&j, "subtrees", how->subtrees);
    kvc_json_double(&j, "trunk_share", how->trunk_share);
    kvc_json_double(&j, "kept_share", how->kept_share);
    kvc_json_bool(&j, "valid", worth_sampling(c, how));
    kvc_json_open_array(&j, "points");
    for (size_t i = 0; i < c->n_points && c->stats.has_prefix; i++)
        for (size_t p = 0; p < c->n_policies; p++) {
            const struct kvc_sampled *x = &s[p * c->n_points + i];
            kvc_json_open_object(&j, NULL);
            kvc_json_string(&j, "policy", c->policy[p]);
            kvc_ceiling_json_capacity(&j, c, &c->point[i]);
            kvc_json_double(&j, "raw_block_hit_rate", x->raw_block_hit_rate);
            kvc_json_open_array(&j, "band");
            kvc_json_double(&j, NULL, x->low);
            kvc_json_double(&j, NULL, x->high);
            kvc_json_close(&j);
            kvc_json_double(&j, "raw_token_hit_rate", x->raw_token_hit_rate);
            kvc_json_open_array(&j, "token_band");
            kvc_json_double(&j, NULL, x->token_low);
            kvc_json_double(&j, NULL, x->token_high);
            kvc_json_close(&j);
            kvc_json_close(&j);
        }
    kvc_json_close(&j);
    kvc_json_close(&j);
    return kvc_cli_json_print(&j, err);
}

static void print_text(const struct ceiling *c, const struct kvc_sampled *s,
                       const struct kvc_sampling *how)
{
    printf("\nestimates from eight samples of one in %" PRIu32 " of %s subtrees of prompts, each "
           "with %s of the block touches\n(%s are above all subtrees and always kept)\n\n"
           "%12s  %-10s %36s %36s\n%12s  %-10s %12s %23s %12s %23s\n", c->sample_weight,
           kvc_fmt_count(how->subtrees).s, kvc_fmt_percent(how->kept_share).s,
           kvc_fmt_percent(how->trunk_share).s, "", "", "of blocks", "of tokens", "blocks",
           "policy", "raw hit rate", "band of 95 %", "raw hit rate", "band of 95 %");
    for (size_t i = 0; i < c->n_points; i++)
        for (size_t p = 0; p < c->n_policies; p++) {
            const struct kvc_sampled *x = &s[p * c->n_points + i];
            printf("%12s  %-10s", ceiling_blocks_text(c->point[i].blocks).s, c->policy[p]);
            printf(" %11s%%", kvc_fmt_fixed(100 * x->raw_block_hit_rate, 3, false).s);
            printf(" %10s%%", kvc_fmt_fixed(100 * x->low, 3, false).s);
            printf(" %10s%%", kvc_fmt_fixed(100 * x->high, 3, false).s);
            printf(" %11s%%", kvc_fmt_fixed(100 * x->raw_token_hit_rate, 3, false).s);
            printf(" %10s%%", kvc_fmt_fixed(100 * x->token_low, 3, false).s);
            printf(" %10s%%\n", kvc_fmt_fixed(100 * x->token_high, 3, false).s);
        }
    doubt(stdout, "\nnot to be relied on: ", c, how);
}

struct sampled {
    const struct ceiling *c;
    const uint64_t *capacity;
    struct kvc_sampled *rate; /* by policy, then by point */
    struct kvc_sampling *how; /* by policy: what is drawn is the same for all */
};

static enum kvc_status sample(void *user, size_t i, struct kvc_error *err)
{
    const struct sampled *s = user;
    const struct ceiling *c = s->c;
    return kvc_ceiling_sample(c->trace, c->policy[i], c->sample_weight, kvc_cli_seed(c->cli),
                              s->capacity, c->n_points, s->rate + i * c->n_points, &s->how[i], err);
}

enum kvc_status kvc_ceiling_sample_run(struct ceiling *c, struct kvc_error *err)
{
    struct kvc_sampling *how = kvc_calloc(c->n_policies, sizeof(*how));
    uint64_t *capacity = kvc_malloc(c->n_points, sizeof(*capacity));
    struct kvc_sampled *s = kvc_calloc(c->n_points * c->n_policies, sizeof(*s));
    enum kvc_status st = how && capacity && s ? KVC_OK : kvc_fail_nomem(err);
    for (size_t i = 0; i < c->n_points && st == KVC_OK; i++)
        capacity[i] = c->point[i].blocks;
    if (st == KVC_OK)
        st = kvc_parallel(kvc_cli_threads(c->cli), c->n_policies, sample,
                          &(struct sampled){c, capacity, s, how}, err);
    if (st == KVC_OK && kvc_cli_json(c->cli)) {
        if (c->stats.has_prefix && !kvc_cli_quiet(c->cli))
            doubt(stderr, "kvcast: warning: ", c, how);
        st = print_json(c, s, how, err);
    } else if (st == KVC_OK) {
        kvc_ceiling_print_head(c);
        if (c->stats.has_prefix)
            print_text(c, s, how);
    }
    kvc_free(how);
    kvc_free(s);
    kvc_free(capacity);
    return st;
}
