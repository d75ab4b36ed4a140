/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/stream.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/formats/oraclegeneral.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define CHUNK ((size_t)1 << 20)
#define HEAD ((size_t)1 << 18)

enum codec { PLAIN, ZSTD, GZIP };

struct kvc_stream {
    int fd;
    enum codec codec;
    bool kvt, tar, file_end;
    char name[256];
    struct kvc_stream_source source; /* read is NULL: of fd */
    uint64_t size, consumed;         /* stored bytes */
    unsigned char *in;       /* stored bytes read ahead: [in_begin, in_end) */
    size_t in_begin, in_end;
    char *head; /* text read ahead: [head_begin, head_end) */
    size_t head_begin, head_end;
    ZSTD_DStream *zstd;
    z_stream gzip;
    bool gzip_live, within; /* within: inside a frame or member */
};

static enum kvc_status fail_input(const struct kvc_stream *s, struct kvc_error *err,
                                  const char *text)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, s->name, 0, NULL, "%s", text);
}

static enum kvc_status fail_packed(const struct kvc_stream *s, struct kvc_error *err,
                                   const char *kind, const char *what)
{
    kvc_fail_at(err, KVC_ERR_INPUT, s->name, 0, NULL, "%s %s at byte %llu of the file; fetch or "
                "compress it again", kind, what, (unsigned long long)s->consumed);
    if (err)
        err->byte = s->consumed;
    return KVC_ERR_INPUT;
}

/* Stored bytes, as many as come; *got 0 and file_end at the end. */
static enum kvc_status read_stored(struct kvc_stream *s, void *buf, size_t n, size_t *got,
                                   struct kvc_error *err)
{
    ssize_t r;
    *got = 0;
    if (s->source.read) {
        enum kvc_status status = s->source.read(s->source.user, buf, n, got, err);
        s->file_end = status == KVC_OK && *got == 0;
        return status;
    }
    do
        r = read(s->fd, buf, n);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return kvc_fail_errno(err, s->name, "reading");
    *got = (size_t)r;
    s->file_end = r == 0;
    return KVC_OK;
}

/* Refills in[] from its beginning, short only at the file's end. */
static enum kvc_status fill(struct kvc_stream *s, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    size_t got;
    if (s->in_begin) {
        memmove(s->in, s->in + s->in_begin, s->in_end - s->in_begin);
        s->in_end -= s->in_begin;
        s->in_begin = 0;
    }
    while (status == KVC_OK && !s->file_end && s->in_end < CHUNK) {
        status = read_stored(s, s->in + s->in_end, CHUNK - s->in_end, &got, err);
        s->in_end += got;
    }
    return status;
}

static enum kvc_status read_plain(struct kvc_stream *s, char *buf, size_t n, size_t *got,
                                  struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    size_t ahead = s->in_end - s->in_begin;
    *got = n < ahead ? n : ahead;
    if (ahead) {
        memcpy(buf, s->in + s->in_begin, *got);
        s->in_begin += *got;
    } else if (!s->file_end) {
        status = read_stored(s, buf, n, got, err);
    }
    s->consumed += *got;
    return status;
}

static enum kvc_status read_zstd(struct kvc_stream *s, char *buf, size_t n, size_t *got,
                                 struct kvc_error *err)
{
    ZSTD_outBuffer out = { buf, n, 0 };
    while (out.pos == 0) {
        if (s->in_begin == s->in_end) {
            enum kvc_status status = fill(s, err);
            if (status != KVC_OK)
                return status;
        }
        ZSTD_inBuffer in = { s->in + s->in_begin, s->in_end - s->in_begin, 0 };
        if (in.size == 0 && !s->within)
            break;
        size_t r = ZSTD_decompressStream(s->zstd, &out, &in);
        s->in_begin += in.pos;
        s->consumed += in.pos;
        if (ZSTD_isError(r))
            return fail_packed(s, err, "zstd data is damaged:", ZSTD_getErrorName(r));
        if (in.size == 0 && out.pos == 0)
            return fail_packed(s, err, "zstd data", "is cut short");
        s->within = r != 0;
    }
    *got = out.pos;
    return KVC_OK;
}

/* After a gzip member: another one, zero padding, or the end. */
static enum kvc_status next_member(struct kvc_stream *s, bool *more, struct kvc_error *err)
{
    *more = false;
    for (;;) {
        if (s->in_end - s->in_begin < 2) {
            enum kvc_status status = fill(s, err);
            if (status != KVC_OK)
                return status;
        }
        size_t n = s->in_end - s->in_begin;
        const unsigned char *p = s->in + s->in_begin;
        if (n == 0)
            return KVC_OK;
        if (n >= 2 && p[0] == 0x1f && p[1] == 0x8b) {
            *more = true;
            inflateReset(&s->gzip);
            s->within = true;
            return KVC_OK;
        }
        if (p[0] != 0)
            return fail_packed(s, err, "gzip data", "is followed by something else");
        s->in_begin++;
        s->consumed++;
    }
}

static enum kvc_status read_gzip(struct kvc_stream *s, char *buf, size_t n, size_t *got,
                                 struct kvc_error *err)
{
    s->gzip.next_out = (unsigned char *)buf;
    s->gzip.avail_out = (uInt)(n < CHUNK ? n : CHUNK);
    uInt room = s->gzip.avail_out;
    while (s->gzip.avail_out == room) {
        enum kvc_status status = KVC_OK;
        bool more = true;
        if (!s->within)
            status = next_member(s, &more, err);
        else if (s->in_begin == s->in_end)
            status = fill(s, err);
        if (status != KVC_OK)
            return status;
        if (!more)
            break;
        if (s->in_begin == s->in_end)
            return fail_packed(s, err, "gzip data", "is cut short");
        s->gzip.next_in = s->in + s->in_begin;
        s->gzip.avail_in = (uInt)(s->in_end - s->in_begin);
        uInt before = s->gzip.avail_in;
        int r = inflate(&s->gzip, Z_NO_FLUSH);
        s->in_begin += before - s->gzip.avail_in;
        s->consumed += before - s->gzip.avail_in;
        if (r == Z_STREAM_END)
            s->within = false;
        else if (r != Z_OK && r != Z_BUF_ERROR)
            return fail_packed(s, err, "gzip data is damaged:", s->gzip.msg ? s->gzip.msg : "?");
    }
    *got = room - s->gzip.avail_out;
    return KVC_OK;
}

static enum kvc_status read_text(struct kvc_stream *s, char *buf, size_t n, size_t *got,
                                 struct kvc_error *err)
{
    switch (s->codec) {
    case ZSTD:
        return read_zstd(s, buf, n, got, err);
    case GZIP:
        return read_gzip(s, buf, n, got, err);
    default:
        return read_plain(s, buf, n, got, err);
    }
}

enum kvc_status kvc_stream_read(struct kvc_stream *s, void *buf, size_t n, size_t *got,
                                struct kvc_error *err)
{
    size_t ahead = s->head_end - s->head_begin;
    if (!ahead)
        return read_text(s, buf, n, got, err);
    *got = n < ahead ? n : ahead;
    memcpy(buf, s->head + s->head_begin, *got);
    s->head_begin += *got;
    return KVC_OK;
}

const char *kvc_stream_head(const struct kvc_stream *s, size_t *n)
{
    *n = s->head_end - s->head_begin;
    return s->head + s->head_begin;
}

uint64_t kvc_stream_position(const struct kvc_stream *s)
{
    return s->source.position ? s->source.position(s->source.user) : s->consumed;
}

uint64_t kvc_stream_size(const struct kvc_stream *s)
{
    return s->size;
}

static bool starts_with(const unsigned char *p, size_t n, const char *magic, size_t m)
{
    return n >= m && memcmp(p, magic, m) == 0;
}

static bool is_tar(const unsigned char *p, size_t n)
{
    return n > 262 && memcmp(p + 257, "ustar", 5) == 0;
}

/* What engines send over ZeroMQ, written to a file as it is. */
static bool is_packed_events(const unsigned char *p, size_t n)
{
    bool binary = n && ((p[0] >= 0x80 && p[0] < 0xe0) || memchr(p, 0, n < 4096 ? n : 4096));
    return binary && (memmem(p, n, "BlockStored", 11) || memmem(p, n, "BlockRemoved", 12) ||
                      memmem(p, n, "AllBlocksCleared", 16));
}

/* The kind of file its first bytes tell, for messages; NULL = may be text. */
static const char *alien_kind(const unsigned char *p, size_t n)
{
    static const struct {
        const char *magic;
        unsigned char length;
        const char *what;
    } known[] = {
        { "version https://git-lfs", 23,
          "this is a Git LFS pointer, not the log; fetch the real file (git lfs pull)" },
        { "\xfd" "7zXZ", 5, "this is xz data; unpack it, or compress it with zstd or gzip" },
        { "BZh", 3, "this is bzip2 data; unpack it, or compress it with zstd or gzip" },
        { "PK\x03\x04", 4, "this is a zip archive; unpack it first" },
        { "\x04\x22\x4d\x18", 4, "this is lz4 data; unpack it, or compress it with zstd or gzip" },
        { "7z\xbc\xaf\x27\x1c", 6, "this is a 7z archive; unpack it first" },
        { "\x80\x04\x95", 3, "this is a Python pickle, and loading one runs code; convert it to "
                             "JSON lines with a script you trust" },
        { "PAR1", 4, "this is a Parquet file; export it as JSON lines" },
        { "SQLite format 3", 15, "this is an SQLite database, not a log" },
        { "\xff\xfe", 2, "this is UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)" },
        { "\xfe\xff", 2, "this is UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)" },
        { "\x7f" "ELF", 4, "this is a program, not a log" },
        { "%PDF", 4, "this is a PDF document, not a log" },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (starts_with(p, n, known[i].magic, known[i].length))
            return known[i].what;
    if (is_tar(p, n))
        return "this is a tar archive; unpack it and name the files in it";
    if (is_packed_events(p, n))
        return "these are KV events as MessagePack; write each batch as a line of JSON (in Python: "
               "json.dumps(msgspec.msgpack.decode(payload), default=bytes.hex))";
    if (n && memchr(p, 0, n < 4096 ? n : 4096))
        return "this is a binary file (it holds NUL bytes), not a log";
    return NULL;
}

static enum kvc_status start_codec(struct kvc_stream *s, struct kvc_error *err)
{
    const unsigned char *p = s->in;
    size_t n = s->in_end;
    bool skippable = n >= 4 && (p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", 3) == 0;
    if (starts_with(p, n, "\x28\xb5\x2f\xfd", 4) || skippable) {
        s->codec = ZSTD;
        s->within = false;
        if (!(s->zstd = ZSTD_createDStream()))
            return kvc_fail_nomem(err);
        ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, 30);
    } else if (starts_with(p, n, "\x1f\x8b", 2)) {
        s->codec = GZIP;
        s->within = true;
        if (inflateInit2(&s->gzip, 15 + 16) != Z_OK)
            return kvc_fail_nomem(err);
        s->gzip_live = true;
    }
    return KVC_OK;
}

static enum kvc_status read_head(struct kvc_stream *s, struct kvc_error *err)
{
    s->head = kvc_malloc(HEAD, 1);
    if (!s->head)
        return kvc_fail_nomem(err);
    while (s->head_end < HEAD) {
        size_t got = 0;
        struct kvc_error later;
        enum kvc_status status = read_text(s, s->head + s->head_end, HEAD - s->head_end, &got,
                                           &later);
        if (status != KVC_OK) {
            if (err)
                *err = later;
            return status;
        }
        if (!got)
            break;
        s->head_end += got;
    }
    if (s->kvt)
        return KVC_OK;
    if (s->head_end == 0)
        return fail_input(s, err, s->consumed ? "the file holds no text" : "the file is empty");
    s->tar = is_tar((const unsigned char *)s->head, s->head_end);
    if (s->tar)
        return KVC_OK; /* for the formats that come as archives */
    if (kvc_oraclegeneral_sniff(s->head, s->head_end))
        return KVC_OK; /* the one binary log */
    const char *alien = alien_kind((const unsigned char *)s->head, s->head_end);
    if (alien)
        return fail_input(s, err, alien);
    if (starts_with((const unsigned char *)s->head, s->head_end, "\xef\xbb\xbf", 3))
        s->head_begin = 3;
    return KVC_OK;
}

static enum kvc_status open_file(struct kvc_stream *s, const char *path, struct kvc_error *err)
{
    struct stat st;
    s->fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st) != 0) {
        kvc_fail_errno(err, path, "can't open");
        if (err)
            err->status = KVC_ERR_INPUT; /* the name is part of what the user gave */
        return KVC_ERR_INPUT;
    }
    if (S_ISDIR(st.st_mode))
        return fail_input(s, err, "this is a directory; name the log files in it");
    if (S_ISREG(st.st_mode))
        s->size = (uint64_t)st.st_size;
    return KVC_OK;
}

bool kvc_stream_is_kvt(const struct kvc_stream *s)
{
    return s->kvt;
}

bool kvc_stream_is_tar(const struct kvc_stream *s)
{
    return s->tar;
}

/* source NULL: the file of that name. */
static enum kvc_status open_stream(struct kvc_stream **out, const struct kvc_stream_source *source,
                                   const char *name, struct kvc_error *err)
{
    struct kvc_stream *s = kvc_calloc(1, sizeof(*s));
    if (!s)
        return kvc_fail_nomem(err);
    s->fd = -1;
    strncpy(s->name, name, sizeof(s->name) - 1);
    s->in = kvc_malloc(CHUNK, 1);
    enum kvc_status status = s->in ? KVC_OK : kvc_fail_nomem(err);
    if (source)
        s->source = *source;
    else if (status == KVC_OK)
        status = open_file(s, name, err);
    if (status == KVC_OK)
        status = fill(s, err);
    if (status == KVC_OK) {
        s->kvt = starts_with(s->in, s->in_end, KVC_KVT_MAGIC, 8);
        status = s->kvt ? KVC_OK : start_codec(s, err);
    }
    if (status == KVC_OK)
        status = read_head(s, err);
    if (status != KVC_OK) {
        kvc_stream_close(s);
        return status;
    }
    *out = s;
    return KVC_OK;
}

enum kvc_status kvc_stream_open(struct kvc_stream **out, const char *path, struct kvc_error *err)
{
    return open_stream(out, NULL, path, err);
}

enum kvc_status kvc_stream_open_source(struct kvc_stream **out,
                                       const struct kvc_stream_source *source, const char *name,
                                       struct kvc_error *err)
{
    return open_stream(out, source, name, err);
}

void kvc_stream_close(struct kvc_stream *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    if (s->gzip_live)
        inflateEnd(&s->gzip);
    ZSTD_freeDStream(s->zstd);
    kvc_free(s->in);
    kvc_free(s->head);
    kvc_free(s);
}
