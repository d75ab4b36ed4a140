/* SPDX-License-Identifier: Apache-2.0
 * The fast and the careful reader of Mooncake rows agree. */
#include "base/alloc.h"
#include "base/rng.h"
#include "traces/formats/mooncake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- the two readers ---- */

struct text {
    char s[8192 + KVC_LINE_PAD];
    size_t n;
};

static void add(struct text *t, const char *s)
{
    size_t n = strlen(s);
    assert_true(t->n + n < 8192);
    memcpy(t->s + t->n, s, n + 1);
    t->n += n;
}

static void pick(struct text *t, uint64_t *rng, const char *const *list, size_t n)
{
    add(t, list[kvc_rng_below(rng, n)]);
}
#define PICK(t, rng, ...)                                                                          \
    pick(t, rng, (const char *const[]){ __VA_ARGS__ },                                             \
         sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void space(struct text *t, uint64_t *rng)
{
    PICK(t, rng, "", "", "", " ", " ", "\t", "  ", "\r");
}

static void integer(struct text *t, uint64_t *rng)
{
    char s[32];
    snprintf(s, sizeof(s), "%llu",
             (unsigned long long)(kvc_rng_next(rng) >> kvc_rng_below(rng, 64)));
    add(t, s);
}

static void number(struct text *t, uint64_t *rng)
{
    char s[64];
    switch (kvc_rng_below(rng, 20)) {
    case 0:
        snprintf(s, sizeof(s), "%.*f", (int)kvc_rng_below(rng, 9),
                 kvc_rng_unit(rng) * (double)(1ull << kvc_rng_below(rng, 42)));
        add(t, s);
        break;
    case 1:
        snprintf(s, sizeof(s), "%.*e", (int)kvc_rng_below(rng, 17),
                 kvc_rng_unit(rng) * (double)(1ull << kvc_rng_below(rng, 60)));
        add(t, s);
        break;
    case 2:
        PICK(t, rng, "61", "61.0", "6.1e1", "0.61E+2", "610e-1", "0", "-0", "-1", "1e999", "01",
             "1.", ".5", "18446744073709551615", "18446744073709551616", "9223372036853.5",
             "9223372036854", "9223372036855", "1e-400", "0.0000005", "1700000000000.123");
        break;
    case 3:
        integer(t, rng);
        break;
    default:
        snprintf(s, sizeof(s), "%llu", (unsigned long long)kvc_rng_below(rng, 4000000));
        add(t, s);
    }
}

static void string(struct text *t, uint64_t *rng)
{
    PICK(t, rng, "\"a\"", "\"s12\"", "\"\"", "\"b c\"", "\"\\u0041\"", "\"q\\\"\"", "\"\xc3\xa9\"",
         "\"tab\there\"", "\"7\"");
}

static void any(struct text *t, uint64_t *rng, unsigned depth)
{
    space(t, rng);
    switch (kvc_rng_below(rng, depth > 4 ? 3 : 6)) {
    case 0:
        string(t, rng);
        break;
    case 1:
        PICK(t, rng, "true", "false", "null", "nul", "-3", "1.5e3", "[]", "{}");
        break;
    case 2:
        number(t, rng);
        break;
    case 3:
    case 4:
        add(t, "[");
        for (uint64_t n = kvc_rng_below(rng, 4), i = 0; i < n; i++) {
            add(t, i ? "," : "");
            any(t, rng, depth + 1);
        }
        add(t, "]");
        break;
    default:
        add(t, "{");
        for (uint64_t n = kvc_rng_below(rng, 4), i = 0; i < n; i++) {
            add(t, i ? "," : "");
            PICK(t, rng, "\"k\"", "\"l\"", "\"m\"", "\"n\"");
            add(t, ":");
            any(t, rng, depth + 1);
        }
        add(t, "}");
    }
    space(t, rng);
}

static void ids(struct text *t, uint64_t *rng)
{
    add(t, "[");
    bool text = !kvc_rng_below(rng, 20);
    for (uint64_t n = kvc_rng_below(rng, 20), i = 0; i < n; i++) {
        if (i)
            PICK(t, rng, ",", ", ", ", ", " , ");
        if (text)
            string(t, rng);
        else
            integer(t, rng);
    }
    space(t, rng);
    add(t, "]");
}

static void member(struct text *t, uint64_t *rng, unsigned key)
{
    static const char *const keys[] = { "timestamp", "input_length", "output_length", "hash_ids",
                                        "session_id", "delay", "model", "tenant", "user", "extra",
                                        "Timestamp", "messages" };
    space(t, rng);
    add(t, "\"");
    add(t, keys[key]);
    add(t, "\"");
    space(t, rng);
    add(t, ":");
    space(t, rng);
    if (!kvc_rng_below(rng, 60))
        any(t, rng, 0);
    else if (key == 0 || key == 5)
        number(t, rng);
    else if (key <= 2)
        PICK(t, rng, "1", "20", "512", "12035", "9", "31", "100", "4096", "8", "2", "77",
             "2147483647",
             kvc_rng_below(rng, 8) ? "3" : "2147483648", kvc_rng_below(rng, 8) ? "5" : "0",
             kvc_rng_below(rng, 8) ? "6" : "7.0");
    else if (key == 3)
        ids(t, rng);
    else if (key <= 8)
        PICK(t, rng, "\"a\"", "\"s-1\"", "17", "null", "\"\"", "0", "\"17\"", "123",
             kvc_rng_below(rng, 4) ? "1" : "\"\\u00e9\"", kvc_rng_below(rng, 4) ? "2" : "-4");
    else
        any(t, rng, 0);
    space(t, rng);
}

static void random_row(struct text *t, uint64_t *rng)
{
    unsigned order[12], n = 0;
    t->n = 0;
    for (unsigned k = 0; k < 12; k++)
        if (k < 3 ? kvc_rng_below(rng, 40) != 0 : !kvc_rng_below(rng, k == 3 ? 1 : k < 9 ? 4 : 10))
            order[n++] = k;
    if (n && !kvc_rng_below(rng, 50))
        order[n++] = order[0]; /* a key twice */
    for (unsigned i = 1; i < n; i++) {
        unsigned j = (unsigned)kvc_rng_below(rng, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    space(t, rng);
    add(t, "{");
    for (unsigned i = 0; i < n; i++) {
        add(t, i ? "," : "");
        member(t, rng, order[i]);
    }
    add(t, "}");
    space(t, rng);
}

/* Both readers on one row: what the fast one takes the careful one reads the same. */
static bool agree(struct text *t)
{
    static uint64_t fast_ids[8192];
    static struct kvc_id_buffer slow_ids;
    struct kvc_log_row fast = { 0 }, slow;
    struct kvc_mooncake_doc doc;
    struct kvc_error err = { 0 };
    const char *field = NULL;
    memset(t->s + t->n, 0x39, KVC_LINE_PAD); /* what lies behind must not matter */
    t->s[t->n] = '\n';
    bool taken = t->n && kvc_mooncake_scan(t->s, fast_ids, &fast) >= t->n;
    enum kvc_status status = kvc_mooncake_read(t->s, t->n, "row", 1, NULL, &slow_ids, &slow, &doc,
                                               &err);
    if (taken && status != KVC_OK)
        fail_msg("only the fast reader takes: %.*s (%s)", (int)t->n, t->s, err.text);
    if (taken && !kvc_mooncake_same(&fast, &slow, &field))
        fail_msg("readers differ in %s: %.*s", field, (int)t->n, t->s);
    for (size_t i = 1; taken && fast.ascending && i < fast.n_ids; i++)
        assert_true(fast.ids[i] > fast.ids[i - 1]);
    if (status != KVC_OK)
        assert_true(err.text[0] && err.line == 1);
    kvc_json_free(doc.root);
    kvc_free(slow_ids.v);
    slow_ids = (struct kvc_id_buffer){ 0 };
    return taken;
}

static void readers_agree_on_random_rows(void **state)
{
    (void)state;
    struct text *t = kvc_malloc(1, sizeof(*t));
    uint64_t rng = 11, taken = 0;
    assert_non_null(t);
    for (unsigned i = 0; i < 30000; i++) {
        random_row(t, &rng);
        taken += agree(t);
    }
    assert_true(taken > 3000); /* else the test shows nothing */
    kvc_free(t);
}

static void readers_agree_on_damaged_rows(void **state)
{
    (void)state;
    static const char row[] = "{\"timestamp\": 27000, \"input_length\": 1100, \"output_length\": "
                              "10, \"hash_ids\": [46, 47, 12345678, 123456789012], \"delay\": 0.25,"
                              " \"session_id\": \"a\", \"x\": {\"y\": [1, -2.5e3, \"z\"]}}";
    static const char bytes[] = "{}[]\",:0123456789.eE+- \t\\nulltrue\xff\x01";
    struct text *t = kvc_malloc(1, sizeof(*t));
    uint64_t rng = 5, taken = 0;
    assert_non_null(t);
    for (unsigned i = 0; i < 40000; i++) {
        t->n = sizeof(row) - 1;
        memcpy(t->s, row, t->n);
        for (uint64_t k = kvc_rng_below(&rng, 3); k <= 2; k++) {
            size_t at = (size_t)kvc_rng_below(&rng, t->n);
            switch (kvc_rng_below(&rng, 3)) {
            case 0: /* another byte */
                t->s[at] = bytes[kvc_rng_below(&rng, sizeof(bytes))];
                break;
            case 1: /* one byte less */
                memmove(t->s + at, t->s + at + 1, --t->n - at);
                break;
            default: /* one byte twice */
                memmove(t->s + at + 1, t->s + at, t->n - at);
                t->n++;
            }
        }
        if (!memchr(t->s, '\n', t->n))
            taken += agree(t);
    }
    assert_true(taken > 1000);
    kvc_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_agree_on_random_rows),
        cmocka_unit_test(readers_agree_on_damaged_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
