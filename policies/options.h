/* SPDX-License-Identifier: Apache-2.0
 * Options of policies, "NAME:key=value[:key=value]": one table checks them, fills in the defaults
 * and is what help and 'kvcast policy list' show. */
#ifndef KVC_POLICIES_OPTIONS_H
#define KVC_POLICIES_OPTIONS_H

#include <kvcast/kvcast.h>
#include <kvcast/policy.h>

#define KVC_OPTIONS_MOST 32

struct kvc_option_table {
    const struct kvc_policy_option *row;
    uint32_t n; /* KVC_OPTIONS_MOST at most */
};

/* Where the options of "NAME:key=value" begin, behind the ':', or NULL. A path may hold ':' in its
 * folders. */
const char *kvc_options_of(const char *spec);
/* Values in the order of the table: the defaults, then what text says ("key=value:..", or NULL). */
enum kvc_status kvc_options_parse(const struct kvc_option_table *table, const char *policy,
                                  const char *text, union kvc_option_value *out,
                                  struct kvc_error *err);
/* What stands for a value in help: "N", "F" or "T". */
const char *kvc_option_word(uint32_t kind);

#endif
