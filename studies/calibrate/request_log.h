/* SPDX-License-Identifier: Apache-2.0
 * What a served run measured of each request: JSON lines as vLLM's benchmark scripts write them
 * (queued_ts, first_token_ts, last_token_ts), the CSV of kvcast replay --requests, rows of either
 * kind with the client's times in seconds (arrival, first_token, last_token), or the saved result
 * of a benchmark. */
#ifndef KVC_STUDIES_REQUEST_LOG_H
#define KVC_STUDIES_REQUEST_LOG_H

#include <kvcast/kvcast.h>

struct kvc_measured_request {
    uint32_t input, output;
    uint64_t ttft_ns, e2e_ns;
    double arrival_s; /* NAN: not stated */
};

struct kvc_measured_log { /* all zero = empty; in the file's order */
    struct kvc_measured_request *request;
    size_t n, cap;
    bool engine_clock; /* taken inside the engine: no front end and no client in them */
};

enum kvc_status kvc_measured_log_read(struct kvc_measured_log *out, const char *path,
                                      struct kvc_error *err);
/* What looks odd in it, in words; "" = nothing. false: no memory. */
bool kvc_measured_log_note(const struct kvc_measured_log *log, char out[256]);
void kvc_measured_log_clear(struct kvc_measured_log *log);
/* One more; what makes no sense is an error there. */
enum kvc_status kvc_measured_log_add(struct kvc_measured_log *log, double input, double output,
                                     double ttft_s, double e2e_s, double arrival_s,
                                     const char *path, uint64_t line, struct kvc_error *err);
/* studies/served/bench.c: the result of a benchmark of vLLM or SGLang, a list a figure. */
struct kvc_jval;
bool kvc_measured_is_bench(const struct kvc_jval *run);
enum kvc_status kvc_measured_log_bench(struct kvc_measured_log *log, const struct kvc_jval *run,
                                       const char *path, struct kvc_error *err);
/* Its requests as a trace, without prefixes; sorts them by arrival. KVC_ERR_UNSUPPORTED: some have
 * no arrival. */
enum kvc_status kvc_measured_log_trace(struct kvc_measured_log *log, struct kvc_trace **out,
                                       struct kvc_error *err);

/* What meta.json beside the log says of the engine that served it, as scenario keys: model, GPU,
 * tp, replicas, budget, sequences, KV room. No such file: nothing is set. said: a line of what was.
 */
enum kvc_status kvc_measured_meta_apply(struct kvc_scenario *scenario, const char *log_path,
                                        char said[512], struct kvc_error *err);

#endif
