/* SPDX-License-Identifier: Apache-2.0
 * What main.c, cli.c and help.c share and subcommands need not see. */
#ifndef KVC_CLI_INTERNAL_H
#define KVC_CLI_INTERNAL_H

#include "cli/cli.h"

#include <stdio.h>

struct kvc_cli_given {
    const char *name; /* as the table spells it */
    const char *value;
    bool scenario_key;
};

struct kvc_cli {
    const struct kvc_cli_command *command;
    char **arguments;
    size_t n_arguments;
    struct kvc_cli_given *given;
    size_t n_given;
    const char *scenario_file; /* NULL: none */
    bool help, version, json, quiet;
    uint64_t seed;
    uint32_t threads;
    int progress_mode; /* -1 never, 0 auto, 1 always */
    struct {
        double start_s, shown_s;
        bool on_screen;
        uint64_t rows; /* of a log being read, + 1; 0 = not known */
        char phase[32];
    } progress;
};

/* Ends with a NULL name; parsed for every command. */
extern const struct kvc_cli_option kvc_cli_common[];
/* Ends with NULL. */
const struct kvc_cli_command *const *kvc_cli_commands(void);
const struct kvc_cli_command *kvc_cli_command_find(const char *name);

/* Fills cli from the words behind the command's name; returns an exit code. */
int kvc_cli_parse(struct kvc_cli *cli, int n, char **words);
void kvc_cli_clear(struct kvc_cli *cli);
/* outputs.c: none may overwrite another or what is read. */
int kvc_cli_check_outputs(const struct kvc_cli *cli);

void kvc_cli_help_program(FILE *out);
void kvc_cli_help_command(FILE *out, const struct kvc_cli_command *command);
void kvc_cli_manual(FILE *out); /* the whole page, roff */

/* Whether some word holds the path of a shared object. */
bool kvc_cli_names_plugin(int n, char **words);
/* Runs a command in a process of its own and returns its exit code here, or says how it ended. */
int kvc_cli_apart(struct kvc_cli *cli, int (*run)(struct kvc_cli *cli));

#endif
