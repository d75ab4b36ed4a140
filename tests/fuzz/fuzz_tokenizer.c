/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a tokenizer.json, a NUL byte, a text. What opens must encode it twice the same way,
 * and the ids that half of it calls stable must be those of the whole. tools/fuzz.sh builds and
 * runs it. */
#include "base/alloc.h"
#include "traces/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode_parts(struct kvc_encoder *e, const char *text, size_t n)
{
    struct kvc_token_ids whole = {0}, part = {0};
    size_t stable = 0;
    enum kvc_status st = kvc_encode(e, text, n, &whole, &stable, NULL);
    if (st == KVC_OK && stable > whole.n)
        abort();
    if (st == KVC_OK && kvc_encode(e, text, n / 2, &part, &stable, NULL) == KVC_OK) {
        if (stable > part.n || stable > whole.n ||
            (stable && memcmp(part.v, whole.v, stable * sizeof(*part.v)) != 0))
            abort();
        part.n = 0;
        if (kvc_encode(e, text, n, &part, NULL, NULL) != KVC_OK || part.n != whole.n ||
            (part.n && memcmp(part.v, whole.v, part.n * sizeof(*part.v)) != 0))
            abort();
    }
    kvc_free(whole.v);
    kvc_free(part.v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? memchr(data, 0, size) : NULL;
    struct kvc_tokenizer *tok = NULL;
    struct kvc_encoder *e = NULL;
    size_t n = text ? (size_t)(text - (const char *)data) : size;
    if (kvc_tokenizer_parse(&tok, (const char *)data, n, "fuzz", NULL) != KVC_OK)
        return 0;
    if (text && kvc_encoder_create(&e, tok, NULL) == KVC_OK)
        encode_parts(e, text + 1, size - n - 1);
    kvc_encoder_destroy(e);
    kvc_tokenizer_close(tok);
    return 0;
}
