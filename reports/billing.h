/* SPDX-License-Identifier: Apache-2.0
 * What a log states of money and caches, what the same requests cost at given prices, and what
 * engines state of themselves. */
#ifndef KVC_REPORTS_BILLING_H
#define KVC_REPORTS_BILLING_H

#include "base/json.h"
#include "base/text.h"
#include "traces/trace.h"

struct kvc_prices { /* USD per million tokens; below 0: not given */
    double input, cached, output;
    double write;   /* of tokens written to a provider's cache; else as input */
    char model[64]; /* these are the prices of; "": of all */
};

/* "input=1.25,cached=0.125,output=10,write=1.5625,model=gpt-x": input, cached and output needed. */
enum kvc_status kvc_prices_parse(const char *text, struct kvc_prices *out, struct kvc_error *err);

struct kvc_bill {
    bool priced;
    struct kvc_prices prices;
    uint64_t requests;         /* priced: answered, of that model, cached tokens stated */
    uint64_t unknown_requests; /* the same, cached tokens not stated: not in the sums below */
    uint64_t input_tokens, cached_tokens, output_tokens, write_tokens;
    double cost_usd;           /* input less cached at one price, cached at the other, .. */
    double cost_uncached_usd;  /* as if nothing had been cached */
    double cost_twice_usd;     /* as if cached tokens were billed as input and again as cached */
    double unknown_low_usd, unknown_high_usd; /* the others, all of it cached and nothing of it */
    uint32_t models;           /* under these prices */
    bool spend_is_twice;       /* what the log states is cost_twice_usd, not cost_usd */
};

/* prices NULL: nothing is priced. report may be that of a .kvt, all zero. */
void kvc_bill_make(struct kvc_bill *out, const struct kvc_trace *trace,
                   const struct kvc_import_report *report, const struct kvc_prices *prices);
/* "billing": {..}, null where the log states nothing and there are no prices; text:
 * nothing then. */
void kvc_bill_json(struct kvc_json *j, const struct kvc_bill *bill,
                   const struct kvc_import_report *report);
void kvc_bill_text(struct kvc_text *t, const struct kvc_bill *bill,
                   const struct kvc_import_report *report);

/* "engine": {..}, null without any. */
void kvc_engines_json(struct kvc_json *j, const struct kvc_import_report *report);
void kvc_engines_text(struct kvc_text *t, const struct kvc_import_report *report);

#endif
