/* SPDX-License-Identifier: Apache-2.0
 * The parts of the HTML report. */
#ifndef KVC_REPORTS_HTML_H
#define KVC_REPORTS_HTML_H

#include "reports/plot.h"

struct kvc_page {
    struct kvc_text *t;
    const struct kvc_result *r;
    const struct kvc_findings *f;
    const struct kvc_plots *plots;
    const struct kvc_traffic *traffic; /* NULL: none */
};

void kvc_html_style(struct kvc_text *t);

/* ---- building blocks ---- */

/* note may be NULL. */
void kvc_html_section(struct kvc_text *t, const char *title, const char *note);
void kvc_html_end_section(struct kvc_text *t);
/* Escaped; a number and its unit stay on one line. */
void kvc_html_prose(struct kvc_text *t, const char *text);
/* Headings apart by '|'; one that begins with '#' is for numbers. */
void kvc_html_table(struct kvc_text *t, const char *headings);
void kvc_html_end_table(struct kvc_text *t);
void kvc_html_cell(struct kvc_text *t, const char *text);
void kvc_html_number(struct kvc_text *t, struct kvc_str number);
void kvc_html_bar(struct kvc_text *t, double fraction, const char *colour);
void kvc_html_tile(struct kvc_text *t, const char *label, struct kvc_str value, const char *more);
/* The picture at both widths, or nothing and false. */
bool kvc_html_picture(struct kvc_text *t, const struct kvc_text *wide,
                      const struct kvc_text *narrow, const char *label, const char *caption);
bool kvc_html_figure(const struct kvc_page *p, enum kvc_plot plot, const char *label,
                     const char *caption);

/* ---- sections, in their order on the page ---- */

void kvc_html_head(const struct kvc_page *p);
void kvc_html_warnings(const struct kvc_page *p);
void kvc_html_ladder(const struct kvc_page *p);
void kvc_html_capacity(const struct kvc_page *p);
void kvc_html_missed(const struct kvc_page *p);
void kvc_html_latency(const struct kvc_page *p);
void kvc_html_load(const struct kvc_page *p);
void kvc_html_tiers(const struct kvc_page *p);
void kvc_html_links(const struct kvc_page *p);
void kvc_html_cost(const struct kvc_page *p);
void kvc_html_replicas(const struct kvc_page *p);
void kvc_html_tenants(const struct kvc_page *p);
void kvc_html_traffic(const struct kvc_page *p);
void kvc_html_assumptions(const struct kvc_page *p);
void kvc_html_scenario(const struct kvc_page *p);

#endif
