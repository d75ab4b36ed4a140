/* SPDX-License-Identifier: Apache-2.0
 * The gnuplot scripts. Each stands alone, data included, so that a user can keep and change it. */
#include "base/alloc.h"
#include "reports/plot_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)
#define BUCKETS 240
#define LINE KVC_PLOT_LINE
#define BELOW KVC_PLOT_BELOW

/* ---- hit rate against capacity ---- */

static void put_capacity_tics(struct kvc_text *t, double low, double high)
{
    int first = (int)floor(log2(low)), last = (int)ceil(log2(high));
    int step = (last - first + 5) / 6;
    step = step < 1 ? 1 : step;
    kvc_text_addf(t, "set logscale x 2\nset xrange [%s:%s]\nset xtics (", kvc_plot_num(low).s,
                  kvc_plot_num(high).s);
    for (int e = first; e <= last; e += step)
        kvc_text_addf(t, "%s\"%s\" %s", e == first ? "" : ", ", kvc_fmt_bytes(ldexp(GIB, e)).s,
                      kvc_plot_num(ldexp(1, e)).s);
    kvc_text_add(t, ")\n");
}

static double curve_at(const struct kvc_result *r, double bytes)
{
    double rate = 0;
    for (uint32_t i = 0; i < r->n_curve && (double)r->curve[i].capacity_bytes <= bytes; i++)
        rate = r->curve[i].lru_token_hit_rate;
    return rate;
}

/* Tier sizes add up from the top. A mark leads from the curve to its name, the smaller the lower,
 * so that no mark crosses another's name. */
static void put_tier_marks(struct kvc_text *t, const struct kvc_result *r, double low, double high,
                           double line)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        char text[128], where[128];
        sum += (double)r->tiers[i].capacity_bytes / GIB;
        if (sum < low || sum > high)
            continue;
        double at = log(sum / low) / log(high / low), y = 1 + line * (0.7 + i);
        kvc_text_addf(t, "set arrow from %s,%s to %s,graph %s nohead dt 3 lw 1.5 lc rgb '%s'\n",
                      kvc_plot_num(sum).s, kvc_plot_num(100 * curve_at(r, sum * GIB)).s,
                      kvc_plot_num(sum).s,
                      kvc_plot_num(y + 0.3 * line).s, kvc_colour_light("muted"));
        snprintf(where, sizeof(where), "%s,graph %s", kvc_plot_num(sum).s, kvc_plot_num(y).s);
        snprintf(text, sizeof(text), "%s%.20s %s", i ? "+ " : "", kvc_tier_title(r->tiers[i].name),
                 kvc_fmt_bytes(sum * GIB).s);
        kvc_plot_label(t, text, where, at > 0.25 ? "right offset -0.7,0" : "left offset 0.7,0",
                       "muted");
    }
}

static void put_curve(struct kvc_text *t, const struct kvc_result *r)
{
    kvc_text_add(t, "$curve << END\n");
    for (uint32_t i = 0; i < r->n_curve; i++) {
        const struct kvc_capacity_point *p = &r->curve[i];
        if (p->capacity_bytes && !isnan(p->lru_token_hit_rate))
            kvc_text_addf(t, "%s %s %s\n", kvc_plot_num((double)p->capacity_bytes / GIB).s,
                          kvc_plot_num(100 * p->lru_token_hit_rate).s,
                          kvc_plot_num(100 * p->opt_token_hit_rate).s);
    }
    kvc_text_add(t, "END\n");
}

/* A curve's name stands beside it, where the two are furthest apart. */
static void put_curve_names(struct kvc_text *t, const struct kvc_result *r)
{
    uint32_t at = 0;
    double widest = -1, top = 0;
    for (uint32_t i = 0; i < r->n_curve; i++)
        top = fmax(top, r->curve[i].opt_token_hit_rate);
    for (uint32_t i = r->n_curve / 4; i < r->n_curve; i++) {
        double gap = r->curve[i].opt_token_hit_rate - r->curve[i].lru_token_hit_rate;
        bool below = r->curve[i].opt_token_hit_rate < 0.85 * top; /* clear of the bound's name */
        if (r->curve[i].capacity_bytes && below && gap > widest) {
            widest = gap;
            at = i;
        }
    }
    char where[128];
    const struct kvc_capacity_point *p = &r->curve[at];
    double x = (double)p->capacity_bytes / GIB;
    if (widest >= 0) {
        snprintf(where, sizeof(where), "%s,%s", kvc_plot_num(x).s,
                 kvc_plot_num(100 * p->opt_token_hit_rate).s);
        kvc_plot_label(t, "optimum", where, "right offset -1,0.4", "green");
    }
    snprintf(where, sizeof(where), "%s,%s", kvc_plot_num(x).s,
             kvc_plot_num(100 * p->lru_token_hit_rate).s);
    kvc_plot_label(t, "LRU", where, "left offset 1,-0.5", "blue");
}

static double top_rate(const struct kvc_result *r, const struct kvc_findings *f)
{
    double top = f->bounds ? r->content_token_hit_rate : 0;
    for (uint32_t i = 0; i < r->n_curve; i++) {
        top = fmax(top, r->curve[i].lru_token_hit_rate);
        top = fmax(top, r->curve[i].opt_token_hit_rate);
    }
    return isnan(f->hit_rate) ? top : fmax(top, f->hit_rate);
}

static bool plot_capacity(struct kvc_text *t, int width, int height, const struct kvc_result *r,
                          const struct kvc_findings *f)
{
    double low = INFINITY, high = 0, total = 0;
    for (uint32_t i = 0; i < r->n_curve; i++) {
        double gib = (double)r->curve[i].capacity_bytes / GIB;
        if (gib > 0) {
            low = gib < low ? gib : low;
            high = gib > high ? gib : high;
        }
    }
    if (!r->has_prefix || !(high > 0))
        return false;
    for (uint32_t i = 0; i < r->n_tiers; i++)
        total += (double)r->tiers[i].capacity_bytes / GIB;
    high = fmax(high, 1.25 * total);
    high = high < 2 * low ? 2 * low : high;
    kvc_plot_begin(t, width, height);
    put_curve(t, r);
    put_capacity_tics(t, low, high);
    kvc_plot_scale(t, 100 * top_rate(r, f), 5, "%g %%");
    kvc_plot_axis(t, "x", "capacity of one shared pool, log scale");
    int top = 10 + LINE * (int)r->n_tiers;
    kvc_plot_margins(t, width, height, top, BELOW);
    put_tier_marks(t, r, low, high, (double)LINE / (height - top - BELOW));
    char text[128], where[128];
    if (f->bounds) {
        kvc_text_addf(t,
                      "set arrow from graph 0,first %s to graph 1,first %s nohead dt 2 "
                      "lc rgb '%s'\n",
                      kvc_plot_num(100 * r->content_token_hit_rate).s,
                      kvc_plot_num(100 * r->content_token_hit_rate).s, kvc_colour_light("ink"));
        snprintf(where, sizeof(where), "graph 0.01,first %s",
                 kvc_plot_num(100 * r->content_token_hit_rate).s);
        snprintf(text, sizeof(text), "content bound %s",
                 kvc_fmt_percent(r->content_token_hit_rate).s);
        kvc_plot_label(t, text, where, "left offset 0,0.6", "ink");
    }
    put_curve_names(t, r);
    if (!isnan(f->hit_rate) && total >= low) {
        snprintf(where, sizeof(where), "%s,%s", kvc_plot_num(total).s,
                 kvc_plot_num(100 * f->hit_rate).s);
        snprintf(text, sizeof(text), "this run %s", kvc_fmt_percent(f->hit_rate).s);
        kvc_plot_label(t, text, where, "right offset -1,-1", "orange");
        kvc_text_addf(t, "set object circle at %s size screen 0.008 front fs solid fc rgb '%s'\n",
                      where, kvc_colour_light("orange"));
    }
    kvc_text_addf(t, "plot $curve using 1:3 with lines lw 2 lc rgb '%s', "
                     "$curve using 1:2 with lines lw 2.5 lc rgb '%s'\n",
                  kvc_colour_light("green"), kvc_colour_light("blue"));
    kvc_plot_end(t);
    return true;
}

/* ---- TTFT ---- */

/* The row of a name grows with its percentile, so that no line crosses another's name. */
static void put_percentiles(struct kvc_text *t, const struct kvc_dist *d, double low, double high,
                            double line)
{
    const double ms[] = {d->p50, d->p90, d->p99};
    static const char *const names[] = {"p50", "p90", "p99"};
    for (int i = 0; i < 3; i++) {
        char text[128], where[128];
        if (!(ms[i] >= low && ms[i] <= high))
            continue;
        bool left = log(ms[i] / low) / log(high / low) < 0.2;
        snprintf(where, sizeof(where), "%s,graph %s", kvc_plot_num(ms[i]).s,
                 kvc_plot_num(1 + line * (0.7 + i)).s);
        snprintf(text, sizeof(text), "%s %s", names[i], kvc_fmt_ms(ms[i]).s);
        kvc_text_addf(t,
                      "set arrow from %s,graph 0 to %s,graph %s nohead dt 3 lw 1.5 lc rgb '%s'\n",
                      kvc_plot_num(ms[i]).s, kvc_plot_num(ms[i]).s,
                      kvc_plot_num(1 + line * (1 + i)).s,
                      kvc_colour_light("muted"));
        kvc_plot_label(t, text, where, left ? "left offset 0.7,0" : "right offset -0.7,0", "muted");
    }
}

/* unit: ms of what the tics count. */
static void put_time_tics(struct kvc_text *t, double low, double high, double unit)
{
    kvc_text_addf(t, "set logscale x\nset xrange [%s:%s]\nset xtics (", kvc_plot_num(low).s,
                  kvc_plot_num(high).s);
    bool first = true;
    for (double decade = pow(10, floor(log10(low))); decade <= high; decade *= 10) {
        kvc_text_addf(t, "%s\"%s\" %s", first ? "" : ", ", kvc_fmt_general(decade / unit).s,
                      kvc_plot_num(decade).s);
        for (int k = 2; k < 10; k++) {
            bool named = high < 100 * low && (k == 2 || k == 5);
            kvc_text_addf(t, ", \"%s\" %s %d", named ? kvc_fmt_general(decade * k / unit).s : "",
                          kvc_plot_num(decade * k).s, !named);
        }
        first = false;
    }
    kvc_text_add(t, ")\n");
}

static void put_quantiles(struct kvc_text *t, const struct kvc_findings *f)
{
    for (size_t c = 0; c < KVC_TTFT_CLASSES; c++) {
        kvc_text_addf(t, "$ttft%zu << END\n", c);
        for (size_t i = 0; f->ttft[c].count && i < KVC_TTFT_QUANTILES; i++) {
            double ms = f->ttft[c].q_ms[i];
            kvc_text_addf(t, "%s %s\n", kvc_plot_num(ms > 1e-3 ? ms : 1e-3).s,
                          kvc_plot_num(100 * kvc_ttft_quantile(i)).s);
        }
        kvc_text_add(t, "END\n");
    }
}

static bool plot_ttft(struct kvc_text *t, int width, int height, const struct kvc_result *r,
                      const struct kvc_findings *f)
{
    static const char *const colours[KVC_TTFT_CLASSES] = {"ink", "orange", "blue", "green"};
    if (!f->has_ttft || !f->ttft[0].count)
        return false;
    double low = f->ttft[0].q_ms[0], high = f->ttft[0].q_ms[KVC_TTFT_QUANTILES - 1];
    low = low > 1e-3 ? low * 0.9 : 1e-3;
    high = high * 1.1 > 2 * low ? high * 1.1 : 2 * low;
    kvc_plot_begin(t, width, height);
    put_quantiles(t, f);
    bool seconds = high > 20e3;
    put_time_tics(t, low, high, seconds ? 1e3 : 1);
    kvc_plot_percent_axis(t);
    kvc_plot_axis(t, "x", seconds ? "TTFT, s, log scale" : "TTFT, ms, log scale");
    const int top = 3 * LINE + 10, bottom = BELOW + (width < 500 ? 4 : 2) * LINE + 10;
    kvc_plot_margins(t, width, height, top, bottom);
    double line = (double)LINE / (height - top - bottom);
    put_percentiles(t, &r->ttft_ms, low, high, line);
    kvc_text_addf(t, "set key at screen 0.5,screen %s bottom center horizontal Left reverse "
                     "samplen 1.5 %s tc variable\nplot ",
                  kvc_plot_num(6.0 / height).s, width < 500 ? "maxcols 1" : "maxcols 2");
    bool first = true;
    for (size_t c = 0; c < KVC_TTFT_CLASSES; c++) {
        if (!f->ttft[c].count)
            continue;
        char title[128];
        snprintf(title, sizeof(title), "%s (%s)", f->ttft[c].name,
                 kvc_fmt_count(f->ttft[c].count).s);
        kvc_text_addf(t, "%s$ttft%zu with lines lw %s lc rgb '%s' title ", first ? "" : ", ", c,
                      c ? "2" : "3", kvc_colour_light(colours[c]));
        kvc_plot_quoted(t, title);
        first = false;
    }
    kvc_text_add(t, "\n");
    kvc_plot_end(t);
    return true;
}

/* ---- series ---- */

static const struct kvc_series *find_series(const struct kvc_result *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_series; i++) {
        if (strcmp(r->series[i].name, name) == 0 && r->series[i].n)
            return &r->series[i];
    }
    return NULL;
}

/* Means of equal stretches, so that a long run draws as fast as a short one; returns the
 * largest. */
static double put_series(struct kvc_text *t, const char *block, const struct kvc_series *s,
                         double unit_ns, double factor)
{
    double max = 0;
    size_t per = (s->n + BUCKETS - 1) / BUCKETS;
    kvc_text_addf(t, "$%s << END\n", block);
    for (size_t i = 0; i < s->n; i += per) {
        double sum = 0;
        size_t n = 0;
        for (size_t k = i; k < i + per && k < s->n; k++) {
            if (isfinite(s->value[k])) {
                sum += s->value[k];
                n++;
            }
        }
        if (!n)
            continue;
        double mean = factor * sum / (double)n;
        max = mean > max ? mean : max;
        kvc_text_addf(t, "%s %s\n", kvc_plot_num((double)s->time_ns[i] / unit_ns).s,
                      kvc_plot_num(mean).s);
    }
    kvc_text_add(t, "END\n");
    return max;
}

static double series_end(const struct kvc_result *r)
{
    double last = 0;
    for (uint32_t i = 0; i < r->n_series; i++) {
        const struct kvc_series *s = &r->series[i];
        if (s->n && (double)s->time_ns[s->n - 1] > last)
            last = (double)s->time_ns[s->n - 1];
    }
    return last > 0 ? last : 1;
}

/* One of several graphs over the same time: its place in points from the top, its scale, and
 * whether it is the last, which names the time. */
static void put_panel(struct kvc_text *t, int width, int height, int top, int high, bool last,
                      const char *time_label)
{
    kvc_text_add(t, "unset label\n");
    kvc_plot_margins(t, width, height, top, height - top - high);
    kvc_text_addf(t, "set xtics format '%s'\n", last ? "%g" : "");
    if (last)
        kvc_plot_axis(t, "x", time_label);
}

static void put_panel_name(struct kvc_text *t, const char *name, bool left, const char *colour)
{
    kvc_plot_label(t, name, left ? "graph 0,1" : "graph 1,1",
              left ? "left offset 0,0.7" : "right offset 0,0.7", colour);
}

static bool plot_load(struct kvc_text *t, int width, int height, const struct kvc_result *r)
{
    const struct kvc_series *running = find_series(r, "running");
    const struct kvc_series *waiting = find_series(r, "waiting");
    const struct kvc_series *arrivals = find_series(r, "arrivals_per_s");
    const struct kvc_series *used = find_series(r, "hbm_used_fraction");
    if (!running || !waiting || !arrivals)
        return false;
    double last = series_end(r);
    struct kvc_plot_time_unit unit = kvc_plot_time_unit(last);
    kvc_plot_begin(t, width, height);
    double most = put_series(t, "running", running, unit.ns, 1);
    double waits = put_series(t, "waiting", waiting, unit.ns, 1);
    double arrive = put_series(t, "arrivals", arrivals, unit.ns, 1);
    if (used)
        put_series(t, "used", used, unit.ns, 100);
    kvc_text_addf(t, "set xrange [0:%s]\nset multiplot\n", kvc_plot_num(last / unit.ns).s);
    put_panel(t, width, height, 26, 160, false, "");
    kvc_plot_scale(t, waits > most ? waits : most, 5, "%g");
    put_panel_name(t, "requests running", true, "blue");
    put_panel_name(t, "waiting", false, "orange");
    kvc_text_addf(t, "plot $running with filledcurves y1=0 fs solid 0.18 lc rgb '%s', "
                     "$running with lines lw 1.5 lc rgb '%s', "
                     "$waiting with lines lw 2 lc rgb '%s'\n",
                  kvc_colour_light("blue"), kvc_colour_light("blue"), kvc_colour_light("orange"));
    put_panel(t, width, height, 222, 64, !used, unit.label);
    kvc_plot_scale(t, arrive, 3, "%g");
    put_panel_name(t, "arrivals per second", true, "ink");
    kvc_text_addf(t, "plot $arrivals with lines lw 1.5 lc rgb '%s'\n", kvc_colour_light("ink"));
    if (used) {
        put_panel(t, width, height, 322, 64, true, unit.label);
        kvc_plot_scale(t, 100, 2, "%g %%");
        put_panel_name(t, "HBM for KV in use", true, "green");
        kvc_text_addf(t, "plot $used with lines lw 2 lc rgb '%s'\n", kvc_colour_light("green"));
    }
    kvc_text_add(t, "unset multiplot\n");
    kvc_plot_end(t);
    return true;
}

static bool plot_links(struct kvc_text *t, int width, int height, const struct kvc_result *r)
{
    const struct kvc_series *links[KVC_PLOT_MAX_LINKS];
    size_t n = 0;
    for (uint32_t i = 0; i < r->n_series && n < KVC_PLOT_MAX_LINKS; i++) {
        if (strncmp(r->series[i].name, "link:", 5) == 0 && r->series[i].n)
            links[n++] = &r->series[i];
    }
    if (!n)
        return false;
    double last = series_end(r);
    struct kvc_plot_time_unit unit = kvc_plot_time_unit(last);
    kvc_plot_begin(t, width, height);
    kvc_text_addf(t, "set xrange [0:%s]\nset multiplot\n", kvc_plot_num(last / unit.ns).s);
    int step = (height - BELOW) / (int)n;
    for (size_t i = 0; i < n; i++) {
        char name[128], block[32];
        bool bytes = strncmp(links[i]->unit, "bytes", 5) == 0, share = !bytes;
        snprintf(block, sizeof(block), "link%zu", i);
        snprintf(name, sizeof(name), "%s, %s", links[i]->name + 5,
                 bytes ? "GB/s" : "share of its time");
        double max = put_series(t, block, links[i], unit.ns, bytes ? 1e-9 : 100);
        put_panel(t, width, height, (int)i * step + 26, step - 38, i + 1 == n, unit.label);
        kvc_plot_scale(t, max, 2, share ? "%g %%" : "%g");
        put_panel_name(t, name, true, "blue");
        kvc_text_addf(t, "plot $%s with filledcurves y1=0 fs solid 0.18 lc rgb '%s', "
                         "$%s with lines lw 1.5 lc rgb '%s'\n",
                      block, kvc_colour_light("blue"), block, kvc_colour_light("blue"));
    }
    kvc_text_add(t, "unset multiplot\n");
    kvc_plot_end(t);
    return true;
}

/* ---- tenants ---- */

#define TENANT_LINES 5

/* Hit tokens over input tokens of the same stretches, in percent. */
static void put_hit_rates(struct kvc_text *t, const char *block, const struct kvc_series *hits,
                          const struct kvc_series *input, double unit_ns)
{
    size_t n = hits->n < input->n ? hits->n : input->n, per = (n + BUCKETS / 4 - 1) / (BUCKETS / 4);
    kvc_text_addf(t, "$%s << END\n", block);
    for (size_t i = 0; i < n; i += per) {
        double hit = 0, all = 0;
        for (size_t k = i; k < i + per && k < n; k++) {
            hit += hits->value[k];
            all += input->value[k];
        }
        if (all > 0)
            kvc_text_addf(t, "%s %s\n", kvc_plot_num((double)hits->time_ns[i] / unit_ns).s,
                          kvc_plot_num(100 * hit / all).s);
    }
    kvc_text_add(t, "END\n");
}

static const struct kvc_series *tenant_series(const struct kvc_result *r, const char *what,
                                              uint32_t group)
{
    char name[48];
    snprintf(name, sizeof(name), "%s:%.24s", what, r->losses.names[group]);
    return find_series(r, name);
}

static void put_lines(struct kvc_text *t, const struct kvc_result *r, const char *block, uint32_t n,
                      bool named)
{
    static const char *const colours[TENANT_LINES] = {"blue", "orange", "green", "purple", "gold"};
    kvc_text_add(t, "plot ");
    for (uint32_t g = 0; g < n; g++) {
        kvc_text_addf(t, "%s$%s%u with lines lw 2 lc rgb '%s' ", g ? ", " : "", block, g,
                      kvc_colour_light(colours[g]));
        kvc_text_add(t, named ? "title " : "notitle");
        if (named)
            kvc_plot_quoted(t, r->losses.names[g]);
    }
    kvc_text_add(t, "\n");
}

static bool plot_tenants(struct kvc_text *t, int width, int height, const struct kvc_result *r)
{
    uint32_t n = r->losses.n_groups < TENANT_LINES ? r->losses.n_groups : TENANT_LINES;
    struct kvc_plot_time_unit unit = kvc_plot_time_unit(series_end(r));
    double most = 0;
    if (n < 2 || !tenant_series(r, "resident_bytes", 0))
        return false;
    kvc_plot_begin(t, width, height);
    for (uint32_t g = 0; g < n; g++) {
        const struct kvc_series *held = tenant_series(r, "resident_bytes", g);
        const struct kvc_series *hits = tenant_series(r, "hit_tokens_per_s", g);
        const struct kvc_series *input = tenant_series(r, "looked_up_tokens_per_s", g);
        char block[24];
        if (!held || !hits || !input)
            return false;
        snprintf(block, sizeof(block), "held%u", g);
        double high = put_series(t, block, held, unit.ns, 1.0 / 1073741824);
        most = high > most ? high : most;
        snprintf(block, sizeof(block), "rate%u", g);
        put_hit_rates(t, block, hits, input, unit.ns);
    }
    kvc_text_addf(t, "set multiplot\nset xrange [0:%s]\n",
                  kvc_plot_num(series_end(r) / unit.ns).s);
    kvc_text_addf(t, "set key at screen 0.5,screen %s bottom center horizontal Left reverse "
                     "samplen 1.5 tc rgb '%s' %s\n",
                  kvc_plot_num(6.0 / height).s, kvc_colour_light("ink"),
                  width < 500 ? "maxcols 2" : "maxcols 5");
    put_panel(t, width, height, 24, 120, false, unit.label);
    put_panel_name(t, "GiB of KV held, all tiers", true, "ink");
    kvc_plot_scale(t, most, 4, "%g");
    put_lines(t, r, "held", n, true);
    put_panel(t, width, height, 24 + 120 + 34, 120, true, unit.label);
    put_panel_name(t, "hit rate", true, "ink");
    kvc_plot_percent_axis(t);
    kvc_text_add(t, "set key off\n");
    put_lines(t, r, "rate", n, false);
    kvc_text_add(t, "unset multiplot\n");
    kvc_plot_end(t);
    return true;
}

bool kvc_plot_script(struct kvc_text *script, enum kvc_plot plot, int width, int height,
                     const struct kvc_result *result, const struct kvc_findings *findings)
{
    switch (plot) {
    case KVC_PLOT_CAPACITY:
        return plot_capacity(script, width, height, result, findings);
    case KVC_PLOT_TTFT:
        return plot_ttft(script, width, height, result, findings);
    case KVC_PLOT_LOAD:
        return plot_load(script, width, height, result);
    case KVC_PLOT_LINKS:
        return plot_links(script, width, height, result);
    case KVC_PLOT_TENANTS:
        return plot_tenants(script, width, height, result);
    default:
        return false;
    }
}
