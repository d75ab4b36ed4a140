/* SPDX-License-Identifier: Apache-2.0
 * A result read back from JSON: what is not stored is not known (NAN, 0 entries), never made up. */
#ifndef KVC_REPORTS_LOAD_H
#define KVC_REPORTS_LOAD_H

#include "reports/reports.h"

/* Fills an all-zero result; detail may be NULL. Failing leaves a result to be cleared. */
enum kvc_status kvc_load_result(struct kvc_result *r, const struct kvc_jval *figures,
                                const struct kvc_jval *detail, struct kvc_error *err);
void kvc_load_ttft(struct kvc_findings *f, const struct kvc_jval *detail);

#endif
