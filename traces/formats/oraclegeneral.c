/* SPDX-License-Identifier: Apache-2.0
 * libCacheSim's oracleGeneral: packed little-endian records of u32 clock_time (s), u64 obj_id,
 * u32 obj_size, i64 next_access_vtime: the number of the next reference to the same object,
 * counted from 1; -1 (or INT64_MAX) when there is none. */
#include "traces/formats/oraclegeneral.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/import/import.h"
#include "traces/import/recent.h"

#include <string.h>

#define RECORD ((size_t)24)
#define CHUNK (RECORD * 4096)
#define NEVER UINT64_MAX
#define LATEST ((uint64_t)1 << 48) /* references in a trace */

struct record {
    uint32_t clock_s, bytes;
    uint64_t id, next;
};

static uint64_t little(const char *p, unsigned n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | (unsigned char)p[n];
    return v;
}

static struct record decode(const char *p)
{
    struct record r = { (uint32_t)little(p, 4), (uint32_t)little(p + 12, 4), little(p + 4, 8),
                        little(p + 16, 8) };
    if (r.next == INT64_MAX)
        r.next = NEVER;
    return r;
}

bool kvc_oraclegeneral_sniff(const char *head, size_t n)
{
    size_t records = n / RECORD < 1000 ? n / RECORD : 1000;
    uint64_t before = 0, sorted = 0;
    for (size_t i = 0; i < records; i++) {
        struct record r = decode(head + i * RECORD);
        if (r.next != NEVER && (r.next == 0 || r.next >= LATEST))
            return false;
        sorted += r.clock_s >= before;
        before = r.clock_s;
    }
    return records && sorted * 10 >= records * 9;
}

struct reader {
    struct kvc_import *im;
    struct kvc_recent objects; /* of uint64_t: where it said that it comes next */
    uint64_t n, checks, broken, shift; /* shift: of the file's count against ours */
    bool shift_known;
    struct kvc_error first; /* broken promise */
};

static enum kvc_status broken(struct reader *r, uint64_t record, struct kvc_error *err,
                              const char *how, uint64_t promised)
{
    struct kvc_error bad;
    kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(r->im), record, "next_access_vtime", "%s%llu: "
                "the file contradicts itself (its line is the record's number)", how,
                (unsigned long long)promised);
    if (!r->broken++)
        r->first = bad;
    if (!kvc_import_options_of(r->im)->strict)
        return KVC_OK;
    if (err)
        *err = bad;
    return KVC_ERR_INPUT;
}

/* Does the object come where it said it would? */
static enum kvc_status check(struct reader *r, const struct record *rec, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    bool fresh;
    uint64_t *next = kvc_recent_get(&r->objects, (const char *)&rec->id, sizeof(rec->id), &fresh);
    if (!next)
        return kvc_fail_nomem(err);
    if (!fresh) {
        uint64_t promised = *next;
        r->checks++;
        if (promised != NEVER && !r->shift_known) {
            r->shift = promised - r->n;
            r->shift_known = true;
        }
        if (promised == NEVER)
            status = broken(r, r->n, err, "the object's reference before said that it was the "
                            "last of ", r->n - 1);
        else if (promised - r->n != r->shift)
            status = broken(r, r->n, err, "the object's reference before names another record, ",
                            promised);
    }
    *next = rec->next;
    return status;
}

static enum kvc_status one_record(struct reader *r, const char *p, struct kvc_error *err)
{
    struct record rec = decode(p);
    struct kvc_log_row row = { .time_ns = (uint64_t)rec.clock_s * 1000000000,
                               .think_ns = KVC_TIME_NONE, .input_tokens = 1, .ids = &rec.id,
                               .n_ids = 1 };
    r->n++;
    kvc_import_begin_row(r->im, r->n, "");
    enum kvc_status status = check(r, &rec, err);
    return status == KVC_OK ? kvc_import_row(r->im, &row, false, err) : status;
}

/* What was promised within the file and never came. */
static enum kvc_status finish(struct reader *r, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; r->shift_known && i < kvc_recent_count(&r->objects) && status == KVC_OK;
         i++) {
        const uint64_t *promised = kvc_recent_at(&r->objects, i);
        uint64_t at = promised ? *promised - r->shift : 0;
        if (!promised || *promised == NEVER || at < 1 || at > r->n)
            continue;
        r->checks++;
        status = broken(r, at, err, "the reference promised here is one of another object, by "
                        "record number ", at);
    }
    if (status != KVC_OK || !r->broken)
        return status;
    if (r->broken * 2 > r->checks && r->checks > 1) {
        if (err)
            *err = r->first;
        return KVC_ERR_INPUT;
    }
    kvc_import_note(r->im, "next_access_vtime contradicts the references %llu times of %llu, "
                    "first at record %llu; the future is taken from the references themselves",
                    (unsigned long long)r->broken, (unsigned long long)r->checks,
                    (unsigned long long)r->first.line);
    return KVC_OK;
}

static enum kvc_status read_records(struct reader *r, char *buf, struct kvc_error *err)
{
    size_t have = 0, got = 1;
    enum kvc_status status = KVC_OK;
    while (status == KVC_OK && got) {
        status = kvc_import_bytes(r->im, buf + have, CHUNK - have, &got, err);
        if (status != KVC_OK)
            break;
        size_t at = 0;
        for (have += got; status == KVC_OK && at + RECORD <= have; at += RECORD)
            status = one_record(r, buf + at, err);
        memmove(buf, buf + at, have - at);
        have -= at;
    }
    if (status == KVC_OK && have)
        status = kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(r->im), r->n + 1, NULL,
                             "%zu bytes behind the last whole record of 24: the file is cut "
                             "short, or no oracleGeneral", have);
    return status == KVC_OK ? finish(r, err) : status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .im = im };
    kvc_import_recent(im, &r.objects, sizeof(uint64_t));
    if (kvc_import_options_of(im)->block_tokens > 1)
        return kvc_fail(err, KVC_ERR_USAGE, "the log's objects have no tokens: leave out "
                        "--block-tokens");
    enum kvc_status status = kvc_import_block_size(im, 1, err);
    char *buf = kvc_malloc(CHUNK, 1);
    if (status == KVC_OK)
        status = buf ? read_records(&r, buf, err) : kvc_fail_nomem(err);
    if (status == KVC_OK)
        kvc_import_note(im, "an object counts as one block, whatever its size, and a reference as "
                        "a request for it: hit rates of objects are known, of tokens not");
    kvc_free(buf);
    kvc_recent_clear(&r.objects);
    return status;
}

const struct kvc_format kvc_format_oraclegeneral = {
    .name = "oraclegeneral",
    .summary = "libCacheSim's oracleGeneral: binary records of time, object, size, next reference",
    .block_tokens = 1,
    .objects = true,
    .sniff = kvc_oraclegeneral_sniff,
    .read = read_log,
};
