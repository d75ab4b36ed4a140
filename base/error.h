/* SPDX-License-Identifier: Apache-2.0
 * Filling a caller's struct kvc_error; every function takes err == NULL. */
#ifndef KVC_BASE_ERROR_H
#define KVC_BASE_ERROR_H

#include <kvcast/kvcast.h>

/* Fills err with a printf text, clears the place, and returns status, so that callers
 * write `return kvc_fail(err, KVC_ERR_INPUT, "...")`. */
KVC_PRINTF(3, 4)
enum kvc_status kvc_fail(struct kvc_error *err, enum kvc_status status, const char *fmt, ...);
/* Same, with a place: file and field may be NULL, line 0. */
KVC_PRINTF(6, 7)
enum kvc_status kvc_fail_at(struct kvc_error *err, enum kvc_status status, const char *file,
                            uint64_t line, const char *field, const char *fmt, ...);
enum kvc_status kvc_fail_nomem(struct kvc_error *err);
/* Appends errno's words; tells a full disk by name. */
enum kvc_status kvc_fail_errno(struct kvc_error *err, const char *file, const char *what);

#endif
