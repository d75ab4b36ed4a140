/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/html.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

void kvc_html_section(struct kvc_text *t, const char *title, const char *note)
{
    kvc_text_add(t, "<section><h2>");
    kvc_text_html(t, title);
    kvc_text_add(t, "</h2>\n");
    if (note) {
        kvc_text_add(t, "<p class=\"note\">");
        kvc_text_html(t, note);
        kvc_text_add(t, "</p>\n");
    }
}

void kvc_html_prose(struct kvc_text *t, const char *text)
{
    static const char *const units[] = {"ms", "s", "h", "min", "%", "k", "M", "G", "T", "GiB",
                                        "TiB", "MiB", "points", "days"};
    while (*text) {
        const char *blank = strchr(text, ' ');
        if (!blank) {
            kvc_text_html(t, text);
            return;
        }
        char word[512];
        size_t n = (size_t)(blank - text), next = strcspn(blank + 1, " ,.;:)");
        n = n < sizeof(word) ? n : sizeof(word) - 1;
        memcpy(word, text, n);
        word[n] = '\0';
        kvc_text_html(t, word);
        bool digit = n && word[n - 1] >= '0' && word[n - 1] <= '9';
        bool bound = strcmp(word, "USD") == 0;
        for (size_t i = 0; digit && i < sizeof(units) / sizeof(units[0]); i++)
            bound |= strlen(units[i]) == next && strncmp(blank + 1, units[i], next) == 0;
        text += n;
        if (text == blank) {
            kvc_text_add(t, bound ? "&nbsp;" : " ");
            text++;
        }
    }
}

void kvc_html_end_section(struct kvc_text *t)
{
    kvc_text_add(t, "</section>\n");
}

void kvc_html_table(struct kvc_text *t, const char *headings)
{
    kvc_text_add(t, "<div class=\"scroll\"><table><thead><tr>");
    while (*headings) {
        size_t n = strcspn(headings, "|");
        bool number = *headings == '#';
        kvc_text_add(t, number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        kvc_text_addn(t, headings + number, n - number);
        kvc_text_add(t, "</th>");
        headings += n + (headings[n] == '|');
    }
    kvc_text_add(t, "</tr></thead><tbody>\n");
}

void kvc_html_end_table(struct kvc_text *t)
{
    kvc_text_add(t, "</tbody></table></div>\n");
}

void kvc_html_cell(struct kvc_text *t, const char *text)
{
    kvc_text_add(t, "<td>");
    kvc_text_html(t, text);
    kvc_text_add(t, "</td>");
}

void kvc_html_number(struct kvc_text *t, struct kvc_str number)
{
    kvc_text_add(t, "<td class=\"n\">");
    kvc_text_html(t, number.s);
    kvc_text_add(t, "</td>");
}

void kvc_html_bar(struct kvc_text *t, double fraction, const char *colour)
{
    if (isnan(fraction) || fraction <= 0) {
        kvc_text_add(t, "<td class=\"bar\"></td>");
        return;
    }
    kvc_text_addf(t, "<td class=\"bar\"><i style=\"width:%s%%;background:var(--%s)\"></i></td>",
                  kvc_fmt_fixed(fraction > 1 ? 100 : 100 * fraction, 2, false).s, colour);
}

bool kvc_html_picture(struct kvc_text *t, const struct kvc_text *wide,
                      const struct kvc_text *narrow, const char *label, const char *caption)
{
    if (!wide->len || !narrow->len)
        return false;
    kvc_text_add(t, "<figure aria-label=\"");
    kvc_text_html(t, label);
    kvc_text_add(t, "\"><div class=\"wide\">");
    kvc_text_addn(t, wide->buf, wide->len);
    kvc_text_add(t, "</div><div class=\"narrow\">");
    kvc_text_addn(t, narrow->buf, narrow->len);
    kvc_text_add(t, "</div><figcaption>");
    kvc_text_html(t, caption);
    kvc_text_add(t, "</figcaption></figure>\n");
    return true;
}

bool kvc_html_figure(const struct kvc_page *p, enum kvc_plot plot, const char *label,
                     const char *caption)
{
    return p->plots->drawn && kvc_html_picture(p->t, &p->plots->wide[plot],
                                               &p->plots->narrow[plot], label, caption);
}

static void put_footer(const struct kvc_page *p)
{
    kvc_text_add(p->t, "<footer class=\"note\"><p>Made by kvcast ");
    kvc_text_html(p->t, kvc_version());
    kvc_text_add(p->t, ". Trace <code>");
    kvc_text_html(p->t, p->r->trace_digest[0] ? p->r->trace_digest : "unknown");
    kvc_text_add(p->t, "</code>, profiles <code>");
    kvc_text_html(p->t, p->r->profiles_digest[0] ? p->r->profiles_digest : "unknown");
    kvc_text_add(p->t, "</code>. Equal digests, version and scenario give equal figures. Hit rates "
                       "are exact for the stated model; times are estimates with the bands "
                       "shown. GiB is 2<sup>30</sup> bytes, GB 10<sup>9</sup>.</p></footer>\n");
}

static void put_traffic(const struct kvc_page *p)
{
    if (p->traffic) {
        kvc_html_traffic(p);
        return;
    }
    kvc_html_section(p->t, "Your traffic", NULL);
    kvc_text_add(p->t, "<p>What the log itself is like (arrivals, sharing, ages of reuse, tenants) "
                       "is not stored with a run: <code>kvcast inspect LOG --report F.html</code> "
                       "writes a page of it.</p></section>\n");
}

static void put_page(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    kvc_text_add(t, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                    "<meta name=\"generator\" content=\"kvcast ");
    kvc_text_html(t, kvc_version());
    kvc_text_add(t, "\">\n<title>KV-cache capacity report: ");
    kvc_text_html(t, p->r->title);
    kvc_text_add(t, "</title>\n");
    kvc_html_style(t);
    kvc_text_add(t, "</head><body><main>\n");
    kvc_html_head(p);
    kvc_html_warnings(p);
    kvc_html_ladder(p);
    kvc_html_capacity(p);
    kvc_html_missed(p);
    kvc_html_latency(p);
    kvc_html_tiers(p);
    kvc_html_cost(p);
    kvc_html_load(p);
    kvc_html_links(p);
    kvc_html_replicas(p);
    kvc_html_tenants(p);
    put_traffic(p);
    kvc_html_assumptions(p);
    kvc_html_scenario(p);
    put_footer(p);
    kvc_text_add(t, "</main></body></html>\n");
}

enum kvc_status kvc_html(struct kvc_text *t, const struct kvc_result *result,
                         const struct kvc_findings *findings, const struct kvc_traffic *traffic,
                         struct kvc_error *err)
{
    struct kvc_plots *plots = kvc_calloc(1, sizeof(*plots));
    if (!plots)
        return kvc_fail_nomem(err);
    enum kvc_status status = kvc_plots_draw(plots, result, findings, err);
    if (status == KVC_OK) {
        const struct kvc_page page = {t, result, findings, plots, traffic};
        put_page(&page);
    }
    kvc_plots_clear(plots);
    kvc_free(plots);
    return status;
}

enum kvc_status kvc_report_html(const struct kvc_result *result, const char *path,
                                struct kvc_error *err)
{
    return kvc_report_html_traffic(result, NULL, path, err);
}

enum kvc_status kvc_report_html_traffic(const struct kvc_result *result,
                                        const struct kvc_traffic *traffic, const char *path,
                                        struct kvc_error *err)
{
    struct kvc_findings *f = kvc_malloc(1, sizeof(*f));
    struct kvc_text t = {0};
    if (!f)
        return kvc_fail_nomem(err);
    enum kvc_status status = kvc_findings_make(f, result, err);
    if (status == KVC_OK)
        status = kvc_html(&t, result, f, traffic, err);
    if (status == KVC_OK)
        status = kvc_file_put_text(path, &t, err);
    kvc_text_clear(&t);
    kvc_free(f);
    return status;
}
