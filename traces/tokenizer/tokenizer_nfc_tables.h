/* SPDX-License-Identifier: Apache-2.0
 * The Unicode data that NFC needs, each table ascending. */
#ifndef KVC_TRACES_TOKENIZER_NFC_TABLES_H
#define KVC_TRACES_TOKENIZER_NFC_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kvc_nfc_single { /* never composed */
    uint32_t from, to;
};

struct kvc_nfc_pair {
    uint32_t from, a, b;
    bool composes;
};

struct kvc_nfc_class { /* not 0 */
    uint32_t low, high;
    uint8_t class;
};

extern const struct kvc_nfc_single kvc_nfc_singles[];
extern const size_t kvc_nfc_n_singles;
extern const struct kvc_nfc_pair kvc_nfc_pairs[];
extern const size_t kvc_nfc_n_pairs;
extern const struct kvc_nfc_class kvc_nfc_classes[];
extern const size_t kvc_nfc_n_classes;

#endif
