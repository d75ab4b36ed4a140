/* SPDX-License-Identifier: Apache-2.0
 * Text as HTML and CSV want it, numbers as people read them, and files in one call. Numbers never
 * depend on the process's locale. */
#ifndef KVC_REPORTS_OUT_H
#define KVC_REPORTS_OUT_H

#include "base/text.h"

/* ---- text ---- */

/* kvc_text_addf with %f or %g would follow the locale: use the numbers below. */
void kvc_text_html(struct kvc_text *t, const char *s); /* escaped; bad UTF-8 becomes U+FFFD */
void kvc_text_csv(struct kvc_text *t, const char *s);  /* a field of RFC 4180 */
void kvc_plain(char *text); /* for a terminal: control characters, of names in a log, become '?' */

/* ---- numbers for people ---- */

struct kvc_str {
    char s[48];
};

/* decimals 0 to 9; grouped: thousands apart by commas. NAN gives "unknown". */
struct kvc_str kvc_fmt_fixed(double value, int decimals, bool grouped);
struct kvc_str kvc_fmt_count(uint64_t n);         /* 12,345 */
struct kvc_str kvc_fmt_some(uint64_t n, const char *thing); /* 1 block, 2,000 touches */
struct kvc_str kvc_fmt_tokens(double tokens);     /* 950, 12.3 k, 41.2 M */
struct kvc_str kvc_fmt_bytes(double bytes);       /* 512 GiB, 1.5 TiB */
struct kvc_str kvc_fmt_bandwidth(double bytes_per_s); /* 25.2 GB/s */
struct kvc_str kvc_fmt_ms(double ms);             /* 0.42 ms, 812 ms, 12.3 s */
struct kvc_str kvc_fmt_seconds(double s);         /* 59.0 min */
struct kvc_str kvc_fmt_percent(double fraction);  /* 63.1 % */
struct kvc_str kvc_fmt_points(double fraction);   /* 2.1 points, of a difference of fractions */
struct kvc_str kvc_fmt_usd(double usd);           /* USD 12.34 */
struct kvc_str kvc_fmt_name(const char *name); /* plain, and no longer than a column */
struct kvc_str kvc_fmt_general(double value);     /* three significant digits, no exponent */

/* ---- files, written whole or not at all ---- */

/* All at once; the building of the text may have failed. Clears it. */
enum kvc_status kvc_file_put_text(const char *path, struct kvc_text *t, struct kvc_error *err);
/* Reads at most limit bytes; the caller frees with kvc_free. */
enum kvc_status kvc_file_get(const char *path, size_t limit, char **out, size_t *n,
                             struct kvc_error *err);

#endif
