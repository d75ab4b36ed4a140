/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/calibrate/profile_report.h"

#include "base/outfile.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

void kvc_profile_print_constant(FILE *out, const struct kvc_fit_constant *c, bool bounded,
                                double scale, const char *unit)
{
    if (c->told)
        fprintf(out, "  %-30s %10.4g +- %.2g %s\n", c->name, c->value * scale, c->error * scale,
                unit);
    else if (bounded)
        fprintf(out, "  %-30s %10.4g    %s, at most about so\n", c->name, c->value * scale, unit);
    else
        fprintf(out, "  %-30s   as it was\n", c->name);
}

void kvc_profile_print_quality(FILE *out, const struct kvc_measured_fit *f)
{
    struct kvc_text words = {0};

    fprintf(out, "  half of the %zu measurements are met within %.2g %%, the worst within %.2g %%",
            f->n, f->median * 100, f->worst * 100);
    if (f->outliers)
        fprintf(out, "; %zu far off count little", f->outliers);
    if (isfinite(f->held_out_median))
        fprintf(out,
                ";\n  of those left out and predicted from the others, half within %.2g %%, the "
                "worst within %.2g %%\n",
                f->held_out_median * 100, f->held_out_worst * 100);
    else
        fputs(";\n  too few to leave some out and predict them\n", out);
    kvc_measured_fit_words(f, "  ", &words);
    if (words.buf)
        fputs(words.buf, out);
    kvc_text_clear(&words);
}

static void print_link(FILE *out, const struct kvc_link_fit *f)
{
    const char *what = f->direction == KVC_TOWARDS_GPU ? "read" : "write";
    char least[32], most[32];

    kvc_format_bytes((uint64_t)f->least_bytes, least, sizeof least);
    kvc_format_bytes((uint64_t)f->most_bytes, most, sizeof most);
    fprintf(out, "%s, %s: %s; operations of %s to %s\n", f->base->name, what, f->sources.buf, least,
            most);
    kvc_profile_print_constant(out, &f->fit.constant[KVC_LINK_RATE],
                               kvc_link_fit_bounds(f, KVC_LINK_RATE), 1e-9, "GB/s");
    kvc_profile_print_constant(out, &f->fit.constant[KVC_LINK_LATENCY],
                               kvc_link_fit_bounds(f, KVC_LINK_LATENCY), 1e-3, "us");
    kvc_profile_print_constant(out, &f->fit.constant[KVC_LINK_PER_OP],
                               kvc_link_fit_bounds(f, KVC_LINK_PER_OP), 1e-3, "us");
    kvc_profile_print_quality(out, &f->fit);
    if (f->bare && f->fit.constant[KVC_LINK_LATENCY].told)
        fputs("  latency: the wire's; what an engine does around a transfer is not in it, so the "
              "profile keeps what it had\n", out);
}

void kvc_profile_print_links(FILE *out, const struct kvc_link_fits *fits)
{
    for (size_t i = 0; i < fits->n; i++)
        print_link(out, &fits->fit[i]);
    for (size_t i = 0; i < fits->n_both; i++)
        fprintf(out, "%s, both ways at once: %.4g GB/s together, %s\n", fits->both[i].base->name,
                kvc_link_both_rate(&fits->both[i]) * 1e-9, fits->both[i].sources.buf);
}

enum kvc_status kvc_profile_put(const char *profile, const char *path, struct kvc_error *err)
{
    struct kvc_outfile *o;
    enum kvc_status status = kvc_outfile_open(&o, path, err);

    if (status != KVC_OK)
        return status;
    kvc_outfile_write(o, profile, strlen(profile));
    kvc_outfile_write(o, "\n", 1);
    return kvc_outfile_close(o, err);
}
