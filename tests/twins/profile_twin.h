/* SPDX-License-Identifier: Apache-2.0
 * What kvc_profile_trace says of a small trace, found block by block and second by second. */
#ifndef KVC_TESTS_PROFILE_TWIN_H
#define KVC_TESTS_PROFILE_TWIN_H

#include "tests/tiny_trace.h"
#include "traces/profile/profile.h"

#define TWIN_ROWS 40
#define TWIN_DEPTH 12 /* blocks of a prompt at most */
#define TWIN_TENANTS 14

/* Rows in time order at whole seconds; tenant[i] of row i, NULL without. Fills the sharing, time
 * and overlap parts of out (its tenants array with room for TWIN_TENANTS; hot[] as if each block
 * were a segment). */
void profile_twin(const struct tiny_row *rows, uint32_t n, uint32_t block_tokens,
                  const uint32_t *tenant, const struct kvc_profile *limits,
                  struct kvc_profile *out);

#endif
