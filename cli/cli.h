/* SPDX-License-Identifier: Apache-2.0
 * What the subcommands share: option tables, parsing, messages, exit codes. One file a subcommand,
 * cli/cmd_NAME.c, ending in one const struct kvc_cli_command kvc_cmd_NAME, listed in commands.c. */
#ifndef KVC_CLI_CLI_H
#define KVC_CLI_CLI_H

#include <kvcast/kvcast.h>

enum { KVC_EXIT_OK = 0, KVC_EXIT_FAILED = 1, KVC_EXIT_USAGE = 2, KVC_EXIT_INPUT = 3 };

struct kvc_cli_option {
    const char *name;         /* long name without dashes; "o" = a one-letter one */
    const char *arg;          /* what the value is called in help; NULL = a flag; "[word]" = a flag
                                 that may be followed by that word as its value */
    const char *default_text; /* shown in help; NULL = none */
    const char *help;
};

struct kvc_cli; /* the parsed command line */

struct kvc_cli_command {
    const char *name, *arguments, *summary; /* "import", "LOG... -o T.kvt", .. */
    const char *description;                /* paragraphs for --help and the manual; may be NULL */
    const struct kvc_cli_option *options;   /* ends with a NULL name; common ones are added */
    bool scenario_keys;                     /* takes every scenario key as --dotted.key VALUE */
    int (*run)(struct kvc_cli *cli);        /* returns an exit code */
    bool log_formats;                       /* help lists the formats of logs */
    const char *const *outputs;             /* options that name what is written; or NULL */
};
extern const struct kvc_cli_command kvc_cmd_import, kvc_cmd_inspect, kvc_cmd_ceiling,
    kvc_cmd_replay, kvc_cmd_gen, kvc_cmd_show, kvc_cmd_report, kvc_cmd_export, kvc_cmd_validate,
    kvc_cmd_calibrate, kvc_cmd_bench, kvc_cmd_policy;

size_t kvc_cli_count(const struct kvc_cli *cli); /* positional arguments */
const char *kvc_cli_argument(const struct kvc_cli *cli, size_t i); /* NULL past the end */
const char *kvc_cli_value(const struct kvc_cli *cli, const char *name); /* last given, or NULL */
const char *kvc_cli_nth(const struct kvc_cli *cli, const char *name, size_t i); /* i-th, or NULL */
bool kvc_cli_flag(const struct kvc_cli *cli, const char *name);
bool kvc_cli_json(const struct kvc_cli *cli);
bool kvc_cli_quiet(const struct kvc_cli *cli);
uint64_t kvc_cli_seed(const struct kvc_cli *cli);
uint32_t kvc_cli_threads(const struct kvc_cli *cli);
/* --progress as a callback for the library: stderr, rate and time left, only past one second. */
kvc_progress_fn kvc_cli_progress(struct kvc_cli *cli, void **user);
void kvc_cli_progress_clear(struct kvc_cli *cli); /* takes the progress line off the screen */
/* Forecasts of an import as lines on stderr; NULL where progress is not wanted. */
typedef void (*kvc_estimate_fn)(void *user, const struct kvc_import_estimate *estimate);
kvc_estimate_fn kvc_cli_estimate(struct kvc_cli *cli, void **user);
/* Applies the scenario keys given as flags, in order. */
enum kvc_status kvc_cli_apply_scenario(const struct kvc_cli *cli, struct kvc_scenario *scenario,
                                       struct kvc_error *err);
/* Where the keys stand that no flag gives: the place in errors. path must outlive cli. */
void kvc_cli_scenario_file(struct kvc_cli *cli, const char *path);

/* While plug-ins run, stdout is theirs no more: what they print goes to stderr. The two enclose a
 * run; ours: what the first one returned. */
int kvc_cli_keep_stdout(void);
void kvc_cli_take_stdout(int ours);

/* "kvcast: file:line:field: text" on stderr; returns the exit code for the status. */
int kvc_cli_fail(const struct kvc_cli *cli, const struct kvc_error *err);
/* Wrong usage: the text and a pointer to --help on stderr; returns KVC_EXIT_USAGE. */
KVC_PRINTF(2, 3)
int kvc_cli_usage(const struct kvc_cli *cli, const char *fmt, ...);
KVC_PRINTF(2, 3)
void kvc_cli_note(const struct kvc_cli *cli, const char *fmt, ...); /* unless quiet */
/* Rows counted, bad rows shown and assumptions, on stderr unless quiet. */
void kvc_cli_import_report(const struct kvc_cli *cli, const struct kvc_import_report *report);
/* A warning where the import forgot prefixes, on stderr unless quiet. */
void kvc_cli_forgotten(const struct kvc_cli *cli, const struct kvc_trace_stats *stats);
/* Whether both paths are one regular file, which writing to it by a slip would lose. */
bool kvc_cli_same_file(const char *a, const char *b);

#endif
