/* SPDX-License-Identifier: Apache-2.0
 * .kvt files: what is written comes back; damage of any kind is an error; files appear whole or
 * not at all; running out of memory anywhere leaks nothing. */
#include "base/alloc.h"
#include "base/digest.h"
#include "base/rng.h"
#include "tests/trace_files.h"
#include "traces/forest/forest.h"
#include "traces/kvt.h"
#include "traces/report_column.h"
#include "traces/trace_write.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* What an import may have to say; every number is its own. */
static struct kvc_import_report *make_report(uint64_t seed)
{
    struct kvc_import_report *r = kvc_calloc(1, sizeof(*r));
    uint64_t rng = seed ^ 77;
    r->rows = kvc_rng_next(&rng);
    r->bad = kvc_rng_below(&rng, 9);
    r->cached_tokens = kvc_rng_next(&rng);
    r->unknown_output = kvc_rng_next(&rng);
    r->spend_rows = 3;
    r->spend_usd = 0.1 + (double)kvc_rng_below(&rng, 1000) / 7;
    r->branches = kvc_rng_next(&rng);
    r->n_notes = (uint32_t)kvc_rng_below(&rng, KVC_REPORT_NOTES + 1);
    for (uint32_t i = 0; i < r->n_notes; i++)
        memset(r->notes[i], 'a' + (int)i, (size_t)kvc_rng_below(&rng, sizeof(r->notes[i])));
    r->n_tallies = (uint32_t)kvc_rng_below(&rng, KVC_REPORT_NOTES + 1);
    for (uint32_t i = 0; i < r->n_tallies; i++) {
        snprintf(r->tallies[i].text, sizeof(r->tallies[i].text), "tally %u", i);
        r->tallies[i].rows = kvc_rng_next(&rng);
    }
    r->n_engines = (uint32_t)kvc_rng_below(&rng, KVC_REPORT_ENGINES + 1);
    for (uint32_t i = 0; i < r->n_engines; i++) {
        snprintf(r->engines[i].name, sizeof(r->engines[i].name), "engine %u", i);
        r->engines[i].kv_cache_tokens = kvc_rng_next(&rng);
        r->engines[i].kv_used_peak = i % 2 ? -1 : 0.3;
        r->engines[i].retrieved_bytes = kvc_rng_next(&rng);
    }
    return r;
}

/* A trace with every column, or only the ones that must be. */
static struct kvc_trace *make(uint64_t seed, bool all, uint32_t requests)
{
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_trace *t = NULL;
    uint64_t rng = seed, ids[20];
    for (uint32_t i = 0; i < requests; i++) {
        size_t n = (size_t)kvc_rng_below(&rng, 20);
        for (size_t k = 0; k < n; k++)
            ids[k] = kvc_rng_below(&rng, 3);
        uint32_t tail = (uint32_t)kvc_rng_below(&rng, 16);
        struct kvc_row r = {
            .time_ns = kvc_rng_next(&rng) >> 24, .input_tokens = (uint32_t)n * 16 + tail + !n,
            .output_tokens = (uint32_t)kvc_rng_below(&rng, 900), .ids = ids, .n_ids = n,
            .session = all ? (uint32_t)kvc_rng_below(&rng, 7) : KVC_ID_NONE,
            .tenant = all ? (uint32_t)kvc_rng_below(&rng, 2) : KVC_ID_NONE,
            .model = all ? (uint32_t)kvc_rng_below(&rng, 3) : KVC_ID_NONE,
            .think_ns = all && i % 2 ? kvc_rng_next(&rng) : KVC_TIME_NONE,
            .status = (uint8_t)(all && i % 9 == 0) };
        r.root_key = r.model == KVC_ID_NONE ? 0 : r.model + 1;
        if (all && n && i % 3 == 0) {
            r.output_ids = ids;
            r.n_output_ids = n;
        }
        assert_int_equal(kvc_forest_add(f, &r, NULL), KVC_OK);
    }
    assert_int_equal(kvc_forest_finish(f, 16, true, &t, NULL), KVC_OK);
    static const char *const names[] = { "alpha", "", "b c" };
    t->tenant_names = t->n_tenants ? kvc_calloc(t->n_tenants, sizeof(char *)) : NULL;
    t->model_names = t->n_models ? kvc_calloc(t->n_models, sizeof(char *)) : NULL;
    for (uint32_t i = 0; i < t->n_tenants; i++)
        t->tenant_names[i] = kvc_strdup(names[i]);
    for (uint32_t i = 0; i < t->n_models; i++)
        t->model_names[i] = kvc_strdup(names[i]);
    for (uint64_t i = 0; all && i < t->n_requests; i += 5) {
        t->output_unknown = t->output_unknown ? t->output_unknown
                                              : kvc_calloc((size_t)t->n_requests, 1);
        t->output_unknown[i] = 1;
        t->output_tokens[i] = 0;
    }
    t->report = all ? make_report(seed) : NULL;
    kvc_trace_digest(t, t->digest);
    return t;
}

static void same_column(const void *a, const void *b, uint64_t n, size_t size)
{
    assert_int_equal(!a, !b);
    if (a && n)
        assert_memory_equal(a, b, (size_t)n * size);
}

static void same_trace(const struct kvc_trace *a, const struct kvc_trace *b)
{
    uint64_t n = a->n_requests;
    assert_int_equal(n, b->n_requests);
    assert_int_equal(a->block_tokens, b->block_tokens);
    assert_int_equal(a->n_segments, b->n_segments);
    assert_int_equal(a->n_sessions, b->n_sessions);
    assert_int_equal(a->n_tenants, b->n_tenants);
    assert_int_equal(a->n_models, b->n_models);
    same_column(a->arrival_ns, b->arrival_ns, n, 8);
    same_column(a->think_ns, b->think_ns, n, 8);
    same_column(a->input_tokens, b->input_tokens, n, 4);
    same_column(a->output_tokens, b->output_tokens, n, 4);
    same_column(a->prompt_seg, b->prompt_seg, n, 4);
    same_column(a->output_seg, b->output_seg, n, 4);
    same_column(a->session, b->session, n, 4);
    same_column(a->tenant, b->tenant, n, 4);
    same_column(a->model, b->model, n, 4);
    same_column(a->row_status, b->row_status, n, 1);
    same_column(a->output_unknown, b->output_unknown, n, 1);
    same_column(a->cached_tokens, b->cached_tokens, n, 4);
    same_column(a->seg_parent, b->seg_parent, a->n_segments, 4);
    same_column(a->seg_len, b->seg_len, a->n_segments, 4);
    same_column(a->seg_depth, b->seg_depth, a->n_segments, 4);
    for (uint32_t i = 0; i < a->n_tenants; i++)
        assert_string_equal(a->tenant_names[i], b->tenant_names[i]);
    for (uint32_t i = 0; i < a->n_models; i++)
        assert_string_equal(a->model_names[i], b->model_names[i]);
    assert_string_equal(a->digest, b->digest);
    assert_int_equal(!a->report, !b->report);
    if (a->report) {
        assert_true(b->report->stored);
        b->report->stored = false;
        assert_memory_equal(a->report, b->report, sizeof(*a->report));
    }
}

static void what_is_written_comes_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct kvc_trace *t = make(seed, seed % 2, 1 + (uint32_t)(seed * 11 % 300)), *u = NULL;
        const char *path = trace_path("t.kvt");
        assert_int_equal(kvc_trace_save(t, path, NULL), KVC_OK);
        assert_int_equal(kvc_trace_open(&u, path, NULL, NULL, NULL), KVC_OK);
        same_trace(t, u);
        kvc_trace_destroy(t);
        kvc_trace_destroy(u);
    }
}

/* Older and later versions know other numbers: what is there is taken, the rest passed over. */
static void reports_of_other_versions_are_read(void **state)
{
    (void)state;
    struct kvc_packed_report p;
    struct kvc_import_report *r = make_report(5), *u = kvc_malloc(1, sizeof(*u));
    assert_true(kvc_report_pack(r, &p));
    uint64_t n = p.numbers[0], wider[1024];
    assert_true(p.n_numbers < 1000 && n > 2);
    memcpy(wider, p.numbers, (5 + n) * 8); /* one count more in the middle */
    memcpy(wider + 5 + n + 1, p.numbers + 5 + n, (p.n_numbers - 5 - n) * 8);
    wider[0] = n + 1;
    wider[5 + n] = 4711;
    struct kvc_packed_report later = { wider, p.texts, p.n_numbers + 1, p.n_texts };
    assert_true(kvc_report_unpack(&later, u));
    u->stored = false;
    assert_memory_equal(u, r, sizeof(*r));
    memcpy(wider + 5 + n - 1, p.numbers + 5 + n, (p.n_numbers - 5 - n) * 8); /* one fewer */
    wider[0] = n - 1;
    struct kvc_packed_report older = { wider, p.texts, p.n_numbers - 1, p.n_texts };
    assert_true(kvc_report_unpack(&older, u));
    assert_int_equal(u->rows, r->rows);
    assert_int_equal(u->tallies[0].rows, r->tallies[0].rows);
    for (size_t i = 0; i < p.n_numbers; i++) { /* numbers and texts that don't fit together */
        struct kvc_packed_report cut = { p.numbers, p.texts, i, p.n_texts };
        assert_false(kvc_report_unpack(&cut, u));
    }
    for (size_t i = 0; i < p.n_texts; i++) {
        struct kvc_packed_report cut = { p.numbers, p.texts, p.n_numbers, i };
        assert_false(kvc_report_unpack(&cut, u));
    }
    for (size_t i = 0; i < 5; i++) {
        uint64_t was = p.numbers[i];
        p.numbers[i] = UINT64_MAX;
        assert_false(kvc_report_unpack(&p, u));
        p.numbers[i] = was;
    }
    kvc_free(p.numbers);
    kvc_free(p.texts);
    kvc_free(r);
    kvc_free(u);
}

static unsigned char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    assert_true(f && fstat(fileno(f), &st) == 0);
    *n = (size_t)st.st_size;
    unsigned char *p = kvc_malloc(*n, 1);
    assert_true(p && fread(p, 1, *n, f) == *n);
    fclose(f);
    return p;
}

static void refused(const void *bytes, size_t n)
{
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    enum kvc_status status = kvc_trace_open(&t, trace_file("x.kvt", bytes, n), NULL, NULL, &err);
    assert_true(status == KVC_ERR_INPUT || status == KVC_ERR_UNSUPPORTED);
    assert_null(t);
    assert_true(err.text[0] && err.file[0]);
}

static void any_changed_byte_is_found(void **state)
{
    (void)state;
    size_t n, harmless = 0;
    struct kvc_trace *t = make(3, true, 40);
    assert_int_equal(kvc_trace_save(t, trace_path("t.kvt"), NULL), KVC_OK);
    unsigned char *file = read_file(trace_path("t.kvt"), &n);
    for (size_t i = 0; i < n; i++) {
        unsigned char was = file[i];
        struct kvc_trace *u = NULL;
        file[i] ^= (unsigned char)(1u << (i % 8));
        if (kvc_trace_open(&u, trace_file("x.kvt", file, n), NULL, NULL, NULL) == KVC_OK) {
            same_trace(t, u); /* a bit of zstd's own that means nothing */
            harmless++;
        }
        kvc_trace_destroy(u);
        file[i] = was;
    }
    assert_true(harmless < 20); /* less than one a column */
    for (size_t cut = 0; cut < n; cut++)
        refused(file, cut);
    kvc_free(file);
    kvc_trace_destroy(t);
}

/* ---- right checksums over wrong contents ---- */

/* Rewrites the index of a .kvt and its sum after change(entry) on the column of that name. */
static void forge(unsigned char *file, size_t n, const char *name,
                  void (*change)(unsigned char *file, unsigned char *entry, uint64_t value),
                  uint64_t value)
{
    unsigned char *footer = file + n - KVC_KVT_FOOTER;
    unsigned char *index = file + kvc_get_u64(footer);
    uint64_t columns = kvc_get_u64(footer + 8);
    struct kvc_digest d;
    for (uint64_t i = 0; i < columns; i++)
        if (strcmp((char *)index + i * KVC_KVT_ENTRY, name) == 0)
            change(file, index + i * KVC_KVT_ENTRY, value);
    kvc_digest_init(&d);
    kvc_digest_add(&d, file, KVC_KVT_HEADER);
    kvc_digest_add(&d, index, (size_t)columns * KVC_KVT_ENTRY);
    kvc_put_u64(footer + 16, d.a);
}

static void set_count(unsigned char *file, unsigned char *e, uint64_t v)
{
    (void)file;
    kvc_put_u64(e + 32, v);
}
static void set_offset(unsigned char *file, unsigned char *e, uint64_t v)
{
    (void)file;
    kvc_put_u64(e + 40, v);
}
static void set_stored(unsigned char *file, unsigned char *e, uint64_t v)
{
    (void)file;
    kvc_put_u64(e + 48, v);
}
static void set_bytes(unsigned char *file, unsigned char *e, uint64_t v)
{
    (void)file;
    kvc_put_u64(e + 56, v);
}
static void set_type(unsigned char *file, unsigned char *e, uint64_t v)
{
    (void)file;
    kvc_put_u32(e + KVC_KVT_NAME, (uint32_t)v);
}
static void set_name(unsigned char *file, unsigned char *e, uint64_t v)
{
    (void)file;
    e[0] = (unsigned char)v;
}

static void forged_indexes_are_refused(void **state)
{
    (void)state;
    static const char *const columns[] = { "meta", "request.arrival_ns", "request.prompt_segment",
                                           "segment.parent", "segment.length", "digest" };
    static const uint64_t values[] = { 0, 1, 7, UINT32_MAX, UINT64_MAX, UINT64_MAX / 8,
                                       (uint64_t)1 << 40, (uint64_t)1 << 61 };
    void (*const changes[])(unsigned char *, unsigned char *, uint64_t) = {
        set_count, set_offset, set_stored, set_bytes, set_type, set_name };
    size_t n;
    struct kvc_trace *t = make(4, true, 40);
    assert_int_equal(kvc_trace_save(t, trace_path("t.kvt"), NULL), KVC_OK);
    unsigned char *file = read_file(trace_path("t.kvt"), &n), *copy = kvc_malloc(n, 1);
    for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++)
        for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
            for (size_t k = 0; k < sizeof(changes) / sizeof(changes[0]); k++) {
                memcpy(copy, file, n);
                forge(copy, n, columns[c], changes[k], values[v]);
                if (memcmp(copy, file, n) != 0)
                    refused(copy, n);
            }
    memcpy(copy, file, n); /* an unknown column, and a later version */
    forge(copy, n, "request.think_ns", set_name, 'x');
    struct kvc_trace *u = NULL;
    assert_int_equal(kvc_trace_open(&u, trace_file("x.kvt", copy, n), NULL, NULL, NULL),
                     KVC_ERR_INPUT); /* its digest says that something is missing */
    memcpy(copy, file, n);
    copy[8] = 2;
    struct kvc_error err = { 0 };
    assert_int_equal(kvc_trace_open(&u, trace_file("x.kvt", copy, n), NULL, NULL, &err),
                     KVC_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "version 2"));
    kvc_free(file);
    kvc_free(copy);
    kvc_trace_destroy(t);
}

static void contradicting_columns_are_refused(void **state)
{
    (void)state;
    struct kvc_trace *t = make(5, true, 40);
    struct {
        uint32_t *at, value;
    } cases[] = {
        { &t->prompt_seg[3], t->n_segments }, { &t->prompt_seg[3], UINT32_MAX - 1 },
        { &t->output_seg[3], t->n_segments }, { &t->session[0], t->n_sessions },
        { &t->tenant[0], t->n_tenants },      { &t->model[0], t->n_models },
        { &t->seg_parent[2], 2 },             { &t->seg_parent[1], t->n_segments },
        { &t->seg_len[0], 0 },                { &t->seg_len[0], UINT32_MAX },
        { &t->seg_len[0], 500 },              { &t->input_tokens[0], 0 },
        { &t->input_tokens[0], UINT32_MAX },  { &t->output_tokens[0], UINT32_MAX },
        { &t->block_tokens, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t was = *cases[i].at;
        size_t n;
        *cases[i].at = cases[i].value;
        kvc_trace_digest(t, t->digest); /* the writer means it */
        assert_int_equal(kvc_trace_save(t, trace_path("w.kvt"), NULL), KVC_OK);
        unsigned char *file = read_file(trace_path("w.kvt"), &n);
        refused(file, n);
        kvc_free(file);
        *cases[i].at = was;
    }
    t->arrival_ns[1] = t->arrival_ns[39] + 1;
    kvc_trace_digest(t, t->digest);
    assert_int_equal(kvc_trace_save(t, trace_path("w.kvt"), NULL), KVC_OK);
    size_t n;
    unsigned char *file = read_file(trace_path("w.kvt"), &n);
    refused(file, n);
    kvc_free(file);
    kvc_trace_destroy(t);
}

/* ---- writing ---- */

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    struct kvc_trace *t = make(6, true, 3000), *u = NULL;
    struct kvc_error err = { 0 };
    struct rlimit small = { 4096, RLIM_INFINITY }, old;
    size_t before = trace_folder_count();
    assert_int_equal(kvc_trace_save(t, "/dev/full", &err), KVC_ERR_IO);
    assert_non_null(strstr(err.text, "disk is full"));
    assert_int_equal(kvc_trace_save(t, "/nowhere/t.kvt", &err), KVC_ERR_IO);
    assert_int_equal(kvc_trace_save(t, trace_path("."), &err), KVC_ERR_IO);

    /* The size limit stands for any write that fails half way. */
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    setrlimit(RLIMIT_FSIZE, &small);
    enum kvc_status status = kvc_trace_save(t, trace_path("new.kvt"), &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, KVC_ERR_IO);
    assert_int_equal(trace_folder_count(), before);

    /* An older file stays as it is when its successor fails. */
    assert_int_equal(kvc_trace_save(t, trace_path("old.kvt"), NULL), KVC_OK);
    setrlimit(RLIMIT_FSIZE, &small);
    status = kvc_trace_save(t, trace_path("old.kvt"), &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, KVC_ERR_IO);
    assert_int_equal(kvc_trace_open(&u, trace_path("old.kvt"), NULL, NULL, NULL), KVC_OK);
    same_trace(t, u);
    assert_int_equal(trace_folder_count(), before + 1);
    kvc_trace_destroy(t);
    kvc_trace_destroy(u);
}

static void links_and_devices_stay_what_they_are(void **state)
{
    (void)state;
    struct kvc_trace *t = make(7, false, 10), *u = NULL;
    struct stat st;
    const char *link = trace_path("link.kvt");
    assert_int_equal(symlink(trace_path("real.kvt"), link), 0);
    assert_int_equal(kvc_trace_save(t, trace_path("real.kvt"), NULL), KVC_OK);
    assert_int_equal(kvc_trace_save(t, link, NULL), KVC_OK);
    assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    assert_int_equal(kvc_trace_open(&u, link, NULL, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_trace_save(t, "/dev/null", NULL), KVC_OK);
    assert_true(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    kvc_trace_destroy(t);
    kvc_trace_destroy(u);
}

/* ---- memory ---- */

static void running_out_of_memory_anywhere_is_clean(void **state)
{
    (void)state;
    static const char log[] =
        "{\"timestamp\":5,\"input_length\":40,\"output_length\":9,\"hash_ids\":[1,2,3],"
        "\"session_id\":\"a\",\"model\":\"m\",\"tenant\":\"t\"}\n"
        "{\"timestamp\":4,\"input_length\":64,\"output_length\":9,\"hash_ids\":[1,2,2,5],"
        "\"session_id\":\"a\",\"delay\":7,\"model\":\"m\"}\n"
        "{\"timestamp\":9,\"input_length\":3,\"output_length\":9,\"hash_ids\":[1,2,3,4,5]}\n"
        "{\"timestamp\":9,\"input_length\":16.0,\"output_length\":9,\"hash_ids\":[\"x\"]}\n";
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = 16 };
    const char *path = trace_text("small", log), *out = trace_path("small.kvt");
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        struct kvc_trace *t = NULL, *u = NULL;
        struct kvc_import_report r;
        struct kvc_error err = { 0 };
        kvc_alloc_fail_after(n);
        enum kvc_status status = kvc_trace_import(&t, &path, 1, &o, &r, &err);
        if (status == KVC_OK)
            status = kvc_trace_save(t, out, &err);
        if (status == KVC_OK)
            status = kvc_trace_open(&u, out, NULL, NULL, &err);
        kvc_alloc_fail_after(0);
        done = status == KVC_OK;
        if (!done) {
            assert_int_equal(status, KVC_ERR_NOMEM);
            assert_int_equal(err.status, KVC_ERR_NOMEM);
        } else {
            assert_int_equal(r.accepted, 3);
            assert_int_equal(r.bad, 1);
            assert_true(n > 40);
        }
        kvc_trace_destroy(t);
        kvc_trace_destroy(u);
    }
}

static void digest_of(const unsigned char *bytes, size_t n, char out[24])
{
    struct kvc_digest d;
    kvc_digest_init(&d);
    kvc_digest_add(&d, bytes, n);
    kvc_digest_hex(&d, out);
}

/* Any bit, any length and any order, on either side of where lanes begin. */
static void digests_tell_contents_apart(void **state)
{
    static const size_t sizes[] = { 7, 64, 4095, 4096, 4127, 5001 };
    unsigned char bytes[5001];
    char was[24], is[24];
    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * i >> 3);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        size_t n = sizes[k];
        digest_of(bytes, n, was);
        digest_of(bytes, n - 1, is);
        assert_string_not_equal(was, is);
        for (size_t bit = 0; bit < n * 8; bit += 1 + n / 64) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            digest_of(bytes, n, is);
            assert_string_not_equal(was, is);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        for (size_t at = 0; at + 16 <= n; at += 8) { /* two words change places */
            unsigned char other[8];
            memcpy(other, bytes + at, 8);
            memmove(bytes + at, bytes + at + 8, 8);
            memcpy(bytes + at + 8, other, 8);
            digest_of(bytes, n, is);
            assert_true((strcmp(was, is) != 0) == (memcmp(bytes + at, other, 8) != 0));
            memcpy(bytes + at + 8, bytes + at, 8);
            memcpy(bytes + at, other, 8);
        }
        digest_of(bytes, n, is);
        assert_string_equal(was, is);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(reports_of_other_versions_are_read),
        cmocka_unit_test(any_changed_byte_is_found),
        cmocka_unit_test(forged_indexes_are_refused),
        cmocka_unit_test(contradicting_columns_are_refused),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(links_and_devices_stay_what_they_are),
        cmocka_unit_test(running_out_of_memory_anywhere_is_clean),
        cmocka_unit_test(digests_tell_contents_apart),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
