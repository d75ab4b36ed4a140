/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/probe.h"

#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "traces/trace_write.h"

#define BLOCK_TOKENS 16
#define PAUSE_NS 3600000000000ull /* long enough for any write to end */

bool kvc_probe_tier_parse(const char *name, enum kvc_probe_tier *out)
{
    static const struct {
        const char *name;
        enum kvc_probe_tier tier;
    } known[] = {{"miss", KVC_PROBE_RECOMPUTE},       {"recompute", KVC_PROBE_RECOMPUTE},
                 {"gpu_hit", KVC_PROBE_HBM},          {"hbm", KVC_PROBE_HBM},
                 {"cpu_hit", KVC_PROBE_DRAM},         {"dram", KVC_PROBE_DRAM},
                 {"remote_rdma_hit", KVC_PROBE_REMOTE}, {"p2p_pull", KVC_PROBE_REMOTE},
                 {"remote", KVC_PROBE_REMOTE}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcasecmp(name, known[i].name) == 0) {
            *out = known[i].tier;
            return true;
        }
    return false;
}

/* The first goes to one replica and the second to another, which finds nothing in its HBM. */
static enum kvc_status place(struct kvc_scenario *s, enum kvc_probe_tier tier,
                             struct kvc_error *err)
{
    static const char *const dram[][2] = {{"tiers.dram.capacity", "16TiB"},
                                          {"tiers.dram.scope", "cluster"}};
    static const char *const remote[][2] = {{"tiers.dram.capacity", "0"},
                                            {"tiers.remote.capacity", "16TiB"}};
    const char *const(*set)[2] = tier == KVC_PROBE_DRAM ? dram : remote;
    enum kvc_status status = KVC_OK;

    if (tier == KVC_PROBE_RECOMPUTE || tier == KVC_PROBE_HBM)
        return kvc_scenario_set(s, "cluster.replicas", "1", err);
    for (size_t i = 0; i < 2 && status == KVC_OK; i++)
        status = kvc_scenario_set(s, set[i][0], set[i][1], err);
    if (status == KVC_OK)
        status = kvc_scenario_set(s, "cluster.replicas", "2", err);
    return status == KVC_OK ? kvc_scenario_set(s, "router.policy", "round-robin", err) : status;
}

enum kvc_status kvc_probe(struct kvc_request_result *out, const struct kvc_scenario *scenario,
                          enum kvc_probe_tier tier, uint32_t tokens, struct kvc_error *err)
{
    uint64_t arrival[] = {0, PAUSE_NS};
    uint32_t input[] = {tokens + BLOCK_TOKENS, tokens + BLOCK_TOKENS}, output[] = {1, 1};
    uint32_t prompt[] = {0, 0};
    uint32_t parent[] = {KVC_SEG_NONE}, length[] = {tokens / BLOCK_TOKENS}, depth[] = {0};
    struct kvc_trace t = {.block_tokens = BLOCK_TOKENS, .n_segments = 1, .arrival_ns = arrival,
                          .n_requests = tier == KVC_PROBE_RECOMPUTE ? 1 : 2,
                          .input_tokens = input, .output_tokens = output, .prompt_seg = prompt,
                          .seg_parent = parent, .seg_len = length, .seg_depth = depth};
    const struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    struct kvc_scenario s = *scenario;
    struct kvc_result *r = NULL;
    enum kvc_status status = place(&s, tier, err);

    if (tokens < BLOCK_TOKENS)
        return kvc_fail(err, KVC_ERR_USAGE, "a prefix of %u tokens is no block of %d", tokens,
                        BLOCK_TOKENS);
    kvc_trace_digest(&t, t.digest);
    if (status == KVC_OK)
        status = kvc_replay_run(&r, &t, &s, &options, err);
    if (status == KVC_OK && r->requests[t.n_requests - 1].outcome != KVC_COMPLETED)
        status = kvc_fail(err, KVC_ERR_UNSUPPORTED, "a prompt of %u tokens does not fit", tokens);
    if (status == KVC_OK)
        *out = r->requests[t.n_requests - 1];
    kvc_result_destroy(r);
    return status;
}
