/* SPDX-License-Identifier: Apache-2.0
 * Times as logs write them: dates with a clock, and plain numbers of some unit. */
#ifndef KVC_TRACES_TIMESTAMP_H
#define KVC_TRACES_TIMESTAMP_H

#include "base/decimal.h"

#include <kvcast/kvcast.h>

enum kvc_time_unit { /* nanoseconds in one */
    KVC_UNIT_NS = 1,
    KVC_UNIT_US = 1000,
    KVC_UNIT_MS = 1000000,
    KVC_UNIT_S = 1000000000
};

/* "s", "ms", "us", "ns"; false: another word. */
bool kvc_time_unit_named(const char *name, enum kvc_time_unit *out);
const char *kvc_time_unit_name(enum kvc_time_unit unit);

/* "2023-11-16 18:17:03.9799600", with a T or a space, 0 to 9 digits of fraction, and Z, +02:00,
 * +0200, +02, " UTC" or nothing (then UTC) behind; ns since 1970 UTC. Days that don't exist and
 * times before 1970 or after 2261 are refused. */
bool kvc_time_from_date(const char *text, size_t n, uint64_t *ns);
/* A number of units; rounded to the nearest ns; false: negative, or beyond 292 years. */
bool kvc_time_from_number(const struct kvc_decimal *number, enum kvc_time_unit unit,
                          uint64_t *ns);
/* The unit in which a number is a moment from September 2001 to 2096: the four ranges lie apart.
 * False: in none, so it counts from another origin than 1970. */
bool kvc_time_epoch_unit(const struct kvc_decimal *number, enum kvc_time_unit *unit);
/* Whether a time since 1970 is such a moment. */
bool kvc_time_is_epoch(uint64_t ns);

#endif
