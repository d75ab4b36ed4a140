/* SPDX-License-Identifier: Apache-2.0
 * Import of the conversation trace repeated 100 times, to .kvt, all checks on: once as it is (the
 * same blocks and times again, so that sorting matters), once with ids and times shifted so that
 * each repetition is new. CPU time of the whole process, user and system. */
#include "base/alloc.h"
#include "tests/bench/bench.h"
#include "traces/formats/mooncake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPEAT 100

static int fail(const char *what)
{
    fprintf(stderr, "bench_import: %s\n", what);
    return 1;
}

/* One repetition of the log into f; false when a row isn't plain or the disk is full. */
static bool repeat(FILE *f, const char *log, uint64_t shift_id, uint64_t shift_ms)
{
    struct kvc_stream *s = NULL;
    struct kvc_lines l;
    struct kvc_log_row row = { 0 };
    enum kvc_line_kind kind;
    const char *p;
    size_t n;
    uint64_t *ids = kvc_malloc(1 << 20, sizeof(*ids));
    bool ok = ids && kvc_stream_open(&s, log, NULL) == KVC_OK && kvc_lines_init(&l, s);
    while (ok && kvc_lines_next(&l, &kind, &p, &n, NULL) == KVC_OK && kind == KVC_LINE_TEXT) {
        ok = n < 1 << 20 && kvc_mooncake_scan(p, ids, &row) >= n;
        if (!ok)
            break;
        if (!shift_id && !shift_ms) {
            fprintf(f, "%.*s\n", (int)n, p);
            continue;
        }
        fprintf(f, "{\"timestamp\": %llu, \"input_length\": %u, \"output_length\": %u, "
                "\"hash_ids\": [", (unsigned long long)(row.time_ns / 1000000 + shift_ms),
                row.input_tokens, row.output_tokens);
        for (size_t i = 0; i < row.n_ids; i++)
            fprintf(f, "%s%llu", i ? ", " : "", (unsigned long long)(ids[i] + shift_id));
        fprintf(f, "]}\n");
    }
    if (s)
        kvc_lines_clear(&l);
    kvc_stream_close(s);
    kvc_free(ids);
    return ok && !ferror(f);
}

int main(void)
{
    const char *trace = "../shared/traces/mooncake/conversation_trace.jsonl.zst";
    const char *tmp = getenv("TMPDIR");
    char folder[200], log[256], out[256];
    if (access(trace, R_OK) != 0) {
        printf("skip\timport\t%s is not there\n", trace);
        return 0;
    }
    snprintf(folder, sizeof(folder), "%s/kvcast-bench-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return fail("no temporary folder");
    snprintf(log, sizeof(log), "%s/log.jsonl", folder);
    snprintf(out, sizeof(out), "%s/t.kvt", folder);
    int rc = 0;
    for (int shifted = 0; shifted < 2 && rc == 0; shifted++) {
        FILE *f = fopen(log, "w");
        bool ok = f != NULL;
        for (uint64_t i = 0; i < REPEAT && ok; i++)
            ok = repeat(f, trace, shifted ? i * 182790 : 0, shifted ? i * 3540000 : 0);
        if (f && fclose(f) != 0)
            ok = false;
        rc = !ok ? fail("can't make the log")
                 : bench_import(shifted ? "import, Mooncake JSON, conversation x 100, all new"
                                        : "import, Mooncake JSON, conversation x 100 (303 MB)",
                                log, out, "JSON", false, shifted ? "-" : ">=300");
        unlink(log);
        unlink(out);
    }
    rmdir(folder);
    return rc;
}
