/* SPDX-License-Identifier: Apache-2.0
 * What 'kvcast policy check' found, as text and as JSON. */
#include "cli/policy/parts.h"

#include "cli/trace_args.h"
#include "policies/plugins/plugin.h"
#include "reports/out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *verdict(enum kvc_check_verdict v)
{
    return v == KVC_CHECK_PASSED ? "passed" : v == KVC_CHECK_SKIPPED ? "skipped" : "FAILED";
}

static double share(uint64_t hits, uint64_t of)
{
    return of ? (double)hits / (double)of : 0;
}

/* ---- text ---- */

static void print_scores(const struct kvc_policy_check *c)
{
    printf("\n%-14s %9s  %s\n%-14s %9s %8s %8s %8s %8s %8s  %s\n", "hit rates", "capacity",
           c->kind == KVC_POLICY_ADMISSION ? "of all blocks touched; yours is lru with it"
                                           : "of all blocks touched", "workload", "blocks",
                                           "yours", "lru", "fifo", "best", "optimum",
           "the best built-in");
    for (size_t i = 0; i < c->n_scores; i++) {
        const struct kvc_check_score *s = &c->score[i];
        printf("%-14s %9llu %7.2f%% %7.2f%% %7.2f%% %7.2f%% %7.2f%%  %s\n", s->workload,
               (unsigned long long)s->capacity_blocks, 100 * share(s->hits, s->touches),
               100 * share(s->lru, s->touches), 100 * share(s->fifo, s->touches),
               100 * share(s->best, s->touches), 100 * share(s->opt, s->touches), s->best_name);
    }
    printf("%-14s %9s %7.2f%% %7.2f%% %7.2f%% %7.2f%% %7.2f%%  %s\n", "regret", "", 100 * c->regret,
           100 * c->lru_regret, 100 * c->fifo_regret, 100 * c->best_regret, 0.0,
           "of the optimum's hits, the mean");
    for (size_t i = 0; i < c->n_scores; i++)
        if (i == 0 || strcmp(c->score[i].workload, c->score[i - 1].workload) != 0)
            printf("  %-14s %s\n", c->score[i].workload, c->score[i].what);
    printf("cost: %.2f ns a block touched, lru %.2f ns: %.2f times as much\n", c->ns_per_touch,
           c->lru_ns_per_touch,
           c->lru_ns_per_touch > 0 ? c->ns_per_touch / c->lru_ns_per_touch : 0);
}

void kvc_policy_check_text(const struct kvc_policy_check *c)
{
    if (c->kind)
        printf("%s: %s, a policy of %s: %s\n", c->path, c->name, kvc_policy_kind_name(c->kind),
               c->summary);
    else
        printf("%s\n", c->path);
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct kvc_check_row *r = &c->row[i];
        printf("  %-7s  %-8s %s\n", verdict(r->verdict), r->name, r->what);
        char text[sizeof(r->text)];
        snprintf(text, sizeof(text), "%s", r->text);
        kvc_plain(text); /* words of the plug-in may be among them */
        if (text[0])
            printf("           %s\n", text);
    }
    if (c->n_scores)
        print_scores(c);
    puts(c->passed ? "it keeps the rules"
                   : "it does not keep the rules: no figures of it are to be trusted");
}

/* ---- JSON ---- */

static void json_score(struct kvc_json *j, const struct kvc_check_score *s)
{
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "workload", s->workload);
    kvc_json_string(j, "what", s->what);
    kvc_json_u64(j, "capacity_blocks", s->capacity_blocks);
    kvc_json_u64(j, "blocks", s->blocks);
    kvc_json_u64(j, "block_touches", s->touches);
    kvc_json_u64(j, "hit_blocks", s->hits);
    kvc_json_u64(j, "lru_hit_blocks", s->lru);
    kvc_json_u64(j, "fifo_hit_blocks", s->fifo);
    kvc_json_u64(j, "best_hit_blocks", s->best);
    kvc_json_string(j, "best_policy", s->best_name);
    kvc_json_u64(j, "optimum_hit_blocks", s->opt);
    kvc_json_close(j);
}

static void json_figures(struct kvc_json *j, const struct kvc_policy_check *c)
{
    bool known = c->n_scores > 0;
    kvc_json_open_array(j, "workloads");
    for (size_t i = 0; i < c->n_scores; i++)
        json_score(j, &c->score[i]);
    kvc_json_close(j);
    kvc_json_open_object(j, "regret");
    kvc_json_double(j, "policy", known ? c->regret : (double)NAN);
    kvc_json_double(j, "lru", known ? c->lru_regret : (double)NAN);
    kvc_json_double(j, "fifo", known ? c->fifo_regret : (double)NAN);
    kvc_json_double(j, "best_built_in", known ? c->best_regret : (double)NAN);
    kvc_json_close(j);
    kvc_json_open_object(j, "cost"); /* measured: differs from run to run */
    kvc_json_double(j, "ns_per_block_touch", known ? c->ns_per_touch : (double)NAN);
    kvc_json_double(j, "lru_ns_per_block_touch", known ? c->lru_ns_per_touch : (double)NAN);
    kvc_json_close(j);
}

enum kvc_status kvc_policy_check_json(const struct kvc_policy_check *c, struct kvc_error *err)
{
    static const char *const words[] = {"passed", "failed", "skipped"};
    struct kvc_json j;
    kvc_cli_json_begin(&j, "kvcast.policy-check.v1");
    kvc_json_open_object(&j, "policy");
    kvc_json_string(&j, "path", c->path);
    kvc_json_string(&j, "name", c->kind ? c->name : NULL);
    kvc_json_string(&j, "kind", kvc_policy_kind_name(c->kind));
    kvc_json_string(&j, "summary", c->kind ? c->summary : NULL);
    kvc_json_close(&j);
    kvc_json_bool(&j, "passed", c->passed);
    kvc_json_open_array(&j, "checks");
    for (size_t i = 0; i < c->n_rows; i++) {
        kvc_json_open_object(&j, NULL);
        kvc_json_string(&j, "name", c->row[i].name);
        kvc_json_string(&j, "what", c->row[i].what);
        kvc_json_string(&j, "verdict", words[c->row[i].verdict]);
        kvc_json_string(&j, "text", c->row[i].text);
        kvc_json_close(&j);
    }
    kvc_json_close(&j);
    json_figures(&j, c);
    return kvc_cli_json_print(&j, err);
}
