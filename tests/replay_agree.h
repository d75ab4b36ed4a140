/* SPDX-License-Identifier: Apache-2.0
 * Holding the replay against its slow twin, case by case. */
#ifndef KVC_TESTS_REPLAY_AGREE_H
#define KVC_TESTS_REPLAY_AGREE_H

#include "tests/replay_case.h"

struct kvc_scenario *replay_base_scenario(void);
uint64_t replay_kv_bytes(const struct kvc_scenario *sc);
/* NULL when it fails; says why. */
struct kvc_result *replay_run_engine(const struct kvc_trace *t, const struct kvc_scenario *sc,
                                     bool step_by_step);
struct kvc_trace *replay_case_trace(const struct replay_case *c);
/* Runs both engines and the twin; false when all agree, else says where not. */
bool replay_case_differs(const struct replay_case *c, char *text, size_t size);
/* Leaves out what it does not take to make them differ. */
void replay_case_shrink(struct replay_case *c);

#endif
