/* SPDX-License-Identifier: Apache-2.0
 * Reports: the promised JSON, text that fits a terminal, pages that are whole and harmless. */
#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"
#include "reports/reports.h"
#include "tests/report_sample.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64]; /* of this run's files */

static const char *file(const char *name)
{
    static char path[400];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static char *read_back(const char *name)
{
    struct kvc_error err;
    char *text;
    size_t n;
    assert_int_equal(kvc_file_get(file(name), 1u << 28, &text, &n, &err), KVC_OK);
    assert_int_equal(strlen(text), n);
    return text;
}

typedef enum kvc_status (*writer)(const struct kvc_result *, const char *, struct kvc_error *);

static char *written(writer write, const struct kvc_result *r)
{
    struct kvc_error err = {0};
    if (write(r, file("out"), &err) != KVC_OK)
        fail_msg("%s", err.text);
    return read_back("out");
}

static struct kvc_jval *parsed(const struct kvc_result *r)
{
    struct kvc_error err;
    struct kvc_jval *root;
    char *json = written(kvc_report_json, r);
    assert_int_equal(kvc_json_parse(&root, json, strlen(json), false, "out", 1, &err), KVC_OK);
    kvc_free(json);
    return root;
}

static const struct kvc_jval *at(const struct kvc_jval *v, const char *path)
{
    char key[64];
    while (v && *path) {
        size_t n = strcspn(path, "/");
        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        v = kvc_jval_kind(v) == KVC_JARRAY ? kvc_jval_first(v) : kvc_jval_member(v, key);
        path += n + (path[n] == '/');
    }
    return v;
}

/* ---- JSON ---- */

#define DIST "mean p50 p90 p95 p99 max count"

/* What replay --json promises: an object's place and its keys, in order. */
static const char *const promised[][2] = {
    {"", "schema version scenario digests requests ttft_ms tpot_ms e2e_ms queue_ms ttft_parts_ms "
         "hits throughput tiers links replicas tenants cost bands bounds warnings "
         "fairness losses what_if runtime"},
    {"digests", "trace profiles"},
    {"requests", "arrived completed failed unservable measured"},
    {"ttft_ms", DIST},
    {"tpot_ms", DIST},
    {"e2e_ms", DIST},
    {"queue_ms", DIST},
    {"ttft_parts_ms", "queue route load prefill host"},
    {"hits", "input_tokens hit_tokens token_hit_rate block_hit_rate request_hit_rate "
             "raw_token_hit_rate raw_block_hit_rate by_tier recomputed_tokens missed_tokens"},
    {"hits/by_tier", "hbm dram nvme remote"},
    {"hits/by_tier/nvme", "hit_tokens token_hit_rate"},
    {"hits/missed_tokens", "first_sight partial_block alignment evicted ttl other_replica salted "
                           "not_ready diverged failed"},
    {"throughput", "requests_per_s input_tokens_per_s output_tokens_per_s makespan_s"},
    {"tiers/0", "name scope capacity_bytes peak_bytes written_bytes read_bytes evicted_bytes "
                "never_read_bytes refused_bytes writes_per_day_of_capacity"},
    {"links/0", "name bytes busy_fraction peak_flows mean_bytes_per_s"},
    {"replicas/0", "id requests input_tokens busy_fraction token_hit_rate peak_running "
                   "preemptions"},
    {"tenants/0", "name requests token_hit_rate ttft_ms resident_bytes_mean evicted_by cost_usd "
                  "input_tokens hit_tokens output_tokens missed_tokens missed_tokens_by "
                  "resident_bytes_over_time"},
    {"tenants/0/ttft_ms", DIST},
    {"cost", "usd_per_hour usd_per_million_input_tokens usd_per_million_cached_tokens "
             "usd_per_million_output_tokens usd_total saving_vs_hbm_only_usd_per_month parts"},
    {"cost/parts", "gpu dram nvme network power"},
    {"bands", "ttft_ms.p50 ttft_ms.p99 source"},
    {"bounds", "content_token_hit_rate capacity_token_hit_rate"},
    {"warnings/0", "code text"},
    {"runtime", "wall_s cpu_s events steps peak_rss_bytes threads paths"},
};

static void json_holds_the_promised_keys_in_order(void **state)
{
    (void)state;
    struct kvc_result *r = report_sample(7, 300, 4);
    r->n_tenants = 2;
    struct kvc_jval *root = parsed(r);
    for (size_t i = 0; i < sizeof(promised) / sizeof(promised[0]); i++) {
        struct kvc_text keys = {0};
        const struct kvc_jval *v = at(root, promised[i][0]);
        if (!v)
            fail_msg("%s is missing", promised[i][0]);
        for (v = kvc_jval_first(v); v; v = kvc_jval_next(v))
            kvc_text_addf(&keys, "%s%s", keys.len ? " " : "", kvc_jval_key(v));
        assert_string_equal(keys.buf, promised[i][1]);
        kvc_text_clear(&keys);
    }
    assert_string_equal(kvc_jval_string(at(root, "schema")), "kvcast.replay.v1");
    assert_string_equal(kvc_jval_string(at(root, "scenario/cluster/gpu")), "h200_sxm");
    kvc_json_free(root);
    kvc_result_destroy(r);
}

static uint64_t whole(const struct kvc_jval *root, const char *path)
{
    uint64_t n = 0;
    assert_true(kvc_jval_u64(at(root, path), &n));
    return n;
}

static double number(const struct kvc_jval *root, const char *path)
{
    double d = 0;
    assert_true(kvc_jval_number(at(root, path), &d));
    return d;
}

static void json_accounts_for_every_token(void **state)
{
    (void)state;
    uint64_t rng = kvc_rng_stream(1, "token law");
    for (uint64_t seed = 0; seed < 40; seed++) {
        uint32_t n_tiers = 1 + (uint32_t)kvc_rng_below(&rng, 4);
        struct kvc_result *r = report_sample(seed, (uint32_t)kvc_rng_below(&rng, 200), n_tiers);
        struct kvc_jval *root = parsed(r);
        uint64_t sum = whole(root, "hits/hit_tokens"), by_tier = 0;
        for (const struct kvc_jval *v = kvc_jval_first(at(root, "hits/missed_tokens")); v;
             v = kvc_jval_next(v))
            sum += whole(v, "");
        for (const struct kvc_jval *v = kvc_jval_first(at(root, "hits/by_tier")); v;
             v = kvc_jval_next(v))
            by_tier += whole(v, "hit_tokens");
        assert_int_equal(sum, whole(root, "hits/input_tokens"));
        assert_int_equal(by_tier, whole(root, "hits/hit_tokens"));
        if (r->arrived) {
            double parts = 0, mean = number(root, "ttft_ms/mean");
            for (const struct kvc_jval *v = kvc_jval_first(at(root, "ttft_parts_ms")); v;
                 v = kvc_jval_next(v))
                parts += number(v, "");
            assert_true(fabs(parts - mean) < 1e-9 * mean);
            assert_true(number(root, "hits/token_hit_rate") ==
                        (double)r->hit_tokens / (double)r->input_tokens);
        }
        kvc_json_free(root);
        kvc_result_destroy(r);
    }
}

static void unknown_rates_are_null_not_zero(void **state)
{
    (void)state;
    static const char *const rates[] = {
        "hits/token_hit_rate",        "hits/block_hit_rate",     "hits/request_hit_rate",
        "hits/raw_token_hit_rate",    "hits/raw_block_hit_rate", "hits/by_tier/hbm/token_hit_rate",
        "bounds/content_token_hit_rate", "replicas/0/token_hit_rate"};
    for (int empty = 0; empty < 2; empty++) {
        struct kvc_result *r = report_sample(3, empty ? 0 : 50, 2);
        r->has_prefix = empty;
        r->n_curve = empty ? 0 : r->n_curve;
        struct kvc_jval *root = parsed(r);
        for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
            assert_int_equal(kvc_jval_kind(at(root, rates[i])), KVC_JNULL);
        if (empty)
            assert_int_equal(kvc_jval_kind(at(root, "ttft_ms/p99")), KVC_JNULL);
        kvc_json_free(root);
        char *text = written(kvc_report_text, r);
        assert_non_null(strstr(text, "unknown"));
        assert_null(strstr(text, "nan"));
        kvc_free(text);
        kvc_result_destroy(r);
    }
}

static void only_runtime_differs_between_equal_runs(void **state)
{
    (void)state;
    struct kvc_result *r = report_sample(11, 100, 3);
    char *one = written(kvc_report_json, r);
    r->runtime.wall_s = 77;
    r->runtime.peak_rss_bytes = 123456;
    char *two = written(kvc_report_json, r);
    char *cut_one = strstr(one, "\"runtime\""), *cut_two = strstr(two, "\"runtime\"");
    assert_non_null(cut_one);
    assert_string_not_equal(cut_one, cut_two);
    *cut_one = *cut_two = '\0';
    assert_string_equal(one, two);
    kvc_free(one);
    kvc_free(two);
    kvc_result_destroy(r);
}

/* ---- text ---- */

static void spoil_names(struct kvc_result *r)
{
    static const char evil[] = "</title><script>alert('x')</script>&\"|`$(reboot)\\ \xff\xc3 _^{}@";
    snprintf(r->title, sizeof(r->title), "%s", evil);
    snprintf(r->warnings[0].text, sizeof(r->warnings[0].text), "%s %0150d", evil, 0);
    snprintf(r->warnings[0].code, sizeof(r->warnings[0].code), "%.20s", evil);
    snprintf(r->assumptions[0].source, sizeof(r->assumptions[0].source), "%s", evil);
    snprintf(r->assumptions[0].kind, sizeof(r->assumptions[0].kind), "<b>&");
    snprintf(r->tiers[0].name, sizeof(r->tiers[0].name), "%.31s", evil);
    for (uint32_t i = 0; i < r->n_links; i++)
        snprintf(r->links[i].name, sizeof(r->links[i].name), "%.31s", evil);
    for (uint32_t i = 0; i < r->n_series; i++) {
        if (strncmp(r->series[i].name, "link:", 5) == 0)
            snprintf(r->series[i].name, sizeof(r->series[i].name), "link:%.40s", evil);
    }
}

static void summary_fits_a_terminal(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 12; i++) {
        struct kvc_result *r = report_sample(i, i < 4 ? 0 : i * 40, 1 + i % 4);
        r->has_prefix = i % 3 != 0;
        char *text = written(kvc_report_text, r);
        size_t lines = 0;
        for (char *s = text; *s; s += strcspn(s, "\n") + 1, lines++)
            assert_in_range(strcspn(s, "\n"), 0, 100);
        assert_in_range(lines, 15, 60);
        assert_non_null(strstr(text, "nearest rank"));
        kvc_free(text);
        kvc_result_destroy(r);
    }
}

/* One point of hit rate: 1 % of the hour's tokens, at the given GPU seconds a million. */
static void ladder_gaps_are_worth_what_their_tokens_cost(void **state)
{
    (void)state;
    struct kvc_result *r = report_sample(8, 500, 4);
    struct kvc_findings f;
    struct kvc_error err;
    assert_int_equal(kvc_findings_make(&f, r, &err), KVC_OK);
    assert_int_equal(f.n_rungs, 4);
    double sum = 0, hours = (double)r->makespan_ns / 3.6e12;
    for (uint32_t i = 0; i + 1 < f.n_rungs; i++) {
        double tokens = (f.rungs[i].rate - f.rungs[i + 1].rate) * (double)r->input_tokens;
        double gpu_s = tokens / 1e6 * r->gpu_seconds_per_million_missed_tokens / hours;
        assert_true(fabs(f.rungs[i].gpu_s_per_hour - gpu_s) < 1e-9 * fabs(gpu_s));
        assert_true(fabs(f.rungs[i].usd_per_hour - gpu_s * 3.5 / 3600) < 1e-9 * fabs(gpu_s));
        sum += f.rungs[i].gap;
    }
    assert_true(fabs(sum - (r->content_token_hit_rate - f.hit_rate)) < 1e-12);
    kvc_result_destroy(r);
}

/* ---- numbers ---- */

static void numbers_read_as_people_write_them(void **state)
{
    (void)state;
    assert_string_equal(kvc_fmt_count(0).s, "0");
    assert_string_equal(kvc_fmt_count(999).s, "999");
    assert_string_equal(kvc_fmt_count(1000).s, "1,000");
    assert_string_equal(kvc_fmt_count(UINT64_MAX).s, "18,446,744,073,709,551,615");
    assert_string_equal(kvc_fmt_some(1, "touch").s, "1 touch");
    assert_string_equal(kvc_fmt_some(0, "touch").s, "0 touches");
    assert_string_equal(kvc_fmt_some(2000, "row").s, "2,000 rows");
    assert_string_equal(kvc_fmt_some(UINT64_MAX, "distinct block").s,
                        "18,446,744,073,709,551,615 distinct blocks");
    assert_string_equal(kvc_fmt_bytes(512.0 * 1024 * 1024 * 1024).s, "512 GiB");
    assert_string_equal(kvc_fmt_bytes(1536).s, "1.50 KiB");
    assert_string_equal(kvc_fmt_ms(812.4).s, "812 ms");
    assert_string_equal(kvc_fmt_ms(12345).s, "12.3 s");
    assert_string_equal(kvc_fmt_percent(0.6314).s, "63.1 %");
    assert_string_equal(kvc_fmt_percent(NAN).s, "unknown");
    assert_string_equal(kvc_fmt_usd(12400).s, "USD 12,400");
    assert_string_equal(kvc_fmt_usd(-0.004).s, "USD -0.0040");
    assert_string_equal(kvc_fmt_tokens(41234567).s, "41.2 M");
    assert_string_equal(kvc_fmt_general(0.05).s, "0.05");
    uint64_t rng = kvc_rng_stream(2, "format");
    for (int i = 0; i < 20000; i++) {
        int decimals = (int)kvc_rng_below(&rng, 7);
        double v = (kvc_rng_unit(&rng) - 0.5) * pow(10, (double)kvc_rng_below(&rng, 9));
        char libc[64];
        snprintf(libc, sizeof(libc), "%.*f", decimals, v);
        double apart = strtod(libc, NULL) - strtod(kvc_fmt_fixed(v, decimals, false).s, NULL);
        assert_true(fabs(apart) <= 1.0000001 * pow(10, -decimals) * (fabs(apart) > 1e-12));
        assert_true(fabs(strtod(kvc_fmt_fixed(v, decimals, false).s, NULL) - v) <=
                    0.5000001 * pow(10, -decimals));
    }
}

/* ---- CSV ---- */

static size_t fields(const char *line)
{
    size_t n = 1;
    bool quoted = false;
    for (; *line && *line != '\r'; line++) {
        quoted ^= *line == '"';
        n += !quoted && *line == ',';
    }
    return n;
}

static void csv_has_a_row_a_request_and_parts_that_add_up(void **state)
{
    (void)state;
    struct kvc_result *r = report_sample(4, 3000, 3);
    snprintf(r->tiers[2].name, sizeof(r->tiers[2].name), "a,\"b\"");
    r->requests[5].ttft_ns = r->requests[5].e2e_ns = KVC_TIME_NONE;
    char *csv = written(kvc_report_requests_csv, r), *line = csv;
    size_t want = fields(csv), rows = 0;
    assert_int_equal(want, 15 + 3 + 2);
    assert_non_null(strstr(csv, ",\"hit_tokens_a,\"\"b\"\"\","));
    for (line = strstr(line, "\r\n") + 2; *line; line = strstr(line, "\r\n") + 2, rows++) {
        double v[8];
        assert_int_equal(fields(line), want);
        int got = sscanf(line, "%*u,%*[a-z],%*u,%*u,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &v[0], &v[1],
                         &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
        if (rows == 5) {
            assert_int_equal(got, 1); /* not reached: empty */
            continue;
        }
        assert_int_equal(got, 8);
        assert_true(fabs(v[1] - v[3] - v[4] - v[5] - v[6] - v[7]) < 1e-6);
    }
    assert_int_equal(rows, r->n_requests);
    kvc_free(csv);
    kvc_result_destroy(r);
}

/* ---- HTML ---- */

/* Every tag that opens closes, in order; '<' and '>' stand nowhere else. */
static void check_tags(const char *html)
{
    static const char *const empty[] = {"!DOCTYPE", "meta", "path", "polygon", "circle", "rect"};
    char stack[64][16], name[16];
    size_t depth = 0;
    const char *body = strstr(html, "</style>");
    for (const char *s = strchr(body, '<'); s; s = strchr(s, '<')) {
        bool closes = s[1] == '/';
        size_t n = strcspn(s + 1 + closes, " \t\n/>");
        assert_in_range(n, 1, 15);
        snprintf(name, sizeof(name), "%.*s", (int)n, s + 1 + closes);
        const char *end = strchr(s, '>');
        assert_non_null(end);
        bool skip = end[-1] == '/';
        for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
            skip |= !closes && strcmp(name, empty[i]) == 0 && end[-1] == '/';
        if (strcmp(name, "style") == 0 || strcmp(name, "head") == 0 || strcmp(name, "html") == 0) {
            s = end;
            continue;
        }
        if (closes) {
            assert_true(depth > 0);
            assert_string_equal(stack[--depth], name);
        } else if (!skip) {
            assert_true(depth < 64);
            snprintf(stack[depth++], sizeof(stack[0]), "%s", name);
        }
        s = end;
    }
    assert_int_equal(depth, 0);
}

static void check_harmless(const char *html)
{
    static const char *const never[] = {"<script", "http:", "https:", " src=", "url(", "@import",
                                        "xlink",   "nan ",  ">nan<", ">inf",  "<b>&"};
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (strstr(html, never[i]))
            fail_msg("the page holds %s", never[i]);
    }
}

static size_t files_in(const char *path)
{
    size_t n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static bool have_gnuplot(void)
{
    return system("gnuplot --version >/dev/null 2>&1") == 0;
}

static void pages_are_whole_and_harmless(void **state)
{
    (void)state;
    bool pictures = have_gnuplot();
    for (uint32_t i = 0; i < 10; i++) {
        struct kvc_result *r = report_sample(i, i == 0 ? 0 : i == 1 ? 1 : 300, 1 + i % 4);
        uint32_t n_series = r->n_series;
        r->has_prefix = i != 3;
        r->n_curve = i == 4 ? 0 : r->n_curve;
        r->n_tenants = i == 5 ? 3 : 0;
        if (i == 6)
            spoil_names(r);
        if (i == 7)
            r->content_token_hit_rate = r->capacity_token_hit_rate = r->lru_token_hit_rate = NAN;
        if (i == 8) {
            r->n_series = r->n_assumptions = r->n_warnings = r->n_bands = r->n_replicas = 0;
            r->cost.usd_per_hour = NAN;
            kvc_free(r->scenario_json);
            r->scenario_json = NULL;
        }
        if (i == 9)
            memset(r->curve, 0, r->n_curve * sizeof(*r->curve));
        char *html = written(kvc_report_html, r);
        check_harmless(html);
        check_tags(html);
        assert_non_null(strstr(html, "</html>"));
        if (pictures)
            assert_null(strstr(html, "Pictures are missing"));
        if (i == 3)
            assert_non_null(strstr(html, "Unknown, not 0"));
        kvc_free(html);
        r->n_series = n_series;
        kvc_result_destroy(r);
    }
    assert_int_equal(files_in(folder), 1); /* "out": gnuplot's folders are gone */
}

static void pictures_give_way_to_tables(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH"));
    struct kvc_result *r = report_sample(2, 300, 3);
    setenv("PATH", "/nowhere", 1);
    char *html = written(kvc_report_html, r);
    setenv("PATH", path, 1);
    assert_non_null(strstr(html, "gnuplot is not installed"));
    assert_null(strstr(html, "<svg"));
    assert_non_null(strstr(html, "TTFT by what served the prompt"));
    assert_non_null(strstr(html, "arrivals_per_s"));
    check_tags(html);
    kvc_free(html);
    free(path);
    kvc_result_destroy(r);
}

static void gnuplot_draws_all_pictures(void **state)
{
    (void)state;
    if (!have_gnuplot()) {
        print_message("gnuplot is not installed: pictures are not tested\n");
        skip();
    }
    struct kvc_result *r = report_sample(2, 300, 3);
    char *html = written(kvc_report_html, r), *s = html;
    size_t n = 0;
    while ((s = strstr(s, "<svg"))) {
        n++;
        s++;
    }
    assert_int_equal(n, 8); /* four, each wide and narrow */
    assert_non_null(strstr(html, "var(--blue,"));
    assert_non_null(strstr(html, "content bound"));
    char *again = written(kvc_report_html, r);
    assert_string_equal(html, again);
    kvc_free(again);
    kvc_free(html);
    kvc_result_destroy(r);
}

/* ---- memory ---- */

static void running_out_of_memory_is_reported(void **state)
{
    (void)state;
    static const writer writers[] = {kvc_report_json, kvc_report_text, kvc_report_html,
                                     kvc_report_requests_csv};
    char *path = strdup(getenv("PATH"));
    struct kvc_result *r = report_sample(6, 40, 2);
    setenv("PATH", "/nowhere", 1); /* without pictures: faster, and the same allocations */
    for (size_t w = 0; w < sizeof(writers) / sizeof(writers[0]); w++) {
        struct kvc_error err;
        enum kvc_status status = KVC_ERR_NOMEM;
        for (uint64_t n = 1; status != KVC_OK; n++) {
            unlink(file("out"));
            kvc_alloc_fail_after(n);
            status = writers[w](r, file("out"), &err);
            kvc_alloc_fail_after(0);
            if (status != KVC_OK) {
                assert_int_equal(status, KVC_ERR_NOMEM);
                assert_int_equal(files_in(folder), 0);
            }
            assert_true(n < 10000);
        }
    }
    setenv("PATH", path, 1);
    free(path);
    kvc_result_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_holds_the_promised_keys_in_order),
        cmocka_unit_test(json_accounts_for_every_token),
        cmocka_unit_test(unknown_rates_are_null_not_zero),
        cmocka_unit_test(only_runtime_differs_between_equal_runs),
        cmocka_unit_test(summary_fits_a_terminal),
        cmocka_unit_test(ladder_gaps_are_worth_what_their_tokens_cost),
        cmocka_unit_test(numbers_read_as_people_write_them),
        cmocka_unit_test(csv_has_a_row_a_request_and_parts_that_add_up),
        cmocka_unit_test(pages_are_whole_and_harmless),
        cmocka_unit_test(pictures_give_way_to_tables),
        cmocka_unit_test(gnuplot_draws_all_pictures),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    snprintf(folder, sizeof(folder), "/tmp/kvcast-test-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    setenv("TMPDIR", folder, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file("out"));
    rmdir(folder);
    return failed;
}
