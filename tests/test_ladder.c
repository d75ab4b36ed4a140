/* SPDX-License-Identifier: Apache-2.0
 * The ladder of bounds: gaps add up whichever rungs are there, and what was not looked at is said
 * to be unknown, in text and JSON. */
#include "base/alloc.h"
#include "base/rng.h"
#include "reports/ladder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void gaps_add_up_whatever_is_left_out(void **state)
{
    (void)state;
    uint64_t rng = kvc_rng_stream(1, "ladder");
    for (unsigned mask = 0; mask < 1u << KVC_GAPS; mask++)
        for (int tokens = 0; tokens < 2; tokens++) {
            enum kvc_ladder_rate rate = tokens ? KVC_LADDER_TOKENS : KVC_LADDER_RAW_BLOCKS;
            struct kvc_hits content = {.tokens = 640, .blocks = 1024, .hit_tokens = 512,
                                       .raw_hit_blocks = 1000}, rung[KVC_GAPS];
            struct kvc_ladder l = {.policy = "lru", .content = &content};
            for (unsigned g = 0; g < KVC_GAPS; g++) {
                rung[g] = content;
                rung[g].hit_tokens = kvc_rng_below(&rng, 512);
                rung[g].raw_hit_blocks = kvc_rng_below(&rng, 1000);
                l.below[g] = mask >> g & 1 ? &rung[g] : NULL;
            }
            double left = tokens ? 0.8 : 1000.0 / 1024;
            for (unsigned g = 0; g < KVC_GAPS; g++) {
                double gap = kvc_ladder_gap(&l, g, rate);
                assert_true(isnan(gap) == !(mask >> g & 1));
                left -= isnan(gap) ? 0 : gap;
            }
            assert_true(fabs(left - kvc_ladder_reached(&l, rate)) < 1e-12);
        }
}

static void text_and_json_show_the_same(void **state)
{
    (void)state;
    struct kvc_hits content = {.tokens = 1000, .blocks = 100, .hit_tokens = 800,
                               .raw_hit_blocks = 90};
    struct kvc_hits opt = content, lru = content, none = {0};
    opt.hit_tokens = 700, opt.raw_hit_blocks = 80;
    lru.hit_tokens = 450, lru.raw_hit_blocks = 85; /* cut caches may have more */
    struct kvc_ladder l = {.policy = "lru", .capacity_blocks = 12000, .content = &content,
                           .below = {NULL, &opt, NULL, &lru}};
    struct kvc_text t = {0};
    kvc_ladder_text(&t, &l, 1, true);
    assert_false(t.failed);
    assert_non_null(strstr(t.buf, "content   capacity    routing    reached\n"));
    assert_non_null(strstr(t.buf,
                           "12,000  lru           80.000%     10.000     25.000    45.000%"));
    kvc_text_clear(&t);
    struct kvc_json j;
    kvc_json_init(&j, false);
    kvc_json_open_object(&j, NULL);
    kvc_ladder_json(&j, &l, true);
    kvc_json_close(&j);
    assert_string_equal(j.buf,
                        "{\"gaps\":{\"token_hit_rate\":{\"content\":0.8,\"sharing\":null,"
                        "\"capacity\":0.1,\"policy\":null,\"routing\":0.25,\"reached\":0.45},"
                        "\"raw_block_hit_rate\":{\"content\":0.9,\"sharing\":null,\"capacity\":0.1,"
                        "\"policy\":null,\"routing\":-0.05,\"reached\":0.85}}}");
    kvc_json_clear(&j);
    l.content = &none; /* a trace without a request */
    l.below[KVC_GAP_CAPACITY] = l.below[KVC_GAP_ROUTING] = &none;
    assert_true(isnan(kvc_ladder_reached(&l, KVC_LADDER_TOKENS)));
    kvc_ladder_text(&t, &l, 1, false);
    assert_non_null(strstr(t.buf, " -\n"));
    kvc_text_clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps_add_up_whatever_is_left_out),
        cmocka_unit_test(text_and_json_show_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
