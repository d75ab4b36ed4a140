/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate/prefix.h"

#include <math.h>
#include <stdio.h>

#include "cli/trace_args.h"
#include "studies/served/prefix_study.h"

static double error_percent(const struct kvc_prefix_row *r)
{
    return (r->predicted_ms / r->measured_ms - 1) * 100;
}

static const char *verdict(const struct kvc_prefix_study *s, size_t i)
{
    if (s->row[i].calibrated)
        return "calibrated on";
    return fabs(error_percent(&s->row[i])) <= KVC_PREFIX_TARGET ? "met" : "missed";
}

static void print_load(const char *tier, const struct kvc_prefix_load *l)
{
    if (l->rows)
        printf("\nThe shortest and the longest of %zu loads from %s set what one costs beside its "
               "copy: %+.1f ms and %+.0f ns a token (engine.kv_load_time, "
               "engine.kv_load_token_time).\n", l->rows, tier, l->ms, l->us_per_token * 1e3);
}

/* Markdown, so that docs/accuracy.md is this output. */
static void print_text(const struct kvc_prefix_study *s)
{
    puts("| tokens | tier | measured ms | predicted ms | error % | at most | |\n"
         "|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < s->n; i++)
        printf("| %u | %s | %.1f | %.1f | %+.1f | %d | %s |\n", s->row[i].tokens, s->row[i].tier,
               s->row[i].measured_ms, s->row[i].predicted_ms, error_percent(&s->row[i]),
               KVC_PREFIX_TARGET, verdict(s, i));
    if (s->host)
        printf("\nThe first row sets front end and host of this engine: %+.1f ms on every "
               "prediction.\n", s->shift_ms);
    print_load("DRAM", &s->dram);
    print_load("the remote tier", &s->remote);
}

static void put_load(struct kvc_json *j, const char *key, const struct kvc_prefix_load *l)
{
    if (!l->rows)
        return;
    kvc_json_open_object(j, key);
    kvc_json_double(j, "ms", l->ms);
    kvc_json_double(j, "us_per_token", l->us_per_token);
    kvc_json_u64(j, "rows", l->rows);
    kvc_json_close(j);
}

static enum kvc_status print_json(const struct kvc_prefix_study *s, struct kvc_error *err)
{
    struct kvc_json j;

    kvc_cli_json_begin(&j, "kvcast.validate.prefix.v1");
    kvc_json_double(&j, "calibrated_shift_ms", s->shift_ms);
    put_load(&j, "dram_load", &s->dram);
    put_load(&j, "remote_load", &s->remote);
    kvc_json_open_array(&j, "rows");
    for (size_t i = 0; i < s->n; i++) {
        kvc_json_open_object(&j, NULL);
        kvc_json_u64(&j, "tokens", s->row[i].tokens);
        kvc_json_string(&j, "tier", s->row[i].tier);
        kvc_json_double(&j, "measured_ms", s->row[i].measured_ms);
        kvc_json_double(&j, "predicted_ms", s->row[i].predicted_ms);
        kvc_json_double(&j, "error_percent", error_percent(&s->row[i]));
        kvc_json_string(&j, "verdict", verdict(s, i));
        kvc_json_close(&j);
    }
    kvc_json_close(&j);
    return kvc_cli_json_print(&j, err);
}

int kvc_validate_prefix(struct kvc_cli *cli)
{
    struct kvc_prefix_study s = {0};
    struct kvc_scenario *scenario = NULL;
    struct kvc_error err = {0};
    enum kvc_status status = kvc_scenario_create(&scenario, NULL, &err);

    if (status == KVC_OK)
        status = kvc_cli_apply_scenario(cli, scenario, &err);
    if (status == KVC_OK && kvc_cli_value(cli, "profile"))
        status = kvc_scenario_set(scenario, "profile", kvc_cli_value(cli, "profile"), &err);
    if (status == KVC_OK)
        status = kvc_scenario_check(scenario, &err);
    if (status == KVC_OK)
        status = kvc_prefix_study_run(&s, kvc_cli_value(cli, "prefix"), scenario,
                                      (kvc_cli_flag(cli, "calibrate") ? KVC_PREFIX_HOST : 0) |
                                          (kvc_cli_flag(cli, "calibrate-loads") ? KVC_PREFIX_LOADS
                                                                                : 0),
                                      &err);
    if (status == KVC_OK && kvc_cli_json(cli))
        status = print_json(&s, &err);
    else if (status == KVC_OK)
        print_text(&s);
    kvc_prefix_study_clear(&s);
    kvc_scenario_destroy(scenario);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}
