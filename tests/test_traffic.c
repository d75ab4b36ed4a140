/* SPDX-License-Identifier: Apache-2.0
 * The section "Your traffic": JSON against the profile, nulls where nothing is known, sentences
 * that fit the figures, pages that are well formed whatever names hold. */
#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"
#include "reports/traffic.h"
#include "reports/traffic_plot.h"
#include "tests/tiny_trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define S 1000000000ull
#define ROWS 60

/* Sessions that begin with a system prompt, some with a document, and grow; blocks of 16 tokens. */
static struct kvc_trace *agents(bool sessions)
{
    static struct tiny_row rows[ROWS];
    uint64_t rng = kvc_rng_stream(5, "traffic");
    memset(rows, 0, sizeof(rows));
    for (uint32_t i = 0; i < ROWS; i++) {
        struct tiny_row *r = &rows[i];
        uint32_t session = i % 12, turn = i / 12;
        *r = (struct tiny_row){.time_ns = i * 7 * S, .session = session, .output_tokens = 10,
                               .think_ns = KVC_TIME_NONE, .n_ids = 6 + 3 * turn};
        for (uint32_t k = 0; k < r->n_ids; k++)
            r->ids[k] = k < 2 ? 1 : k < 5 ? 2 + session % 4 : 100 + session;
        r->input_tokens = 16 * r->n_ids + (uint32_t)kvc_rng_below(&rng, 16);
    }
    struct kvc_trace *t = tiny_trace(rows, ROWS, 16, true);
    if (!sessions) {
        free(t->session);
        t->session = NULL;
        t->n_sessions = 0;
    }
    return t;
}

static struct kvc_traffic *traffic_of(const struct kvc_trace *t, uint64_t bytes)
{
    struct kvc_traffic *f = kvc_malloc(1, sizeof(*f));
    struct kvc_error err;
    assert_non_null(f);
    assert_int_equal(kvc_traffic_make(f, t, "log <1> & more", bytes, &err), KVC_OK);
    return f;
}

static void drop(struct kvc_traffic *f)
{
    kvc_traffic_clear(f);
    kvc_free(f);
}

static struct kvc_jval *json_of(const struct kvc_traffic *f)
{
    struct kvc_json j;
    struct kvc_jval *root = NULL;
    struct kvc_error err;
    kvc_json_init(&j, true);
    kvc_json_open_object(&j, NULL);
    kvc_traffic_json(&j, f);
    kvc_json_close(&j);
    char *text = kvc_json_take(&j);
    assert_non_null(text);
    if (kvc_json_parse(&root, text, strlen(text), false, "traffic", 1, &err) != KVC_OK)
        fail_msg("%s", err.text);
    kvc_free(text);
    return root;
}

static const struct kvc_jval *at(const struct kvc_jval *v, const char *key)
{
    const struct kvc_jval *m = kvc_jval_member(v, key);
    if (!m)
        fail_msg("no %s", key);
    return m;
}

static uint64_t u64_at(const struct kvc_jval *v, const char *key)
{
    uint64_t n = 0;
    assert_true(kvc_jval_u64(at(v, key), &n));
    return n;
}

static bool null_at(const struct kvc_jval *v, const char *key)
{
    return kvc_jval_kind(at(v, key)) == KVC_JNULL;
}

static void test_json(void **state)
{
    (void)state;
    struct kvc_trace *t = agents(true);
    struct kvc_traffic *f = traffic_of(t, 1000);
    const struct kvc_profile *p = &f->profile;
    struct kvc_jval *root = json_of(f);
    const struct kvc_jval *sharing = at(root, "sharing"), *kinds = at(sharing, "kinds");
    assert_int_equal(u64_at(sharing, "hit_tokens"), p->seen_tokens);
    uint64_t sum = 0;
    static const char *const parts[] = {"system_tokens", "document_tokens", "history_tokens",
                                        "new_tokens", "partial_tokens", "unknown_tokens"};
    for (int i = 0; i < KVC_CONTENTS; i++) {
        assert_int_equal(u64_at(kinds, parts[i]), p->content_tokens[i]);
        sum += u64_at(kinds, parts[i]);
    }
    assert_int_equal(sum, f->stats.input_tokens);
    assert_true(p->content_tokens[KVC_CONTENT_SYSTEM] && p->content_tokens[KVC_CONTENT_HISTORY]);
    const struct kvc_jval *last = NULL;
    size_t n = 0;
    for (const struct kvc_jval *v = kvc_jval_first(at(sharing, "reuse_age")); v;
         v = kvc_jval_next(v)) {
        assert_int_equal(u64_at(v, "hit_tokens"), p->age_tokens[n]);
        assert_int_equal(u64_at(v, "held_peak_bytes"), p->held_peak_blocks[n] * 16 * 1000);
        n++;
        last = v;
    }
    assert_int_equal(n, KVC_PROFILE_AGES);
    assert_int_equal(u64_at(last, "hit_tokens"), p->seen_tokens); /* the log is short */
    assert_int_equal(kvc_jval_count(at(sharing, "hottest")), p->n_hot);
    assert_true(null_at(root, "offered"));
    assert_true(null_at(root, "measured"));
    assert_true(null_at(root, "overlap"));
    assert_true(null_at(root, "breaks"));
    assert_int_equal(kvc_jval_count(at(root, "findings")), f->n_findings);
    kvc_json_free(root);
    drop(f);
    tiny_trace_free(t);
}

/* Nothing that is not known is a number. */
static void test_nulls(void **state)
{
    (void)state;
    struct kvc_trace *t = agents(false);
    struct kvc_traffic *f = traffic_of(t, 0);
    struct kvc_jval *root = json_of(f);
    const struct kvc_jval *kinds = at(at(root, "sharing"), "kinds");
    assert_true(null_at(kinds, "document_tokens") && null_at(kinds, "history_tokens"));
    assert_false(null_at(kinds, "document_or_history_tokens"));
    const struct kvc_jval *age = kvc_jval_first(at(at(root, "sharing"), "reuse_age"));
    assert_true(null_at(age, "held_peak_bytes") && null_at(root, "kv_bytes_per_token"));
    assert_true(null_at(kvc_jval_first(at(at(root, "sharing"), "hottest")), "sessions"));
    kvc_json_free(root);
    drop(f);
    memset(t->prompt_seg, 0xff, ROWS * sizeof(*t->prompt_seg)); /* as of a log without ids */
    t->n_segments = t->block_tokens = 0;
    f = traffic_of(t, 0);
    root = json_of(f);
    assert_true(null_at(root, "sharing"));
    assert_true(isnan(kvc_traffic_bound(f)));
    assert_int_equal(kvc_jval_count(at(root, "offered")), 3);
    for (const struct kvc_jval *v = kvc_jval_first(at(root, "offered")); v; v = kvc_jval_next(v)) {
        double rate = 0;
        assert_true(kvc_jval_number(at(v, "token_hit_rate"), &rate) && rate > 0 && rate < 1);
        assert_non_null(kvc_jval_string(at(v, "assumption")));
    }
    assert_non_null(strstr(f->findings[0], "unknown, not 0"));
    kvc_json_free(root);
    drop(f);
    tiny_trace_free(t);
}

static bool says(const struct kvc_traffic *f, const char *what)
{
    for (uint32_t i = 0; i < f->n_findings; i++)
        if (strstr(f->findings[i], what))
            return true;
    return false;
}

static void test_measured(void **state)
{
    (void)state;
    struct kvc_trace *t = agents(true);
    uint32_t cached[ROWS];
    for (uint32_t i = 0; i < ROWS; i++)
        cached[i] = i % 2 ? KVC_ID_NONE : t->input_tokens[i] / 4;
    t->cached_tokens = cached;
    struct kvc_traffic *f = traffic_of(t, 0);
    uint64_t of = 0, sum = 0;
    for (uint32_t i = 0; i < ROWS; i += 2) {
        of += t->input_tokens[i];
        sum += cached[i];
    }
    assert_true(kvc_traffic_measured(f) == (double)sum / (double)of);
    assert_true(kvc_traffic_measured(f) < kvc_traffic_bound(f));
    assert_true(says(f, "below the bound are there to gain"));
    struct kvc_jval *root = json_of(f);
    assert_int_equal(u64_at(at(root, "measured"), "rows"), ROWS / 2);
    kvc_json_free(root);
    drop(f);
    for (uint32_t i = 0; i < ROWS; i++)
        cached[i] = t->input_tokens[i];
    f = traffic_of(t, 0);
    assert_true(says(f, "more than the log can explain"));
    drop(f);
    t->cached_tokens = NULL;
    tiny_trace_free(t);
}

/* The shortest TTL that loses no more: checked against all of them. */
static void test_ttl(void **state)
{
    (void)state;
    struct kvc_trace *t = agents(true);
    struct kvc_traffic *f = traffic_of(t, 0);
    for (double loss = 0; loss < 1; loss += 0.01) {
        size_t i = kvc_traffic_ttl_for(f, loss);
        assert_true(kvc_traffic_ttl_loss(f, i) <= loss);
        assert_true(i == 0 || kvc_traffic_ttl_loss(f, i - 1) > loss);
    }
    assert_string_equal(kvc_traffic_age_name(300 * S).s, "5 min");
    assert_string_equal(kvc_traffic_age_name(90 * S).s, "90 s");
    assert_string_equal(kvc_traffic_age_name(604800 * S).s, "7 d");
    assert_int_equal(kvc_traffic_age(f, 300), 8);
    drop(f);
    tiny_trace_free(t);
}

/* ---- pages ---- */

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char text[1 << 20];
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    return text;
}

static int count_of(const char *text, const char *what)
{
    int n = 0;
    for (const char *s = text; (s = strstr(s, what)); s += strlen(what))
        n++;
    return n;
}

static void check_page(const struct kvc_traffic *f)
{
    static const char *const pairs[] = {"section", "table", "tr", "td", "div", "figure", "ul",
                                        "li", "p", "details", "svg"};
    char path[] = "/tmp/kvcast-traffic-XXXXXX";
    struct kvc_error err;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(kvc_traffic_html(f, path, &err), KVC_OK);
    const char *page = slurp(path);
    unlink(path);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char tag[32], more[32], end[32];
        snprintf(tag, sizeof(tag), "<%s>", pairs[i]);
        snprintf(more, sizeof(more), "<%s ", pairs[i]);
        snprintf(end, sizeof(end), "</%s>", pairs[i]);
        if (count_of(page, tag) + count_of(page, more) != count_of(page, end))
            fail_msg("%s are not balanced", pairs[i]);
    }
    assert_non_null(strstr(page, "log &lt;1&gt; &amp; more"));
    assert_null(strstr(page, "<1>"));
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "http"));
    assert_null(strstr(page, ">nan"));
}

static void test_pages(void **state)
{
    (void)state;
    static char *names[] = {"<1>\"tenant\"", "plain", ""};
    for (int kind = 0; kind < 4; kind++) {
        struct kvc_trace *t = agents(kind != 1);
        uint32_t tenant[ROWS];
        for (uint32_t i = 0; i < ROWS; i++)
            tenant[i] = i % 3;
        t->n_tenants = 0;
        if (kind == 2) {
            t->tenant = tenant;
            t->tenant_names = names;
            t->n_tenants = 3;
        }
        if (kind == 3) {
            memset(t->prompt_seg, 0xff, ROWS * sizeof(*t->prompt_seg));
            t->n_segments = t->block_tokens = 0;
        }
        struct kvc_traffic *f = traffic_of(t, kind == 0 ? 1000 : 0);
        assert_int_equal(says(f, "Keeping tenants apart"), kind == 2);
        check_page(f);
        struct kvc_text text = {0};
        kvc_traffic_text(&text, f);
        assert_false(text.failed);
        assert_null(strstr(text.buf, " nan"));
        for (const char *s = text.buf; *s; s += strcspn(s, "\n") + 1)
            if (strcspn(s, "\n") > 100)
                fail_msg("too long for a terminal: %.200s", s);
        kvc_text_clear(&text);
        drop(f);
        t->tenant = NULL;
        t->tenant_names = NULL;
        tiny_trace_free(t);
    }
}

/* An empty log, and one of a single moment. */
static void test_little(void **state)
{
    (void)state;
    struct tiny_row row = {.input_tokens = 5, .session = KVC_ID_NONE, .think_ns = KVC_TIME_NONE,
                           .n_ids = 1, .ids = {1}};
    for (uint32_t n = 0; n < 2; n++) {
        struct kvc_trace *t = tiny_trace(&row, n, 4, true);
        struct kvc_traffic *f = traffic_of(t, 0);
        struct kvc_jval *root = json_of(f);
        assert_true(null_at(root, "arrivals"));
        kvc_json_free(root);
        check_page(f);
        drop(f);
        tiny_trace_free(t);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    struct kvc_trace *t = agents(true);
    struct kvc_traffic *f = kvc_malloc(1, sizeof(*f));
    enum kvc_status status = KVC_ERR_NOMEM;
    for (uint64_t i = 1; status != KVC_OK; i++) {
        kvc_alloc_fail_after(i);
        status = kvc_traffic_make(f, t, "log", 0, NULL);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
    }
    struct kvc_traffic_plots plots;
    for (uint64_t i = 1; i < 40; i++) { /* scripts and pictures */
        kvc_alloc_fail_after(i);
        status = kvc_traffic_plots_draw(&plots, f, NULL);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
        kvc_traffic_plots_clear(&plots);
    }
    drop(f);
    tiny_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),     cmocka_unit_test(test_nulls),
        cmocka_unit_test(test_measured), cmocka_unit_test(test_ttl),
        cmocka_unit_test(test_pages),    cmocka_unit_test(test_little),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
