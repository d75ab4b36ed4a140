/* SPDX-License-Identifier: Apache-2.0
 *
 * kvcast: forecasts what a KV-cache hierarchy does for a given LLM traffic.
 *
 * The whole public interface. Objects are created by the library and destroyed by
 * their matching function (NULL is fine); strings handed in are copied. No function prints,
 * exits or blocks on anything but file I/O. Distinct objects may be used from distinct
 * threads; a trace is immutable and may be shared.
 *
 * Functions return KVC_OK or whose fault it is (enum kvc_status); what can go wrong besides
 * memory running out is said at each. An out-pointer is untouched on failure, an array of
 * the caller's (out[n]) then holds nothing to rely on. Details go to err, the caller's own,
 * which may be NULL, as may report.
 *
 * Structs that begin with struct_size take sizeof of it, so that they can grow: what a
 * caller's struct doesn't have yet is as if it were 0 (in kvc_gen_config: the kind's
 * default). Units are in the names; names and other words that are not the library's own
 * are UTF-8.
 */
#ifndef KVCAST_KVCAST_H
#define KVCAST_KVCAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVC_VERSION_NUMBER 100 /* major * 10000 + minor * 100 + patch */
#define KVC_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define KVC_API __attribute__((visibility("default")))
#define KVC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define KVC_API
#define KVC_PRINTF(fmt, args)
#endif

#define KVC_TIME_NONE UINT64_MAX
#define KVC_CAPACITY_INF UINT64_MAX
#define KVC_ID_NONE UINT32_MAX

KVC_API const char *kvc_version(void);

/* ---- status and errors ------------------------------------------------- */

enum kvc_status {
    KVC_OK = 0,
    KVC_ERR_USAGE = 1,       /* the caller asked for something that makes no sense */
    KVC_ERR_INPUT = 2,       /* a file, scenario or profile is wrong */
    KVC_ERR_IO = 3,          /* the system could not read or write */
    KVC_ERR_NOMEM = 4,
    KVC_ERR_LIMIT = 5,       /* a documented limit was exceeded */
    KVC_ERR_UNSUPPORTED = 6, /* known, but not in this build */
    KVC_ERR_INTERNAL = 7,    /* our own mistake */
    KVC_ERR_CANCELLED = 8,
    KVC_ERR_PLUGIN = 9       /* a plug-in broke the rules of kvcast/policy.h */
};

struct kvc_error {
    enum kvc_status status;
    uint64_t line;   /* 1-based physical line, 0 = not known */
    uint64_t byte;   /* 0-based offset, valid when line or byte is not 0 */
    char file[256];  /* "" = not about a file */
    char field[64];  /* "" = not about a field */
    char text[512];  /* what, why, what to do; no newline */
};

/* Writes "file:line:field: text" (what is known of it), always terminated. */
KVC_API void kvc_error_format(const struct kvc_error *err, char *buf, size_t size);

/* ---- traces ------------------------------------------------------------ */

struct kvc_trace; /* immutable; shared freely between runs and threads */

/* done/total in bytes of input as stored (total 0 = not known). Return false to cancel. */
typedef bool (*kvc_progress_fn)(void *user, const char *phase, uint64_t done, uint64_t total);

/* A forecast of an import, from what was read so far. */
struct kvc_import_estimate {
    bool fresh; /* worth telling: the first, or made from twice as much as the one before */
    uint64_t done_bytes, total_bytes; /* of the input as stored; total 0 = not known, then the
                                         _total figures are those so far */
    uint64_t text_bytes;              /* read so far, unpacked */
    uint64_t requests, requests_total;
    uint64_t blocks, blocks_total;    /* distinct */
    uint64_t memory_bytes, memory_total_bytes; /* beside what the system may write out */
    uint64_t file_bytes, file_total_bytes;     /* in temporary files */
    uint64_t output_bytes_total;      /* of the .kvt */
};

#define KVC_REPORT_SHOWN 8
#define KVC_REPORT_NOTES 16

struct kvc_import_options {
    size_t struct_size;
    const char *format;    /* NULL or "auto", or a name from kvc_trace_formats */
    uint32_t block_tokens; /* 0 = the format's default, checked against the rows */
    bool strict;           /* stop at the first bad row */
    bool compare_readers;  /* read every row with both readers, fail where they differ */
    kvc_progress_fn progress;
    void *progress_user;
    bool merge_models;     /* ids mean the same whatever the model: as if KV were shared */
    const char *time_unit;    /* of plain numbers: "s", "ms", "us" or "ns"; NULL = the format's */
    const char *tenant_field; /* the field or column that names the tenant; NULL = the format's */
    const char *key_field;    /* ids mean the same within one value of this field only: an instance
                                 whose hashes are salted, say; NULL = everywhere */
    const char *tokenizer;    /* for texts: "bytes:R", R bytes a token, or the path of a
                                 tokenizer.json; NULL = a rate calibrated on stated counts */
    uint64_t window_begin_ns, window_end_ns; /* keep arrivals in [begin, end) from the first;
                                                end 0 = to the last */
    bool anonymize;           /* no names of the log in the trace and the report */
    const char *salt_file;    /* key of --anonymize and of text hashes; NULL = drawn at random */
    uint64_t forget_ns;       /* prefixes untouched for so long are forgotten; 0 = never */
    bool infer_sessions;      /* from prefix growth, where the log names none */
    const char *arrivals;     /* of rows without a time: "poisson:R", R requests per second */
    uint64_t seed;            /* of what is drawn */
    const char *csv_columns;  /* of a libCacheSim CSV: "time=1,id=2,size=3", numbers from 1 or names
                                 of the header; NULL = found by name */
    const char *spill_folder; /* of temporary files; NULL = $TMPDIR, else /tmp */
    uint64_t spill_over_bytes; /* what grows with the rows leaves memory beyond this; 0 = 512 MiB */
    /* Called with every piece read; fresh after 64 MiB of text and at each doubling. NULL = not
     * wanted. */
    void (*estimate)(void *user, const struct kvc_import_estimate *estimate);
    void *estimate_user;
    const char *where; /* "tenant=NAME,model=NAME": keep their requests, of a .kvt too; NULL =
                          all */
    uint32_t sample_weight; /* keep samples of one in so many subtrees of prompts, 8 at least, drawn
                               with the seed, in place of all; 0 = all (docs/ceilings.md) */
};

/* Something that happened to rows and is worth knowing, in words. */
struct kvc_import_tally {
    char text[192];
    uint64_t rows;
};

#define KVC_REPORT_ENGINES 32

/* What one engine's own log states: its words, not measured here. Counts 0, sizes 0 and fractions
 * below 0: not stated. */
struct kvc_engine_facts {
    char name[40];              /* as the log tells engines apart; "" where it does not */
    uint64_t kv_cache_tokens;   /* of its KV cache .. */
    uint64_t kv_cache_bytes;    /* .. on each of its GPUs */
    uint64_t concurrency_tokens; /* a request of so many tokens .. */
    double concurrency;         /* .. fits so many times */
    uint64_t lines;             /* periodic statistics, or batches */
    uint64_t new_tokens, cached_tokens; /* of prompts, summed over batches */
    uint64_t running_peak, waiting_peak, preemptions;
    double prompt_tokens_per_s_peak, output_tokens_per_s_peak;
    double kv_used_peak;        /* share of the cache */
    double hit_rate_last, external_hit_rate_last; /* of the last statement */
    uint64_t stored_tokens, stored_bytes;         /* by an offloading cache beneath it */
    uint64_t retrieved_tokens, retrieved_bytes;
};

/* What became of the rows. Nothing is dropped without being counted here. */
struct kvc_import_report {
    bool stored;            /* of an import in the past: taken from a .kvt, without shown[] */
    uint64_t rows;          /* non-blank lines seen */
    uint64_t accepted;
    uint64_t bad;           /* rejected, the first few in shown[] */
    uint64_t blank;
    uint64_t odd;           /* accepted by the slow reader */
    uint64_t inversions;    /* rows earlier than the row before */
    uint64_t without_ids;   /* rows whose reuse is unknown */
    uint64_t repeated_ids;  /* rows in which a block id occurs twice */
    uint64_t floor_rows, ceil_rows; /* rows whose last partial block has no id / has one */
    uint64_t zero_output;   /* rows that generated nothing .. */
    uint64_t unknown_output; /* .. and rows that don't say how much they did */
    uint64_t failed, cancelled;   /* rows by enum kvc_row_status; those that failed before a token
                                     was counted, though not in the trace, too */
    uint64_t gateway_answered;    /* left out: a gateway's response cache answered, no GPU did */
    uint64_t cached_rows;         /* rows that state how many prompt tokens a cache held .. */
    uint64_t cached_of_tokens;    /* .. their prompt tokens .. */
    uint64_t cached_tokens;       /* .. and the cached among them */
    uint64_t cache_write_tokens;  /* billed as written to a provider's cache */
    uint64_t spend_rows;          /* rows that state what they cost .. */
    double spend_usd;             /* .. and the sum */
    uint64_t bytes_in;      /* uncompressed bytes read */
    uint64_t forgotten_blocks;               /* by forget_ns .. */
    uint64_t unjudged_rows, unjudged_tokens; /* .. rows and prompt tokens that a cache which never
                                                forgets might have known: at most these */
    uint64_t linked_turns, branches; /* by infer_sessions: turns linked to one before, and sessions
                                        begun where another request had continued already */
    /* Where rows or events name the engine (0: they don't, or contents can't be told apart): */
    uint64_t key_instances;      /* engines .. */
    uint64_t key_stored_blocks;  /* .. blocks stored, each by each engine that computes it .. */
    uint64_t key_copied_blocks;  /* .. of which another engine has the same, and can't read it if
                                    keys are salted per process .. */
    uint64_t key_hit_blocks_shared, key_hit_blocks_apart; /* .. full blocks hit by an endless cache
                                                              of all, and of each; UINT64_MAX: not
                                                              known, as of KV events */
    uint64_t filtered;           /* requests left out by where */
    uint32_t n_shown;
    struct kvc_error shown[KVC_REPORT_SHOWN];
    uint32_t n_notes;       /* assumptions made, in words */
    char notes[KVC_REPORT_NOTES][256];
    uint32_t n_tallies;
    struct kvc_import_tally tallies[KVC_REPORT_NOTES];
    uint32_t n_engines;     /* that state something of themselves, in a server's log */
    struct kvc_engine_facts engines[KVC_REPORT_ENGINES];
};

/* Reads n_paths logs (plain, .zst, .gz, a tar of them, "-" = stdin) of one format, merged in time
 * order. options NULL: all 0. report is filled on failure too, as far as the rows were read.
 * Errors: USAGE (options that contradict one another or the log), INPUT (no known format, no usable
 * row, with strict a bad one), IO, LIMIT (a billion distinct prefixes), CANCELLED (by progress). */
KVC_API enum kvc_status kvc_trace_import(struct kvc_trace **out, const char *const *paths,
                                         size_t n_paths, const struct kvc_import_options *options,
                                         struct kvc_import_report *report, struct kvc_error *err);
/* Reads a .kvt, or imports when the file is a log. Of a .kvt the report is the one its import left,
 * and options that say how to read a log are refused (USAGE). Else as kvc_trace_import;
 * UNSUPPORTED: a .kvt of a newer release. */
KVC_API enum kvc_status kvc_trace_open(struct kvc_trace **out, const char *path,
                                       const struct kvc_import_options *options,
                                       struct kvc_import_report *report, struct kvc_error *err);
/* Writes a .kvt: to a temporary name in the same folder, synced, then renamed. Errors: IO. */
KVC_API enum kvc_status kvc_trace_save(const struct kvc_trace *trace, const char *path,
                                       struct kvc_error *err);
/* The same, told of its progress in bytes of columns; the callback may cancel, then nothing is
 * left of the file (CANCELLED). */
KVC_API enum kvc_status kvc_trace_save_with(const struct kvc_trace *trace, const char *path,
                                            kvc_progress_fn progress, void *user,
                                            struct kvc_error *err);
KVC_API void kvc_trace_destroy(struct kvc_trace *trace); /* NULL is fine */
/* Names of the formats, NULL-terminated, static. */
KVC_API const char *const *kvc_trace_formats(void);

/* Of the log that a sample was drawn from; weight 0: the trace is no sample. */
struct kvc_sample_totals {
    uint32_t weight; /* one in so many subtrees is in each of the samples */
    uint64_t seed;
    uint64_t requests, input_tokens, output_tokens; /* output_tokens: those stated */
    uint64_t block_touches, block_tokens; /* blocks of prompts, and their tokens */
    uint64_t own_blocks, own_squares; /* blocks of prompts below the cuts, sum and sum of squares */
};

struct kvc_trace_stats {
    uint64_t requests, input_tokens, output_tokens;
    uint64_t span_ns, distinct_arrivals;
    uint32_t block_tokens;
    uint64_t block_touches, blocks, full_block_touches; /* of prompts, not of known outputs */
    uint64_t segment_touches, segments;
    uint64_t sessions, tenants, models;
    uint64_t without_ids;
    uint32_t max_input_tokens, max_output_tokens, longest_request_blocks;
    uint64_t batch_period_ns; /* median gap between distinct arrivals when they are batched; else
                                 0 */
    bool has_prefix;          /* false: hit rates are unknown, not 0 */
    char digest[24];          /* of all that a replay reads: 16 hex digits */
    bool has_tokens;          /* false: references to objects of a cache log, each a block of one
                                 token here: figures of tokens are unknown */
    uint64_t forget_ns, forgotten_blocks, unjudged_tokens; /* as in the import's report */
    uint64_t unknown_outputs; /* requests of which the log doesn't say how much they generated: none
                                 of it is in output_tokens */
    struct kvc_sample_totals sample;
};
KVC_API void kvc_trace_stats(const struct kvc_trace *trace, struct kvc_trace_stats *out);

/* What an exported log could not hold of the trace is in the notes, in words. */
struct kvc_export_report {
    uint64_t rows;     /* written: requests, or block references of oraclegeneral */
    uint64_t left_out; /* requests */
    uint32_t n_notes;
    char notes[KVC_REPORT_SHOWN][256];
};
/* Writes a log in one of kvc_export_formats ("mooncake", "oraclegeneral", "csv"), whole or not at
 * all; a path that ends in .zst or .gz is packed. Errors: USAGE (no such format), INPUT (the trace
 * holds nothing that the format can), IO. */
KVC_API enum kvc_status kvc_trace_export(const struct kvc_trace *trace, const char *path,
                                         const char *format, struct kvc_export_report *report,
                                         struct kvc_error *err);
KVC_API const char *const *kvc_export_formats(void); /* NULL-terminated, static */

/* Synthetic traffic; docs/gen.md has the law of each figure. */
struct kvc_gen_config {
    size_t struct_size;
    const char *kind;        /* "rag-chat", "agent", "shared-prompt" */
    uint64_t seed;
    uint64_t duration_ns;
    double sessions_per_s;
    uint32_t system_tokens, context_tokens, turn_tokens, output_tokens, turns;
    uint32_t block_tokens;
    uint32_t documents;      /* distinct contexts, drawn Zipf */
    uint64_t think_mean_ns;
    double burstiness;       /* CV of the gaps between sessions: 1 = Poisson, else a gamma law */
    double diurnal;          /* A in rate x (1 + A sin(2 pi t / day)), 0 to 1 */
    uint64_t day_ns;
    double length_cv;        /* of turns and answers, lognormal; 0 = uniform within half the mean */
    double zipf;             /* exponent for documents */
    double tool_calls;       /* mean number of tool calls between two turns of a person .. */
    uint64_t tool_gap_mean_ns; /* .. each followed by such a gap instead of a think time */
    uint32_t tenants;        /* "t0", .. drawn Zipf (exponent 1) a session; 0 = none */
    const char *models;      /* "a=3,b=1": names and weights, one a session; NULL = none */
};
/* Every field at the kind's default; burstiness, zipf and day_ns have no sense in 0. */
KVC_API void kvc_gen_defaults(struct kvc_gen_config *config, const char *kind);
/* Writes Mooncake JSONL (session_id, delay included) to path, whole or not at all; packed as an
 * export is. Errors: USAGE (a field names itself), LIMIT, IO. */
KVC_API enum kvc_status kvc_gen_write(const struct kvc_gen_config *config, const char *path,
                                      struct kvc_error *err);

/* Requests drawn from ServeGen's rate models, a folder or tar of chunk-N-trace.csv and
 * chunk-N-dataset.json: Mooncake JSONL without block ids, the client as tenant. */
struct kvc_servegen_config {
    size_t struct_size;
    uint64_t seed;
    uint64_t from_ns;     /* where in the models to begin, a multiple of their window (600 s) */
    uint64_t duration_ns; /* 0 = to their end */
    double requests_per_s; /* mean over the span, all clients scaled alike; 0 = the models' own */
};
struct kvc_servegen_report {
    uint64_t requests;        /* written */
    uint64_t without_lengths; /* not written: their clients' lengths are not in the models */
    uint64_t empty_prompts;   /* of 0 tokens, written with 1 */
    uint32_t clients, clients_without_lengths;
    double model_requests_per_s, requests_per_s_without_lengths; /* in the span, unscaled */
};
/* models: the folder or tar; path as kvc_gen_write's. Errors: USAGE, INPUT (models), LIMIT, IO. */
KVC_API enum kvc_status kvc_servegen_write(const struct kvc_servegen_config *config,
                                           const char *models, const char *path,
                                           struct kvc_servegen_report *report,
                                           struct kvc_error *err);

/* ---- ceilings: hit rates without time ------------------------------------ */

/* Exact counts of requests, blocks and tokens. raw_ counts partial last blocks; the others count
 * full blocks only and know no last-token rule. Rates are for the caller to divide. Every ceiling
 * refuses a trace that holds samples only (INPUT; but kvc_ceiling_sample) and one of 2^32 requests
 * or distinct blocks and more (LIMIT). */
struct kvc_hits {
    uint64_t requests, blocks, full_blocks, tokens;
    uint64_t raw_hit_blocks, raw_hit_tokens, raw_hit_requests;
    uint64_t hit_blocks, hit_tokens, hit_requests;
};

/* Infinite cache, requests in trace order: what no capacity and no policy gets above. */
KVC_API enum kvc_status kvc_ceiling_content(const struct kvc_trace *trace, struct kvc_hits *out,
                                            struct kvc_error *err);
/* policy: one of kvc_ceiling_policies (docs/policies.md has the paper of each) or the path of a
 * plug-in (kvcast/policy.h), with options, "lruk:k=3+second"; capacities in trace blocks,
 * KVC_CAPACITY_INF allowed; out[n]. n 0 checks the name only, and trace may then be NULL. Errors:
 * USAGE (no such policy or option), INPUT (a plug-in that can't be loaded), PLUGIN. */
KVC_API enum kvc_status kvc_ceiling_policy(const struct kvc_trace *trace, const char *policy,
                                           const uint64_t *capacity_blocks, size_t n,
                                           struct kvc_hits *out, struct kvc_error *err);
/* Every policy at every capacity, on so many threads; out[policy * n + capacity], the same whatever
 * the threads. Errors as kvc_ceiling_policy, those of the first in that order. */
KVC_API enum kvc_status kvc_ceiling_grid(const struct kvc_trace *trace, const char *const *policies,
                                         size_t n_policies, const uint64_t *capacity_blocks,
                                         size_t n, uint32_t threads, struct kvc_hits *out,
                                         struct kvc_error *err);
KVC_API const char *const *kvc_ceiling_policies(void); /* NULL-terminated, static */
/* The exact LRU curve, of all capacities from one pass (Mattson et al. 1970, by segments): raw hit
 * blocks as a piecewise linear function of capacity, all changes of slope, from (0, 0) to the
 * smallest capacity that reaches the content bound. */
struct kvc_curve {
    size_t n;
    uint64_t *capacity_blocks;
    uint64_t *raw_hit_blocks;
};
KVC_API enum kvc_status kvc_ceiling_lru_curve(const struct kvc_trace *trace, struct kvc_curve *out,
                                              struct kvc_error *err);
/* Raw hit blocks at any capacity; 0 of an empty curve. */
KVC_API uint64_t kvc_curve_at(const struct kvc_curve *curve, uint64_t capacity_blocks);
/* Exact values at no more than most (>= 3) of the curve's points: all of them if they are that
 * few, else some at growing distances, both ends included. Errors: USAGE (most below 3). */
KVC_API enum kvc_status kvc_curve_thin(const struct kvc_curve *curve, size_t most,
                                       struct kvc_curve *out, struct kvc_error *err);
KVC_API void kvc_curve_clear(struct kvc_curve *curve);
/* What no placement in a chain of tiers, fastest first, can beat: out[k] are the most hits in the
 * tiers 0 to k together, and one placement has all of them at once (docs/ceilings.md). A hit is of
 * the slowest tier that held the block since its last touch. */
KVC_API enum kvc_status kvc_ceiling_tiers(const struct kvc_trace *trace,
                                          const uint64_t *tier_blocks, size_t n,
                                          struct kvc_hits *out, struct kvc_error *err);
/* What blocks cost to compute again, by their place in a prompt: out[k] of a leading run of k, n of
 * them, enough for the trace. In seconds of one GPU, or with gpu NULL in costs of a first block
 * (docs/ceilings.md). The caller frees with kvc_free. trace NULL checks the names only. Errors:
 * USAGE (an unknown name), UNSUPPORTED (a model or GPU without step times). */
KVC_API enum kvc_status kvc_ceiling_worth(double **out, const struct kvc_trace *trace,
                                          const char *model, const char *kv_dtype,
                                          const char *gpu, struct kvc_error *err);
/* What a cache of full blocks can save of that. */
struct kvc_cost_bound {
    double content;         /* with endless room */
    double upper;           /* at this capacity, by relaxation: none saves more */
    double reached;         /* by a schedule that fits: the optimum saves as much .. */
    const char *reached_by; /* .. which is that of "opt" or one "packed" by prices */
};
/* upto as kvc_ceiling_worth gives it; what is saved is in its unit. */
KVC_API enum kvc_status kvc_ceiling_cost(const struct kvc_trace *trace, const double *upto,
                                         uint64_t capacity_blocks, struct kvc_cost_bound *out,
                                         struct kvc_error *err);
/* The same of one policy, as kvc_ceiling_policy has them, in one cache. */
KVC_API enum kvc_status kvc_ceiling_saved(const struct kvc_trace *trace, const double *upto,
                                          const char *policy, uint64_t capacity_blocks,
                                          double *out, struct kvc_error *err);
/* Rates from samples of whole prefix trees, for traces that take too long or too much memory beside
 * them: one in weight (>= 8) subtrees is drawn, eight disjoint times; docs/ceilings.md. Of a trace
 * that is a sample, weight and seed are its own whatever is given. After SHARDS (Waldspurger et
 * al., FAST 2015). */
struct kvc_sampled {
    double raw_block_hit_rate, low, high; /* the band is meant to hold the exact rate in 95 % */
    double raw_token_hit_rate, token_low, token_high;
};
struct kvc_sampling {
    uint64_t subtrees;  /* to draw from */
    double trunk_share; /* of block touches: above the cuts, in every sample */
    double kept_share;  /* of block touches: in a sample, on average */
};
/* out[n]; how may be NULL. Errors as kvc_ceiling_policy, USAGE also for a weight below 8, LIMIT
 * where the sample stands for 2^32 blocks or more. */
KVC_API enum kvc_status kvc_ceiling_sample(const struct kvc_trace *trace, const char *policy,
                                           uint32_t weight, uint64_t seed,
                                           const uint64_t *capacity_blocks, size_t n,
                                           struct kvc_sampled *out, struct kvc_sampling *how,
                                           struct kvc_error *err);
/* Why no cache of that capacity has more raw hit blocks than the optimum: a schedule that has them,
 * and instants that prove that none has more (docs/ceilings.md). */
struct kvc_certificate {
    uint64_t capacity_blocks;
    uint64_t n_requests;
    uint32_t *runs;     /* by request: leading blocks that hit, each kept since its last touch */
    size_t n_instants;
    uint32_t *instants; /* each right after that request (from 0); ascending */
};
/* What a look at the trace alone makes of it: optimal when the schedule is one, never holds more
 * than the capacity, and has as many hits as the bound. */
struct kvc_certificate_check {
    uint64_t raw_hit_blocks; /* of the schedule */
    uint64_t most_held_blocks; /* between two requests */
    uint64_t free_reuses;    /* blocks touched again with no instant in between */
    uint64_t bound_blocks;   /* capacity x instants + free_reuses */
    bool possible;           /* a schedule: what it hits had been touched before */
    bool optimal;
};
/* The caller clears it with kvc_certificate_clear. */
KVC_API enum kvc_status kvc_ceiling_certify(const struct kvc_trace *trace, uint64_t capacity_blocks,
                                            struct kvc_certificate *out, struct kvc_error *err);
/* One pass over the touches; trusts nothing in the certificate. A wrong one is KVC_OK and not
 * optimal; one of another trace, or with instants out of order, USAGE. */
KVC_API enum kvc_status kvc_certificate_check(const struct kvc_trace *trace,
                                              const struct kvc_certificate *certificate,
                                              struct kvc_certificate_check *out,
                                              struct kvc_error *err);
KVC_API void kvc_certificate_clear(struct kvc_certificate *certificate);
/* Bytes of KV that a token of one sequence takes, every head counted once: what turns a capacity
 * in blocks into bytes (docs/models.md). kv_dtype NULL = bf16. Errors: USAGE (an unknown name),
 * UNSUPPORTED (the profile does not say). */
KVC_API enum kvc_status kvc_model_kv_bytes_per_token(const char *model, const char *kv_dtype,
                                                     uint64_t *out, struct kvc_error *err);

/* ---- ceilings from close up: by group, by replica, in namespaces, and why it missed ---- */

/* Every input token that missed has one cause; docs/tenants.md defines them. */
enum kvc_miss_cause {
    KVC_MISS_FIRST_SIGHT,
    KVC_MISS_PARTIAL_BLOCK,
    KVC_MISS_ALIGNMENT,
    KVC_MISS_EVICTED,
    KVC_MISS_TTL,
    KVC_MISS_OTHER_REPLICA,
    KVC_MISS_SALTED,
    KVC_MISS_NOT_READY,
    KVC_MISS_DIVERGED,
    KVC_MISS_FAILED,
    KVC_MISS_CAUSES
};
KVC_API const char *kvc_miss_cause_name(enum kvc_miss_cause cause);

#define KVC_DEPTHS 24
#define KVC_EVICTORS 16
#define KVC_CROSSING 12
#define KVC_WHY_BUCKETS 24

struct kvc_closeup_options {
    size_t struct_size;
    const char *by;      /* groups: "tenant", "session", "model", "prefix"; NULL = none */
    const char *isolate; /* namespaces, of the same words: what one stored, no other finds; NULL =
                            everything is shared */
    uint32_t replicas;   /* 0 = 1; capacities are of each */
    const char *router;  /* of several replicas; NULL = round-robin */
    bool why;            /* causes of misses */
    uint64_t seed;       /* of routers that draw */
    uint32_t most_parts; /* groups and tenants beyond the larger ones become one part, "others (N)",
                            the last; 0 = all are told apart */
};

/* Some of the requests. missed_tokens, with why: they and hits.hit_tokens add up to hits.tokens. */
struct kvc_part {
    char name[64];
    struct kvc_hits hits;
    uint64_t shared_hit_tokens; /* with isolate: what it had hit, had all shared everything */
    uint64_t missed_tokens[KVC_MISS_CAUSES];
};

struct kvc_depth { /* blocks that begin at prompt tokens from here to where the next begins */
    uint64_t from_tokens, hit_tokens, shared_hit_tokens;
};

struct kvc_closeup_result {
    struct kvc_part all;
    uint32_t n_groups, n_tenants, n_replicas, n_buckets; /* groups: 0 without by */
    struct kvc_part *groups, *tenants;   /* most input tokens first */
    struct kvc_part *replicas, *buckets; /* buckets: equal parts of the time from first to last
                                            arrival */
    struct kvc_hits shared;              /* with isolate: the same without it */
    /* With replicas, else all 0. In one pool as large as all together .. */
    struct kvc_hits pool, optimum_pool;
    /* .. and of each replica by itself for the requests it got: endless room, and the optimum. */
    struct kvc_hits assigned_content, assigned_optimum;
    /* Tokens evicted, by whose they were (the larger tenants, and the others as the last) and whose
     * request took the room; the column after the last tenant: nobody's, never stored or out of
     * reach. has_evictors: false for content. */
    bool has_evictors;
    uint32_t n_evictors;
    char evictor[KVC_EVICTORS][64];
    uint64_t evicted_tokens[KVC_EVICTORS][KVC_EVICTORS + 1];
    uint32_t n_depths; /* with isolate */
    struct kvc_depth depths[KVC_DEPTHS];
};

/* What namespaces have in common: all blocks, and those that two or more ask for. */
struct kvc_crossing {
    uint32_t namespaces;
    uint64_t blocks, tokens, crossing_blocks, crossing_tokens;
    uint32_t n; /* the largest namespaces by input tokens */
    char name[KVC_CROSSING][64];
    uint64_t common_blocks[KVC_CROSSING][KVC_CROSSING]; /* asked for by both */
};

struct kvc_closeup; /* a trace with what the options need of it; immutable */
/* trace must outlive it; NULL checks the options' words only. Errors: USAGE (a word), INPUT or
 * PLUGIN (a router's plug-in), LIMIT (4,096 replicas). */
KVC_API enum kvc_status kvc_closeup_create(struct kvc_closeup **out, const struct kvc_trace *trace,
                                           const struct kvc_closeup_options *options,
                                           struct kvc_error *err);
KVC_API void kvc_closeup_destroy(struct kvc_closeup *closeup); /* NULL is fine */
/* The trace as its namespaces see it, for the functions above; the closeup's. */
KVC_API const struct kvc_trace *kvc_closeup_trace(const struct kvc_closeup *closeup);
/* NULL without isolate; the closeup's. */
KVC_API const struct kvc_crossing *kvc_closeup_crossing(const struct kvc_closeup *closeup);
/* policy: one of kvc_ceiling_policies, or "content" for endless room whatever the capacity. Of opt
 * behind a router, requests go where they went under lru. Errors as kvc_ceiling_policy; INTERNAL
 * where parts don't add up to the whole. */
KVC_API enum kvc_status kvc_closeup_run(const struct kvc_closeup *closeup, const char *policy,
                                        uint64_t capacity_blocks, struct kvc_closeup_result **out,
                                        struct kvc_error *err);
KVC_API void kvc_closeup_result_destroy(struct kvc_closeup_result *result); /* NULL is fine */

/* ---- scenarios ----------------------------------------------------------- */

struct kvc_scenario;

/* A scenario with every key at its default, or as a preset of scenarios or engines has it
 * ("kga-rag", "vllm-0.24", .. or NULL). Errors: INPUT (no such preset), UNSUPPORTED. */
KVC_API enum kvc_status kvc_scenario_create(struct kvc_scenario **out, const char *preset,
                                            struct kvc_error *err);
/* Reads JSON with // comments; unknown keys are errors that name the nearest known one. Errors:
 * INPUT (with file, line and field), IO. */
KVC_API enum kvc_status kvc_scenario_load(struct kvc_scenario **out, const char *path,
                                          struct kvc_error *err);
/* Sets one key by its dotted name ("tiers.dram.capacity", "512GiB"), text as in JSON or on the
 * command line; "null" is unset. A key that is set wins over presets. Errors: INPUT, LIMIT (too
 * many tenants). */
KVC_API enum kvc_status kvc_scenario_set(struct kvc_scenario *scenario, const char *key,
                                         const char *value, struct kvc_error *err);
/* Effective scenario as JSON; the caller frees with kvc_free. */
KVC_API enum kvc_status kvc_scenario_json(const struct kvc_scenario *scenario, char **out,
                                          struct kvc_error *err);
/* The log or .kvt it names, as seen from its file's folder; the scenario's. NULL: none named. */
KVC_API const char *kvc_scenario_trace(const struct kvc_scenario *scenario);
KVC_API void kvc_scenario_destroy(struct kvc_scenario *scenario);
KVC_API void kvc_free(void *p); /* of texts and arrays that the library hands out; NULL is fine */

/* ---- replay ---------------------------------------------------------------- */

struct kvc_dist { /* percentiles by nearest rank; all 0 when count is 0 */
    double mean, p50, p90, p95, p99, max;
    uint64_t count;
};

#define KVC_MAX_TIERS 8 /* hbm first */

enum kvc_outcome { KVC_COMPLETED, KVC_FAILED, KVC_UNSERVABLE };

struct kvc_request_result { /* times in ns; KVC_TIME_NONE where not reached */
    uint64_t arrival_ns, ttft_ns, e2e_ns;
    uint64_t queue_ns, route_ns, load_ns, prefill_ns, host_ns; /* add up to ttft_ns */
    uint64_t unheard_ns; /* of queue_ns: the rest of the step under way, in no engine's log */
    uint32_t input_tokens, output_tokens;
    uint32_t hit_tokens[KVC_MAX_TIERS];
    uint32_t recomputed_tokens;
    uint32_t replica;
    uint8_t outcome;  /* enum kvc_outcome */
    bool measured;    /* false: arrived within the warm-up */
};

struct kvc_tier_result {
    char name[32];
    char scope[16];
    char policy[256]; /* with its options, or a plug-in's path */
    char link[32];
    uint64_t capacity_bytes; /* of all instances together */
    uint32_t instances;
    uint64_t peak_bytes, written_bytes, read_bytes, evicted_bytes, never_read_bytes;
    uint64_t hit_tokens;
    double writes_per_day_of_capacity;
    uint64_t refused_bytes; /* offered, not there, and not stored because admission refused */
};

struct kvc_link_result {
    char name[32];
    uint64_t bytes;
    double busy_fraction;
    uint32_t peak_flows;
    double mean_bytes_per_s;   /* over the makespan */
    double capacity_bytes_per_s;
};

struct kvc_replica_result {
    uint32_t id;
    uint64_t requests, input_tokens, hit_tokens;
    double busy_fraction;
    uint32_t peak_running;
    uint64_t preemptions;
};

struct kvc_tenant_result {
    char name[64];       /* "(none)": of requests that name no tenant */
    uint64_t requests, input_tokens, hit_tokens, output_tokens;
    uint64_t missed_tokens[KVC_MISS_CAUSES];
    struct kvc_dist ttft_ms;
    double resident_bytes_mean; /* KV it stored and that rested in any tier, over the makespan */
    double cost_usd;
    uint32_t group;      /* of kvc_result.losses */
};

/* Who lost cached KV to whom. Tenants with rules and the largest ones are groups of their own, all
 * others are one. A row is a group; a column a group that pushed it out, or, behind those, what no
 * tenant's request did: pages for decoding, time's up, other. */
#define KVC_LOSS_NAME 64
struct kvc_losses {
    uint32_t n_groups, n_columns;
    char (*names)[KVC_LOSS_NAME]; /* of the columns */
    uint64_t *bytes;              /* [group * n_columns + column] that left a tier */
    uint64_t *missed_tokens;      /* the same, of prompt tokens missed for it */
};

/* What would be of a tenant's same requests in another run. */
struct kvc_what_if_row {
    uint64_t requests, hit_tokens;
    struct kvc_dist ttft_ms;
};
struct kvc_what_if {
    char kind[16];   /* "noisy": without the tenant's requests; "isolation": each tenant a
                        namespace */
    char tenant[64]; /* of noisy */
    uint32_t n;      /* as many as there are tenants, in their order */
    struct kvc_what_if_row *rows;
};

/* A figure that the result rests on, and where it comes from. */
struct kvc_assumption {
    char group[24];  /* "gpu", "model", "kernels", "link", "price", "engine", "router",
                      "traffic" */
    char name[64];
    char value[64];  /* with unit */
    char kind[16];   /* datasheet, measured, fitted, assumed, published, scenario */
    char source[256];
};

struct kvc_warning {
    char code[32];
    char text[256];
};

struct kvc_series { /* equally long arrays, time ascending */
    char name[48];   /* "running", "waiting", "hbm_used_fraction", "link:pcie", "arrivals_per_s" */
    char unit[16];
    size_t n;
    uint64_t *time_ns;
    double *value;
};

struct kvc_capacity_point { /* one shared pool of this many bytes holding full blocks */
    uint64_t capacity_bytes;
    double lru_token_hit_rate, opt_token_hit_rate;
};

struct kvc_cost {
    double usd_per_hour;
    double usd_per_million_input_tokens, usd_per_million_cached_tokens,
        usd_per_million_output_tokens;
    double usd_total;
    double saving_vs_hbm_only_usd_per_month;
    double part_gpu, part_dram, part_nvme, part_network, part_power; /* USD per hour */
};

struct kvc_band {
    char name[32]; /* "ttft_ms.p99" */
    double low, high;
};

struct kvc_result {
    char *scenario_json; /* effective and complete */
    char trace_digest[24], profiles_digest[24];
    char title[128];     /* model, GPU and shape, for people */
    bool has_prefix;     /* false: every hit rate prints as null */

    uint64_t arrived, completed, failed, unservable, measured;
    struct kvc_dist ttft_ms, tpot_ms, e2e_ms, queue_ms;
    double ttft_part_queue_ms, ttft_part_route_ms, ttft_part_load_ms, ttft_part_prefill_ms,
        ttft_part_host_ms;

    uint64_t input_tokens, output_tokens;  /* of all arrived requests */
    uint64_t hit_tokens, hit_blocks, full_blocks, hit_requests;
    uint64_t raw_hit_tokens, raw_hit_blocks, blocks;
    uint64_t recomputed_tokens;
    uint64_t missed_tokens[KVC_MISS_CAUSES];

    double requests_per_s, input_tokens_per_s, output_tokens_per_s;
    uint64_t makespan_ns;

    uint32_t n_tiers;
    struct kvc_tier_result tiers[KVC_MAX_TIERS];
    uint32_t n_links;
    struct kvc_link_result *links;
    uint32_t n_replicas;
    struct kvc_replica_result *replicas;
    uint32_t n_tenants;
    struct kvc_tenant_result *tenants;
    struct kvc_losses losses;             /* n_groups 0: one tenant and no rules */
    double jain_hit_rate, jain_residency; /* Jain's index over tenants: of hit rates; of
                                             resident_bytes_mean per input token */
    uint32_t n_what_ifs;
    struct kvc_what_if *what_ifs;

    struct kvc_cost cost;
    double gpu_seconds_per_million_missed_tokens; /* prefill work a miss costs, all GPUs */
    uint32_t n_bands;
    struct kvc_band bands[16];
    char band_source[512];

    double content_token_hit_rate, capacity_token_hit_rate, lru_token_hit_rate;
    uint64_t kv_bytes_per_token, block_bytes;
    uint32_t n_curve;
    struct kvc_capacity_point *curve;

    uint32_t n_warnings;
    struct kvc_warning *warnings;
    uint32_t n_assumptions;
    struct kvc_assumption *assumptions;
    uint32_t n_series;
    struct kvc_series *series;
    uint64_t n_requests;
    struct kvc_request_result *requests;

    struct { /* the only part that differs between equal runs */
        double wall_s, cpu_s;
        uint64_t events, steps, peak_rss_bytes;
        uint32_t threads;
        char trace_path[256];
    } runtime;
};

struct kvc_replay_options {
    size_t struct_size;
    bool step_by_step;  /* execute every engine step: slow, for checking */
    bool skip_bounds;   /* no ceilings and capacity curve */
    uint32_t threads;
    const char *trace_path; /* for the record only */
    kvc_progress_fn progress; /* done/total in requests */
    void *progress_user;
    const char *const *what_ifs; /* "noisy=TENANT", "isolation": a run more for each */
    size_t n_what_ifs;
    const char *profile; /* text of a profile of measured figures, instead of the scenario's file */
};

/* The discrete-event run that docs/replay.md defines. Equal trace, scenario, profile and seed: an
 * equal result but for runtime, whatever the threads. options NULL: all 0. Errors: INPUT (a
 * scenario, profile or trace that can't be served, with the key), USAGE (no model or GPU, a
 * policy's options), UNSUPPORTED (no step times), LIMIT, CANCELLED, PLUGIN. The caller destroys the
 * result. */
KVC_API enum kvc_status kvc_replay_run(struct kvc_result **out, const struct kvc_trace *trace,
                                       const struct kvc_scenario *scenario,
                                       const struct kvc_replay_options *options,
                                       struct kvc_error *err);
KVC_API void kvc_result_destroy(struct kvc_result *result);

/* ---- reports --------------------------------------------------------------- */

/* Each writes a whole file or nothing ("-" = stdout for json, text and csv). docs/json.md names
 * every key. HTML runs gnuplot where it is installed, and has a note in place of pictures where
 * not. Errors: IO. */
KVC_API enum kvc_status kvc_report_json(const struct kvc_result *result, const char *path,
                                        struct kvc_error *err);
KVC_API enum kvc_status kvc_report_text(const struct kvc_result *result, const char *path,
                                        struct kvc_error *err);
KVC_API enum kvc_status kvc_report_requests_csv(const struct kvc_result *result, const char *path,
                                                struct kvc_error *err);
KVC_API enum kvc_status kvc_report_html(const struct kvc_result *result, const char *path,
                                        struct kvc_error *err);
/* Appends one run in one transaction; creates the database when absent. *run_id (may be NULL): its
 * row. Errors: IO, INPUT (the file is no database of runs). */
KVC_API enum kvc_status kvc_report_sqlite(const struct kvc_result *result, const char *path,
                                          int64_t *run_id, struct kvc_error *err);

/* ---- profiles ---------------------------------------------------------------- */

/* kind: "hardware", "model", "preset", "price", "link", "kv". name NULL = list. Text for people or,
 * with json, one JSON object; every figure with its kind and source. The caller frees with
 * kvc_free. Errors: USAGE (an unknown kind or name). */
KVC_API enum kvc_status kvc_profile_show(char **out, const char *kind, const char *name, bool json,
                                         struct kvc_error *err);

#ifdef __cplusplus
}
#endif
#endif
