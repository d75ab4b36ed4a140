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

/* Two digits, 150 and not 1.5e+02. */
static const char *percent(char to[16], double share)
{
    snprintf(to, 16, share < 1 ? "%.2g %%" : "%.0f %%", share * 100);
    return to;
}

void kvc_profile_print_quality(FILE *out, const struct kvc_measured_fit *f)
{
    struct kvc_text words = {0};
    char half[16], worst[16];

    if (f->n == 1)
        fputs("  a single measurement, met as it is", out);
    else
        fprintf(out,
                "  half of the %zu measurements are met within %s, the worst within %s",
                f->n, percent(half, f->median), percent(worst, f->worst));
    if (f->outliers)
        fprintf(out, "; %zu far off count little", f->outliers);
    if (isfinite(f->held_out_median))
        fprintf(out,
                ";\n  of those left out and predicted from the others, half within %s, the "
                "worst within %s\n",
                percent(half, f->held_out_median), percent(worst, f->held_out_worst));
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

static void print_ranges(FILE *out, const struct kvc_own_kernel *k)
{
    for (size_t a = 0; a < k->family->n_axes; a++)
        fprintf(out, "%s %.6g to %.6g", a ? " x" : ";", k->least[a], k->most[a]);
    fprintf(out, " (%s)\n", k->family->x);
}

static void print_way(FILE *out, const struct kvc_own_kernel *k)
{
    const char *apart = k->shapes > 1 ? "shapes" : "rows";
    char own[16], base[16];

    percent(own, k->table_off / 100);
    percent(base, k->rescaled_off / 100);
    switch (k->way) {
    case KVC_OWN_TABLE:
        fputs("  a table of their own", out);
        if (isfinite(k->table_off))
            fprintf(out, ", %s off on %s left out", own, apart);
        if (isfinite(k->rescaled_off))
            fprintf(out, " (%s's shapes: %s)", k->base, base);
        break;
    case KVC_OWN_RESCALED:
        fprintf(out, "  %s's shapes with these constants", k->base);
        if (isfinite(k->rescaled_off))
            fprintf(out, ", %s off on %s left out", base, apart);
        if (isfinite(k->table_off))
            fprintf(out, " (a table of their own: %s)", own);
        break;
    case KVC_OWN_BOUND:
        fprintf(out, "  plain kernels, %.0f %% slower than %s's would be here: step times take "
                "those", k->slower * 100, k->base);
        break;
    case KVC_OWN_TOO_FEW:
        fputs("  fewer than eight, and no table to lean on: step times do not use them", out);
    }
    fputc('\n', out);
}

void kvc_profile_print_kernels(FILE *out, const struct kvc_own_kernels *own)
{
    for (size_t i = 0; i < own->n; i++) {
        const struct kvc_own_kernel *k = &own->kernel[i];
        fprintf(out, "%s, %s: %zu rows of %zu shape%s", k->family->name, k->key, k->rows,
                k->shapes, k->shapes == 1 ? "" : "s");
        print_ranges(out, k);
        print_way(out, k);
        if (k->way != KVC_OWN_RESCALED)
            continue;
        for (size_t c = 0; c < k->fit.n_constants; c++)
            kvc_profile_print_constant(out, &k->fit.constant[c], false, c ? 100 : 1e-3,
                                       c ? "%" : "us");
        kvc_profile_print_quality(out, &k->fit);
    }
    if (own->told.bf16_flops > 0)
        fprintf(out, "Peaks by which those kernels take what was measured: bf16 %.4g, fp8 %.4g "
                "TFLOP/s, memory %.4g GB/s\n", own->peaks.bf16_flops / 1e12,
                own->peaks.fp8_flops / 1e12, own->peaks.bytes_per_s / 1e9);
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
