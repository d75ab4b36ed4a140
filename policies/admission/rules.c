/* SPDX-License-Identifier: Apache-2.0
 * Which blocks of a request a cache stores, by what is asked for and how long prompts are.
 *
 * second: a block that was asked for before (a doorkeeper; selective writes of engines).
 * depth, size: blocks not too deep in their prompt; of prompts not too long.
 * tinylfu: counters of the last touches (Einziger, Friedman and Manes, ACM TOS 2017: 15 at most,
 * halved when sample x capacity touches were added), and a block is stored while it is among the
 * capacity that were asked for most often: when all blocks with as many touches or more have
 * room together. The paper asks the victim, which not every eviction policy can name beforehand. */
#include "policies/admission/rules.h"

#include <string.h>

#define SIZE(table) (sizeof(table) / sizeof((table)[0]))

static void destroy(const struct kvc_admission_host *host, void *state)
{
    host->free(host, state);
}

static uint32_t all_or_none(const struct kvc_admission_host *host, bool all, uint32_t segment)
{
    return all ? host->seg_blocks[segment] : 0;
}

/* ---- always ---- */

static uint32_t always(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment)
{
    (void)state, (void)request;
    return host->seg_blocks[segment];
}

static const struct kvc_admission_ops always_ops = {.struct_size = sizeof(always_ops),
                                                    .admits = always};
KVC_ADMISSION(always, &always_ops, NULL, 0, "all that is asked for", NULL);

/* ---- second ---- */

enum { TIMES, MEMORY };

static const struct kvc_policy_option second_options[] = {
    [TIMES] = {"times", KVC_OPTION_COUNT, "2", 1, 255, "the request that stores a block"},
    [MEMORY] = {"memory", KVC_OPTION_COUNT, "0", 0, 1e9,
                "all counts are forgotten after so many capacities of touches; 0: never"},
};

struct counts {
    uint64_t times, memory, counted;
    uint8_t asked[]; /* by segment */
};

static void *second_create(const struct kvc_admission_host *host,
                           const union kvc_option_value *options)
{
    struct counts *c = host->alloc(host, 1, sizeof(*c) + host->n_segments);
    if (!c)
        return NULL;
    c->times = options ? options[TIMES].count : 2;
    c->memory = options ? options[MEMORY].count : 0;
    return c;
}

static void second_request(const struct kvc_admission_host *host, void *state,
                           const struct kvc_policy_request *request)
{
    struct counts *c = state;
    if (c->memory && c->counted / c->memory >= host->capacity_blocks) {
        memset(c->asked, 0, host->n_segments);
        c->counted = 0;
    }
    for (uint32_t s = request->segment; s != KVC_NO_ID; s = host->seg_parent[s]) {
        c->asked[s] = (uint8_t)(c->asked[s] + (c->asked[s] < 255));
        c->counted += host->seg_blocks[s];
    }
}

static uint32_t second_admits(const struct kvc_admission_host *host, const void *state,
                              const struct kvc_policy_request *request, uint32_t segment)
{
    const struct counts *c = state;
    (void)request;
    return all_or_none(host, c->asked[segment] >= c->times, segment);
}

static const struct kvc_admission_ops second_ops = {
    .struct_size = sizeof(second_ops), .create = second_create, .destroy = destroy,
    .request = second_request, .admits = second_admits,
};
KVC_ADMISSION(second, &second_ops, second_options, SIZE(second_options),
              "what was asked for before", NULL);

/* ---- depth, size ---- */

static const struct kvc_policy_option tokens_option[] = {
    {"tokens", KVC_OPTION_COUNT, "32768", 0, 1e12, "of a prompt, the most"},
};

static void *tokens_create(const struct kvc_admission_host *host,
                           const union kvc_option_value *options)
{
    uint64_t *most = host->alloc(host, 1, sizeof(*most));
    if (most)
        *most = options ? options[0].count : 32768;
    return most;
}

static uint32_t depth_admits(const struct kvc_admission_host *host, const void *state,
                             const struct kvc_policy_request *request, uint32_t segment)
{
    const uint64_t *tokens = state;
    uint64_t most = *tokens / host->block_tokens; /* whole blocks of them */
    uint64_t above = host->seg_depth[segment], len = host->seg_blocks[segment];
    (void)request;
    return (uint32_t)(most <= above ? 0 : most - above < len ? most - above : len);
}

static uint32_t size_admits(const struct kvc_admission_host *host, const void *state,
                            const struct kvc_policy_request *request, uint32_t segment)
{
    const uint64_t *most = state;
    return all_or_none(host, request->input_tokens <= *most, segment);
}

static const struct kvc_admission_ops depth_ops = {
    .struct_size = sizeof(depth_ops), .create = tokens_create, .destroy = destroy,
    .admits = depth_admits,
};
static const struct kvc_admission_ops size_ops = {
    .struct_size = sizeof(size_ops), .flags = KVC_ADMISSION_REQUEST, .create = tokens_create,
    .destroy = destroy, .admits = size_admits,
};
KVC_ADMISSION(depth, &depth_ops, tokens_option, 1, "the first tokens of each prompt", NULL);
KVC_ADMISSION(size, &size_ops, tokens_option, 1, "prompts that are not too long", NULL);

/* ---- tinylfu ---- */

static const struct kvc_policy_option tinylfu_options[] = {
    {"sample", KVC_OPTION_COUNT, "10", 1, 1e9,
     "counters are halved after so many capacities of touches"},
};

struct sketch {
    uint64_t sample, counted, blocks[16], least; /* blocks by counter; the least that is stored */
    uint8_t asked[];                             /* by segment */
};

static void *tinylfu_create(const struct kvc_admission_host *host,
                            const union kvc_option_value *options)
{
    struct sketch *k = host->alloc(host, 1, sizeof(*k) + host->n_segments);
    if (k) {
        k->sample = options ? options[0].count : 10;
        k->least = 1; /* what nobody asked for is not stored, from the first offer on */
    }
    return k;
}

static void halve(const struct kvc_admission_host *host, struct sketch *k)
{
    k->counted /= 2;
    memset(k->blocks, 0, sizeof(k->blocks));
    for (uint32_t s = 0; s < host->n_segments; s++) {
        k->asked[s] /= 2;
        k->blocks[k->asked[s]] += host->seg_blocks[s];
    }
}

static void tinylfu_request(const struct kvc_admission_host *host, void *state,
                            const struct kvc_policy_request *request)
{
    struct sketch *k = state;
    for (uint32_t s = request->segment; s != KVC_NO_ID; s = host->seg_parent[s]) {
        k->counted += host->seg_blocks[s];
        if (k->asked[s] == 15)
            continue;
        k->blocks[k->asked[s]++] -= host->seg_blocks[s]; /* of 0 nobody reads what is left */
        k->blocks[k->asked[s]] += host->seg_blocks[s];
    }
    if (k->counted / k->sample >= host->capacity_blocks)
        halve(host, k);
    uint64_t above = 0;
    k->least = 16;
    while (k->least > 1 && above + k->blocks[k->least - 1] <= host->capacity_blocks)
        above += k->blocks[--k->least];
}

static uint32_t tinylfu_admits(const struct kvc_admission_host *host, const void *state,
                               const struct kvc_policy_request *request, uint32_t segment)
{
    const struct sketch *k = state;
    (void)request;
    return all_or_none(host, k->asked[segment] >= k->least, segment);
}

static const struct kvc_admission_ops tinylfu_ops = {
    .struct_size = sizeof(tinylfu_ops), .create = tinylfu_create, .destroy = destroy,
    .request = tinylfu_request, .admits = tinylfu_admits,
};
KVC_ADMISSION(tinylfu, &tinylfu_ops, tinylfu_options, SIZE(tinylfu_options),
              "what is among the blocks asked for most often of late",
              "counters of Einziger et al., TOS 2017");
