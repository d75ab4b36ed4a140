/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/timestamp.h"

#include <stdio.h>
#include <string.h>

bool kvc_time_unit_named(const char *name, enum kvc_time_unit *out)
{
    static const enum kvc_time_unit all[] = { KVC_UNIT_NS, KVC_UNIT_US, KVC_UNIT_MS, KVC_UNIT_S };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(name, kvc_time_unit_name(all[i])) == 0) {
            *out = all[i];
            return true;
        }
    }
    return false;
}

const char *kvc_time_unit_name(enum kvc_time_unit unit)
{
    return unit == KVC_UNIT_S    ? "s"
           : unit == KVC_UNIT_MS ? "ms"
           : unit == KVC_UNIT_US ? "us"
                                 : "ns";
}

struct cursor {
    const char *p, *end;
};

/* Exactly n digits. */
static bool digits(struct cursor *c, unsigned n, uint32_t *out)
{
    uint32_t v = 0;
    if ((size_t)(c->end - c->p) < n)
        return false;
    for (unsigned i = 0; i < n; i++) {
        unsigned d = (unsigned)(unsigned char)c->p[i] - '0';
        if (d > 9)
            return false;
        v = v * 10 + d;
    }
    c->p += n;
    *out = v;
    return true;
}

static bool take(struct cursor *c, char what)
{
    if (c->p == c->end || *c->p != what)
        return false;
    c->p++;
    return true;
}

/* Days from 1970-01-01 of a Gregorian date: years begin in March, so that leap days end them. */
static int64_t days_from_date(uint32_t year, uint32_t month, uint32_t day)
{
    int64_t y = (int64_t)year - (month <= 2);
    int64_t in_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + (int64_t)day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + in_year - 719468;
}

static uint32_t days_in_month(uint32_t year, uint32_t month)
{
    static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1u : 0u);
}

static bool fraction(struct cursor *c, uint64_t *ns)
{
    uint64_t unit = 100000000;
    const char *first = c->p + 1;
    *ns = 0;
    if (!take(c, '.') && !take(c, ','))
        return true;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, unit /= 10)
        *ns += (uint64_t)(*c->p - '0') * unit;
    return c->p > first && c->p - first <= 9;
}

/* Seconds to take off for the zone. */
static bool zone(struct cursor *c, int64_t *seconds)
{
    uint32_t hours, minutes = 0;
    *seconds = 0;
    if (c->p == c->end || take(c, 'Z') || take(c, 'z'))
        return c->p == c->end;
    if (c->end - c->p == 4 && memcmp(c->p, " UTC", 4) == 0)
        return true;
    take(c, ' ');
    bool west = take(c, '-');
    if ((!west && !take(c, '+')) || !digits(c, 2, &hours))
        return false;
    if (c->p < c->end) {
        take(c, ':');
        if (!digits(c, 2, &minutes))
            return false;
    }
    *seconds = (int64_t)hours * 3600 + (int64_t)minutes * 60;
    if (west)
        *seconds = -*seconds;
    return c->p == c->end && hours <= 23 && minutes <= 59;
}

bool kvc_time_from_date(const char *text, size_t n, uint64_t *ns)
{
    struct cursor c = { text, text + n };
    uint32_t year, month, day, hour = 0, minute = 0, second = 0;
    uint64_t part;
    int64_t offset;
    if (!digits(&c, 4, &year) || !take(&c, '-') || !digits(&c, 2, &month) || !take(&c, '-') ||
        !digits(&c, 2, &day) || (!take(&c, 'T') && !take(&c, ' ') && !take(&c, 't')))
        return false;
    if (!digits(&c, 2, &hour) || !take(&c, ':') || !digits(&c, 2, &minute) || !take(&c, ':') ||
        !digits(&c, 2, &second) || !fraction(&c, &part) || !zone(&c, &offset))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
        minute > 59 || second > 60)
        return false;
    int64_t s = days_from_date(year, month, day) * 86400 + (int64_t)hour * 3600 +
                (int64_t)minute * 60 + (int64_t)second - offset;
    if (s < 0 || year > 2261)
        return false;
    *ns = (uint64_t)s * 1000000000 + part;
    return true;
}

bool kvc_time_from_number(const struct kvc_decimal *number, enum kvc_time_unit unit, uint64_t *ns)
{
    bool exact;
    return !number->negative && !number->too_precise &&
           kvc_decimal_scale(number, (uint64_t)unit, ns, &exact) && *ns < (uint64_t)INT64_MAX;
}

#define EPOCH_FIRST 1000000000u /* s */
#define EPOCH_END 4000000000u

bool kvc_time_is_epoch(uint64_t ns)
{
    return ns >= EPOCH_FIRST * (uint64_t)KVC_UNIT_S && ns < EPOCH_END * (uint64_t)KVC_UNIT_S;
}

bool kvc_time_epoch_unit(const struct kvc_decimal *number, enum kvc_time_unit *unit)
{
    static const enum kvc_time_unit all[] = { KVC_UNIT_S, KVC_UNIT_MS, KVC_UNIT_US, KVC_UNIT_NS };
    uint64_t ns;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (kvc_time_from_number(number, all[i], &ns) && kvc_time_is_epoch(ns)) {
            *unit = all[i];
            return true;
        }
    }
    return false;
}
