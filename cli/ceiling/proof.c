/* SPDX-License-Identifier: Apache-2.0
 * ceiling --certify: the proof of the optimum at each capacity, checked before it is shown. */
#include "cli/ceiling/ceiling.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/parallel.h"

#include <inttypes.h>
#include <stdio.h>

#define INSTANTS_SHOWN 10 /* in text; JSON has all */

static enum kvc_status prove(void *user, size_t i, struct kvc_error *err)
{
    const struct ceiling *c = user;
    struct ceiling_proof *p = &c->proof[i];
    enum kvc_status st = kvc_ceiling_certify(c->seen, c->point[i].blocks, &p->certificate, err);
    if (st == KVC_OK)
        st = kvc_certificate_check(c->seen, &p->certificate, &p->check, err);
    if (st == KVC_OK && !p->check.optimal)
        st = kvc_fail(err, KVC_ERR_INTERNAL, "the proof of the optimum at %" PRIu64 " blocks "
                      "does not hold: %" PRIu64 " hits, bound %" PRIu64 "; please report it",
                      c->point[i].blocks, p->check.raw_hit_blocks, p->check.bound_blocks);
    return st;
}

enum kvc_status kvc_ceiling_prove(struct ceiling *c, struct kvc_error *err)
{
    if (!kvc_cli_flag(c->cli, "certify") || !c->stats.has_prefix)
        return KVC_OK;
    c->proof = kvc_calloc(c->n_points, sizeof(*c->proof));
    return c->proof ? kvc_parallel(kvc_cli_threads(c->cli), c->n_points, prove, c, err)
                    : kvc_fail_nomem(err);
}

void kvc_ceiling_proof_clear(struct ceiling *c)
{
    for (size_t i = 0; c->proof && i < c->n_points; i++)
        kvc_certificate_clear(&c->proof[i].certificate);
    kvc_free(c->proof);
}

static void json_numbers(struct kvc_json *j, const char *key, const uint32_t *x, uint64_t n)
{
    kvc_json_open_array(j, key);
    for (uint64_t i = 0; i < n; i++)
        kvc_json_u64(j, NULL, x[i]);
    kvc_json_close(j);
}

void kvc_ceiling_proof_json(struct kvc_json *j, const struct ceiling *c)
{
    if (!c->proof)
        return;
    kvc_json_open_array(j, "certificates");
    for (size_t i = 0; i < c->n_points; i++) {
        const struct ceiling_proof *p = &c->proof[i];
        kvc_json_open_object(j, NULL);
        kvc_ceiling_json_capacity(j, c, &c->point[i]);
        kvc_json_u64(j, "raw_hit_blocks", p->check.raw_hit_blocks);
        kvc_json_u64(j, "most_held_blocks", p->check.most_held_blocks);
        kvc_json_u64(j, "free_reuses", p->check.free_reuses);
        kvc_json_u64(j, "bound_blocks", p->check.bound_blocks);
        kvc_json_bool(j, "optimal", p->check.optimal);
        json_numbers(j, "instants", p->certificate.instants, p->certificate.n_instants);
        json_numbers(j, "runs", p->certificate.runs, p->certificate.n_requests);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void print_one(const struct ceiling_proof *p)
{
    const struct kvc_certificate *t = &p->certificate;
    printf("capacity %s: %s\n  reached: a schedule with so many never holds more than %s\n",
           ceiling_blocks_text(t->capacity_blocks).s,
           kvc_fmt_some(p->check.raw_hit_blocks, "hit").s,
           kvc_fmt_some(p->check.most_held_blocks, "block").s);
    printf("  not beaten: %s", kvc_fmt_some(p->check.free_reuses, "reuse").s);
    if (t->n_instants == 0) {
        printf(", all there are\n");
        return;
    }
    printf(" that cross no instant, and %s at which a cache holds %s: %s at most\n  "
           "instants, after request", kvc_fmt_some(t->n_instants, "instant").s,
           kvc_fmt_count(t->capacity_blocks).s, kvc_fmt_count(p->check.bound_blocks).s);
    for (size_t i = 0; i < t->n_instants && i < INSTANTS_SHOWN; i++)
        printf(" %" PRIu32, t->instants[i]);
    printf("%s\n", t->n_instants > INSTANTS_SHOWN ? " .. (all with --json)" : "");
}

void kvc_ceiling_proof_text(const struct ceiling *c)
{
    if (!c->proof)
        return;
    printf("\nthe optimum is one, by proofs that were checked (docs/ceilings.md); raw blocks\n");
    for (size_t i = 0; i < c->n_points; i++)
        print_one(&c->proof[i]);
}
