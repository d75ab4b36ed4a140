/* SPDX-License-Identifier: Apache-2.0
 * Admission policy depth as a plug-in: the first tokens of each prompt, which cuts segments. */
#include <kvcast/policy.h>

static void *create(const struct kvc_admission_host *host, const union kvc_option_value *options)
{
    uint64_t *most = host->alloc(host, 1, sizeof(*most));
    if (most)
        *most = (options ? options[0].count : 32768) / host->block_tokens;
    return most;
}

static void destroy(const struct kvc_admission_host *host, void *state)
{
    host->free(host, state);
}

static uint32_t admits(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment)
{
    const uint64_t *most = state;
    uint64_t left = *most > host->seg_depth[segment] ? *most - host->seg_depth[segment] : 0;
    (void)request;
    return left < host->seg_blocks[segment] ? (uint32_t)left : host->seg_blocks[segment];
}

static const struct kvc_policy_option options[] = {
    {"tokens", KVC_OPTION_COUNT, "32768", 0, 1e12, "of a prompt, the most"},
};

static const struct kvc_admission_ops ops = {
    .struct_size = sizeof(struct kvc_admission_ops), .create = create, .destroy = destroy,
    .admits = admits,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI, .struct_size = sizeof(struct kvc_policy), .kind = KVC_POLICY_ADMISSION,
    .name = "plug-depth", .summary = "the first tokens of each prompt", .options = options,
    .n_options = 1, .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
