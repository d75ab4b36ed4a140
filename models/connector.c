/* SPDX-License-Identifier: Apache-2.0 */
#include "models/connector.h"

static const struct kvc_figure pieces_a_second[] = {
    [KVC_CONNECTOR_NIXL] = {700000, "measured",
                            "LMCache pull request 4161: NIXL over UCX reads 256 pieces of 1 KiB at "
                            "a time at 0.715 GB/s (one rail of 100 Gb/s)"},
    [KVC_CONNECTOR_MOONCAKE] = {550000, "fitted",
                                "vLLM pull request 53825: MooncakeConnector sends pieces of some "
                                "16 KB at 9 GB/s over 400 Gb/s, H200, 128k tokens; slices of "
                                "64 KiB at 37 GB/s (Mooncake issue 1668) are 565,000 a second"},
};

void kvc_connector_limit(enum kvc_connector connector, struct kvc_link_profile *link)
{
    struct kvc_figure own = pieces_a_second[connector];

    if (own.value > 0 && (!(link->ops_per_s.value > 0) || own.value < link->ops_per_s.value))
        link->ops_per_s = own;
}

double kvc_connector_piece_bytes(double token_bytes, uint32_t page_tokens, uint32_t tp,
                                 uint32_t tensors)
{
    return token_bytes * page_tokens / ((double)tp * (tensors ? tensors : 1));
}
