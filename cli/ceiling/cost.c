/* SPDX-License-Identifier: Apache-2.0
 * ceiling --cost: what a cache can save of the work to compute prompts, not only hit. */
#include "cli/ceiling/ceiling.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/parallel.h"

#include <stdio.h>

struct costing {
    const struct ceiling *c;
    const double *upto;
};

static enum kvc_status bound(void *user, size_t i, struct kvc_error *err)
{
    const struct costing *k = user;
    return kvc_ceiling_cost(k->c->seen, k->upto, k->c->point[i].blocks, &k->c->cost[i], err);
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
        st = c->cost ? KVC_OK : kvc_fail_nomem(err);
    }
    if (st == KVC_OK)
        st = kvc_parallel(kvc_cli_threads(c->cli), c->n_points, bound,
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
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
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
}
