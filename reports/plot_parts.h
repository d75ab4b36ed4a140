/* SPDX-License-Identifier: Apache-2.0
 * What gnuplot scripts are put together from: numbers, axes, margins, names. */
#ifndef KVC_REPORTS_PLOT_PARTS_H
#define KVC_REPORTS_PLOT_PARTS_H

#include "reports/plot.h"

#define KVC_PLOT_LINE 18  /* points from one line of text to the next */
#define KVC_PLOT_BELOW 62 /* points under the x axis: its numbers and its name */

struct kvc_str kvc_plot_num(double v);
/* In double quotes gnuplot knows escapes and enhanced text; names may hold anything. */
void kvc_plot_quoted(struct kvc_text *t, const char *s);
void kvc_plot_begin(struct kvc_text *t, int width, int height);
void kvc_plot_end(struct kvc_text *t);
/* Margins in points, so that labels outside the axes find the room they need. */
void kvc_plot_margins(struct kvc_text *t, int width, int height, int top, int bottom);
void kvc_plot_label(struct kvc_text *t, const char *text, const char *where, const char *align,
                    const char *colour);
void kvc_plot_axis(struct kvc_text *t, const char *axis, const char *text);
void kvc_plot_percent_axis(struct kvc_text *t);
/* A scale from 0 to at least max, in at most n steps of 1, 2 or 5 times a power of ten. */
void kvc_plot_scale(struct kvc_text *t, double max, int n, const char *format);

struct kvc_plot_time_unit {
    double ns;
    const char *label;
};
struct kvc_plot_time_unit kvc_plot_time_unit(double span_ns);

#endif
