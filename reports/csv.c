/* SPDX-License-Identifier: Apache-2.0
 * Comma-separated values (RFC 4180, one header line, CRLF): a row a request, or a row a figure. */
#include "reports/reports.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Nanoseconds as a decimal of a larger unit, exact; empty when not reached. */
static void put_ns(struct kvc_text *t, uint64_t ns, uint64_t unit, int digits)
{
    if (ns == KVC_TIME_NONE)
        kvc_text_add(t, ",");
    else
        kvc_text_addf(t, ",%" PRIu64 ".%0*" PRIu64, ns / unit, digits, ns % unit);
}

static void put_header(struct kvc_text *t, const struct kvc_result *r)
{
    kvc_text_add(t, "request,outcome,measured,replica,arrival_s,ttft_ms,e2e_ms,queue_ms,route_ms,"
                    "load_ms,prefill_ms,host_ms,input_tokens,output_tokens,hit_tokens");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        char name[64];
        snprintf(name, sizeof(name), "hit_tokens_%s", r->tiers[i].name);
        kvc_text_add(t, ",");
        kvc_text_csv(t, name);
    }
    kvc_text_add(t, ",unheard_ms,recomputed_tokens\r\n");
}

static void put_request(struct kvc_text *t, const struct kvc_result *r, uint64_t i)
{
    static const char *const outcomes[] = {"completed", "failed", "unservable"};
    const struct kvc_request_result *q = &r->requests[i];
    uint64_t hit = 0;
    for (uint32_t k = 0; k < r->n_tiers; k++)
        hit += q->hit_tokens[k];
    kvc_text_addf(t, "%" PRIu64 ",%s,%d,", i, q->outcome <= KVC_UNSERVABLE ? outcomes[q->outcome]
                                                                           : "unknown",
                  q->measured);
    if (q->replica != KVC_ID_NONE)
        kvc_text_addf(t, "%" PRIu32, q->replica);
    put_ns(t, q->arrival_ns, 1000000000, 9);
    const uint64_t times[] = {q->ttft_ns, q->e2e_ns,     q->queue_ns, q->route_ns,
                              q->load_ns, q->prefill_ns, q->host_ns};
    for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++)
        put_ns(t, times[k], 1000000, 6);
    kvc_text_addf(t, ",%" PRIu32 ",%" PRIu32, q->input_tokens, q->output_tokens);
    if (r->has_prefix)
        kvc_text_addf(t, ",%" PRIu64, hit);
    else
        kvc_text_add(t, ",");
    for (uint32_t k = 0; k < r->n_tiers; k++) {
        if (r->has_prefix)
            kvc_text_addf(t, ",%" PRIu32, q->hit_tokens[k]);
        else
            kvc_text_add(t, ",");
    }
    put_ns(t, q->unheard_ns, 1000000, 6);
    kvc_text_addf(t, ",%" PRIu32 "\r\n", q->recomputed_tokens);
}

enum kvc_status kvc_report_requests_csv(const struct kvc_result *result, const char *path,
                                        struct kvc_error *err)
{
    struct kvc_outfile *f = NULL;
    struct kvc_text t = {0};
    enum kvc_status status = kvc_outfile_open(&f, path, err);
    if (status != KVC_OK)
        return status;
    put_header(&t, result);
    for (uint64_t i = 0; !t.failed && i < result->n_requests && kvc_outfile_ok(f); i++) {
        put_request(&t, result, i);
        kvc_outfile_write(f, t.buf, t.failed ? 0 : t.len);
        t.len = 0;
    }
    if (!t.failed) /* what is left is the header of an empty run */
        kvc_outfile_write(f, t.buf, t.len);
    bool failed = t.failed;
    kvc_text_clear(&t);
    if (failed) {
        kvc_outfile_abandon(f);
        return kvc_fail_nomem(err);
    }
    return kvc_outfile_close(f, err);
}

/* ---- a row a figure ---- */

static void put_scalar(struct kvc_text *t, const char *name, const struct kvc_jval *v)
{
    struct kvc_json j;
    bool flag;
    double number;
    uint64_t whole;
    kvc_text_csv(t, name);
    kvc_text_add(t, ",");
    kvc_json_init(&j, false);
    if (kvc_jval_string(v))
        kvc_text_csv(t, kvc_jval_string(v));
    else if (kvc_jval_bool(v, &flag))
        kvc_text_add(t, flag ? "true" : "false");
    else if (kvc_jval_u64(v, &whole))
        kvc_text_addf(t, "%" PRIu64, whole);
    else if (kvc_jval_number(v, &number)) {
        kvc_json_double(&j, NULL, number);
        kvc_text_add(t, j.buf ? j.buf : "");
    }
    t->failed |= j.failed;
    kvc_json_clear(&j);
    kvc_text_add(t, "\r\n");
}

static void put_tree(struct kvc_text *t, const char *name, const struct kvc_jval *v)
{
    enum kvc_jkind kind = kvc_jval_kind(v);
    if (kind != KVC_JOBJECT && kind != KVC_JARRAY) {
        put_scalar(t, name, v);
        return;
    }
    size_t i = 0;
    for (const struct kvc_jval *m = kvc_jval_first(v); m; m = kvc_jval_next(m), i++) {
        struct kvc_text full = {0};
        if (kind == KVC_JOBJECT)
            kvc_text_addf(&full, "%s%s%s", name, *name ? "." : "", kvc_jval_key(m));
        else
            kvc_text_addf(&full, "%s.%zu", name, i);
        if (full.failed)
            t->failed = true;
        else
            put_tree(t, full.buf, m);
        kvc_text_clear(&full);
    }
}

void kvc_figures_csv(struct kvc_text *t, const struct kvc_jval *figures)
{
    kvc_text_add(t, "name,value\r\n");
    put_tree(t, "", figures);
}
