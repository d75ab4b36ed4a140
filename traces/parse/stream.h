/* SPDX-License-Identifier: Apache-2.0
 * Bytes of a log as a person would read them: plain, zstd, gzip (told apart by their first
 * bytes) or stdin; and the lines in them. */
#ifndef KVC_TRACES_STREAM_H
#define KVC_TRACES_STREAM_H

#include <kvcast/kvcast.h>

struct kvc_stream;

#define KVC_KVT_MAGIC "\x89KVT\r\n\x1a\n" /* 8 bytes; damaged by any text conversion */

/* path "-" is stdin. Directories, empty files, Git LFS pointers and formats that are neither text
 * nor compressed text are refused with their names. A .kvt and a tar open as they are. */
enum kvc_status kvc_stream_open(struct kvc_stream **out, const char *path, struct kvc_error *err);
/* The same of bytes that something else hands on, as the members of an archive. */
struct kvc_stream_source {
    void *user;
    enum kvc_status (*read)(void *user, void *buf, size_t n, size_t *got, struct kvc_error *err);
    uint64_t (*position)(const void *user); /* stored bytes consumed */
};
enum kvc_status kvc_stream_open_source(struct kvc_stream **out,
                                       const struct kvc_stream_source *source, const char *name,
                                       struct kvc_error *err);
bool kvc_stream_is_kvt(const struct kvc_stream *s);
bool kvc_stream_is_tar(const struct kvc_stream *s); /* the text is an archive */
/* Up to n bytes into buf; *got 0 = the end. */
enum kvc_status kvc_stream_read(struct kvc_stream *s, void *buf, size_t n, size_t *got,
                                struct kvc_error *err);
/* The first bytes of the text, at least one, without consuming them. */
const char *kvc_stream_head(const struct kvc_stream *s, size_t *n);
uint64_t kvc_stream_position(const struct kvc_stream *s); /* stored bytes consumed */
uint64_t kvc_stream_size(const struct kvc_stream *s);     /* stored bytes, 0 = not known */
void kvc_stream_close(struct kvc_stream *s);              /* NULL is fine */

#define KVC_LINE_MAX ((size_t)32 << 20)
#define KVC_LINE_PAD 64 /* bytes past a line's end that may be read, whatever they hold */

enum kvc_line_kind { KVC_LINE_END, KVC_LINE_TEXT, KVC_LINE_TOO_LONG };

struct kvc_lines {
    struct kvc_stream *stream; /* borrowed */
    char *buf;
    size_t cap, begin, end;
    bool eof;
    uint64_t line;  /* physical number of the current line, from 1 */
    uint64_t bytes; /* of text taken from the stream */
    bool (*tick)(void *user, uint64_t position); /* at each refill; false cancels */
    void *tick_user;
};

bool kvc_lines_init(struct kvc_lines *l, struct kvc_stream *stream); /* false: no memory */
void kvc_lines_clear(struct kvc_lines *l);
/* The next line without its newline and carriage return; text[n] may be read (it ends the line).
 * A line over KVC_LINE_MAX is passed over and reported as such, never held whole. */
enum kvc_status kvc_lines_next(struct kvc_lines *l, enum kvc_line_kind *kind, const char **text,
                               size_t *n, struct kvc_error *err);

#endif
