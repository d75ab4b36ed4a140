/* SPDX-License-Identifier: Apache-2.0
 * Concurrent transfers over shared links: each gets its max-min fair rate, recomputed whenever a
 * transfer starts to move, ends or is cancelled, in the part of the network it touches.
 *
 * A flow waits its latency, then moves its bytes over every link of its path at one rate, which
 * no flow's rate cap and no link's capacity is exceeded by. Fair means: each flow is either at
 * its cap or crosses a full link on which no other flow is faster (Bertsekas and Gallager, Data
 * Networks, 6.5.2).
 *
 * Times are whole ns; a completion is rounded up once, when it becomes an event. Only + - * / on
 * doubles, so results do not depend on compiler or machine. Cost: O(flows of the component
 * touched) an event, with several events of one instant taken together. Memory is pooled; calls
 * in steady state allocate nothing.
 *
 * How to drive it: keep one event of yours at kvc_links_next(); when it comes,
 *     while (kvc_links_pop(links, now_ns, &ended)) ...
 * next() is also woken for ends of latency, at which pop() may have nothing to hand out. */
#ifndef KVC_SIM_LINKS_H
#define KVC_SIM_LINKS_H

#include <kvcast/kvcast.h>

#define KVC_LINKS_PATH_MAX 4

struct kvc_links;

struct kvc_flow_spec {
    uint32_t path[KVC_LINKS_PATH_MAX]; /* distinct links */
    uint32_t n_path;                   /* 1 .. KVC_LINKS_PATH_MAX */
    uint64_t bytes;                    /* 0: ends after its latency */
    uint64_t latency_ns;               /* before the first byte moves; takes no bandwidth */
    double max_bytes_per_s;            /* the flow's own cap; 0 = none */
    uint64_t tag;                      /* handed back on completion */
};

struct kvc_flow_end {
    uint64_t time_ns, tag, flow;
};

struct kvc_link_usage {
    const char *name;
    double capacity_bytes_per_s;
    uint64_t bytes;      /* moved so far, flows under way included */
    uint64_t busy_ns;    /* time with at least one flow moving */
    uint32_t flows;      /* moving now */
    uint32_t peak_flows; /* most at once */
};

enum kvc_status kvc_links_create(struct kvc_links **out, struct kvc_error *err);
void kvc_links_destroy(struct kvc_links *links); /* NULL is fine */

/* Links are numbered 0, 1, .. in order of addition. The name is copied. */
enum kvc_status kvc_links_add(struct kvc_links *links, const char *name,
                              double capacity_bytes_per_s, uint32_t *link, struct kvc_error *err);
uint32_t kvc_links_count(const struct kvc_links *links);

/* now_ns never goes back, over all calls. flow may be NULL. */
enum kvc_status kvc_links_start(struct kvc_links *links, uint64_t now_ns,
                                const struct kvc_flow_spec *spec, uint64_t *flow,
                                struct kvc_error *err);
/* Whole bytes that a flow has moved by now_ns; 0 when it has ended. */
uint64_t kvc_links_moved(struct kvc_links *links, uint64_t now_ns, uint64_t flow);
/* False when the flow has ended already; its completion then still comes out of pop. */
bool kvc_links_cancel(struct kvc_links *links, uint64_t now_ns, uint64_t flow);

/* When pop should be called next if nothing else happens; KVC_TIME_NONE when idle. */
uint64_t kvc_links_next(struct kvc_links *links);
/* Brings the links to now_ns and hands out one completion, by time, then by order of start.
 * False when there is none (left). KVC_TIME_NONE runs to the last event and leaves the clock
 * there. */
bool kvc_links_pop(struct kvc_links *links, uint64_t now_ns, struct kvc_flow_end *end);

/* Figures of a link as of now_ns. */
void kvc_links_usage(struct kvc_links *links, uint64_t now_ns, uint32_t link,
                     struct kvc_link_usage *out);
/* Present rate of a flow; 0 while it waits or when it has ended. */
double kvc_links_rate(struct kvc_links *links, uint64_t flow);

#endif
