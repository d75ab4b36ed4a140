/* SPDX-License-Identifier: Apache-2.0
 * JSON in and out. Reading is cJSON behind this wall, made strict: // comments only when asked
 * for, duplicate keys and nesting beyond 64 are errors, integers are exact to 64 bits, errors
 * name file and line. Writing is a small appender with stable key order. */
#ifndef KVC_BASE_JSON_H
#define KVC_BASE_JSON_H

#include <kvcast/kvcast.h>

/* ---- reading ---- */

#define KVC_JSON_DEPTH 64 /* deeper nesting is an error */

struct kvc_jval; /* a value inside a document; lives as long as the document's root */

enum kvc_jkind { KVC_JNULL, KVC_JBOOL, KVC_JNUMBER, KVC_JSTRING, KVC_JARRAY, KVC_JOBJECT };

/* Parses n bytes of text; file names it in errors, first_line is the line of its first byte. */
enum kvc_status kvc_json_parse(struct kvc_jval **out, const char *text, size_t n, bool comments,
                               const char *file, uint64_t first_line, struct kvc_error *err);
void kvc_json_free(struct kvc_jval *root); /* NULL is fine */

enum kvc_jkind kvc_jval_kind(const struct kvc_jval *v);
const struct kvc_jval *kvc_jval_member(const struct kvc_jval *object, const char *key);
const struct kvc_jval *kvc_jval_first(const struct kvc_jval *container); /* NULL: empty */
const struct kvc_jval *kvc_jval_next(const struct kvc_jval *v);
size_t kvc_jval_count(const struct kvc_jval *container);
uint64_t kvc_jval_line(const struct kvc_jval *v);      /* where it begins */
const char *kvc_jval_key(const struct kvc_jval *v);    /* NULL in an array */
const char *kvc_jval_string(const struct kvc_jval *v); /* NULL: not a string */
bool kvc_jval_bool(const struct kvc_jval *v, bool *out);
bool kvc_jval_number(const struct kvc_jval *v, double *out);
/* A number as it is written, n bytes, or NULL. */
const char *kvc_jval_digits(const struct kvc_jval *v, size_t *n);
/* Exact: true only for a number that is an integer (61, 61.0 and 6.1e1 are one) within range. */
bool kvc_jval_u64(const struct kvc_jval *v, uint64_t *out);
bool kvc_jval_i64(const struct kvc_jval *v, int64_t *out);

/* ---- writing ---- */

struct kvc_json {
    char *buf; /* NUL-terminated once something was written */
    size_t len, cap;
    unsigned depth;
    bool failed; /* out of memory: later calls do nothing */
    bool pretty; /* two-space indent, arrays of numbers on one line */
    unsigned char state[64];
};

void kvc_json_init(struct kvc_json *j, bool pretty);
void kvc_json_clear(struct kvc_json *j);
/* key NULL inside arrays and at the top. */
void kvc_json_open_object(struct kvc_json *j, const char *key);
void kvc_json_open_array(struct kvc_json *j, const char *key);
void kvc_json_close(struct kvc_json *j);
void kvc_json_string(struct kvc_json *j, const char *key, const char *value); /* NULL: null */
void kvc_json_u64(struct kvc_json *j, const char *key, uint64_t value);
void kvc_json_i64(struct kvc_json *j, const char *key, int64_t value);
void kvc_json_double(struct kvc_json *j, const char *key, double value); /* shortest that reads
                                                                            back; NAN, INF: null */
void kvc_json_bool(struct kvc_json *j, const char *key, bool value);
void kvc_json_null(struct kvc_json *j, const char *key);
void kvc_json_raw(struct kvc_json *j, const char *key, const char *json); /* trusted JSON text */
void kvc_json_value(struct kvc_json *j, const char *key, const struct kvc_jval *v); /* as read */
/* Hands over the text (caller frees with kvc_free), or NULL when memory ran out. */
char *kvc_json_take(struct kvc_json *j);

#endif
