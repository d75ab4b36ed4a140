/* SPDX-License-Identifier: Apache-2.0
 * Stores a block that is expected again before it is too old: after as long as since it was last
 * asked for; asked for the first time, after the mean pause of its session, without one after that
 * of all; without any it is stored. */
#include "policies/admission/rules.h"

#include <string.h>

static const struct kvc_policy_option ttl_options[] = {
    {"ttl", KVC_OPTION_TIME, "5m", 1, 1e18, "age at which a block is of no use"},
};

struct pauses {
    uint64_t sum_ns, last_ns, n;
    bool asked;
};

struct use {
    uint64_t last_ns; /* when a segment was last asked for + 1; 0: never */
    uint64_t gap_ns;  /* since the request before */
};

struct state {
    uint64_t ttl_ns;
    struct use *use;        /* by segment */
    struct pauses *session; /* by its number */
    size_t n_sessions;
    struct pauses all;
};

static void destroy(const struct kvc_admission_host *host, void *state)
{
    struct state *s = state;
    host->free(host, s->use);
    host->free(host, s->session);
    host->free(host, s);
}

static void *create(const struct kvc_admission_host *host, const union kvc_option_value *options)
{
    struct state *s = host->alloc(host, 1, sizeof(*s));
    if (!s)
        return NULL;
    s->ttl_ns = options ? options[0].time_ns : 300000000000u;
    s->use = host->alloc(host, host->n_segments, sizeof(*s->use));
    if (s->use)
        return s;
    host->free(host, s);
    return NULL;
}

static struct pauses *session_of(const struct kvc_admission_host *host, struct state *s,
                                 uint32_t session)
{
    size_t n = (size_t)session + 1;
    if (n > s->n_sessions) {
        n = n < 2 * s->n_sessions ? 2 * s->n_sessions : n;
        struct pauses *more = host->alloc(host, n, sizeof(*more));
        if (!more) {
            (host->fail)(host, "out of memory");
            return NULL;
        }
        if (s->n_sessions)
            memcpy(more, s->session, s->n_sessions * sizeof(*more));
        host->free(host, s->session);
        s->session = more;
        s->n_sessions = n;
    }
    return &s->session[session];
}

static void note_pause(const struct kvc_admission_host *host, struct state *s,
                       const struct kvc_policy_request *r)
{
    struct pauses *p = r->session == KVC_NO_ID ? NULL : session_of(host, s, r->session);
    if (!p)
        return;
    if (p->asked) {
        p->sum_ns += r->time_ns - p->last_ns;
        s->all.sum_ns += r->time_ns - p->last_ns;
        p->n++;
        s->all.n++;
    }
    p->asked = true;
    p->last_ns = r->time_ns;
}

static void request(const struct kvc_admission_host *host, void *state,
                    const struct kvc_policy_request *r)
{
    struct state *s = state;
    note_pause(host, s, r);
    for (uint32_t i = r->segment; i != KVC_NO_ID; i = host->seg_parent[i]) {
        struct use *u = &s->use[i];
        u->gap_ns = u->last_ns ? r->time_ns - (u->last_ns - 1) : UINT64_MAX;
        u->last_ns = r->time_ns + 1;
    }
}

static uint32_t admits(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *r, uint32_t segment)
{
    const struct state *s = state;
    uint64_t gap = s->use[segment].last_ns ? s->use[segment].gap_ns : UINT64_MAX;
    if (gap == UINT64_MAX) {
        const struct pauses *p = r->session < s->n_sessions ? &s->session[r->session] : &s->all;
        p = p->n ? p : &s->all;
        gap = p->n ? p->sum_ns / p->n : 0;
    }
    return gap < s->ttl_ns ? host->seg_blocks[segment] : 0;
}

static const struct kvc_admission_ops ops = {
    .struct_size = sizeof(ops), .create = create, .destroy = destroy, .request = request,
    .admits = admits,
};
KVC_ADMISSION(ttl, &ops, ttl_options, sizeof(ttl_options) / sizeof(ttl_options[0]),
              "what is expected again before it is too old", NULL);
