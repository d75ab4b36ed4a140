/* SPDX-License-Identifier: Apache-2.0
 * One span of OpenTelemetry, as OTLP JSON or flat JSON has it: attributes by name, times, and
 * whether it is a call of a model. */
#ifndef KVC_TRACES_OTEL_SPAN_H
#define KVC_TRACES_OTEL_SPAN_H

#include "traces/formats/usage.h"
#include "traces/parse/records.h"
#include "traces/text/stored_text.h"

struct kvc_otel_span {
    const struct kvc_jval *v, *resource; /* the span; attributes of its resource, may be NULL */
};

/* The value of an attribute by any of several names; null, "" and what is not scalar: NULL. */
const struct kvc_jval *kvc_otel_attribute(const struct kvc_otel_span *s, const char *names);
/* The same of its resource. */
const struct kvc_jval *kvc_otel_resource(const struct kvc_otel_span *s, const char *names);

enum kvc_otel_work { KVC_OTEL_OTHER, KVC_OTEL_CALL };
/* By gen_ai.operation.name; without one, by whether a model or tokens are named. */
enum kvc_otel_work kvc_otel_work(const struct kvc_otel_span *s);
bool kvc_otel_failed(const struct kvc_otel_span *s);
/* Start and end; end KVC_TIME_NONE when it has none. */
enum kvc_status kvc_otel_times(const struct kvc_otel_span *s, struct kvc_import *im,
                               const struct kvc_place *at, uint64_t *start_ns, uint64_t *end_ns,
                               struct kvc_error *err);
enum kvc_status kvc_otel_usage(const struct kvc_otel_span *s, const struct kvc_place *at,
                               struct kvc_usage *out, struct kvc_error *err);
/* Its conversation; NULL: none. */
const struct kvc_jval *kvc_otel_session(const struct kvc_otel_span *s);
/* Puts what the span shows of prompt and answer into stored; scratch is overwritten. */
void kvc_otel_prompt(const struct kvc_otel_span *s, struct kvc_stored *stored,
                     struct kvc_text *scratch);

#endif
