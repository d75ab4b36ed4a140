/* SPDX-License-Identifier: Apache-2.0
 * When requests come: rates, bursts, and a start that is not like the rest. */
#include "traces/profile/profile_parts.h"

#include "base/distribution.h"

#include <math.h>
#include <stdlib.h>

static const uint64_t count_windows[KVC_PROFILE_COUNTS] = {KVC_NS_PER_S, 10 * KVC_NS_PER_S,
                                                           60 * KVC_NS_PER_S};

static void gaps(const struct kvc_trace *t, struct kvc_profile *p)
{
    uint64_t n = t->n_requests, peak = 0, in_minute = 0, minute = 0;
    double span = (double)t->arrival_ns[n - 1] * 1e-9;
    double mean = span / (double)(n - 1), square = 0;
    for (uint64_t r = 0; r < n; r++) {
        uint64_t m = t->arrival_ns[r] / (60 * KVC_NS_PER_S);
        in_minute = m == minute ? in_minute + 1 : 1;
        minute = m;
        if (in_minute > peak) {
            peak = in_minute;
            p->peak_minute = m;
        }
        if (r) {
            double gap = (double)(t->arrival_ns[r] - t->arrival_ns[r - 1]) * 1e-9 - mean;
            square += gap * gap;
        }
    }
    p->requests_per_s = (double)n / span;
    p->peak_requests_per_s = (double)peak / (span < 60 ? span : 60);
    p->gap_cv = sqrt(square / (double)(n - 1)) / mean;
}

/* Counts in the whole windows of the span, empty ones among them. */
static double dispersion(const struct kvc_trace *t, uint64_t window, uint64_t windows)
{
    double sum = 0, square = 0;
    uint64_t count = 0, at = 0;
    for (uint64_t r = 0; r <= t->n_requests; r++) {
        uint64_t i = r < t->n_requests ? t->arrival_ns[r] / window : windows;
        i = i < windows ? i : windows;
        if (i != at || r == t->n_requests) {
            sum += (double)count;
            square += (double)count * (double)count;
            count = 0;
            at = i;
        }
        if (i == windows)
            break;
        count++;
    }
    double n = (double)windows, mean = sum / n;
    return (square / n - mean * mean) / mean;
}

/* The standard error of a variance over n windows is about sqrt(2/n) of it: 0.45 at 10, where 3
 * times as much as random still stands out. */
#define WINDOWS_LEAST 10
#define RAMP_REQUESTS 1000 /* fewer say nothing about a slow start */
#define SLOW_START 3 /* times the rate of the first tenth */

static void bursts(const struct kvc_trace *t, struct kvc_profile *p)
{
    uint64_t span = t->n_requests ? t->arrival_ns[t->n_requests - 1] : 0;
    for (size_t i = 0; i < KVC_PROFILE_COUNTS; i++) {
        uint64_t windows = span / count_windows[i];
        p->counts[i].window_ns = count_windows[i];
        p->counts[i].windows = windows;
        p->counts[i].dispersion =
            windows >= WINDOWS_LEAST ? dispersion(t, count_windows[i], windows) : (double)NAN;
    }
}

/* Where logs begin with a tool being adopted, or a benchmark warming up, the first tenth of the
 * span is not like the second half. */
static void ramp(struct kvc_profile *p)
{
    uint64_t rest[KVC_PROFILE_RATES], first = 0;
    uint32_t whole = p->n_rates - 1, tenth = whole / 10, n = 0;
    p->start_per_s = p->steady_per_s = (double)NAN;
    if (p->n_rates < 21) /* one window alone may be slow by chance */
        return;
    double window_s = (double)p->rate_window_ns * 1e-9;
    for (uint32_t i = 0; i < tenth; i++)
        first += p->requests_in[i];
    for (uint32_t i = whole / 2; i < whole; i++)
        rest[n++] = p->requests_in[i];
    qsort(rest, n, sizeof(*rest), kvc_order_u64);
    p->start_per_s = (double)first / ((double)tenth * window_s);
    p->steady_per_s = (double)rest[(n - 1) / 2] / window_s;
}

static void rates(const struct kvc_trace *t, struct kvc_profile *p)
{
    static const uint32_t nice_s[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600,
                                      7200, 14400, 21600, 43200, 86400, 172800, 604800};
    uint64_t span = t->arrival_ns[t->n_requests - 1], window = 0;
    for (size_t i = 0; i < sizeof(nice_s) / sizeof(nice_s[0]) && !window; i++)
        if (span / (nice_s[i] * KVC_NS_PER_S) < KVC_PROFILE_RATES)
            window = nice_s[i] * KVC_NS_PER_S;
    if (!window)
        window = span / KVC_PROFILE_RATES + 1;
    p->rate_window_ns = window;
    p->n_rates = (uint32_t)(span / window) + 1;
    for (uint64_t r = 0; r < t->n_requests; r++)
        p->requests_in[t->arrival_ns[r] / window]++;
    ramp(p);
    p->slow_start = t->n_requests >= RAMP_REQUESTS &&
                    p->steady_per_s >= SLOW_START * p->start_per_s;
}

bool kvc_profile_slow_start(const struct kvc_trace *t, struct kvc_profile *p)
{
    if (t->n_requests >= RAMP_REQUESTS)
        rates(t, p);
    return p->slow_start;
}

void kvc_profile_arrivals(const struct kvc_trace *t, struct kvc_profile *p)
{
    p->start_per_s = p->steady_per_s = (double)NAN;
    bursts(t, p);
    if (t->n_requests < 2 || t->arrival_ns[t->n_requests - 1] == 0)
        return;
    gaps(t, p);
    rates(t, p);
}
