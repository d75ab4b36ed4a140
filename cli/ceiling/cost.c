/* SPDX-License-Identifier: Apache-2.0
 * ceiling --cost: what a cache can save of the work to compute prompts, not only hit. */
#include "cli/ceiling/ceiling.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/parallel.h"

#include <stdio.h>
#include <string.h>

struct costing {
    const struct ceiling *c;
    const double *upto;
};

static enum kvc_status bound(void *user, size_t i, struct kvc_error *err)
{
    const struct costing *k = user;
    return kvc_ceiling_cost(k->c->seen, k->upto, k->c->point[i].blocks, &k->c->cost[i], err);
}

/* Behind several routers: a policy saves in one cache here, whichever they are. */
static bool again(const struct ceiling *c, size_t policy)
{
    return policy > 0 && strcmp(c->policy[policy - 1], c->policy[policy]) == 0;
}

static enum kvc_status save(void *user, size_t i, struct kvc_error *err)
{
    const struct costing *k = user;
    const struct ceiling *c = k->c;
    size_t policy = i / c->n_points, point = i % c->n_points;
    return again(c, policy) ? KVC_OK
                            : kvc_ceiling_saved(c->seen, k->upto, c->policy[policy],
                                                c->point[point].blocks, &c->saved[i], err);
}

enum kvc_status kvc_ceiling_fill_cost(struct ceiling *c, struct kvc_error *err)
{
    const char *gpu = kvc_cli_value(c->cli, "gpu");
    double *upto = NULL;
    if ((!gpu && !kvc_cli_flag(c->cli, "cost")) || !c->stats.has_prefix)
        return KVC_OK;
    enum kvc_status st = kvc_ceiling_worth(&upto, c->seen, kvc_cli_value(c->cli, "model"),
                                           kvc_cli_value(c->cli, "kv-dtype"), gpu, err);
    if (st == KVC_OK) {
        c->cost = kvc_calloc(c->n_points, sizeof(*c->cost));
        c->saved = kvc_calloc(c->n_points * c->n_policies, sizeof(*c->saved));
        st = c->cost && c->saved ? KVC_OK : kvc_fail_nomem(err);
    }
    if (st == KVC_OK)
        st = kvc_parallel(kvc_cli_threads(c->cli), c->n_points, bound,
                          &(struct costing){c, upto}, err);
    if (st == KVC_OK)
        st = kvc_parallel(kvc_cli_threads(c->cli), c->n_points * c->n_policies, save,
                          &(struct costing){c, upto}, err);
    kvc_free(upto);
    return st;
}

static const char *unit(const struct ceiling *c)
{
    return kvc_cli_value(c->cli, "gpu") ? "gpu_seconds" : "first_blocks";
}

void kvc_ceiling_cost_json(struct kvc_json *j, const struct ceiling *c)
{
    if (!c->cost)
        return;
    kvc_json_open_object(j, "cost");
    kvc_json_string(j, "unit", unit(c));
    kvc_json_open_array(j, "points");
    for (size_t i = 0; i < c->n_points; i++) {
        kvc_json_open_object(j, NULL);
        kvc_ceiling_json_capacity(j, c, &c->point[i]);
        kvc_json_double(j, "content", c->cost[i].content);
        kvc_json_double(j, "upper_bound", c->cost[i].upper);
        kvc_json_double(j, "reached", c->cost[i].reached);
        kvc_json_string(j, "reached_by", c->cost[i].reached_by);
        kvc_json_open_array(j, "policies");
        for (size_t p = 0; p < c->n_policies; p++)
            if (!again(c, p)) {
                kvc_json_open_object(j, NULL);
                kvc_json_string(j, "policy", c->policy[p]);
                kvc_json_double(j, "saved", c->saved[p * c->n_points + i]);
                kvc_json_close(j);
            }
        kvc_json_close(j);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}

static void print_saved(const struct ceiling *c)
{
    int name = kvc_ceiling_name_width(c);
    printf("\n%12s  %-*s %14s %10s\n", "blocks", name, "policy", "saves", "of at most");
    for (size_t i = 0; i < c->n_points; i++)
        for (size_t p = 0; p < c->n_policies; p++) {
            double saved = c->saved[p * c->n_points + i], most = c->cost[i].upper;
            if (!again(c, p))
                printf("%12s  %-*s %14s %10s\n", ceiling_blocks_text(c->point[i].blocks).s, name,
                       c->policy[p], kvc_fmt_fixed(saved, 1, true).s,
                       most > 0 ? kvc_fmt_percent(saved / most).s : "-");
        }
}

void kvc_ceiling_cost_text(const struct ceiling *c)
{
    if (!c->cost)
        return;
    bool seconds = kvc_cli_value(c->cli, "gpu") != NULL;
    printf("\nwhat hits of full blocks save, in %s; the optimum lies between a schedule that fits "
           "and a bound by relaxation\n%12s %14s %14s %14s %9s\n",
           seconds ? "GPU seconds of prefill" : "costs of a first block (docs/ceilings.md)",
           "blocks", "endless room", "at most", "reached", "between");
    for (size_t i = 0; i < c->n_points; i++) {
        const struct kvc_cost_bound *b = &c->cost[i];
        printf("%12s %14s", ceiling_blocks_text(c->point[i].blocks).s,
               kvc_fmt_fixed(b->content, 1, true).s);
        printf(" %14s", kvc_fmt_fixed(b->upper, 1, true).s);
        printf(" %14s", kvc_fmt_fixed(b->reached, 1, true).s);
        printf(" %9s\n",
               b->upper > 0 ? kvc_fmt_percent((b->upper - b->reached) / b->upper).s : "-");
    }
    print_saved(c);
}
