/* SPDX-License-Identifier: Apache-2.0
 * What tiers.c and tiers_fetch.c share: transfers, and what their ends do to the tiers. */
#ifndef KVC_SIM_TIERS_INTERNAL_H
#define KVC_SIM_TIERS_INTERNAL_H

#include "sim/replay/engine.h"

/* KVC_NONE, and the engine's nomem, when there is no memory. */
uint32_t kvc_transfer_new(struct kvc_engine *e, struct kvc_transfer value);
uint32_t kvc_piece_new(struct kvc_engine *e, struct kvc_piece value);
void kvc_transfer_free(struct kvc_engine *e, uint32_t transfer); /* its pieces too */

/* The replica no longer reads a piece of what its instance of the tier holds. Blocks up to drop_to
 * went up: where the tier is not inclusive it forgets them. */
void kvc_tiers_let_go(struct kvc_engine *e, uint32_t tier, const struct kvc_replica *r,
                      struct kvc_piece piece, uint32_t drop_to);
/* Blocks on their way up stay in dram, if there is room. */
void kvc_tiers_promote(struct kvc_engine *e, struct kvc_piece piece, const struct kvc_replica *r,
                       uint32_t request);

#endif
