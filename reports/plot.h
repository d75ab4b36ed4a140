/* SPDX-License-Identifier: Apache-2.0
 * Pictures: gnuplot scripts written from a result, run without a shell, and made into SVG that can
 * stand inside an HTML page and follow its colours. */
#ifndef KVC_REPORTS_PLOT_H
#define KVC_REPORTS_PLOT_H

#include "reports/reports.h"

enum kvc_plot { KVC_PLOT_CAPACITY, KVC_PLOT_TTFT, KVC_PLOT_LOAD, KVC_PLOT_LINKS, KVC_PLOT_TENANTS,
                KVC_PLOTS };

#define KVC_PLOT_MAX_LINKS 6

struct kvc_plots {
    bool drawn;         /* false: no picture, why_not says so */
    char why_not[200];
    struct kvc_text wide[KVC_PLOTS], narrow[KVC_PLOTS]; /* <svg>..</svg>; empty = nothing to show */
};

/* Fails only when memory runs out; everything else ends in why_not. */
enum kvc_status kvc_plots_draw(struct kvc_plots *plots, const struct kvc_result *result,
                               const struct kvc_findings *findings, struct kvc_error *err);
void kvc_plots_clear(struct kvc_plots *plots);

/* The script of one picture of that size in points, to be followed by others; returns false when
 * there is nothing to show. */
bool kvc_plot_script(struct kvc_text *script, enum kvc_plot plot, int width, int height,
                     const struct kvc_result *result, const struct kvc_findings *findings);

#define KVC_PLOT_MOST 16

/* Runs the scripts that are not empty, at most KVC_PLOT_MOST: pictures[i] of scripts[i],
 * <svg>..</svg>. All stay empty where gnuplot could not draw them, why_not says why; fails only
 * when memory runs out. */
enum kvc_status kvc_plot_draw(const struct kvc_text *scripts, struct kvc_text *pictures, size_t n,
                              char *why_not, size_t why_size, struct kvc_error *err);

/* Colours are named: the light scheme's value stands in the script, the page's in its place. */
struct kvc_colour {
    const char *name, *light, *dark;
};
extern const struct kvc_colour kvc_colours[];
extern const size_t kvc_n_colours;
const char *kvc_colour_light(const char *name);

/* Runs gnuplot on the script in a new temporary folder and hands over the files 0.svg .. */
enum kvc_status kvc_gnuplot_run(const struct kvc_text *script, struct kvc_text *outputs, size_t n,
                                char *why_not, size_t why_size, struct kvc_error *err);
/* gnuplot's SVG without prolog, ids, titles and fonts, its known colours as CSS variables. */
void kvc_svg_clean(struct kvc_text *out, const char *svg);

#endif
