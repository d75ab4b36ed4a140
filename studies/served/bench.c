/* SPDX-License-Identifier: Apache-2.0
 * What 'vllm bench serve --save-result --save-detailed' and SGLang's bench_serving
 * --output-details write: one object a run, a list a figure, in seconds. */
#include <math.h>

#include "base/error.h"
#include "models/profiles.h"
#include "studies/calibrate/request_log.h"

struct lists { /* each at the request that is next; NULL: no such list, or its end */
    const struct kvc_jval *input, *output, *ttft, *between, *start, *error;
};

static const struct kvc_jval *first_of(const struct kvc_jval *run, const char *key)
{
    const struct kvc_jval *v = kvc_jval_member(run, key);

    return v && kvc_jval_kind(v) == KVC_JARRAY ? kvc_jval_first(v) : NULL;
}

static double number(const struct kvc_jval *v)
{
    double value = NAN;

    return v && kvc_jval_number(v, &value) ? value : NAN;
}

static double sum_of(const struct kvc_jval *list)
{
    double sum = 0;

    for (const struct kvc_jval *v = list ? kvc_jval_first(list) : NULL; v; v = kvc_jval_next(v))
        sum += number(v);
    return sum;
}

static void advance(const struct kvc_jval **v)
{
    *v = *v ? kvc_jval_next(*v) : NULL;
}

bool kvc_measured_is_bench(const struct kvc_jval *run)
{
    return first_of(run, "ttfts") || first_of(run, "input_lens");
}

enum kvc_status kvc_measured_log_bench(struct kvc_measured_log *log, const struct kvc_jval *run,
                                       const char *path, struct kvc_error *err)
{
    struct lists l = {first_of(run, "input_lens"), first_of(run, "output_lens"),
                      first_of(run, "ttfts"), first_of(run, "itls"), first_of(run, "start_times"),
                      first_of(run, "errors")};
    const char *missing = !l.input ? "input_lens" : !l.output ? "output_lens" : !l.ttft ? "ttfts"
                          : !l.between ? "itls" : NULL;
    enum kvc_status status = KVC_OK;

    if (missing)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, kvc_jval_line(run), missing,
                           "not in this benchmark's result: have it save details (vllm bench serve "
                           "--save-result --save-detailed, SGLang's --output-details)");
    log->engine_clock = false;
    while (l.input && l.output && l.ttft && l.between && status == KVC_OK) {
        const char *failure = l.error ? kvc_jval_string(l.error) : NULL;
        double ttft = number(l.ttft);
        if (number(l.output) >= 1 && !(failure && *failure))
            status = kvc_measured_log_add(log, number(l.input), number(l.output), ttft,
                                          ttft + sum_of(l.between), number(l.start), path,
                                          kvc_jval_line(l.ttft), err);
        advance(&l.input);
        advance(&l.output);
        advance(&l.ttft);
        advance(&l.between);
        advance(&l.start);
        advance(&l.error);
    }
    if (status == KVC_OK && (l.input || l.output || l.ttft || l.between))
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, kvc_jval_line(run), "ttfts",
                             "its lists are not equally long: a file cut short?");
    return status;
}
