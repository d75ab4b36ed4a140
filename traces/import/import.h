/* SPDX-License-Identifier: Apache-2.0
 * What a log reader works with, and the table of them. A format is one file ending in one const
 * struct kvc_format, listed in formats.c. A reader turns lines into struct kvc_log_row; the
 * driver interns names, checks lengths against ids, counts, and feeds the forest. */
#ifndef KVC_TRACES_IMPORT_H
#define KVC_TRACES_IMPORT_H

#include "traces/parse/stream.h"
#include "traces/parse/timestamp.h"

#define KVC_TOKENS_MAX INT32_MAX /* of one prompt or answer */
#define KVC_TOKENS_UNKNOWN UINT32_MAX /* of an answer: the log doesn't say */
#define KVC_LOG_TIME_MAX ((uint64_t)INT64_MAX) /* ns */

struct kvc_span {
    const char *text; /* NULL: absent */
    size_t n;
};

struct kvc_id_buffer {
    uint64_t *v;
    size_t cap;
};

/* One request as the log states it. Spans and ids are borrowed until the row was handed on. */
struct kvc_log_row {
    uint64_t time_ns, think_ns; /* KVC_TIME_NONE without */
    uint64_t end_ns; /* of the answer; 0 = not stated. Tells the next turn's pause */
    uint32_t input_tokens, output_tokens;
    const uint64_t *ids;
    size_t n_ids;
    const uint64_t *output_ids; /* as in struct kvc_row, where the log shows what was generated */
    size_t n_output_ids;
    bool text_ids; /* ids were strings: another key space than numbers */
    bool unchained; /* an id names its block's own tokens, so that it may well occur twice */
    bool ascending; /* each id is above the one before, so that none occurs twice; else not known */
    bool hashed;    /* an id is a hash of all that is before it, so that none occurs twice */
    uint32_t shown_tokens; /* with hashed: as in struct kvc_row */
    uint64_t key_space; /* whose the ids are: 0 = the log's, else a document's own */
    struct kvc_span session, tenant, model;
    struct kvc_span instance; /* the engine that served it: part of it with --key-field only */
    struct kvc_span adapter, salt; /* LoRA and cache_salt: part of what a block id means */
    uint8_t status; /* enum kvc_row_status */
    bool cached_stated, spend_stated;
    uint32_t cached_tokens; /* of input_tokens, held by the serving system's prefix cache */
    uint32_t cache_write_tokens;
    double spend_usd;
};

struct kvc_import; /* one import in progress */
struct kvc_recent;

/* What a reader keeps from one file of an import to the next: so many bytes, all zero at first;
 * clear(kept) is called at the end, unless it is NULL, and the bytes are freed. NULL: no memory. */
void *kvc_import_keep(struct kvc_import *im, size_t bytes, void (*clear)(void *kept));
/* The same where nothing is begun: NULL as long as nothing was kept. */
void *kvc_import_kept(const struct kvc_import *im);
/* Hands a row on. The line is the current one. */
enum kvc_status kvc_import_row(struct kvc_import *im, const struct kvc_log_row *row, bool odd,
                               struct kvc_error *err);
/* The same of a row that states nothing else: quicker. */
struct kvc_length_row {
    uint64_t time_ns;
    uint32_t input_tokens, output_tokens;
};
enum kvc_status kvc_import_lengths(struct kvc_import *im, const struct kvc_length_row *row,
                                   bool odd, struct kvc_error *err);
/* Counts and keeps a bad row; with --strict fails with it. */
enum kvc_status kvc_import_bad(struct kvc_import *im, const struct kvc_error *bad,
                               struct kvc_error *err);
/* The next line that is not blank, *text NULL at the end. Too long lines were counted as bad. */
enum kvc_status kvc_import_line(struct kvc_import *im, const char **text, size_t *n,
                                struct kvc_error *err);
/* Hands each of them to one, with user, until it fails. */
enum kvc_status kvc_import_each_line(struct kvc_import *im,
                                     enum kvc_status (*one)(struct kvc_import *im, void *user,
                                                            const char *text, size_t n,
                                                            struct kvc_error *err),
                                     void *user, struct kvc_error *err);
/* For readers that find the ends of lines themselves: what is in memory from the next line on, n
 * bytes, until the next call for a line; and the line of these bytes, its end included, as a row
 * taken from there. */
size_t kvc_import_ahead(const struct kvc_import *im, const char **text);
void kvc_import_line_ahead(struct kvc_import *im, size_t bytes);
/* Hands on n rows, each a line of what lies ahead: bytes in all, newlines and all. */
enum kvc_status kvc_import_lengths_ahead(struct kvc_import *im, const struct kvc_length_row *rows,
                                         size_t n, size_t bytes, struct kvc_error *err);
/* The next line of the file, blank or not, that is no row of its own: a header, or more of a row
 * that goes over several lines. */
enum kvc_status kvc_import_line_within(struct kvc_import *im, const char **text, size_t *n,
                                       struct kvc_error *err);
const char *kvc_import_file(const struct kvc_import *im); /* current, for errors */
uint64_t kvc_import_line_number(const struct kvc_import *im);
bool kvc_import_compares(const struct kvc_import *im);
uint32_t kvc_import_block_tokens(const struct kvc_import *im); /* for readers that cut blocks */
/* What stands for a string id: a hash, so that nothing of it need be kept. */
uint64_t kvc_import_text_id(const char *text, size_t n);
/* Sets up an empty table of records of so many bytes, which forgets as the import does. */
void kvc_import_recent(struct kvc_import *im, struct kvc_recent *table, size_t size);
/* A row that no GPU served: a gateway answered it from its own response cache. */
void kvc_import_gateway_answered(struct kvc_import *im);
/* A row that failed before any token was counted: it is in no trace, but counts as failed. */
void kvc_import_failed_unseen(struct kvc_import *im);
/* Counts one row under these words, or several. */
void kvc_import_tally(struct kvc_import *im, const char *text);
void kvc_import_tally_rows(struct kvc_import *im, const char *text, uint64_t rows);
/* The unit of plain numbers in a time field: the user's, else usual. For points of time take
 * kvc_import_time and kvc_import_time_text instead, which see numbers of other units. */
enum kvc_time_unit kvc_import_time_unit(const struct kvc_import *im, enum kvc_time_unit usual);
/* A point of time given as a number: of the user's unit; else, when the file's first number is
 * a moment since 1970 in some unit, of the unit in which it is one; else of the usual unit. What
 * was assumed and is not usual goes into the notes. False: negative, or beyond 292 years. */
bool kvc_import_time(struct kvc_import *im, const struct kvc_decimal *number,
                     enum kvc_time_unit usual, uint64_t *ns);
/* The same in text, or a date and time (timestamp.h). */
bool kvc_import_time_text(struct kvc_import *im, const char *text, size_t n,
                          enum kvc_time_unit usual, uint64_t *ns);
/* What to write of a field that is no time. */
void kvc_import_time_rule(const struct kvc_import *im, enum kvc_time_unit usual, char *buf,
                          size_t size);
const char *kvc_import_tenant_field(const struct kvc_import *im, const char *usual);
/* A row has the field that --key-field names. */
void kvc_import_key_found(struct kvc_import *im);
const struct kvc_import_options *kvc_import_options_of(const struct kvc_import *im);
/* An assumption for the report; the same text is kept once. */
KVC_PRINTF(2, 3)
void kvc_import_note(struct kvc_import *im, const char *fmt, ...);

/* ---- for formats of one document a session, which bring their own places ---- */

/* The next bytes of the file itself, *got 0 at the end; not to be mixed with lines. */
enum kvc_status kvc_import_bytes(struct kvc_import *im, void *buf, size_t n, size_t *got,
                                 struct kvc_error *err);
bool kvc_import_is_tar(const struct kvc_import *im);
/* A document begins: the whole file, or a member of an archive, which errors then name. Times in
 * it count from its own start; documents are started one after the other at the end. */
enum kvc_status kvc_import_document(struct kvc_import *im, const char *member,
                                    uint64_t *number_from_1, struct kvc_error *err);
/* A member of an archive begins, which errors then name; its times are those of the log. */
enum kvc_status kvc_import_member(struct kvc_import *im, const char *member,
                                  struct kvc_error *err);
/* The block size a document states. */
enum kvc_status kvc_import_block_size(struct kvc_import *im, uint32_t tokens,
                                      struct kvc_error *err);
/* Counts the row to be handed on next and says where it is; where is a path in the document. */
void kvc_import_begin_row(struct kvc_import *im, uint64_t line, const char *where);

/* kvc_trace_import of which the first file is open already (NULL: it is not). */
enum kvc_status kvc_import_streams(struct kvc_trace **out, const char *const *paths, size_t n,
                                   struct kvc_stream *first,
                                   const struct kvc_import_options *options,
                                   struct kvc_import_report *report, struct kvc_error *err);

struct kvc_format {
    const char *name, *summary;
    uint32_t block_tokens; /* what the format means unless told otherwise; 0 = stated per row */
    bool cuts_blocks;      /* rows hold tokens, so that blocks of any size can be cut */
    bool objects;          /* rows are references to objects, not prompts */
    bool tar;              /* reads tar archives */
    bool (*sniff)(const char *head, size_t n); /* does the text begin like this format? */
    enum kvc_status (*read)(struct kvc_import *im, struct kvc_error *err);
    enum kvc_status (*end)(struct kvc_import *im, struct kvc_error *err); /* behind the last file;
                                                                            may be NULL */
};

extern const struct kvc_format kvc_format_mooncake, kvc_format_llmservingsim;
extern const struct kvc_format kvc_format_kv_cache_tester, kvc_format_kvcast_csv;
extern const struct kvc_format kvc_format_libcachesim, kvc_format_oraclegeneral;
extern const struct kvc_format kvc_format_servegen, kvc_format_langfuse, kvc_format_litellm;
extern const struct kvc_format kvc_format_aibrix, kvc_format_lmcache_agent;
extern const struct kvc_format kvc_format_openai_messages, kvc_format_usage_jsonl;
extern const struct kvc_format kvc_format_sglang_log, kvc_format_vllm_log, kvc_format_dynamo;
extern const struct kvc_format kvc_format_qwen_bailian, kvc_format_ragpulse, kvc_format_tair;
extern const struct kvc_format kvc_format_azure, kvc_format_blis_tracev2, kvc_format_burstgpt;
extern const struct kvc_format kvc_format_vidur, kvc_format_kv_events;

extern const struct kvc_format kvc_format_otel_genai;

/* NULL-terminated. */
extern const struct kvc_format *const kvc_format_table[];

#endif
