/* SPDX-License-Identifier: Apache-2.0
 * What commands on traces share: options of reading a log, and the parts of JSON documents. */
#ifndef KVC_CLI_TRACE_ARGS_H
#define KVC_CLI_TRACE_ARGS_H

#include "base/json.h"
#include "cli/cli.h"

/* Rows of an option table that go with reading a log's times. */
#define KVC_CLI_TIME_OPTIONS                                                                       \
    {"time-unit", "U", "the format's", "unit of plain numbers that are times: s, ms, us or ns"},   \
    {"window", "A:B", NULL,                                                                        \
     "keep the requests that arrive from A to B after the first, as in 10m:2h"},                   \
    {"arrivals", "poisson:R", NULL,                                                                \
     "for a log without times: R requests per second at random intervals (--seed)"}

/* .. and with reading prompts that are text. */
#define KVC_CLI_TEXT_OPTIONS                                                                       \
    {"tokenizer", "bytes:R", "learned from the log",                                               \
     "for prompts in text: R bytes a token, or the path of a tokenizer.json"},                     \
    {"salt-file", "F", "drawn at random",                                                          \
     "key of the hashes made of texts, 16 bytes or more; results are the same whatever it is"}

/* --format, --block-tokens, --strict, --time-unit, --window, --arrivals, --tenant-field, progress;
 * returns an exit code. */
int kvc_cli_import_options(struct kvc_cli *cli, struct kvc_import_options *out);
/* Whether both paths are one regular file, which writing to it by a slip would lose. */
bool kvc_cli_same_file(const char *a, const char *b);
/* A document of that schema begins. */
void kvc_cli_json_begin(struct kvc_json *j, const char *schema);
/* .. and ends, and goes to stdout. Fails only when memory runs out. */
enum kvc_status kvc_cli_json_print(struct kvc_json *j, struct kvc_error *err);
/* "trace": {..} with the keys of ceiling --json and some more. */
void kvc_cli_json_trace(struct kvc_json *j, const struct kvc_trace_stats *stats);
/* "import": {..}: rows, and what became of them. */
void kvc_cli_json_report(struct kvc_json *j, const struct kvc_import_report *report);

#endif
