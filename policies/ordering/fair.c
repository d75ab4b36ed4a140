/* SPDX-License-Identifier: Apache-2.0
 * The virtual token counter (Sheng et al., OSDI 2024, algorithm 2): each tenant has a counter of
 * what it was served, prompts at admission and output as it comes; the least goes first. One that
 * comes back after it had nothing waiting is lifted to the least of those that wait, or to where
 * the last one to leave an empty queue stood, so that nobody saves up. */
#include "policies/ordering/rules.h"

enum { INPUT, OUTPUT };

static const struct kvc_policy_option options[] = {
    [INPUT] = {"input", KVC_OPTION_NUMBER, "1", 0, 1e6, "what a prompt token counts"},
    [OUTPUT] = {"output", KVC_OPTION_NUMBER, "2", 0, 1e6, "what an output token counts"},
};

struct tenant {
    double served;
    uint64_t waiting;
};

struct state {
    double input, output;
    uint64_t waiting;
    uint32_t last; /* whose request left the queue last */
    struct tenant tenant[];
};

static void *create(const struct kvc_policy_host *host, const union kvc_option_value *value)
{
    struct state *s =
        host->alloc(host, 1, sizeof(*s) + host->n_tenants * sizeof(s->tenant[0]));
    if (!s)
        return NULL;
    s->input = value ? value[INPUT].number : 1;
    s->output = value ? value[OUTPUT].number : 2;
    s->last = KVC_NO_ID;
    return s;
}

static void destroy(const struct kvc_policy_host *host, void *state)
{
    host->free(host, state);
}

static void lift(const struct kvc_policy_host *host, struct state *s, struct tenant *t)
{
    double least = s->last == KVC_NO_ID ? 0 : s->tenant[s->last].served;
    bool any = false;
    for (uint32_t i = 0; s->waiting && i < host->n_tenants; i++)
        if (s->tenant[i].waiting && (!any || s->tenant[i].served < least)) {
            least = s->tenant[i].served;
            any = true;
        }
    if (t->served < least)
        t->served = least;
}

static void arrived(const struct kvc_policy_host *host, void *state,
                    const struct kvc_waiting *request)
{
    struct state *s = state;
    struct tenant *t = &s->tenant[request->tenant];
    if (!t->waiting)
        lift(host, s, t);
    t->waiting++;
    s->waiting++;
}

static void leave(struct state *s, uint32_t tenant)
{
    s->tenant[tenant].waiting--;
    s->waiting--;
    s->last = tenant;
}

static void admitted(const struct kvc_policy_host *host, void *state,
                     const struct kvc_waiting *request)
{
    struct state *s = state;
    (void)host;
    leave(s, request->tenant);
    if (!request->again)
        s->tenant[request->tenant].served += s->input * request->input_tokens;
}

static void served(const struct kvc_policy_host *host, void *state,
                   const struct kvc_waiting *request, uint32_t tokens)
{
    struct state *s = state;
    (void)host;
    s->tenant[request->tenant].served += s->output * tokens;
}

static void ended(const struct kvc_policy_host *host, void *state,
                  const struct kvc_waiting *request)
{
    (void)host;
    if (request->waits) /* it was given up */
        leave(state, request->tenant);
}

static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    const struct state *s = state;
    (void)host;
    return s->tenant[request->tenant].served;
}

static const struct kvc_ordering_ops ops = {
    .struct_size = sizeof(ops), .flags = KVC_ORDERING_EACH, .create = create, .destroy = destroy,
    .rank = rank, .arrived = arrived, .admitted = admitted, .served = served, .ended = ended,
};
KVC_ORDERING(fair, &ops, options, 2, "the tenant that was served least (virtual token counter)",
             "Sheng et al., OSDI 2024");
