/* SPDX-License-Identifier: Apache-2.0
 * Numbers for the session names of a log, and when each session's last turn came. Where prefixes
 * are forgotten, so are names: time is cut into windows of forget_ns, and a name that occurs in
 * neither the current window nor the one before counts as new. */
#ifndef KVC_TRACES_SESSION_NAMES_H
#define KVC_TRACES_SESSION_NAMES_H

#include "traces/import/intern.h"

#include <kvcast/kvcast.h>

struct kvc_session_entry {
    uint32_t number;
    uint64_t turn_ns; /* KVC_TIME_NONE before the first */
    uint64_t end_ns;  /* of all turns so far, 0 when the last one doesn't say */
};

struct kvc_session_names {
    struct {
        struct kvc_intern names;
        struct kvc_session_entry *entry; /* by its number within the window */
        size_t cap;
    } now, before;
    uint32_t n; /* numbers given so far */
    uint64_t forget_ns, window; /* of the clock; forget_ns 0: all are kept */
};

/* The entry stays valid until the next call; NULL: no memory. */
struct kvc_session_entry *kvc_session_name(struct kvc_session_names *s, const char *name, size_t n);
/* The latest time stamp of the log so far. */
void kvc_session_clock(struct kvc_session_names *s, uint64_t time_ns);
void kvc_session_names_clear(struct kvc_session_names *s);

#endif
