/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/units.h"
#include "models/models.h"

enum kvc_status kvc_model_kv_bytes_per_token(const char *model, const char *kv_dtype,
                                             uint64_t *out, struct kvc_error *err)
{
    enum kvc_dtype dtype = KVC_BF16;
    enum kvc_status status = kvc_profiles_ready(err);
    if (status)
        return status;
    const struct kvc_llm *llm = kvc_llm_find(model);
    if (!llm) {
        const char *near = kvc_name_nearest(model, kvc_llm_names());
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "model",
                           "there is no model \"%s\"%s%s%s; 'kvcast show model' lists them", model,
                           near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    }
    if (kv_dtype && !kvc_dtype_parse(kv_dtype, &dtype))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "kv-dtype",
                           "there is no KV dtype \"%s\"; 'kvcast show kv' lists them", kv_dtype);
    uint64_t bytes = kvc_llm_kv_bytes_per_token(llm, dtype, 1);
    if (bytes == 0)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "model",
                           "the profile of %s does not say how much KV a token takes", llm->name);
    *out = bytes;
    return KVC_OK;
}
