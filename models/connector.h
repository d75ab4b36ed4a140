/* SPDX-License-Identifier: Apache-2.0
 * The libraries by which an engine pulls KV from another's GPU, and how many pieces a second they
 * send. */
#ifndef KVC_MODELS_CONNECTOR_H
#define KVC_MODELS_CONNECTOR_H

#include "models/models.h"

enum kvc_connector { KVC_CONNECTOR_NONE, KVC_CONNECTOR_NIXL, KVC_CONNECTOR_MOONCAKE };

/* The pieces that one sends over a NIC are no more a second than the link's own operations. */
void kvc_connector_limit(enum kvc_connector connector, struct kvc_link_profile *link);

/* Bytes of a piece: a page of one layer's keys or values on one of tp ranks, as paged KV lies in
 * GPU memory. tensors: those a token's KV is spread over (kvc_kv_room). */
double kvc_connector_piece_bytes(double token_bytes, uint32_t page_tokens, uint32_t tp,
                                 uint32_t tensors);

#endif
