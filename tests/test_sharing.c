/* SPDX-License-Identifier: Apache-2.0
 * What salted keys cost: counted while a log is read, it must be what two imports of the log, with
 * keys shared and apart, come to. */
#include "base/rng.h"
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK 16

/* Rows of random paths, with or without an id for the last partial block. */
static const char *random_log(uint64_t seed, const char *field, unsigned instances)
{
    static char text[64 << 10];
    uint64_t rng = seed;
    size_t n = 0;
    unsigned rows = 5 + (unsigned)kvc_rng_below(&rng, 60);
    for (unsigned r = 0; r < rows; r++) {
        unsigned depth = 1 + (unsigned)kvc_rng_below(&rng, 6);
        unsigned partial = (unsigned)kvc_rng_below(&rng, BLOCK);
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "{\"timestamp\":%u,\"input_length\":%u,\"output_length\":1,"
                              "\"%s\":\"i%u\",\"hash_ids\":[", r, depth * BLOCK + partial, field,
                              (unsigned)kvc_rng_below(&rng, instances));
        bool tail = partial && kvc_rng_below(&rng, 2);
        for (unsigned i = 0; i < depth + tail; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", i ? "," : "",
                                  i * 10 + (unsigned)kvc_rng_below(&rng, 2));
        n += (size_t)snprintf(text + n, sizeof(text) - n, "]}\n");
    }
    return trace_text("random", text);
}

static void counts_are_those_of_two_imports(void **state)
{
    (void)state;
    static const char *const fields[] = { "instance", "instance_id", "worker_id" };
    for (uint64_t seed = 1; seed <= 300; seed++) {
        const char *field = fields[seed % 3], *path = random_log(seed, field, 2 + seed % 4);
        struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = BLOCK };
        struct kvc_import_report r, s;
        struct kvc_trace_stats shared, apart;
        struct kvc_hits a, b;
        struct kvc_trace *t = log_import(&path, 1, &o, &r);
        o.key_field = field;
        struct kvc_trace *u = log_import(&path, 1, &o, &s);
        kvc_trace_stats(t, &shared);
        kvc_trace_stats(u, &apart);
        assert_int_equal(kvc_ceiling_content(t, &a, NULL), KVC_OK);
        assert_int_equal(kvc_ceiling_content(u, &b, NULL), KVC_OK);
        assert_int_equal(r.key_stored_blocks, apart.blocks);
        assert_int_equal(r.key_copied_blocks, apart.blocks - shared.blocks);
        assert_int_equal(r.key_hit_blocks_shared, a.hit_blocks);
        assert_int_equal(r.key_hit_blocks_apart, b.hit_blocks);
        assert_int_equal(s.key_copied_blocks, r.key_copied_blocks);
        assert_int_equal(s.key_hit_blocks_apart, b.hit_blocks);
        kvc_trace_destroy(t);
        kvc_trace_destroy(u);
    }
}

static void one_instance_or_none_is_no_matter(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(random_log(7, "instance", 1), BLOCK, &r);
    assert_int_equal(r.key_instances, 0);
    kvc_trace_destroy(t);
    t = trace_import(random_log(7, "elsewhere", 3), BLOCK, &r);
    assert_int_equal(r.key_instances, 0);
    kvc_trace_destroy(t);
    /* A field of that name which is no name is none, and its row is fine. */
    t = trace_import(trace_text("odd", "{\"timestamp\":0,\"input_length\":16,\"output_length\":1,"
                                       "\"hash_ids\":[1],\"instance\":{\"a\":1}}\n"
                                       "{\"timestamp\":0,\"input_length\":16,\"output_length\":1,"
                                       "\"hash_ids\":[1],\"instance\":1.5}\n"), BLOCK, &r);
    assert_int_equal(r.bad, 0);
    assert_int_equal(r.key_instances, 0);
    kvc_trace_destroy(t);
}

/* Engines that name equal tokens otherwise, and engines that don't. */
static void events_tell_by_tokens(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("salted",
                   "{\"topic\":\"a\",\"seq\":1,\"payload\":[1,[[\"BlockStored\",[1,2],null,"
                   "[1,2,3,4,5,6,7,8],4]],0]}\n"
                   "{\"topic\":\"b\",\"seq\":1,\"payload\":[2,[[\"BlockStored\",[7,8],null,"
                   "[1,2,3,4,5,6,7,8],4],[\"BlockStored\",[9],8,[1,2,3,4],4]],0]}\n"
                   /* the same tokens behind others, of an adapter, and with a salt: not the same */
                   "{\"topic\":\"c\",\"seq\":1,\"payload\":[3,[[\"BlockStored\",[21],null,[5,6,7,"
                   "8],4],[\"BlockStored\",[22],null,[1,2,3,4],4,3],[\"BlockStored\",[23],null,[1,"
                   "2,3,4],4,null,\"GPU\",null,[[\"salt\"]]]],0]}\n"),
        0, &r);
    assert_int_equal(r.key_instances, 3);
    assert_int_equal(r.key_copied_blocks, 2);
    assert_int_equal(r.key_stored_blocks, 7); /* not the one with a salt */
    assert_int_equal(r.key_hit_blocks_shared, UINT64_MAX);
    assert_true(log_note(&r, "keys are salted per process: 2 of 7 stored blocks"));
    kvc_trace_destroy(t);
    t = trace_import(
        trace_text("alike",
                   "{\"topic\":\"a\",\"seq\":1,\"payload\":[1,[[\"BlockStored\",[1,2],null,"
                   "[1,2,3,4,5,6,7,8],4]],0]}\n"
                   "{\"topic\":\"b\",\"seq\":1,\"payload\":[2,[[\"BlockStored\",[1,2],null,"
                   "[1,2,3,4,5,6,7,8],4]],0]}\n"),
        0, &r);
    assert_int_equal(r.key_copied_blocks, 0);
    assert_int_equal(r.key_stored_blocks, 4);
    assert_true(log_note(&r, "equal tokens have equal hashes"));
    kvc_trace_destroy(t);
}

/* Dynamo's events bring the hash of each block's tokens beside the engine's own. */
static void dynamo_tells_tokens_by_hash(void **state)
{
    (void)state;
    struct kvc_import_report r;
#define STORED(worker, one, two)                                                                   \
    "{\"worker_id\":" #worker ",\"timestamp\":1,\"event\":{\"event_id\":1,\"data\":{\"stored\":{"  \
    "\"parent_hash\":null,\"blocks\":[{\"block_hash\":" #one ",\"tokens_hash\":101},"              \
    "{\"block_hash\":" #two ",\"tokens_hash\":102}]}}}}\n"
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = 16,
                                    .format = "kv-events" };
    const char *path = trace_text("dynamo", STORED(1, 11, 12) STORED(2, 21, 22) STORED(3, 11, 12));
    struct kvc_trace *t = log_import(&path, 1, &o, &r);
    assert_int_equal(r.key_stored_blocks, 6);
    assert_int_equal(r.key_copied_blocks, 2); /* the third names them as the first does */
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_two_imports),
        cmocka_unit_test(one_instance_or_none_is_no_matter),
        cmocka_unit_test(events_tell_by_tokens),
        cmocka_unit_test(dynamo_tells_tokens_by_hash),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
