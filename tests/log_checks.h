/* SPDX-License-Identifier: Apache-2.0
 * What tests of log formats ask of an import. */
#ifndef KVC_TESTS_LOG_CHECKS_H
#define KVC_TESTS_LOG_CHECKS_H

#include <kvcast/kvcast.h>

#define SHARED_CASES "../shared/cases/inputs/"
#define SHARED_TRACES "../shared/traces/"

/* Skips the test when the path isn't there. */
void log_need(const char *path);
/* Rows counted under words that hold these, 0 = none. */
uint64_t log_tally(const struct kvc_import_report *r, const char *words);
bool log_note(const struct kvc_import_report *r, const char *words);
/* Blocks that two paths to segments have in common, and two requests' prompts. */
uint32_t log_common_path(const struct kvc_trace *t, uint32_t a, uint32_t b);
uint32_t log_common(const struct kvc_trace *t, uint64_t a, uint64_t b);
/* Blocks of request r's known output, the prompt's full ones included; 0 = not known. */
uint32_t log_output_blocks(const struct kvc_trace *t, uint64_t r);
/* Imports with options, expecting KVC_OK. */
struct kvc_trace *log_import(const char *const *paths, size_t n,
                             const struct kvc_import_options *options,
                             struct kvc_import_report *report);
/* Makes each allocation of an import fail in turn. */
void log_import_without_memory(const char *path, const struct kvc_import_options *options);

#endif
