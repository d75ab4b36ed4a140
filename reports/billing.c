/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/billing.h"

#include "base/error.h"
#include "base/units.h"
#include "reports/out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- prices ---- */

static enum kvc_status one_price(struct kvc_prices *p, const char *key, const char *value,
                                 struct kvc_error *err)
{
    const struct {
        const char *name;
        double *to;
    } known[] = { { "input", &p->input }, { "cached", &p->cached }, { "output", &p->output },
                  { "write", &p->write } };
    if (strcmp(key, "model") == 0) {
        snprintf(p->model, sizeof(p->model), "%s", value);
        return KVC_OK;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(key, known[i].name) != 0)
            continue;
        if (kvc_parse_double(*value == '$' ? value + 1 : value, key, known[i].to, NULL) == KVC_OK &&
            *known[i].to >= 0 && *known[i].to < 1e9)
            return KVC_OK;
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--prices",
                           "%s=%s: dollars per million tokens are expected, as in %s=1.25", key,
                           value, key);
    }
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--prices",
                       "%s is no price; there are input, cached, output and write, in dollars per "
                       "million tokens, and model=NAME", key);
}

enum kvc_status kvc_prices_parse(const char *text, struct kvc_prices *out, struct kvc_error *err)
{
    struct kvc_prices p = { .input = -1, .cached = -1, .output = -1, .write = -1 };
    char item[128];
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ",");
        snprintf(item, sizeof(item), "%.*s", (int)(n < sizeof(item) ? n : sizeof(item) - 1), at);
        char *equals = strchr(item, '=');
        if (!equals)
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--prices",
                               "\"%s\": name=price is expected, as in input=1.25,cached=0.125,"
                               "output=10", item);
        *equals = '\0';
        enum kvc_status status = one_price(&p, item, equals + 1, err);
        if (status != KVC_OK)
            return status;
        at += n + (at[n] == ',');
    }
    if (p.input < 0 || p.cached < 0 || p.output < 0)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--prices",
                           "%s is missing; give input, cached and output in dollars per million "
                           "tokens", p.input < 0 ? "input" : p.cached < 0 ? "cached" : "output");
    *out = p;
    return KVC_OK;
}

/* ---- the bill ---- */

static bool at_these_prices(const struct kvc_trace *t, uint64_t r, const struct kvc_prices *p)
{
    if (t->row_status && t->row_status[r] == KVC_ROW_FAILED)
        return false;
    uint32_t m = t->model ? t->model[r] : KVC_ID_NONE;
    return !p->model[0] || (m < t->n_models && kvc_name_equal(t->model_names[m], p->model));
}

static void add_request(struct kvc_bill *b, const struct kvc_trace *t, uint64_t r)
{
    uint32_t cached = t->cached_tokens ? t->cached_tokens[r] : KVC_ID_NONE;
    double input = t->input_tokens[r], output = (double)t->output_tokens[r] * b->prices.output;
    if (cached == KVC_ID_NONE) {
        double a = input * b->prices.input, c = input * b->prices.cached;
        b->unknown_requests++;
        b->unknown_low_usd += ((a < c ? a : c) + output) / 1e6;
        b->unknown_high_usd += ((a < c ? c : a) + output) / 1e6;
        return;
    }
    b->requests++;
    b->input_tokens += t->input_tokens[r];
    b->cached_tokens += cached;
    b->output_tokens += t->output_tokens[r];
}

void kvc_bill_make(struct kvc_bill *out, const struct kvc_trace *t,
                   const struct kvc_import_report *report, const struct kvc_prices *prices)
{
    struct kvc_bill b = { .priced = prices != NULL };
    if (!prices) {
        *out = b;
        return;
    }
    b.prices = *prices;
    for (uint64_t r = 0; r < t->n_requests; r++)
        if (at_these_prices(t, r, prices))
            add_request(&b, t, r);
    /* Writes are known of the whole log only. */
    b.write_tokens = prices->write >= 0 && !prices->model[0] ? report->cache_write_tokens : 0;
    double written = (double)b.write_tokens * (prices->write - prices->input);
    double output = (double)b.output_tokens * prices->output;
    double fresh = (double)(b.input_tokens - b.cached_tokens) * prices->input;
    double cached = (double)b.cached_tokens * prices->cached;
    double whole = (double)b.input_tokens * prices->input;
    b.cost_usd = (fresh + cached + output + written) / 1e6;
    b.cost_uncached_usd = (whole + output) / 1e6;
    b.cost_twice_usd = (whole + cached + output + written) / 1e6;
    b.models = prices->model[0] ? 1 : t->n_models;
    double spend = report->spend_usd, gap = fabs(spend - b.cost_usd);
    b.spend_is_twice = report->spend_rows == b.requests && b.cached_tokens &&
                       !b.unknown_requests && gap > 1e-9 &&
                       fabs(spend - b.cost_twice_usd) <= 1e-3 * gap;
    *out = b;
}

static bool states_something(const struct kvc_import_report *r)
{
    return r->cached_rows || r->spend_rows || r->cache_write_tokens;
}

void kvc_bill_json(struct kvc_json *j, const struct kvc_bill *b, const struct kvc_import_report *r)
{
    if (!b->priced && !states_something(r)) {
        kvc_json_null(j, "billing");
        return;
    }
    kvc_json_open_object(j, "billing");
    if (r->cached_of_tokens)
        kvc_json_double(j, "stated_cached_share",
                        (double)r->cached_tokens / (double)r->cached_of_tokens);
    else
        kvc_json_null(j, "stated_cached_share");
    if (r->spend_rows)
        kvc_json_double(j, "stated_spend_usd", r->spend_usd);
    else
        kvc_json_null(j, "stated_spend_usd");
    if (b->priced) {
        kvc_json_open_object(j, "at_prices");
        kvc_json_u64(j, "requests", b->requests);
        kvc_json_u64(j, "requests_of_unknown_cached_tokens", b->unknown_requests);
        kvc_json_u64(j, "uncached_input_tokens", b->input_tokens - b->cached_tokens);
        kvc_json_u64(j, "cached_tokens", b->cached_tokens);
        kvc_json_u64(j, "cache_write_tokens", b->write_tokens);
        kvc_json_u64(j, "output_tokens", b->output_tokens);
        kvc_json_double(j, "cost_usd", b->cost_usd);
        kvc_json_double(j, "cost_if_nothing_cached_usd", b->cost_uncached_usd);
        kvc_json_double(j, "cost_if_cached_billed_twice_usd", b->cost_twice_usd);
        kvc_json_double(j, "saved_usd", b->cost_uncached_usd - b->cost_usd);
        kvc_json_double(j, "unknown_low_usd", b->unknown_low_usd);
        kvc_json_double(j, "unknown_high_usd", b->unknown_high_usd);
        kvc_json_bool(j, "spend_bills_cached_twice", b->spend_is_twice);
        kvc_json_close(j);
    } else {
        kvc_json_null(j, "at_prices");
    }
    kvc_json_close(j);
}

/* A bill is checked to the cent and below: as many decimals as small sums need. */
static struct kvc_str money(double usd)
{
    struct kvc_str number = kvc_fmt_fixed(usd, fabs(usd) < 99.995 ? 4 : 2, true), out;
    size_t n = strlen(number.s);
    for (int k = 0; k < 2 && number.s[n - 1] == '0' && number.s[n - 3] != '.'; k++)
        n--;
    snprintf(out.s, sizeof(out.s), "USD %.*s", (int)n, number.s);
    return out;
}

void kvc_bill_text(struct kvc_text *t, const struct kvc_bill *b, const struct kvc_import_report *r)
{
    if (!b->priced && !states_something(r))
        return;
    kvc_text_add(t, "\nMoney and caches, as the log states them\n");
    if (r->cached_of_tokens)
        kvc_text_addf(t, "  %s of %s prompt tokens cached (%s), in %s rows that say\n",
                      kvc_fmt_count(r->cached_tokens).s, kvc_fmt_count(r->cached_of_tokens).s,
                      kvc_fmt_percent((double)r->cached_tokens / (double)r->cached_of_tokens).s,
                      kvc_fmt_count(r->cached_rows).s);
    if (r->cache_write_tokens)
        kvc_text_addf(t, "  %s tokens billed as written to a cache\n",
                      kvc_fmt_count(r->cache_write_tokens).s);
    if (r->spend_rows)
        kvc_text_addf(t, "  %s spent, in %s rows that say\n", money(r->spend_usd).s,
                      kvc_fmt_count(r->spend_rows).s);
    if (!b->priced)
        return;
    kvc_text_addf(t, "  at %s, %s cached and %s for output per million tokens:\n",
                  money(b->prices.input).s, money(b->prices.cached).s, money(b->prices.output).s);
    kvc_text_addf(t, "  %s requests cost %s; %s if nothing had been cached: the cache saved %s\n",
                  kvc_fmt_count(b->requests).s, money(b->cost_usd).s,
                  money(b->cost_uncached_usd).s, money(b->cost_uncached_usd - b->cost_usd).s);
    if (b->unknown_requests)
        kvc_text_addf(t, "  %s more requests don't say what was cached: %s to %s\n",
                      kvc_fmt_count(b->unknown_requests).s, money(b->unknown_low_usd).s,
                      money(b->unknown_high_usd).s);
    if (b->spend_is_twice)
        kvc_text_addf(t, "  the stated spend is what comes of billing cached tokens at the full "
                      "price and once\n  more as cached: %s too much\n",
                      money(r->spend_usd - b->cost_usd).s);
    if (b->models > 1)
        kvc_text_addf(t, "  one price for %u models; model=NAME in --prices takes one of them\n",
                      b->models);
}
