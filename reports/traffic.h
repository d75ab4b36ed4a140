/* SPDX-License-Identifier: Apache-2.0
 * A trace's profile for people and programs: the section "Your traffic" as text, JSON and HTML.
 * docs/inspect.md defines the figures. */
#ifndef KVC_REPORTS_TRAFFIC_H
#define KVC_REPORTS_TRAFFIC_H

#include "base/json.h"
#include "reports/out.h"
#include "traces/profile/profile.h"

#define KVC_TRAFFIC_FINDINGS 12

struct kvc_traffic {
    const struct kvc_trace *trace; /* borrowed */
    const char *title;             /* what the log is called, borrowed */
    uint64_t kv_bytes_per_token;   /* 0: no model was named, tokens are not made into bytes */
    const struct kvc_import_report *import; /* for the page; borrowed, NULL: not known */
    double usd_per_lost_token;     /* what a token costs more uncached than cached; 0: no prices */
    struct kvc_trace_stats stats;
    struct kvc_profile profile;
    uint32_t n_findings;
    char findings[KVC_TRAFFIC_FINDINGS][400]; /* what follows, a sentence or two each */
};

enum kvc_status kvc_traffic_make(struct kvc_traffic *out, const struct kvc_trace *trace,
                                 const char *title, uint64_t kv_bytes_per_token,
                                 struct kvc_error *err);
void kvc_traffic_clear(struct kvc_traffic *traffic);
/* Fills findings[]; again once prices are known. */
void kvc_traffic_findings(struct kvc_traffic *traffic);

/* ---- derived figures; NAN = not known ---- */

/* Of all input tokens; NAN without prefix information. */
double kvc_traffic_bound(const struct kvc_traffic *traffic);
/* The input tokens that a tenant's shares are of; NAN when the log says of none what they share. */
double kvc_traffic_judged(const struct kvc_traffic *traffic, const struct kvc_tenant_profile *one);
double kvc_traffic_measured(const struct kvc_traffic *traffic); /* of the rows that state it */
/* Of the tokens seen before, those that a sliding TTL of age_limit_ns[age] loses. */
double kvc_traffic_ttl_loss(const struct kvc_traffic *traffic, size_t age);
size_t kvc_traffic_age(const struct kvc_traffic *traffic, uint64_t seconds); /* its index */
/* The shortest TTL listed that loses no more than that share. */
size_t kvc_traffic_ttl_for(const struct kvc_traffic *traffic, double loss);
/* "1.2 M tokens" or, with a model, "1.2 M tokens (3.4 GiB)". */
struct kvc_str kvc_traffic_size(const struct kvc_traffic *traffic, double blocks);
struct kvc_str kvc_traffic_age_name(uint64_t ns); /* "5 min" */
/* For people; history is NULL where it can't be told from documents. */
const char *kvc_traffic_kind(const struct kvc_traffic *traffic, enum kvc_content kind);
/* "prompts begin with the same 1,024 tokens", .. (those of one model) */
void kvc_traffic_assumption(const struct kvc_offered *offered, char *buf, size_t size);
/* False where it would leave more than nine prompts in ten with nothing of their own. */
bool kvc_traffic_believable(const struct kvc_traffic *traffic, const struct kvc_offered *offered);

/* ---- writers ---- */

/* A sentence broken at blanks so as to fit a terminal. */
void kvc_traffic_wrap(struct kvc_text *t, const char *first, const char *next, const char *s);

void kvc_traffic_text(struct kvc_text *t, const struct kvc_traffic *traffic);
/* Members of the object that is open. */
void kvc_traffic_json(struct kvc_json *j, const struct kvc_traffic *traffic);
/* A page of its own. Runs gnuplot for the pictures; without it there are tables. */
enum kvc_status kvc_traffic_html(const struct kvc_traffic *traffic, const char *path,
                                 struct kvc_error *err);

/* ---- what breaks caching: where prompts that could be alike stop being so ---- */

bool kvc_traffic_has_breaks(const struct kvc_traffic *traffic); /* the log held texts */
void kvc_traffic_breaks_summary(const struct kvc_traffic *traffic, char *buf, size_t size);
/* The same as one finding, with the dearest place; empty when nothing is lost. */
void kvc_traffic_breaks_finding(const struct kvc_traffic *traffic, char *buf, size_t size);
/* Silent without texts; JSON says null then. */
void kvc_traffic_breaks_text(struct kvc_text *t, const struct kvc_traffic *traffic);
void kvc_traffic_breaks_json(struct kvc_json *j, const struct kvc_traffic *traffic);
void kvc_traffic_breaks_html(struct kvc_text *t, const struct kvc_traffic *traffic);

#endif
