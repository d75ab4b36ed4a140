/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/plot_parts.h"

#include <math.h>
#include <string.h>

struct kvc_str kvc_plot_num(double v)
{
    if (!isfinite(v))
        return (struct kvc_str){"NaN"};
    return kvc_fmt_fixed(v, fabs(v) < 1 ? 8 : fabs(v) < 1e5 ? 4 : 0, false);
}

/* In double quotes gnuplot knows escapes and enhanced text; names may hold anything. */
void kvc_plot_quoted(struct kvc_text *t, const char *s)
{
    kvc_text_add(t, "\"");
    for (; *s; s++) {
        if (strchr("_^{}@&~", *s))
            kvc_text_add(t, "\\\\");
        else if (*s == '"' || *s == '\\' || *s == '`' || *s == '$')
            continue;
        if ((unsigned char)*s >= 0x20)
            kvc_text_addn(t, s, 1);
    }
    kvc_text_add(t, "\"");
}

void kvc_plot_begin(struct kvc_text *t, int width, int height)
{
    const char *ink = kvc_colour_light("ink"), *muted = kvc_colour_light("muted");
    kvc_text_addf(t, "set terminal svg size %d,%d enhanced font 'sans-serif,13'\n", width, height);
    kvc_text_addf(t, "set border 1 lc rgb '%s'\nset tics nomirror textcolor rgb '%s'\n", muted,
                  ink);
    kvc_text_addf(t, "set grid ytics lt 1 lw 1 lc rgb '%s'\nset ytics scale 0\n",
                  kvc_colour_light("grid"));
    kvc_text_add(t, "set xtics out scale 0.6\nset encoding utf8\nset key off\n");
}

/* Margins in points, so that labels outside the axes find the room they need. */
void kvc_plot_margins(struct kvc_text *t, int width, int height, int top, int bottom)
{
    kvc_text_addf(t, "set lmargin at screen %s\nset rmargin at screen %s\n",
                  kvc_plot_num(56.0 / width).s, kvc_plot_num(1 - 18.0 / width).s);
    kvc_text_addf(t, "set tmargin at screen %s\nset bmargin at screen %s\n",
                  kvc_plot_num(1 - (double)top / height).s,
                  kvc_plot_num((double)bottom / height).s);
}

void kvc_plot_end(struct kvc_text *t)
{
    kvc_text_add(t, "reset\n");
}

void kvc_plot_label(struct kvc_text *t, const char *text, const char *where, const char *align,
                      const char *colour)
{
    kvc_text_add(t, "set label ");
    kvc_plot_quoted(t, text);
    kvc_text_addf(t, " at %s %s front textcolor rgb '%s'\n", where, align,
                  kvc_colour_light(colour));
}

void kvc_plot_axis(struct kvc_text *t, const char *axis, const char *text)
{
    kvc_text_addf(t, "set %slabel ", axis);
    kvc_plot_quoted(t, text);
    kvc_text_addf(t, " textcolor rgb '%s'\n", kvc_colour_light("muted"));
}

void kvc_plot_percent_axis(struct kvc_text *t)
{
    kvc_text_add(t, "set yrange [0:100]\nset ytics 0,20,100 format '%g %%'\n");
}

/* A scale from 0 to at least max, in at most n steps of 1, 2 or 5 times a power of ten. */
void kvc_plot_scale(struct kvc_text *t, double max, int n, const char *format)
{
    double raw = max > 0 ? max / n : 0.2, base = pow(10, floor(log10(raw))), m = raw / base;
    double step = base * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
    kvc_text_addf(t, "set yrange [0:%s]\nset ytics 0,%s format '%s'\n",
                  kvc_plot_num(step * ceil(max > 0 ? max / step : 1)).s, kvc_plot_num(step).s,
                  format);
}

struct kvc_plot_time_unit kvc_plot_time_unit(double span_ns)
{
    if (span_ns >= 72 * 3.6e12)
        return (struct kvc_plot_time_unit){86400e9, "days since the first arrival"};
    if (span_ns >= 3 * 3.6e12)
        return (struct kvc_plot_time_unit){3.6e12, "hours since the first arrival"};
    if (span_ns >= 300e9)
        return (struct kvc_plot_time_unit){60e9, "minutes since the first arrival"};
    return (struct kvc_plot_time_unit){1e9, "seconds since the first arrival"};
}
