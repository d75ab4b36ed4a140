/* SPDX-License-Identifier: Apache-2.0
 * Log files for tests, in a folder of their own that goes away at the end. */
#ifndef KVC_TESTS_TRACE_FILES_H
#define KVC_TESTS_TRACE_FILES_H

#include <kvcast/kvcast.h>

/* cmocka group fixtures: make and remove the folder. */
int trace_files_setup(void **state);
int trace_files_teardown(void **state);

/* A path in the folder; the last four stay valid. */
const char *trace_path(const char *name);
const char *trace_file(const char *name, const void *bytes, size_t n);
const char *trace_text(const char *name, const char *text);
size_t trace_folder_count(void); /* entries in the folder */

/* Imports one file, expecting KVC_OK. */
struct kvc_trace *trace_import(const char *path, uint32_t block_tokens,
                               struct kvc_import_report *report);
/* Imports one file, expecting KVC_ERR_INPUT; the error as text, valid until the next call. */
const char *trace_import_error(const char *path, const struct kvc_import_options *options);

#endif
