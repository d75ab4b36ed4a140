/* SPDX-License-Identifier: Apache-2.0
 * What readers of inference servers' logs share: numbers and times within lines, what engines
 * state of themselves, and requests whose life is spread over several lines. */
#ifndef KVC_TRACES_ENGINE_LOG_H
#define KVC_TRACES_ENGINE_LOG_H

#include "base/text.h"
#include "traces/import/import.h"
#include "traces/import/intern.h"
#include "traces/text/text_blocks.h"

/* ---- lines ---- */

/* The text behind the first occurrence of key, *n its length; NULL: none. */
const char *kvc_line_after(const char *line, size_t n, const char *key, size_t *rest);
/* The number behind key, "87,381" and "41.3" alike. */
bool kvc_line_number(const char *line, size_t n, const char *key, double *out);
bool kvc_line_u64(const char *line, size_t n, const char *key, uint64_t *out);

struct kvc_line_clock {
    unsigned year, month; /* of lines whose dates have no year */
    uint64_t last_ns;     /* KVC_TIME_NONE before the first */
    bool yearless;
};

/* The line's time: a full date at its beginning or behind '[', else MM-DD HH:MM:SS behind the
 * level's name, else that of the line before. */
uint64_t kvc_line_time(struct kvc_line_clock *c, const char *line, size_t n);

/* ---- engines ---- */

/* The facts of the engine of that name; NULL when there are too many, which is tallied. */
struct kvc_engine_facts *kvc_import_engine(struct kvc_import *im, const char *name);
void kvc_peak_u64(uint64_t *peak, uint64_t v);
void kvc_peak(double *peak, double v);
/* For struct kvc_format's end: an error when the log held no request, that says what it held. */
enum kvc_status kvc_engine_log_end(struct kvc_import *im, const char *cure, struct kvc_error *err);

/* ---- requests ---- */

struct kvc_open_request {
    uint64_t time_ns;
    uint64_t line;
    uint32_t input_tokens, output_tokens, cached_tokens;
    bool input_stated, output_stated, cached_stated, cut, done, gone;
    uint8_t status;
    uint64_t *token_ids; /* of the whole prompt; NULL: not in the log */
    size_t n_token_ids;
    char *text; /* of the prompt, when there are no token ids */
    size_t n_text;
    char *adapter, *salt, *model;
};

struct kvc_open_requests {
    struct kvc_intern ids;
    size_t *index; /* by number of the id: its newest request, SIZE_MAX before */
    size_t index_cap;
    struct kvc_open_request *all;
    size_t n, cap, first; /* those before first were handed on */
    struct kvc_id_buffer blocks;
    struct kvc_prompt prompt;
};

/* The open request of that id; a new one, at that time, when there is none and create. NULL: none,
 * or (create) no memory. */
struct kvc_open_request *kvc_open_request(struct kvc_open_requests *r, const char *id, size_t n,
                                          bool create, uint64_t time_ns, uint64_t line);
/* Hands on those that are done, in the order they came; all: those still open too. */
enum kvc_status kvc_open_requests_hand_on(struct kvc_open_requests *r, struct kvc_import *im,
                                          bool all, struct kvc_error *err);
void kvc_open_requests_clear(struct kvc_open_requests *r);
/* Copies a request's prompt, where it has none yet; false: no memory. */
bool kvc_open_request_ids(struct kvc_open_request *q, const uint64_t *ids, size_t n);
bool kvc_open_request_text(struct kvc_open_request *q, const char *text, size_t n);

/* ---- reading ---- */

/* A log as it is read, line by line. */
struct kvc_engine_log {
    struct kvc_import *im;
    void *own; /* what one format keeps besides */
    struct kvc_line_clock clock;
    struct kvc_open_requests requests;
    struct kvc_id_buffer ids; /* of the prompt or answer in this line */
    struct kvc_text text;
    const char *line;
    size_t n;
    uint64_t time_ns;
};

/* What a line says goes to l; *known false: it is about other things. */
typedef enum kvc_status kvc_engine_line_fn(struct kvc_engine_log *l, bool *known,
                                           struct kvc_error *err);
/* Reads a log to its end; requests are handed on once they are done. l needs im and own only, and
 * keeps its clock. */
enum kvc_status kvc_engine_log_read(struct kvc_engine_log *l, kvc_engine_line_fn *line,
                                    struct kvc_error *err);

#endif
