/* SPDX-License-Identifier: Apache-2.0
 * The result record for those who hold one by value. */
#ifndef KVC_SIM_RESULT_H
#define KVC_SIM_RESULT_H

#include <kvcast/kvcast.h>

/* Frees what it owns and leaves it all zero. */
void kvc_result_clear(struct kvc_result *r);

#endif
