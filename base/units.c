/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include "base/decimal.h"
#include "base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

#define KI (UINT64_C(1) << 10)
#define MI (UINT64_C(1) << 20)
#define GI (UINT64_C(1) << 30)
#define TI (UINT64_C(1) << 40)
#define PI (UINT64_C(1) << 50)
#define K3 UINT64_C(1000)
#define K6 UINT64_C(1000000)
#define K9 UINT64_C(1000000000)
#define K12 UINT64_C(1000000000000)
#define K15 UINT64_C(1000000000000000)

static const struct unit byte_units[] = {
    {"B", 1},     {"kB", K3},  {"KB", K3},  {"MB", K6},  {"GB", K9},  {"TB", K12},
    {"PB", K15},  {"KiB", KI}, {"kiB", KI}, {"MiB", MI}, {"GiB", GI}, {"TiB", TI},
    {"PiB", PI},  {NULL, 0},
};
static const struct unit bit_units[] = {
    {"b", 1},     {"kb", K3},  {"Kb", K3},   {"Mb", K6},   {"Gb", K9},   {"Tb", K12},
    {"bit", 1},   {"kbit", K3}, {"Mbit", K6}, {"Gbit", K9}, {"Tbit", K12}, {NULL, 0},
};
static const struct unit time_units[] = {
    {"ns", 1},          {"us", K3},         {"\xc2\xb5s", K3},   {"\xce\xbcs", K3},
    {"ms", K6},         {"s", K9},          {"m", 60 * K9},           {"min", 60 * K9},
    {"h", 3600 * K9},   {"d", 86400 * K9},  {NULL, 0},
};

static const struct unit *find_unit(const struct unit *units, const char *name, size_t n)
{
    for (; units->name; units++) {
        if (strlen(units->name) == n && !memcmp(units->name, name, n))
            return units;
    }
    return NULL;
}

static enum kvc_status refuse(struct kvc_error *err, const char *field, const char *text,
                              const char *why)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, field, "\"%.64s\" %s", text, why);
}

/* The unit's text behind the number: blanks around it dropped. */
static const char *unit_text(const char *rest, size_t *n)
{
    rest += strspn(rest, " ");
    *n = strlen(rest);
    while (*n && rest[*n - 1] == ' ')
        --*n;
    return rest;
}

/* hint names units for this kind of quantity: "80GiB or 80GB". */
static enum kvc_status parse_quantity(const char *text, const char *field, const char *hint,
                                      const struct unit *units, uint64_t *out,
                                      struct kvc_error *err)
{
    struct kvc_decimal d;
    char why[160];
    bool exact;
    size_t n, len = kvc_decimal_parse(text, strlen(text), &d);
    if (!len) {
        snprintf(why, sizeof(why), "is not a quantity: write a number with a unit, like %s", hint);
        return refuse(err, field, text, why);
    }
    const char *name = unit_text(text + len, &n);
    const struct unit *unit = find_unit(units, name, n);
    if (n == 0 && d.digits) {
        snprintf(why, sizeof(why), "has no unit: write it with one, like %s", hint);
        return refuse(err, field, text, why);
    }
    if (n && !unit) {
        snprintf(why, sizeof(why), "has a unit that is not known here: write it like %s", hint);
        return refuse(err, field, text, why);
    }
    if (d.negative && d.digits)
        return refuse(err, field, text, "is negative: only 0 and more makes sense here");
    if (!kvc_decimal_scale(&d, unit ? unit->factor : 1, out, &exact))
        return refuse(err, field, text, "is too large or has too many digits for 64 bits");
    return KVC_OK;
}

enum kvc_status kvc_parse_bytes(const char *text, const char *field, uint64_t *out,
                                struct kvc_error *err)
{
    return parse_quantity(text, field, "80GiB (2^30) or 80GB (10^9 bytes)", byte_units, out, err);
}

enum kvc_status kvc_parse_ns(const char *text, const char *field, uint64_t *out,
                             struct kvc_error *err)
{
    return parse_quantity(text, field, "500ms (ns us ms s m h d)", time_units, out, err);
}

enum kvc_status kvc_parse_bytes_per_s(const char *text, const char *field, double *out,
                                      struct kvc_error *err)
{
    static const char hint[] = "25GB/s (bytes) or 400Gb/s (bits)";
    size_t n = 0;
    struct kvc_decimal d;
    size_t len = kvc_decimal_parse(text, strlen(text), &d);
    const char *name = len ? unit_text(text + len, &n) : text;
    uint64_t divisor = 1;
    const struct unit *unit = NULL;
    if (n > 2 && !memcmp(name + n - 2, "/s", 2)) {
        n -= 2;
    } else if (n > 2 && !memcmp(name + n - 2, "ps", 2)) { /* Gbps */
        n -= 2;
    } else if (len && n) {
        return refuse(err, field, text, "is a size, not a rate: write 25GB/s or 400Gb/s");
    }
    unit = find_unit(byte_units, name, n);
    if (!unit && (unit = find_unit(bit_units, name, n)) != NULL)
        divisor = 8;
    if (!len || (n && !unit) || (!n && d.digits)) {
        char why[120];
        snprintf(why, sizeof(why), "is not a rate: write it like %s", hint);
        return refuse(err, field, text, why);
    }
    if (d.negative && d.digits)
        return refuse(err, field, text, "is negative: only 0 and more makes sense here");
    double v = strtod(text, NULL) * (unit ? (double)unit->factor : 1.0) / (double)divisor;
    if (!isfinite(v))
        return refuse(err, field, text, "is too large");
    *out = v;
    return KVC_OK;
}

enum kvc_status kvc_parse_u64(const char *text, const char *field, uint64_t *out,
                              struct kvc_error *err)
{
    struct kvc_decimal d;
    bool exact = false;
    uint64_t v = 0;
    size_t len = kvc_decimal_parse(text, strlen(text), &d);
    if (!len || text[len] || (d.negative && d.digits))
        return refuse(err, field, text, "is not a whole number of 0 or more (no unit here)");
    if (!kvc_decimal_scale(&d, 1, &v, &exact))
        return refuse(err, field, text, "is too large for 64 bits");
    if (!exact)
        return refuse(err, field, text, "is not a whole number");
    *out = v;
    return KVC_OK;
}

enum kvc_status kvc_parse_double(const char *text, const char *field, double *out,
                                 struct kvc_error *err)
{
    struct kvc_decimal d;
    size_t len = kvc_decimal_parse(text, strlen(text), &d);
    if (!len || text[len])
        return refuse(err, field, text, "is not a number (no unit here)");
    double v = strtod(text, NULL);
    if (!isfinite(v))
        return refuse(err, field, text, "is too large");
    *out = v;
    return KVC_OK;
}

/* ---- formatting ---- */

/* value / factor with at most three decimals, exactly, or false. */
static bool exact_text(uint64_t value, const struct unit *unit, char *buf, size_t size)
{
    uint64_t whole = value / unit->factor, rest = value % unit->factor;
    unsigned milli = 0;
    if (rest > UINT64_MAX / 1000 || rest * 1000 % unit->factor)
        return false;
    milli = (unsigned)(rest * 1000 / unit->factor);
    if (!milli)
        snprintf(buf, size, "%" PRIu64 "%s", whole, unit->name);
    else if (milli % 100 == 0)
        snprintf(buf, size, "%" PRIu64 ".%u%s", whole, milli / 100, unit->name);
    else if (milli % 10 == 0)
        snprintf(buf, size, "%" PRIu64 ".%02u%s", whole, milli / 10, unit->name);
    else
        snprintf(buf, size, "%" PRIu64 ".%03u%s", whole, milli, unit->name);
    return true;
}

static void format_shortest(uint64_t value, const struct unit *units, size_t n, char *buf,
                            size_t size)
{
    char best[48] = "", text[48];
    for (size_t i = 0; i < n; i++) {
        if (value < units[i].factor && units[i].factor > 1)
            continue;
        if (exact_text(value, &units[i], text, sizeof(text)) &&
            (!best[0] || strlen(text) < strlen(best)))
            snprintf(best, sizeof(best), "%s", text);
    }
    snprintf(buf, size, "%s", best);
}

void kvc_format_bytes(uint64_t bytes, char *buf, size_t size)
{
    static const struct unit units[] = {{"PiB", PI}, {"TiB", TI}, {"GiB", GI}, {"MiB", MI},
                                        {"KiB", KI}, {"PB", K15}, {"TB", K12}, {"GB", K9},
                                        {"MB", K6},  {"kB", K3},  {"B", 1}};
    format_shortest(bytes, units, sizeof(units) / sizeof(units[0]), buf, size);
}

void kvc_format_ns(uint64_t ns, char *buf, size_t size)
{
    static const struct unit units[] = {{"d", 86400 * K9}, {"h", 3600 * K9}, {"m", 60 * K9},
                                        {"s", K9},         {"ms", K6},       {"us", K3},
                                        {"ns", 1}};
    if (ns == 0)
        snprintf(buf, size, "0s");
    else
        format_shortest(ns, units, sizeof(units) / sizeof(units[0]), buf, size);
}

/* ---- names ---- */

static unsigned char fold(char c)
{
    if (c >= 'A' && c <= 'Z')
        c = (char)(c - 'A' + 'a');
    return (unsigned char)(c == '_' ? '-' : c);
}

bool kvc_name_equal(const char *a, const char *b)
{
    while (*a && fold(*a) == fold(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

#define NEAR_MAX 80

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance in which swapping two neighbours costs one; three rolling rows. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][NEAR_MAX + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change = fold(a[i - 1]) != fold(b[j - 1]);
            row[j] = least(up[j - 1] + change, least(up[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]))
                row[j] = least(row[j], up2[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

static bool begins_with(const char *name, const char *text)
{
    while (*text && fold(*text) == fold(*name)) {
        text++;
        name++;
    }
    return !*text;
}

const char *kvc_name_nearest(const char *text, const char *const *names)
{
    size_t n = strlen(text), best = SIZE_MAX;
    const char *nearest = NULL;
    if (!n || n > NEAR_MAX)
        return NULL;
    for (; *names; names++) {
        size_t m = strlen(*names);
        if (m > NEAR_MAX)
            continue;
        if (n >= 3 && begins_with(*names, text)) /* "h200" means h200_sxm rather than gb200 */
            return *names;
        size_t far = distance(text, n, *names, m);
        size_t longer = n > m ? n : m;
        if (far <= (longer < 6 ? 2 : longer / 3) && far < longer && far < best) {
            best = far;
            nearest = *names;
        }
    }
    return nearest;
}
