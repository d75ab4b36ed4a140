/* SPDX-License-Identifier: Apache-2.0
 * What commands on traces share: options of reading a log, and the parts of JSON documents. */
#ifndef KVC_CLI_TRACE_ARGS_H
#define KVC_CLI_TRACE_ARGS_H

#include "base/json.h"
#include "cli/cli.h"

/* Rows of an option table that go with reading a log, but --format: whatever changes what a log
 * means belongs here, so that it holds wherever a log may stand for a trace. */
#define KVC_CLI_LOG_OPTIONS                                                                        \
    {"block-tokens", "N", "the format's",                                                          \
     "tokens of a block id; without it a size that fits every row is taken if the usual one does " \
     "not"},                                                                                       \
    {"strict", NULL, NULL, "stop at the first bad row of a log instead of counting it"},           \
    {"key-field", "F", "none",                                                                     \
     "a field within whose values ids mean the same, and elsewhere not: an engine whose hashes "   \
     "are salted per process, say"},                                                               \
    {"merge-models", NULL, NULL,                                                                   \
     "take equal ids for equal KV whatever the model, which no engine does; for comparisons"},     \
    {"tenant-field", "F", "the format's", "field or column of a log that names the tenant"},       \
    {"infer-sessions", NULL, NULL,                                                                 \
     "where the log names no sessions, take a request that extends an earlier prompt for its "     \
     "next turn"},                                                                                 \
    {"tokenizer", "bytes:R", "learned from the log",                                               \
     "for prompts in text: R bytes a token, or the path of a tokenizer.json"},                     \
    {"salt-file", "F", "drawn at random",                                                          \
     "key of the hashes made of texts, 16 bytes or more; results are the same whatever it is"},    \
    {"time-unit", "U", "the format's", "unit of plain numbers that are times: s, ms, us or ns"},   \
    {"window", "A:B", NULL,                                                                        \
     "keep the requests that arrive from A to B after the first, as in 10m:2h"},                   \
    {"where", "LIST", NULL,                                                                        \
     "keep the requests of a tenant or model: tenant=NAME, model=NAME, by commas; of a .kvt too"}, \
    {"arrivals", "poisson:R", NULL,                                                                \
     "for a log without times: R requests per second at random intervals (--seed)"},               \
    {"csv-columns", "LIST", "by name",                                                             \
     "columns of a libCacheSim CSV: time=1,id=2,size=3, by number from 1 or by the header's name"},\
    {"forget", "TIME", "never",                                                                    \
     "forget prefixes that no row touched for so long (24h), which bounds memory on logs without " \
     "end; the tokens that this leaves open are counted"},                                         \
    {"anonymize", NULL, NULL,                                                                      \
     "put keyed hashes in place of the names of models and tenants, and quote nothing of the log"}

/* All of these, --format, progress and estimates; returns an exit code. */
int kvc_cli_import_options(struct kvc_cli *cli, struct kvc_import_options *out);
/* A document of that schema begins. */
void kvc_cli_json_begin(struct kvc_json *j, const char *schema);
/* .. and ends, and goes to stdout. Fails only when memory runs out. */
enum kvc_status kvc_cli_json_print(struct kvc_json *j, struct kvc_error *err);
/* "trace": {..} with the keys of ceiling --json and some more. */
/* One in how many --sample says, 0 where it is not given. */
enum kvc_status kvc_cli_sample(const struct kvc_cli *cli, uint32_t *weight, struct kvc_error *err);
void kvc_cli_json_trace(struct kvc_json *j, const struct kvc_trace_stats *stats);
/* "import": {..}: rows, and what became of them. */
void kvc_cli_json_report(struct kvc_json *j, const struct kvc_import_report *report);

#endif
