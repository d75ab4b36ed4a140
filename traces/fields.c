/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/fields.h"

#include "base/error.h"

#include <math.h>

/* A full parse of a list of ids costs up to 85 times the text in memory. */
#define CAREFUL_MAX ((size_t)8 << 20)

enum kvc_status kvc_field_wrong(const struct kvc_place *at, const char *field,
                                const struct kvc_jval *v, const char *rule, struct kvc_error *err)
{
    static const char *const kinds[] = { "null", "true or false", "a number", "text", "a list",
                                         "an object" };
    double number;
    const char *text = kvc_jval_string(v);
    if (kvc_jval_number(v, &number)) {
        bool whole = number > -1e21 && number < 1e21 && number == floor(number);
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field,
                           whole ? "%.0f is wrong: %s" : "%.17g is wrong: %s", number, rule);
    }
    if (text)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field,
                           "the text \"%.40s\" is wrong: %s", text, rule);
    return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field, "%s is wrong: %s",
                       kinds[kvc_jval_kind(v)], rule);
}

enum kvc_status kvc_field_missing(const struct kvc_place *at, const char *field,
                                  struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field, "missing");
}

const struct kvc_jval *kvc_field_member(const struct kvc_jval *root, const char *key)
{
    const struct kvc_jval *v = kvc_jval_member(root, key);
    return v && kvc_jval_kind(v) != KVC_JNULL ? v : NULL;
}

enum kvc_status kvc_field_tokens(const struct kvc_place *at, const char *field,
                                 const struct kvc_jval *root, uint64_t least, uint32_t *out,
                                 struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_jval_member(root, field);
    uint64_t n;
    if (!v)
        return kvc_field_missing(at, field, err);
    if (!kvc_jval_u64(v, &n) || n < least || n > KVC_TOKENS_MAX)
        return kvc_field_wrong(at, field, v,
                               least ? "a whole number of tokens from 1 to 2^31-1 is expected"
                                     : "a whole number of tokens from 0 to 2^31-1 is expected",
                               err);
    *out = (uint32_t)n;
    return KVC_OK;
}

enum kvc_status kvc_row_parse(struct kvc_jval **root, const char *text, size_t n,
                              const struct kvc_place *at, struct kvc_error *err)
{
    if (n > CAREFUL_MAX)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, NULL,
                           "this row of %zu MiB has something unusual in it, and unusual rows are "
                           "read up to %zu MiB only", n >> 20, CAREFUL_MAX >> 20);
    enum kvc_status status = kvc_json_parse(root, text, n, false, at->file, at->line, err);
    if (status != KVC_OK || kvc_jval_kind(*root) == KVC_JOBJECT)
        return status;
    status = kvc_field_wrong(at, "", *root, "each line must hold one JSON object", err);
    kvc_json_free(*root);
    *root = NULL;
    return status;
}
