/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate/headlines.h"

#include <math.h>
#include <stdio.h>

#include "cli/trace_args.h"
#include "studies/headlines/headlines.h"

struct printer {
    struct kvc_json *json; /* NULL: Markdown, so that docs/accuracy.md is this output */
    size_t verdicts[KVC_HEADLINE_UNKNOWN + 1], all;
};

static void put_values(const double *v, size_t n, const char *unit)
{
    for (size_t i = 0; i < n; i++)
        printf("%s%.4g", i ? ", " : " ", v[i]);
    if (n)
        printf(" %s |", unit);
    else
        fputs(" - |", stdout);
}

static void put_text(const struct kvc_headline_result *r)
{
    const struct kvc_headline *h = r->headline;

    printf("| %s | %s |", h->id, h->claim);
    put_values(h->published, h->values, h->unit);
    put_values(r->predicted, r->predictions, h->unit);
    if (isnan(r->ratio))
        fputs(" - |", stdout);
    else
        printf(" %.2f |", r->ratio);
    printf(" %s | %s |\n", kvc_headline_verdict_name(r->verdict), h->reason);
}

static void json_values(struct kvc_json *j, const char *key, const double *v, size_t n)
{
    if (n == 0) {
        kvc_json_null(j, key);
        return;
    }
    kvc_json_open_array(j, key);
    for (size_t i = 0; i < n; i++)
        kvc_json_double(j, NULL, v[i]);
    kvc_json_close(j);
}

static void put_json(struct kvc_json *j, const struct kvc_headline_result *r)
{
    const struct kvc_headline *h = r->headline;

    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "id", h->id);
    kvc_json_string(j, "claim", h->claim);
    kvc_json_string(j, "unit", h->unit);
    json_values(j, "published", h->published, h->values);
    json_values(j, "predicted", r->predicted, r->predictions);
    kvc_json_double(j, "ratio", r->ratio);
    kvc_json_string(j, "verdict", kvc_headline_verdict_name(r->verdict));
    kvc_json_string(j, "reason", h->reason);
    kvc_json_string(j, "source", h->source);
    kvc_json_close(j);
}

static enum kvc_status take(void *user, const struct kvc_headline_result *r)
{
    struct printer *p = user;

    if (!p->json && p->all == 0)
        puts("| id | claim | published | predicted | ratio | | why |\n"
             "|---|---|---|---|---|---|---|");
    p->verdicts[r->verdict]++;
    p->all++;
    if (p->json)
        put_json(p->json, r);
    else
        put_text(r);
    return KVC_OK;
}

static void json_summary(struct kvc_json *j, const struct printer *p)
{
    kvc_json_close(j);
    kvc_json_open_object(j, "summary");
    kvc_json_u64(j, "headlines", p->all);
    for (int v = 0; v <= KVC_HEADLINE_UNKNOWN; v++)
        kvc_json_u64(j, kvc_headline_verdict_name((enum kvc_headline_verdict)v), p->verdicts[v]);
    kvc_json_close(j);
}

static void text_summary(const struct printer *p)
{
    printf("\n%zu published figures: %zu met, %zu of the right order, %zu missed, %zu whose "
           "conditions are unknown.\n", p->all, p->verdicts[KVC_HEADLINE_MET],
           p->verdicts[KVC_HEADLINE_ORDER], p->verdicts[KVC_HEADLINE_MISSED],
           p->verdicts[KVC_HEADLINE_UNKNOWN]);
}

int kvc_validate_headlines(struct kvc_cli *cli)
{
    const char *ids[256];
    size_t n = kvc_cli_count(cli);
    struct kvc_json j;
    struct printer p = {.json = kvc_cli_json(cli) ? &j : NULL};
    struct kvc_error err = {0};

    if (n > sizeof ids / sizeof ids[0])
        return kvc_cli_usage(cli, "256 ids at most");
    for (size_t i = 0; i < n; i++)
        ids[i] = kvc_cli_argument(cli, i);
    if (p.json) {
        kvc_cli_json_begin(&j, "kvcast.validate.headlines.v1");
        kvc_json_open_array(&j, "headlines");
    }
    enum kvc_status status = kvc_headlines_run(ids, n, take, &p, &err);
    if (status == KVC_OK && p.json) {
        json_summary(&j, &p);
        status = kvc_cli_json_print(&j, &err);
    } else if (p.json) {
        kvc_json_clear(&j);
    } else if (status == KVC_OK) {
        text_summary(&p);
    }
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}
