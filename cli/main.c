/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/internal.h"

#include "base/units.h"

#include <string.h>

/* Promised by the interface, not in this release. */
static const char *const planned[] = {"sweep",    "plan",  "advise", "compare",
                                      NULL};

static int unknown_command(const char *word)
{
    const char *names[32];
    size_t n = 0;
    const char *nearest;
    for (const struct kvc_cli_command *const *c = kvc_cli_commands(); *c; c++)
        names[n++] = (*c)->name;
    for (const char *const *p = planned; *p; p++) {
        if (kvc_name_equal(*p, word))
            return kvc_cli_usage(NULL, "'%s' is not in this release (%s) yet", *p, kvc_version());
    }
    names[n] = NULL;
    nearest = kvc_name_nearest(word, names);
    if (nearest)
        return kvc_cli_usage(NULL, "unknown command '%s'; did you mean '%s'?", word, nearest);
    if (word[0] == '-')
        return kvc_cli_usage(NULL, "unknown option %s: options stand behind the command", word);
    return kvc_cli_usage(NULL, "unknown command '%s'", word);
}

static int run_command(const struct kvc_cli_command *command, int n, char **words)
{
    struct kvc_cli cli = {.command = command};
    int rc = kvc_cli_parse(&cli, n, words);
    if (rc == KVC_EXIT_OK) {
        if (cli.help)
            kvc_cli_help_command(stdout, command);
        else if (cli.version)
            printf("kvcast %s\n", kvc_version());
        else
            rc = kvc_cli_names_plugin(n, words) ? kvc_cli_apart(&cli, command->run)
                                                : command->run(&cli);
    }
    kvc_cli_clear(&cli);
    return rc;
}

static int help(int n, char **words)
{
    const struct kvc_cli_command *command = n > 0 ? kvc_cli_command_find(words[0]) : NULL;
    if (n > 0 && !command)
        return unknown_command(words[0]);
    if (command)
        kvc_cli_help_command(stdout, command);
    else
        kvc_cli_help_program(stdout);
    return KVC_EXIT_OK;
}

static int dispatch(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        kvc_cli_help_program(stderr);
        return KVC_EXIT_USAGE;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help"))
        return help(argc - 2, argv + 2);
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        printf("kvcast %s\n", kvc_version());
        return KVC_EXIT_OK;
    }
    if (!strcmp(word, "--man")) {
        kvc_cli_manual(stdout);
        return KVC_EXIT_OK;
    }
    const struct kvc_cli_command *command = kvc_cli_command_find(word);
    return command ? run_command(command, argc - 2, argv + 2) : unknown_command(word);
}

int main(int argc, char **argv)
{
    int rc = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "kvcast: not everything could be written to stdout; is the disk full?\n");
        rc = rc == KVC_EXIT_OK ? KVC_EXIT_FAILED : rc;
    }
    return rc;
}
