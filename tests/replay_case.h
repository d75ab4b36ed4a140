/* SPDX-License-Identifier: Apache-2.0
 * Random small traffic and scenarios for comparing the engine with its slow twin. */
#ifndef KVC_TESTS_REPLAY_CASE_H
#define KVC_TESTS_REPLAY_CASE_H

#include "tests/twins/replay_twin.h"
#include "tests/tiny_trace.h"

#define CASE_ROWS 24

enum case_level { CASE_ONE_REPLICA, CASE_REPLICAS, CASE_DRAM, CASE_TIERS, CASE_TENANTS,
                  CASE_RULES };

struct replay_case {
    uint64_t seed;
    enum case_level level;
    uint32_t block_tokens, n;
    struct tiny_row rows[CASE_ROWS];
    uint32_t origin[CASE_ROWS]; /* number of the row before shrinking */
    uint64_t pages; /* usable ones of a replica */
    struct kvc_scenario sc;
};

/* base: a scenario of defaults whose model, GPU and step times the case keeps. */
void replay_case_make(struct replay_case *c, uint64_t seed, enum case_level level,
                      const struct kvc_scenario *base, uint64_t kv_bytes_per_token);
/* Its rows through the library's own forest; destroy with kvc_trace_destroy. */
struct kvc_trace *replay_case_forest(const struct replay_case *c);
void replay_case_print(const struct replay_case *c);

/* What the profiles make of a scenario, for the twin; false when a name is unknown. */
bool twin_setup_from_scenario(struct twin_setup *out, const struct kvc_scenario *sc);

/* Step times of a scenario, built once and kept for good; NULL when a name is unknown. */
struct kvc_step_model *replay_step_times(const struct kvc_scenario *sc);
/* kvc_replay_run with them: to build them takes much longer than a small run. */
enum kvc_status replay_run_lent(struct kvc_result **out, const struct kvc_trace *t,
                                const struct kvc_scenario *sc,
                                const struct kvc_replay_options *options, struct kvc_error *err);

#endif
