/* SPDX-License-Identifier: Apache-2.0
 * Ceilings of two real logs against the counts of an independent reference, to the last digit. */
#include "base/json.h"
#include "base/rng.h"
#include "sim/ceiling/ceiling.h"
#include "sim/ceiling/ceiling_cluster.h"
#include "tests/twins/ceiling_twin.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED "../shared/"

static char *slurp(FILE *f, size_t *n)
{
    size_t room = 1 << 16;
    char *text = malloc(room);
    *n = 0;
    for (size_t got; text && (got = fread(text + *n, 1, room - *n, f)) > 0;)
        if ((*n += got) == room)
            text = realloc(text, room *= 2);
    return text;
}

static uint64_t u64_of(const struct kvc_jval *object, const char *key)
{
    uint64_t x = UINT64_MAX;
    assert_true(kvc_jval_u64(kvc_jval_member(object, key), &x));
    return x;
}

static double double_of(const struct kvc_jval *object, const char *key)
{
    double x = -1;
    assert_true(kvc_jval_number(kvc_jval_member(object, key), &x));
    return x;
}

/* Token ids become chained blocks: an id stands for its block and all before it. */
static void add_row(struct twin_rows *rows, const struct kvc_jval *v)
{
    const struct kvc_jval *hashes = kvc_jval_member(v, "hash_ids");
    const struct kvc_jval *list = hashes ? hashes : kvc_jval_member(v, "input_tok_ids");
    size_t count = kvc_jval_count(list);
    uint64_t *ids = calloc(count + 1, sizeof(*ids)), chain = 1;
    uint32_t n = 0, in_block = 0;
    for (const struct kvc_jval *x = kvc_jval_first(list); x; x = kvc_jval_next(x)) {
        uint64_t id;
        assert_true(kvc_jval_u64(x, &id));
        if (hashes) {
            ids[n++] = id;
            continue;
        }
        chain = kvc_mix64(chain ^ kvc_mix64(id + 1)) + in_block;
        if (++in_block == rows->block_tokens) {
            ids[n++] = chain;
            in_block = 0;
        }
    }
    if (in_block)
        ids[n++] = chain + 1;
    twin_add(rows, ids, n, (uint32_t)u64_of(v, hashes ? "input_length" : "input_toks"));
    free(ids);
}

/* Rows of a zstd log of JSON lines, in file order (both logs are sorted); false when absent. */
static bool read_log(struct twin_rows *rows, const char *path, uint32_t block_tokens)
{
    char command[256], *line = NULL;
    size_t room = 0;
    ssize_t len;
    if (access(path, R_OK))
        return false;
    snprintf(command, sizeof(command), "zstd -dc %s", path);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    memset(rows, 0, sizeof(*rows));
    rows->block_tokens = block_tokens;
    while ((len = getline(&line, &room, f)) > 0) {
        struct kvc_jval *v;
        assert_int_equal(kvc_json_parse(&v, line, (size_t)len, false, path, rows->n + 1, NULL),
                         KVC_OK);
        add_row(rows, v);
        kvc_json_free(v);
    }
    free(line);
    pclose(f);
    return rows->n > 0;
}

static struct kvc_jval *read_json(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    size_t n;
    char *text = slurp(f, &n);
    struct kvc_jval *v = NULL;
    fclose(f);
    assert_int_equal(kvc_json_parse(&v, text, n, false, path, 1, NULL), KVC_OK);
    free(text);
    return v;
}

static void same_rate(const struct kvc_jval *want, const char *key, double num, double den)
{
    char text[32], expected[32];
    snprintf(text, sizeof(text), "%.6f", num / den);
    snprintf(expected, sizeof(expected), "%.6f", double_of(want, key));
    if (strcmp(text, expected))
        fail_msg("%s: %s, expected %s", key, text, expected);
}

/* All the figures of one entry of expected/, from the counts and from the leading runs. */
static void check_figures(const struct kvc_jval *want, const struct kvc_trace *t,
                           const struct kvc_hits *h, const uint32_t *runs)
{
    const struct kvc_jval *counts = kvc_jval_member(want, "counts");
    assert_int_equal(h->requests, u64_of(counts, "requests"));
    assert_int_equal(h->blocks, u64_of(counts, "blocks"));
    assert_int_equal(h->tokens, u64_of(counts, "tokens"));
    assert_int_equal(h->raw_hit_blocks, u64_of(counts, "prefix_hit_blocks"));
    assert_int_equal(h->raw_hit_tokens, u64_of(counts, "prefix_hit_tokens"));
    assert_int_equal(h->raw_hit_requests, u64_of(counts, "requests_any"));
    same_rate(want, "block_prefix", (double)h->raw_hit_blocks, (double)h->blocks);
    same_rate(want, "token_prefix", (double)h->raw_hit_tokens, (double)h->tokens);
    same_rate(want, "req_any", (double)h->raw_hit_requests, (double)h->requests);
    double mean = 0, mean_2nd = 0;
    uint64_t hits_2nd = 0, blocks_2nd = 0, hit_tokens_2nd = 0, tokens_2nd = 0, any_2nd = 0;
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint64_t tokens = (uint64_t)runs[r] * t->block_tokens;
        if (tokens > t->input_tokens[r])
            tokens = t->input_tokens[r];
        mean += (double)tokens / (double)t->input_tokens[r];
        if (r >= t->n_requests / 2) {
            hits_2nd += runs[r];
            blocks_2nd += kvc_trace_blocks(t, r);
            hit_tokens_2nd += tokens;
            tokens_2nd += t->input_tokens[r];
            any_2nd += runs[r] > 0;
            mean_2nd += (double)tokens / (double)t->input_tokens[r];
        }
    }
    double half = (double)(t->n_requests - t->n_requests / 2);
    same_rate(want, "req_mean", mean, (double)t->n_requests);
    same_rate(want, "req_mean_2nd_half", mean_2nd, half);
    same_rate(want, "req_any_2nd_half", (double)any_2nd, half);
    same_rate(want, "block_prefix_2nd_half", (double)hits_2nd, (double)blocks_2nd);
    same_rate(want, "token_prefix_2nd_half", (double)hit_tokens_2nd, (double)tokens_2nd);
}

static unsigned check_finite(const struct kvc_jval *doc, const struct kvc_trace *t,
                             const struct kvc_ceiling_view *v, uint32_t *runs)
{
    unsigned checked = 0;
    const struct kvc_jval *list = kvc_jval_member(doc, "finite");
    for (const struct kvc_jval *p = kvc_jval_first(list); p; p = kvc_jval_next(p)) {
        const char *policy = kvc_jval_string(kvc_jval_member(p, "policy"));
        const char *order = kvc_jval_string(kvc_jval_member(p, "order"));
        uint64_t capacity = u64_of(p, "capacity_blocks");
        struct kvc_hits h;
        bool leaf_first = !strcmp(order, "rev"), optimum = !strncmp(policy, "opt", 3);
        if (!strcmp(policy, "lru") && leaf_first) {
            kvc_ceiling_lru_of(v, &capacity, 1, &h, runs, NULL);
            check_figures(p, t, &h, runs);
        }
        if (!strcmp(policy, "optb") && !leaf_first)
            kvc_ceiling_opt_of(v, &capacity, 1, &h, runs, NULL);
        else if (!strcmp(policy, "opt") && !leaf_first)
            kvc_ceiling_runs_of(v, "optforced", &capacity, 1, &h, runs, NULL);
        else if (!optimum && leaf_first)
            kvc_ceiling_runs_of(v, policy, &capacity, 1, &h, runs, NULL);
        else
            continue;
        check_figures(p, t, &h, runs);
        checked++;
    }
    return checked;
}

static void check_curves(const struct kvc_jval *doc, const struct kvc_trace *t)
{
    struct kvc_curve curve;
    struct kvc_hits h;
    unsigned checked = 0;
    assert_int_equal(kvc_ceiling_lru_curve(t, &curve, NULL), KVC_OK);
    const struct kvc_jval *list = kvc_jval_member(doc, "lru_curves");
    for (const struct kvc_jval *p = kvc_jval_first(list); p; p = kvc_jval_next(p)) {
        if (strcmp(kvc_jval_string(kvc_jval_member(p, "order")), "rev"))
            continue;
        struct kvc_trace_stats s;
        kvc_trace_stats(t, &s);
        assert_int_equal(s.blocks, u64_of(p, "unique_blocks"));
        assert_int_equal(curve.capacity_blocks[curve.n - 1], u64_of(p, "max_prefix_rank"));
        const struct kvc_jval *rate = kvc_jval_first(kvc_jval_member(p, "block_prefix"));
        const struct kvc_jval *token = kvc_jval_first(kvc_jval_member(p, "token_prefix"));
        const struct kvc_jval *at = kvc_jval_first(kvc_jval_member(p, "capacity"));
        for (; at; at = kvc_jval_next(at), checked++) {
            uint64_t c;
            double want_block = -1, want_token = -1;
            char got[64], want[64];
            assert_true(kvc_jval_u64(at, &c) && kvc_jval_number(rate, &want_block) &&
                        kvc_jval_number(token, &want_token));
            assert_int_equal(kvc_ceiling_policy(t, "lru", &c, 1, &h, NULL), KVC_OK);
            snprintf(got, sizeof(got), "%.6f %.6f",
                     (double)kvc_curve_at(&curve, c) / (double)h.blocks,
                     (double)h.raw_hit_tokens / (double)h.tokens);
            snprintf(want, sizeof(want), "%.6f %.6f", want_block, want_token);
            assert_string_equal(got, want);
            rate = kvc_jval_next(rate);
            token = kvc_jval_next(token);
        }
    }
    kvc_curve_clear(&curve);
    assert_true(checked >= 14);
}

/* The engines' figures: full blocks, and the last token is always computed. */
static void check_engine(const struct kvc_jval *infinite, const struct kvc_trace *t,
                         const uint32_t *runs)
{
    uint64_t blocks = 0, all = 0, tokens = 0;
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint64_t most = (t->input_tokens[r] - 1) / t->block_tokens;
        blocks += runs[r] < most ? runs[r] : most;
        all += kvc_trace_blocks(t, r);
        tokens += t->input_tokens[r];
    }
    assert_int_equal(blocks, u64_of(infinite, "engine_hit_blocks"));
    same_rate(infinite, "engine_block_prefix", (double)blocks, (double)all);
    same_rate(infinite, "engine_token_prefix", (double)(blocks * t->block_tokens), (double)tokens);
}

/* Endless caches behind round robin. Finite ones, and the pools beside them, were touched from the
 * root on there and are from the leaf here. */
static void check_replicas(const struct kvc_jval *doc, const struct kvc_trace *t,
                           const struct kvc_ceiling_view *v, uint32_t *runs, unsigned wanted)
{
    unsigned checked = 0;
    uint32_t *replica = calloc(v->n_requests, sizeof(*replica));
    assert_non_null(replica);
    const struct kvc_jval *p = kvc_jval_first(kvc_jval_member(doc, "replicas"));
    for (; p; p = kvc_jval_next(p)) {
        uint64_t capacity, n = u64_of(p, "replicas");
        if (kvc_jval_u64(kvc_jval_member(p, "capacity_per_replica"), &capacity) ||
            strcmp(kvc_jval_string(kvc_jval_member(p, "router")), "rr"))
            continue;
        for (uint64_t r = 0; r < v->n_requests; r++)
            replica[r] = (uint32_t)(r % n);
        assert_int_equal(kvc_ceiling_assigned_of(v, replica, (uint32_t)n, false, 0, runs, NULL),
                         KVC_OK);
        struct kvc_hits h;
        kvc_hits_begin(v, &h);
        for (uint64_t r = 0; r < v->n_requests; r++)
            kvc_hits_count(v, r, runs[r], &h);
        check_figures(p, t, &h, runs);
        checked++;
    }
    assert_int_equal(checked, wanted);
    free(replica);
}

static void check_log(const char *log, const char *expected, uint32_t block_tokens,
                      uint64_t touches, uint64_t segments, unsigned finite, unsigned replicas)
{
    struct twin_rows rows;
    struct kvc_jval *doc = read_json(expected);
    if (!doc || !read_log(&rows, log, block_tokens)) {
        kvc_json_free(doc);
        print_message("SKIPPED: %s is not here\n", log);
        skip();
    }
    struct kvc_trace *t = twin_trace(&rows);
    uint32_t *runs = calloc(rows.n, sizeof(*runs));
    struct kvc_ceiling_view v, full;
    struct kvc_hits h, f;
    assert_int_equal(kvc_ceiling_view(&v, t, NULL), KVC_OK);
    assert_int_equal(kvc_ceiling_content_of(&v, &h, runs, NULL), KVC_OK);
    const struct kvc_jval *infinite = kvc_jval_member(doc, "infinite");
    check_figures(infinite, t, &h, runs);
    check_engine(infinite, t, runs);
    assert_int_equal(check_finite(doc, t, &v, runs), finite);
    check_replicas(doc, t, &v, runs, replicas);
    check_curves(doc, t);
    if (segments) {
        uint64_t n = 0;
        assert_int_equal(t->n_segments, segments);
        for (uint64_t r = 0; r < t->n_requests; r++)
            for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s])
                n++;
        assert_int_equal(n, touches);
    }
    /* without partial tails content is the same in full blocks, and takes this many of them */
    assert_int_equal(kvc_ceiling_view_full(&full, t, NULL), KVC_OK);
    kvc_ceiling_content_of(&full, &f, NULL, NULL);
    assert_int_equal(f.hit_blocks, h.hit_blocks);
    assert_int_equal(f.raw_hit_blocks, h.hit_blocks);
    assert_int_equal(f.full_blocks - f.hit_blocks, u64_of(infinite, "engine_unique_full_blocks"));
    kvc_ceiling_view_clear(&full);
    free(runs);
    twin_trace_free(t);
    twin_clear(&rows);
    kvc_json_free(doc);
}

static void the_conversation_log_gives_the_expected_counts(void **state)
{
    (void)state;
    check_log(SHARED "traces/mooncake/conversation_trace.jsonl.zst",
              SHARED "expected/conversation.json", 512, 37454, 15787, 11 * 7, 5);
}

static void the_sharegpt_log_gives_the_expected_counts(void **state)
{
    (void)state;
    check_log(SHARED "traces/llmservingsim/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl.zst",
              SHARED "expected/sharegpt_llama.json", 16, 0, 0, 11 * 6, 2);
}

/* The same through the program's own reader. */
static void check_import(const char *path, const char *expected, uint64_t segments,
                         unsigned finite)
{
    struct kvc_jval *doc = read_json(expected);
    struct kvc_trace *t = NULL;
    if (!doc || access(path, R_OK)) {
        kvc_json_free(doc);
        print_message("SKIPPED: %s is not here\n", path);
        skip();
    }
    assert_int_equal(kvc_trace_import(&t, &path, 1, NULL, NULL, NULL), KVC_OK);
    uint32_t *runs = calloc(t->n_requests, sizeof(*runs));
    struct kvc_ceiling_view v;
    struct kvc_hits h;
    if (segments)
        assert_int_equal(t->n_segments, segments);
    assert_int_equal(kvc_ceiling_view(&v, t, NULL), KVC_OK);
    assert_int_equal(kvc_ceiling_content_of(&v, &h, runs, NULL), KVC_OK);
    check_figures(kvc_jval_member(doc, "infinite"), t, &h, runs);
    check_engine(kvc_jval_member(doc, "infinite"), t, runs);
    assert_int_equal(check_finite(doc, t, &v, runs), finite);
    check_curves(doc, t);
    kvc_ceiling_view_clear(&v);
    free(runs);
    kvc_trace_destroy(t);
    kvc_json_free(doc);
}

static void the_imported_conversation_log_gives_them_too(void **state)
{
    (void)state;
    check_import(SHARED "traces/mooncake/conversation_trace.jsonl.zst",
                 SHARED "expected/conversation.json", 15787, 11 * 7);
}

static void the_imported_sharegpt_log_gives_them_too(void **state)
{
    (void)state;
    check_import(SHARED "traces/llmservingsim/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl.zst",
                 SHARED "expected/sharegpt_llama.json", 0, 11 * 6);
}

static int session_name(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 5 && strcmp(e->d_name + n - 5, ".json") == 0;
}

/* Every nth session of the kv-cache-tester archive, names sorted; NULL when it is not here. */
static struct kvc_trace *every_nth_session(int nth, bool merge_models)
{
    const char *archive = SHARED "traces/kv-cache-tester/traces.tar.zst";
    char folder[] = "/tmp/kvcast-test-XXXXXX", command[256];
    struct kvc_import_options o = { .struct_size = sizeof(o), .strict = true,
                                    .merge_models = merge_models };
    struct kvc_trace *t = NULL;
    struct dirent **names;
    const char *paths[512];
    size_t n_paths = 0;
    if (access(archive, R_OK))
        return NULL;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof(command), "zstd -dc %s | tar -xf - -C %s --strip-components=1",
             archive, folder);
    assert_int_equal(system(command), 0);
    int n = scandir(folder, &names, session_name, alphasort);
    assert_in_range(n, 1, 512);
    for (int i = 0; i < n; i++) {
        char *path = malloc(300);
        snprintf(path, 300, "%s/%s", folder, names[i]->d_name);
        if (i % nth == 0)
            paths[n_paths++] = path;
        else
            free(path);
        free(names[i]);
    }
    free(names);
    assert_int_equal(kvc_trace_import(&t, paths, n_paths, &o, NULL, NULL), KVC_OK);
    while (n_paths)
        free((void *)(uintptr_t)paths[--n_paths]);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    return t;
}

/* The reference took ids as a session's own whatever the model. */
static void coding_sessions_give_the_expected_counts(void **state)
{
    (void)state;
    struct kvc_jval *doc = read_json(SHARED "expected/claude_code_every24th.json");
    struct kvc_trace *t = doc ? every_nth_session(24, true) : NULL;
    if (!t) {
        kvc_json_free(doc);
        print_message("SKIPPED: the kv-cache-tester sessions are not here\n");
        skip();
    }
    uint32_t *runs = calloc(t->n_requests, sizeof(*runs));
    struct kvc_ceiling_view v;
    struct kvc_hits h;
    assert_int_equal(kvc_ceiling_view(&v, t, NULL), KVC_OK);
    assert_int_equal(kvc_ceiling_content_of(&v, &h, runs, NULL), KVC_OK);
    check_figures(kvc_jval_member(doc, "infinite"), t, &h, runs);
    check_engine(kvc_jval_member(doc, "infinite"), t, runs);
    assert_int_equal(check_finite(doc, t, &v, runs), 18);
    check_curves(doc, t);
    kvc_ceiling_view_clear(&v);
    free(runs);
    kvc_trace_destroy(t);
    kvc_json_free(doc);
}

static void coding_sessions_have_the_expected_segments(void **state)
{
    (void)state;
    struct kvc_trace *t = every_nth_session(4, true);
    if (!t) {
        print_message("SKIPPED: the kv-cache-tester sessions are not here\n");
        skip();
    }
    uint64_t *passing = calloc(t->n_segments, sizeof(*passing)), segments = 0, touches = 0;
    struct kvc_trace_stats stats;
    for (uint64_t r = 0; r < t->n_requests; r++)
        for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s])
            passing[s]++;
    /* Ends of known outputs cut further, which the reference didn't know: no cut is counted where
     * the same prompts pass above and below. */
    for (uint32_t s = 0; s < t->n_segments; s++) {
        uint32_t above = t->seg_parent[s];
        if (passing[s] && (above == KVC_SEG_NONE || passing[above] != passing[s])) {
            segments++;
            touches += passing[s];
        }
    }
    kvc_trace_stats(t, &stats);
    assert_int_equal(stats.block_touches, 15304275);
    assert_int_equal(touches, 298661);
    assert_int_equal(segments, 9039);
    free(passing);
    kvc_trace_destroy(t);
}

static void every_request_of_the_conversation_log_has_the_expected_run(void **state)
{
    (void)state;
    struct twin_rows rows;
    const char *path = SHARED "expected/conversation_per_request.tsv.zst";
    if (access(path, R_OK) ||
        !read_log(&rows, SHARED "traces/mooncake/conversation_trace.jsonl.zst", 512)) {
        print_message("SKIPPED: %s is not here\n", path);
        skip();
    }
    struct kvc_trace *t = twin_trace(&rows);
    uint32_t *runs = calloc(rows.n, sizeof(*runs)), n = 0;
    struct kvc_ceiling_view v;
    struct kvc_hits h;
    char command[256], line[256];
    kvc_ceiling_view(&v, t, NULL);
    kvc_ceiling_content_of(&v, &h, runs, NULL);
    snprintf(command, sizeof(command), "zstd -dc %s", path);
    FILE *f = popen(command, "r");
    assert_non_null(fgets(line, sizeof(line), f));
    for (unsigned index, tokens, blocks, run; fgets(line, sizeof(line), f); n++) {
        assert_int_equal(sscanf(line, "%u %*u %u %u %u", &index, &tokens, &blocks, &run), 4);
        assert_int_equal(tokens, t->input_tokens[index]);
        assert_int_equal(blocks, kvc_trace_blocks(t, index));
        if (run != runs[index])
            fail_msg("request %u: run %u, expected %u", index, runs[index], run);
    }
    pclose(f);
    assert_int_equal(n, rows.n);
    free(runs);
    twin_trace_free(t);
    twin_clear(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_conversation_log_gives_the_expected_counts),
        cmocka_unit_test(the_imported_conversation_log_gives_them_too),
        cmocka_unit_test(the_sharegpt_log_gives_the_expected_counts),
        cmocka_unit_test(the_imported_sharegpt_log_gives_them_too),
        cmocka_unit_test(coding_sessions_give_the_expected_counts),
        cmocka_unit_test(coding_sessions_have_the_expected_segments),
        cmocka_unit_test(every_request_of_the_conversation_log_has_the_expected_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
