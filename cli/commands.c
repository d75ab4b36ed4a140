/* SPDX-License-Identifier: Apache-2.0
 * All commands, in the order of their use: from a log to an answer, what it rests on, and a policy
 * of one's own. */
#include "cli/internal.h"

#include "base/units.h"

const struct kvc_cli_command *const *kvc_cli_commands(void)
{
    static const struct kvc_cli_command *const commands[] = {
        &kvc_cmd_import, &kvc_cmd_inspect,  &kvc_cmd_ceiling, &kvc_cmd_replay,    &kvc_cmd_report,
        &kvc_cmd_gen,    &kvc_cmd_export,   &kvc_cmd_show,    &kvc_cmd_calibrate, &kvc_cmd_bench,
        &kvc_cmd_validate, &kvc_cmd_policy, NULL};
    return commands;
}

const struct kvc_cli_command *kvc_cli_command_find(const char *name)
{
    const struct kvc_cli_command *const *c = kvc_cli_commands();
    while (*c && !kvc_name_equal((*c)->name, name))
        c++;
    return *c;
}
