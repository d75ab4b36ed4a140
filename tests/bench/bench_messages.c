/* SPDX-License-Identifier: Apache-2.0
 * Import of OpenAI messages to .kvt, all text hashed and all checks on: agent sessions that carry
 * their whole history, with escapes and characters beyond ASCII as in real logs. CPU time of the
 * whole process, user and system. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/bench/bench.h"

#include <kvcast/kvcast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS 60
#define TURNS 60
#define TURN_TEXT 2400

static int fail(const char *what)
{
    fprintf(stderr, "bench_messages: %s\n", what);
    return 1;
}

/* Text as JSON: words, a line end each 60 bytes or so, now and then a quote or an accent. */
static size_t write_text(char *out, size_t n, uint64_t *rng)
{
    size_t k = 0;
    while (k < n) {
        uint64_t r = kvc_rng_next(rng);
        size_t word = 2 + (r & 7);
        for (size_t i = 0; i < word; i++)
            out[k++] = (char)('a' + (r >> (8 + 5 * i)) % 26);
        const char *behind = (r >> 3) % 11 == 0   ? "\\n    "
                             : (r >> 3) % 97 == 1 ? "\\\""
                             : (r >> 3) % 97 == 2 ? "\\u00e9 "
                             : (r >> 3) % 97 == 3 ? "\xc3\xa9 "
                                                  : " ";
        size_t m = strlen(behind);
        memcpy(out + k, behind, m);
        k += m;
    }
    return k;
}

static bool write_log(const char *path)
{
    FILE *f = fopen(path, "w");
    uint64_t rng = kvc_rng_stream(1, "bench messages");
    char *history = kvc_malloc(SESSIONS, (size_t)TURNS * 2 * (TURN_TEXT + 200));
    size_t room = (size_t)TURNS * 2 * (TURN_TEXT + 200), used[SESSIONS] = { 0 };
    for (int turn = 0; f && history && turn < TURNS; turn++) {
        for (int s = 0; s < SESSIONS; s++) {
            char *h = history + (size_t)s * room;
            static const char *const roles[] = { "assistant", "user" };
            for (int i = turn ? 0 : 1; i < 2; i++) {
                used[s] += (size_t)sprintf(h + used[s], "%s{\"role\":\"%s\",\"content\":\"",
                                           used[s] ? "," : "", roles[i]);
                used[s] += write_text(h + used[s], i ? TURN_TEXT : TURN_TEXT / 4, &rng);
                used[s] += (size_t)sprintf(h + used[s], "\"}");
            }
            fprintf(f, "{\"session_id\":\"s%d\",\"timestamp\":%d,\"model\":\"m\",\"messages\":[", s,
                    turn * 60000 + s * 17);
            fwrite(h, 1, used[s], f);
            fprintf(f, "],\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":150}}\n",
                    used[s] / 4);
        }
    }
    bool ok = f && history && !ferror(f);
    kvc_free(history);
    return f && fclose(f) == 0 && ok;
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    char folder[200], log[256], out[256];
    snprintf(folder, sizeof(folder), "%s/kvcast-bench-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return fail("no temporary folder");
    snprintf(log, sizeof(log), "%s/log.jsonl", folder);
    snprintf(out, sizeof(out), "%s/t.kvt", folder);
    int rc = write_log(log)
                 ? bench_import("import, OpenAI messages, hashed", log, out, "JSON", true, ">=250")
                 : fail("can't make the log");
    unlink(log);
    unlink(out);
    rmdir(folder);
    return rc;
}
