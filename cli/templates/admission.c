/* @NAME@: an admission policy for kvcast, to be changed into your own. kvcast/policy.h documents
 * all of it. Which of the blocks that are stored goes is an eviction policy's affair:
 * --policy lru+./@NAME@.so.
 *
 * As it stands a block is stored when it was asked for before, not longer ago than some time. */
#include <kvcast/policy.h>

enum { OPTION_WITHIN }; /* places in the table of options, below */

struct use {
    uint64_t last_ns, before_ns; /* when the last two requests came; 0: none */
};

/* Everything that changes during a run; global variables must not, as runs go on side by side. */
struct state {
    uint64_t within_ns;
    struct use use[]; /* by segment: its blocks are always asked for together */
};

static void *create(const struct kvc_admission_host *host, const union kvc_option_value *options)
{
    struct state *s = host->alloc(host, 1, sizeof(*s) + host->n_segments * sizeof(s->use[0]));
    if (s) /* else out of memory: the host ends the run in order */
        s->within_ns = options ? options[OPTION_WITHIN].time_ns : 600000000000u;
    return s;
}

static void destroy(const struct kvc_admission_host *host, void *state)
{
    host->free(host, state);
}

/* A request arrives: it asks for the segment that its path ends with and all above it. */
static void request(const struct kvc_admission_host *host, void *state,
                    const struct kvc_policy_request *request)
{
    struct state *s = state;
    for (uint32_t i = request->segment; i != KVC_NO_ID; i = host->seg_parent[i]) {
        s->use[i].before_ns = s->use[i].last_ns;
        s->use[i].last_ns = request->time_ns + 1;
    }
}

/* Of a segment's blocks, how many may be stored? It changes nothing: it is asked as often as it
 * happens. request->segment is KVC_NO_ID where blocks come to a tier because they were evicted
 * above. */
static uint32_t admits(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment)
{
    const struct state *s = state;
    const struct use *u = &s->use[segment];
    (void)request;
    bool again = u->before_ns && u->last_ns - u->before_ns <= s->within_ns;
    return again ? host->seg_blocks[segment] : 0;
}

/* kvcast ceiling --policy lru+./@NAME@.so:within=1h */
static const struct kvc_policy_option options[] = {
    [OPTION_WITHIN] = {"within", KVC_OPTION_TIME, "10m", 0, 1e18,
                       "between a request and the one before"},
};

static const struct kvc_admission_ops ops = {
    .struct_size = sizeof(struct kvc_admission_ops),
    .create = create,
    .destroy = destroy,
    .request = request,
    .admits = admits,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ADMISSION,
    .name = "@NAME@",
    .summary = "what was asked for before, not long ago",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
