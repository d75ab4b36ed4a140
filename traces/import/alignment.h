/* SPDX-License-Identifier: Apache-2.0
 * What blocks cost: tokens that prompts share behind the last whole block they share. A log of
 * which a hit rate of 0 comes from prompts that share less than a block must not look like one
 * whose prompts share nothing. Looks at the first rows of logs that show tokens or text. */
#ifndef KVC_TRACES_ALIGNMENT_H
#define KVC_TRACES_ALIGNMENT_H

#include "traces/import/import.h"

#define KVC_ALIGNMENT_TOKENS ((size_t)1 << 19) /* that are kept to compare with */

/* Whether a row of that many tokens, prompt and known answer, is still looked at. */
bool kvc_alignment_wants(struct kvc_import *im, size_t tokens);
/* states[i] stands for all from the prompt's start to token i; the first prompt of them are the
 * prompt's, the others up to known the answer's. False: no memory. */
bool kvc_alignment_row(struct kvc_import *im, const struct kvc_log_row *row,
                       const uint64_t *states, size_t prompt, size_t known);
/* Says what was found. */
void kvc_alignment_note(struct kvc_import *im, uint32_t block);
void kvc_alignment_destroy(struct kvc_import *im);

#endif
