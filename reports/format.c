/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/reports.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double pow10_table[10] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

/* Digits of n from the end of buf, commas every three when grouped; returns their start. */
static char *put_digits(char *end, uint64_t n, bool grouped)
{
    int count = 0;
    do {
        if (grouped && count && count % 3 == 0)
            *--end = ',';
        *--end = (char)('0' + n % 10);
        n /= 10;
        count++;
    } while (n);
    return end;
}

struct kvc_str kvc_fmt_count(uint64_t n)
{
    struct kvc_str out;
    char buf[40];
    buf[39] = '\0';
    snprintf(out.s, sizeof(out.s), "%s", put_digits(buf + 39, n, true));
    return out;
}

struct kvc_str kvc_fmt_some(uint64_t n, const char *thing)
{
    struct kvc_str out;
    size_t last = strlen(thing) - 1;
    const char *many = strchr("hsx", thing[last]) ? "es" : "s";
    snprintf(out.s, sizeof(out.s), "%.27s %.16s%s", kvc_fmt_count(n).s, thing, n == 1 ? "" : many);
    return out;
}

struct kvc_str kvc_fmt_fixed(double value, int decimals, bool grouped)
{
    struct kvc_str out = {"unknown"};
    if (isnan(value))
        return out;
    double scaled = fabs(value) * pow10_table[decimals];
    if (!(scaled < 9e18)) { /* beyond an integer's reach, infinity among them */
        snprintf(out.s, sizeof(out.s), "%sinf", value < 0 ? "-" : "");
        return out;
    }
    uint64_t n = (uint64_t)llround(scaled), unit = (uint64_t)pow10_table[decimals];
    char whole[40], fraction[16] = "";
    whole[39] = '\0';
    if (decimals)
        snprintf(fraction, sizeof(fraction), ".%0*llu", decimals, (unsigned long long)(n % unit));
    snprintf(out.s, sizeof(out.s), "%s%s%s", value < 0 && n ? "-" : "",
             put_digits(whole + 39, n / unit, grouped), fraction);
    return out;
}

/* Enough decimals for three significant digits. */
static int decimals_for(double value)
{
    double a = fabs(value);
    int d = 0;
    while (d < 9 && a > 0 && a * pow10_table[d] < 99.95)
        d++;
    return a == 0 ? 0 : d;
}

struct kvc_str kvc_fmt_general(double value)
{
    struct kvc_str out = kvc_fmt_fixed(value, decimals_for(value), true);
    if (strchr(out.s, '.')) {
        size_t n = strlen(out.s);
        while (out.s[n - 1] == '0')
            out.s[--n] = '\0';
        if (out.s[n - 1] == '.')
            out.s[n - 1] = '\0';
    }
    return out;
}

static struct kvc_str with_unit(double value, int decimals, const char *unit)
{
    struct kvc_str out = kvc_fmt_fixed(value, decimals, true);
    size_t n = strlen(out.s);
    if (!isnan(value))
        snprintf(out.s + n, sizeof(out.s) - n, "%s", unit);
    return out;
}

/* value in the largest unit that leaves at least one, three significant digits or so. */
static struct kvc_str scaled_unit(double value, double step, const char *const *units, size_t n)
{
    size_t i = 0;
    while (i + 1 < n && fabs(value) >= step * 0.9995) {
        value /= step;
        i++;
    }
    bool whole = i == 0 || value == floor(value);
    double a = fabs(value);
    return with_unit(value, whole || a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2, units[i]);
}

struct kvc_str kvc_fmt_tokens(double tokens)
{
    static const char *const units[] = {"", " k", " M", " G", " T"};
    return scaled_unit(tokens, 1000, units, 5);
}

struct kvc_str kvc_fmt_bytes(double bytes)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    return scaled_unit(bytes, 1024, units, 6);
}

struct kvc_str kvc_fmt_bandwidth(double bytes_per_s)
{
    static const char *const units[] = {" B/s", " kB/s", " MB/s", " GB/s", " TB/s"};
    return scaled_unit(bytes_per_s, 1000, units, 5);
}

struct kvc_str kvc_fmt_ms(double ms)
{
    double a = fabs(ms);
    if (a >= 999.5)
        return kvc_fmt_seconds(ms / 1000);
    return with_unit(ms, a >= 99.95 || a == 0 ? 0 : a >= 9.995 ? 1 : a >= 0.01 ? 2 : 4, " ms");
}

struct kvc_str kvc_fmt_seconds(double s)
{
    double a = fabs(s);
    if (a >= 48 * 3600)
        return with_unit(s / 86400, 1, " days");
    if (a >= 2 * 3600)
        return with_unit(s / 3600, 1, " h");
    if (a >= 300)
        return with_unit(s / 60, 1, " min");
    return with_unit(s, a >= 99.95 || a == 0 ? 0 : a >= 9.995 ? 1 : 2, " s");
}

struct kvc_str kvc_fmt_percent(double fraction)
{
    return with_unit(fraction * 100, 1, " %");
}

struct kvc_str kvc_fmt_points(double fraction)
{
    return with_unit(fraction * 100, 1, " points");
}

struct kvc_str kvc_fmt_usd(double usd)
{
    double a = fabs(usd);
    int d = a >= 999.5 ? 0 : a == 0 || a >= 0.095 ? 2 : decimals_for(usd) - 1;
    struct kvc_str number = kvc_fmt_fixed(usd, d, true), out;
    snprintf(out.s, sizeof(out.s), isnan(usd) ? "%.40s" : "USD %.40s", number.s);
    return out;
}

struct kvc_str kvc_band_title(const char *name)
{
    static const char *const titles[][2] = {
        {"ttft_ms.", "TTFT"}, {"tpot_ms.", "TPOT"}, {"e2e_ms.", "whole request"}};
    struct kvc_str out;
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        size_t n = strlen(titles[i][0]);
        if (strncmp(name, titles[i][0], n) == 0) {
            snprintf(out.s, sizeof(out.s), "%s %.20s", titles[i][1], name + n);
            return out;
        }
    }
    snprintf(out.s, sizeof(out.s), "%.40s", name);
    return out;
}

void kvc_plain(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        bool c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; /* U+0080 to U+009F */
        if (*c < ' ' || *c == 0x7f || c1)
            *c = '?';
        if (c1)
            c[1] = '?';
    }
}

struct kvc_str kvc_fmt_name(const char *name)
{
    struct kvc_str out = {""};
    snprintf(out.s, sizeof(out.s), "%s", name);
    kvc_plain(out.s);
    return out;
}
