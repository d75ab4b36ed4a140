/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's tiers below HBM. */
#include "tests/twin_internal.h"

void tiers_create(struct twin *tw) { (void)tw; }
void tiers_destroy(struct twin *tw) { (void)tw; }
void tiers_reach(const struct twin *tw, const struct replica *rep, const struct req *r,
                 uint32_t n_tokens, struct reach *out)
{
    *out = (struct reach){0};
    out->hbm_run = out->run = pool_run(tw, rep, r, n_tokens);
    out->usable = pool_usable(tw, out->hbm_run, n_tokens);
}
void tiers_touch(struct twin *tw, const struct replica *rep, const struct req *r) { (void)tw; (void)rep; (void)r; }
void tiers_load(struct twin *tw, struct replica *rep, struct req *r, const struct reach *reach) { (void)tw; (void)rep; (void)r; (void)reach; }
void tiers_after_step(struct twin *tw, struct replica *rep, struct req *r) { (void)tw; (void)rep; (void)r; }
void tiers_after_evict(struct twin *tw, struct replica *rep) { (void)tw; (void)rep; }
uint64_t tiers_next(const struct twin *tw) { (void)tw; return KVC_TIME_NONE; }
void tiers_advance(struct twin *tw) { (void)tw; }
