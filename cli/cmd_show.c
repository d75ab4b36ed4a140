/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/cli.h"

static int run(struct kvc_cli *cli)
{
    struct kvc_error err = {0};
    char *text;

    if (kvc_cli_count(cli) < 1)
        return kvc_cli_usage(cli, "say what to show: hardware, model, engine, preset, "
                                  "price, link or kv");
    if (kvc_cli_count(cli) > 2)
        return kvc_cli_usage(cli, "one name at a time; '%s' is one too many",
                             kvc_cli_argument(cli, 2));
    if (kvc_profile_show(&text, kvc_cli_argument(cli, 0), kvc_cli_argument(cli, 1),
                         kvc_cli_json(cli), &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    fputs(text, stdout);
    if (kvc_cli_json(cli))
        putchar('\n');
    kvc_free(text);
    return KVC_EXIT_OK;
}

const struct kvc_cli_command kvc_cmd_show = {
    .name = "show",
    .arguments = "hardware|model|engine|preset|price|link|kv [NAME]",
    .summary = "show the profiles, with source and kind of each figure",
    .description = "Lists the profiles of one kind, or shows all figures of one of them. A kind is "
                   "datasheet, measured, fitted, published or assumed.",
    .run = run,
};
