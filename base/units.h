/* SPDX-License-Identifier: Apache-2.0
 * Quantities with units in text: "80GiB", "25GB/s", "400Gb/s", "150us", "2h". A bare number for a
 * quantity that has a unit is refused with a hint; 0 needs none. */
#ifndef KVC_BASE_UNITS_H
#define KVC_BASE_UNITS_H

#include <kvcast/kvcast.h>

#define KVC_HOURS_PER_MONTH 730.0 /* 8,760 of a year / 12 */

/* field names the quantity in errors. kB MB GB TB are powers of 1000, KiB MiB GiB TiB of 1024. */
enum kvc_status kvc_parse_bytes(const char *text, const char *field, uint64_t *out,
                                struct kvc_error *err);
enum kvc_status kvc_parse_bytes_per_s(const char *text, const char *field, double *out,
                                      struct kvc_error *err); /* Gb/s are bits */
enum kvc_status kvc_parse_ns(const char *text, const char *field, uint64_t *out,
                             struct kvc_error *err); /* ns us ms s m|min h d */
enum kvc_status kvc_parse_u64(const char *text, const char *field, uint64_t *out,
                              struct kvc_error *err);
enum kvc_status kvc_parse_double(const char *text, const char *field, double *out,
                                 struct kvc_error *err);
/* Shortest exact text with a unit, "80GiB", "1.5s"; always terminated. */
void kvc_format_bytes(uint64_t bytes, char *buf, size_t size);
void kvc_format_ns(uint64_t ns, char *buf, size_t size);

/* Case folded, '-' '_' equal, other characters as they are. */
bool kvc_name_equal(const char *a, const char *b);
/* The name in the NULL-terminated list closest to text (edit distance), NULL when none is near. */
const char *kvc_name_nearest(const char *text, const char *const *names);

#endif
