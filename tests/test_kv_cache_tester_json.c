/* SPDX-License-Identifier: Apache-2.0
 * Sessions of coding agents read by the walker against the same files in a JSON tree: every
 * request's time, lengths, model and blocks. */
#include "base/json.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER "../shared/traces/kv-cache-tester/single"
#define MOST_ROWS 4096
#define MOST_IDS 65536

struct row {
    uint64_t ns, in, out;
    const char *model;
    const struct kvc_jval *ids;
    uint32_t order;
};

struct rows {
    struct row row[MOST_ROWS];
    uint32_t n;
};

static uint64_t whole(const struct kvc_jval *object, const char *key)
{
    uint64_t v = UINT64_MAX;
    const struct kvc_jval *m = kvc_jval_member(object, key);
    assert_true(m && kvc_jval_u64(m, &v));
    return v;
}

static double seconds(const struct kvc_jval *object)
{
    double v = NAN;
    const struct kvc_jval *m = kvc_jval_member(object, "t");
    assert_true(m && kvc_jval_number(m, &v));
    return v;
}

/* A sub-agent's clock starts at its entry. */
static void gather(struct rows *out, const struct kvc_jval *requests, double from)
{
    for (const struct kvc_jval *r = kvc_jval_first(requests); r; r = kvc_jval_next(r)) {
        const struct kvc_jval *inner = kvc_jval_member(r, "requests");
        double t = from + seconds(r);
        if (inner) {
            gather(out, inner, t);
            continue;
        }
        assert_true(out->n < MOST_ROWS);
        out->row[out->n] = (struct row){
            .ns = (uint64_t)llround(t * 1e9), .in = whole(r, "in"), .out = whole(r, "out"),
            .model = kvc_jval_string(kvc_jval_member(r, "model")),
            .ids = kvc_jval_member(r, "hash_ids"), .order = out->n };
        out->n++;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* A block id of a model is one node of the forest and the other way round. */
static void same_blocks(const struct kvc_trace *t, uint64_t r, const struct row *row,
                        const uint32_t *first, uint32_t *node_of, uint32_t models)
{
    uint32_t n = kvc_trace_blocks(t, r), model = t->model ? t->model[r] : 0, k = n;
    uint32_t *path = calloc(n + 1, sizeof(*path));
    assert_int_equal(kvc_jval_count(row->ids), n);
    for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s])
        for (uint32_t i = t->seg_len[s]; i-- > 0;)
            path[--k] = first[s] + i;
    for (const struct kvc_jval *id = kvc_jval_first(row->ids); id; id = kvc_jval_next(id), k++) {
        uint64_t v = MOST_IDS;
        assert_true(kvc_jval_u64(id, &v) && v < MOST_IDS && model < models);
        uint32_t *node = &node_of[v * models + model];
        if (*node == UINT32_MAX)
            *node = path[k];
        assert_int_equal(*node, path[k]);
    }
    free(path);
}

static void compare(const char *path, const struct kvc_jval *root)
{
    static struct rows rows;
    rows.n = 0;
    gather(&rows, kvc_jval_member(root, "requests"), 0);
    qsort(rows.row, rows.n, sizeof(rows.row[0]), by_time);
    struct kvc_trace *t = trace_import(path, 0, NULL);
    uint32_t models = t->n_models ? t->n_models : 1, nodes = 0;
    uint32_t *first = calloc(t->n_segments + 1, sizeof(*first));
    uint32_t *node_of = malloc((size_t)MOST_IDS * models * sizeof(*node_of));
    memset(node_of, 0xff, (size_t)MOST_IDS * models * sizeof(*node_of));
    for (uint32_t s = 0; s < t->n_segments; s++) {
        first[s] = nodes;
        nodes += t->seg_len[s];
    }
    assert_int_equal(t->n_requests, rows.n);
    for (uint32_t r = 0; r < rows.n; r++) {
        const struct row *row = &rows.row[r];
        uint64_t at = row->ns - rows.row[0].ns;
        /* sums of seconds in doubles: to the nanosecond or two */
        assert_in_range(t->arrival_ns[r] + 2, at, at + 4);
        assert_int_equal(t->input_tokens[r], row->in);
        assert_int_equal(t->output_tokens[r], row->out);
        if (row->model)
            assert_string_equal(t->model_names[t->model[r]], row->model);
        same_blocks(t, r, row, first, node_of, models);
    }
    free(first);
    free(node_of);
    kvc_trace_destroy(t);
}

static void sessions_read_the_same(void **state)
{
    unsigned files = 0;
    DIR *d = opendir(FOLDER);
    (void)state;
    if (!d) {
        print_message("SKIPPED: %s is not here\n", FOLDER);
        skip();
    }
    for (struct dirent *e; (e = readdir(d));) {
        char path[512];
        struct kvc_jval *root = NULL;
        const char *dot = strrchr(e->d_name, '.');
        snprintf(path, sizeof(path), "%s/%s", FOLDER, e->d_name);
        if (!dot || strcmp(dot, ".json") != 0)
            continue;
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        char *text = malloc((size_t)1 << 22);
        size_t n = fread(text, 1, (size_t)1 << 22, f);
        fclose(f);
        assert_int_equal(kvc_json_parse(&root, text, n, false, path, 1, NULL), KVC_OK);
        compare(path, root);
        kvc_json_free(root);
        free(text);
        files++;
    }
    closedir(d);
    assert_true(files >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_read_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
