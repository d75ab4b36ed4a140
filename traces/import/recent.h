/* SPDX-License-Identifier: Apache-2.0
 * Records by name: sessions, chats, calls. Where prefixes are forgotten, so are these: time is cut
 * into windows of forget_ns, and a name that occurs in neither the current window nor the one
 * before counts as new. */
#ifndef KVC_TRACES_RECENT_H
#define KVC_TRACES_RECENT_H

#include "traces/import/intern.h"

struct kvc_recent_clock { /* one for all tables of an import */
    uint64_t forget_ns;   /* 0: nothing is dropped */
    uint64_t window;      /* of the latest time stamp of the log so far */
    uint64_t bytes;       /* that the tables take */
};

struct kvc_recent {
    struct kvc_recent_clock *clock;
    size_t size; /* of a record; may be 0 */
    void (*drop)(void *record, void *user); /* frees what a record holds, which may be all zero;
                                               NULL: nothing */
    void *user;
    uint64_t window; /* of now */
    struct kvc_recent_part {
        struct kvc_intern names;
        unsigned char *record; /* by the name's number */
        size_t cap;
    } now, before;
};

void kvc_recent_tick(struct kvc_recent_clock *clock, uint64_t time_ns);
/* The name's record, all zero where *fresh; valid until the next call. NULL: no memory. */
void *kvc_recent_get(struct kvc_recent *r, const char *name, size_t n, bool *fresh);
/* The same, which leaves the table as it is; NULL: there is none. */
const void *kvc_recent_find(const struct kvc_recent *r, const char *name, size_t n);
/* How many names are kept, and the record of each from 0; NULL: it is another one's by now. */
size_t kvc_recent_count(const struct kvc_recent *r);
const void *kvc_recent_at(const struct kvc_recent *r, size_t i);
void kvc_recent_clear(struct kvc_recent *r);

#endif
