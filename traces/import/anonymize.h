/* SPDX-License-Identifier: Apache-2.0
 * What --anonymize puts in place of names and quotes of a log. Ids, sessions and times need
 * nothing: a trace numbers the first two and counts the last from its first request. */
#ifndef KVC_TRACES_ANONYMIZE_H
#define KVC_TRACES_ANONYMIZE_H

#include "traces/import/import.h"
#include "traces/import/intern.h"

#define KVC_SHOWN_NAME 48

/* A name as notes and tallies may show it: as it is, or "model-" and 16 hex digits of its keyed
 * hash. kind is a word like "model". */
void kvc_import_shown_name(const struct kvc_import *im, const char *kind, const char *text,
                           size_t n, char out[KVC_SHOWN_NAME]);
/* All names of one kind for the trace, each for kvc_free, as the array is; NULL: none, or no
 * memory. */
char **kvc_import_names(const struct kvc_import *im, const char *kind,
                        const struct kvc_intern *names);
/* Takes what an error quotes of the log out of it. */
void kvc_import_hide(const struct kvc_import *im, struct kvc_error *error);

#endif
