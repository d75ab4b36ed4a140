/* SPDX-License-Identifier: Apache-2.0
 * Stand-ins for lists of parts that have not landed; goes when they do. */
#include <kvcast/kvcast.h>

#define WEAK __attribute__((weak))



#define MISSING(...) { return (enum kvc_status)(__VA_ARGS__, KVC_ERR_UNSUPPORTED); }
WEAK enum kvc_status kvc_replay_run(struct kvc_result **out, const struct kvc_trace *trace,
                                    const struct kvc_scenario *scenario,
                                    const struct kvc_replay_options *options, struct kvc_error *err)
MISSING((void)out, (void)trace, (void)options, (void)scenario, (void)err)
WEAK void kvc_result_destroy(struct kvc_result *result)
{
    (void)result;
}
