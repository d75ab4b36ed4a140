/* SPDX-License-Identifier: Apache-2.0
 * The file of measured figures that a scenario names. */
#include "sim/scenario/scenario_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "models/user_profile.h"

#include <sys/stat.h>

#define MOST_BYTES ((size_t)16 << 20)

enum kvc_status kvc_scenario_profile(struct kvc_user_profile **out, const struct kvc_scenario *s,
                                     struct kvc_error *err)
{
    const char *path = s->profile_path[0] ? s->profile_path : s->profile;
    struct stat info;
    char *text = NULL;
    size_t n = 0;

    *out = NULL;
    if (!s->profile[0])
        return KVC_OK;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                           "a profile is read more than once: name a regular file");
    enum kvc_status st = kvc_scenario_read(path, MOST_BYTES, &text, &n, err);
    if (st == KVC_OK && n > MOST_BYTES)
        st = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                         "larger than 16 MiB: this is not a profile");
    if (st == KVC_OK)
        st = kvc_user_profile_parse(out, text, n, path, err);
    kvc_free(text);
    return st;
}
