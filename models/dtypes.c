/* SPDX-License-Identifier: Apache-2.0
 * Formats of numbers: their names, and the bytes of a weight. */
#include "base/units.h"
#include "models/models.h"

static const struct {
    const char *name;
    enum kvc_dtype dtype;
} dtype_names[] = {
    {"bf16", KVC_BF16},    {"bfloat16", KVC_BF16},
    {"fp16", KVC_BF16},    {"float16", KVC_BF16},
    {"fp8", KVC_FP8},      {"fp8_e4m3", KVC_FP8},
    {"fp8_e5m2", KVC_FP8_E5M2}, {"fp8_block", KVC_FP8_BLOCK},
    {"nvfp4", KVC_NVFP4},  {"mxfp4", KVC_MXFP4},
    {"int8", KVC_INT8},    {"int4", KVC_INT4},
};

bool kvc_dtype_parse(const char *name, enum kvc_dtype *out)
{
    for (size_t i = 0; i < sizeof dtype_names / sizeof dtype_names[0]; i++) {
        if (kvc_name_equal(dtype_names[i].name, name)) {
            *out = dtype_names[i].dtype;
            return true;
        }
    }
    for (size_t i = 0; kvc_kv_format_at(i); i++) {
        if (kvc_name_equal(kvc_kv_format_at(i)->name, name)) {
            *out = kvc_kv_format_at(i)->dtype;
            return true;
        }
    }
    return false;
}

const char *kvc_dtype_name(enum kvc_dtype dtype)
{
    size_t i = 0;

    if (dtype > KVC_INT4)
        return kvc_kv_format(dtype)->name;

    while (dtype_names[i].dtype != dtype)
        i++;
    return dtype_names[i].name;
}

double kvc_dtype_bytes(enum kvc_dtype dtype)
{
    switch (dtype) {
    case KVC_BF16:
        return 2.0;
    case KVC_FP8:
    case KVC_INT8:
        return 1.0;
    case KVC_FP8_BLOCK:
        return 1.0 + 4.0 / (128 * 128); /* a float scale for each 128 x 128 tile */
    case KVC_NVFP4:
        return 0.5 + 1.0 / 16; /* an fp8 scale for 16 weights */
    case KVC_MXFP4:
        return 0.5 + 1.0 / 32; /* an 8-bit exponent for 32 weights */
    case KVC_INT4:
        return 0.5 + 2.0 / 128; /* a bf16 scale for 128 weights, as GPTQ and AWQ pack them */
    default: /* of KV only: kvc_kv_element_bytes */
        break;
    }
    return 2.0;
}
