/* SPDX-License-Identifier: Apache-2.0
 * The insides of links.c, shared with links_rates.c, which works out the rates. */
#ifndef KVC_SIM_LINKS_INTERNAL_H
#define KVC_SIM_LINKS_INTERNAL_H

#include "sim/replay/links.h"

#define LINK_NONE UINT32_MAX
#define NS_PER_S 1e9 /* rates inside are bytes per ns */
#define RATE_OPEN -1.0

enum flow_state { FREE, WAITING, MOVING };

struct flow {
    double remaining; /* bytes, as of settled_ns */
    double rate;      /* since then */
    double fair;      /* the rate being worked out; RATE_OPEN otherwise */
    double cap;
    uint64_t bytes, tag, seq;
    uint64_t settled_ns;
    uint64_t event_ns; /* end of latency or of the transfer */
    uint32_t path[KVC_LINKS_PATH_MAX];
    uint32_t pos[KVC_LINKS_PATH_MAX]; /* in each link's list */
    uint32_t n_path;
    uint32_t generation; /* of the slot */
    uint32_t next_free;
    uint32_t mark;
    uint8_t state;
};

struct link {
    char *name;
    double capacity; /* bytes per ns */
    double left;       /* capacity not given out yet, while filling */
    uint32_t open;     /* flows without a rate yet, while filling */
    uint32_t mark;
    uint32_t heap_pos;
    uint64_t next_ns;  /* first end of the flows that have this link first on their path */
    uint64_t new_next_ns;
    uint32_t *flows;   /* moving ones that cross it */
    size_t n_flows, cap_flows;
    size_t n_wide; /* of them, those that cross other links too */
    uint64_t ended_bytes, busy_ns, busy_since_ns;
    uint32_t peak_flows;
    bool dirty;
};

struct kvc_links {
    struct link *links;
    size_t n_links, cap_links;
    uint32_t *heap; /* of links, by next_ns */
    size_t cap_heap;

    struct flow *flows;
    size_t n_flows, cap_flows;
    uint32_t free_flow;
    uint32_t live; /* waiting and moving */
    uint64_t seq, now_ns;

    uint32_t *waiting; /* heap of flows, by (event_ns, seq) */
    size_t n_waiting, cap_waiting;

    uint32_t *dirty;
    size_t n_dirty, cap_dirty;
    uint32_t mark;
    uint32_t *part_links; /* the component being worked on */
    size_t n_part_links, cap_part_links;
    uint32_t *part_flows, *todo;
    size_t n_part_flows, cap_part_flows, cap_todo;

    struct done {
        struct kvc_flow_end end;
        uint64_t seq;
    } *done; /* ended, not handed out: done[done_first .. n_done), ascending */
    size_t done_first, n_done, cap_done;
};

static inline double remaining_at(const struct flow *f, uint64_t now_ns)
{
    double left = f->remaining - f->rate * (double)(now_ns - f->settled_ns);
    return left > 0 ? left : 0;
}

/* Whole bytes that have moved; never falls from one moment to the next. */
static inline uint64_t moved_at(const struct flow *f, uint64_t now_ns)
{
    uint64_t left = (uint64_t)remaining_at(f, now_ns);
    return left < f->bytes ? f->bytes - left : 0;
}

/* Works out the rates of all that changed at this instant, and when flows will end. */
void kvc_links_refresh(struct kvc_links *l);
/* Puts a link whose next_ns changed back in order. */
void kvc_links_reorder(struct kvc_links *l, uint32_t link);

#endif
