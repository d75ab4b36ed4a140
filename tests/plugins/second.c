/* SPDX-License-Identifier: Apache-2.0
 * Admission policy second as a plug-in: what was asked for before. */
#include <kvcast/policy.h>

struct state {
    uint64_t times;
    uint32_t asked[]; /* by segment */
};

static void *create(const struct kvc_admission_host *host, const union kvc_option_value *options)
{
    struct state *s = host->alloc(host, 1, sizeof(*s) + host->n_segments * sizeof(s->asked[0]));
    if (s)
        s->times = options ? options[0].count : 2;
    return s;
}

static void destroy(const struct kvc_admission_host *host, void *state)
{
    host->free(host, state);
}

static void request(const struct kvc_admission_host *host, void *state,
                    const struct kvc_policy_request *r)
{
    struct state *s = state;
    for (uint32_t i = r->segment; i != KVC_NO_ID; i = host->seg_parent[i])
        s->asked[i]++;
}

static uint32_t admits(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *r, uint32_t segment)
{
    const struct state *s = state;
    (void)r;
    return s->asked[segment] >= s->times ? host->seg_blocks[segment] : 0;
}

static const struct kvc_policy_option options[] = {
    {"times", KVC_OPTION_COUNT, "2", 1, 255, "the request that stores a block"},
};

static const struct kvc_admission_ops ops = {
    .struct_size = sizeof(struct kvc_admission_ops), .create = create, .destroy = destroy,
    .request = request, .admits = admits,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI, .struct_size = sizeof(struct kvc_policy), .kind = KVC_POLICY_ADMISSION,
    .name = "plug-second", .summary = "what was asked for before", .options = options,
    .n_options = 1, .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
