/* SPDX-License-Identifier: Apache-2.0
 * The gnuplot scripts of a trace's profile. Each stands alone, data included. */
#include "reports/traffic_plot.h"

#include "reports/plot_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

static const char *const kind_colours[KVC_CONTENT_PARTIAL] = {"blue", "purple", "green", "muted"};

/* ---- arrivals ---- */

/* A window's rate from its beginning to its end; the last window ends with the log. */
static double put_rates(struct kvc_text *t, const struct kvc_traffic *f, double unit_ns)
{
    const struct kvc_profile *p = &f->profile;
    double max = 0;
    kvc_text_add(t, "$rates << END\n");
    for (uint32_t i = 0; i < p->n_rates; i++) {
        uint64_t from = i * p->rate_window_ns, to = from + p->rate_window_ns;
        if (to > f->stats.span_ns && i) /* too short a piece for a rate of its own */
            break;
        double rate = (double)p->requests_in[i] * 1e9 / (double)p->rate_window_ns;
        max = rate > max ? rate : max;
        kvc_text_addf(t, "%s %s\n", kvc_plot_num((double)from / unit_ns).s, kvc_plot_num(rate).s);
        kvc_text_addf(t, "%s %s\n", kvc_plot_num((double)to / unit_ns).s, kvc_plot_num(rate).s);
    }
    kvc_text_add(t, "END\n");
    return max;
}

static void plot_rates(struct kvc_text *t, int width, int height, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    if (p->n_rates < 3)
        return;
    struct kvc_plot_time_unit unit = kvc_plot_time_unit((double)f->stats.span_ns);
    char name[96];
    kvc_plot_begin(t, width, height);
    double max = put_rates(t, f, unit.ns);
    kvc_text_addf(t, "set xrange [0:%s]\n", kvc_plot_num((double)f->stats.span_ns / unit.ns).s);
    kvc_plot_scale(t, fmax(max, p->requests_per_s), 4, "%g");
    kvc_plot_axis(t, "x", unit.label);
    kvc_plot_margins(t, width, height, 26, KVC_PLOT_BELOW);
    snprintf(name, sizeof(name), "requests per second, in windows of %.20s",
             kvc_traffic_age_name(p->rate_window_ns).s);
    kvc_plot_label(t, name, "graph 0,1", "left offset 0,0.7", "blue");
    kvc_text_addf(t, "set arrow from graph 0,first %s to graph 1,first %s nohead dt 2 lc rgb "
                     "'%s'\n",
                  kvc_plot_num(p->requests_per_s).s, kvc_plot_num(p->requests_per_s).s,
                  kvc_colour_light("ink"));
    kvc_text_addf(t, "plot $rates with filledcurves y1=0 fs solid 0.18 lc rgb '%s', "
                     "$rates with lines lw 1.5 lc rgb '%s'\n",
                  kvc_colour_light("blue"), kvc_colour_light("blue"));
    kvc_plot_end(t);
}

/* ---- classes of powers of two ---- */

/* Names of classes first to last: where they begin, in tokens. */
static void put_class_tics(struct kvc_text *t, uint32_t first, uint32_t last, uint64_t unit,
                           int width, bool named)
{
    uint32_t step = 1 + (last - first) * 58 / (uint32_t)width;
    kvc_text_addf(t, "set xrange [%d:%u.5]\nset xtics scale 0 (", (int)first - 1, last);
    bool begun = false;
    for (uint32_t i = first; i <= last; i += step, begun = true) {
        double from = i ? ldexp((double)unit, (int)i - 1) : 0;
        const char *unit_name = from >= 1048576 ? "M" : from >= 1024 ? "k" : "";
        from = from >= 1048576 ? from / 1048576 : from >= 1024 ? from / 1024 : from;
        kvc_text_addf(t, "%s\"%s%s\" %u", begun ? ", " : "",
                      named ? kvc_fmt_general(from).s : "", named ? unit_name : "", i);
    }
    kvc_text_add(t, ")\n");
}

static void put_requests(struct kvc_text *t, const char *block, const uint64_t *requests,
                         uint64_t all, double *max)
{
    kvc_text_addf(t, "$%s << END\n", block);
    for (uint32_t i = 0; i < KVC_PROFILE_LENGTHS; i++) {
        double share = all ? 100 * (double)requests[i] / (double)all : 0;
        *max = share > *max ? share : *max;
        kvc_text_addf(t, "%u %s\n", i, kvc_plot_num(share).s);
    }
    kvc_text_add(t, "END\n");
}

static void plot_lengths(struct kvc_text *t, int width, int height, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    static const char *const names[] = {"prompts, share of requests", "answers"};
    static const char *const blocks[] = {"inputs", "outputs"};
    uint32_t first = KVC_PROFILE_LENGTHS, last = 0;
    double max[2] = {0, 0};
    if (!f->stats.requests)
        return;
    for (uint32_t i = 0; i < KVC_PROFILE_LENGTHS; i++) {
        if (p->input_requests[i] || p->output_requests[i]) {
            first = first < i ? first : i;
            last = i;
        }
    }
    kvc_plot_begin(t, width, height);
    put_requests(t, blocks[0], p->input_requests, f->stats.requests, &max[0]);
    put_requests(t, blocks[1], p->output_requests, f->stats.requests, &max[1]);
    kvc_text_add(t, "set boxwidth 0.8\nset style fill solid 0.85 noborder\nset multiplot\n");
    int high = (height - 26 - 26 - KVC_PLOT_BELOW) / 2;
    for (int i = 0; i < 2; i++) {
        const char *colour = i ? "green" : "blue";
        int top = i ? 52 + high : 26;
        kvc_text_add(t, "unset label\n");
        kvc_plot_margins(t, width, height, top, height - top - high);
        put_class_tics(t, first, last, 1, width - 80, i > 0);
        if (i)
            kvc_plot_axis(t, "x", "from so many tokens to twice as many");
        kvc_plot_scale(t, max[i], 3, "%g %%");
        kvc_plot_label(t, names[i], "graph 0,1", "left offset 0,0.7", colour);
        kvc_text_addf(t, "plot $%s with boxes lc rgb '%s'\n", blocks[i], kvc_colour_light(colour));
    }
    kvc_text_add(t, "unset multiplot\n");
    kvc_plot_end(t);
}

/* ---- sharing by depth ---- */

/* Powers of 1,000 for axes of tokens, of 1,024 for those of bytes. */
struct scale {
    double unit;
    const char *format, *name;
};

static struct scale scale_for(double max, bool bytes)
{
    static const struct scale tokens[] = {{1, "%g", ""}, {1e3, "%g k", ""}, {1e6, "%g M", ""},
                                          {1e9, "%g G", ""}, {1e12, "%g T", ""}};
    static const struct scale sizes[] = {{1024, "%g", "KiB"}, {GIB / 1024, "%g", "MiB"},
                                         {GIB, "%g", "GiB"}, {GIB * 1024, "%g", "TiB"},
                                         {GIB * 1048576, "%g", "PiB"}};
    const struct scale *all = bytes ? sizes : tokens;
    size_t i = 0;
    while (i < 4 && max >= 2 * all[i + 1].unit)
        i++;
    return all[i];
}

static const char *const depth_names[2][KVC_CONTENT_PARTIAL] = {
    {"system", "document or history", NULL, "new"}, {"system", "document", "history", "new"}};

static void plot_depths(struct kvc_text *t, int width, int height, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    double max = 0;
    if (!f->stats.has_prefix || !p->n_depths)
        return;
    for (uint32_t i = 0; i < p->n_depths; i++) {
        double sum = 0;
        for (int k = 0; k < KVC_CONTENT_PARTIAL; k++)
            sum += (double)p->depth_tokens[i][k];
        max = fmax(max, sum);
    }
    struct scale scale = scale_for(max, false);
    kvc_plot_begin(t, width, height);
    kvc_text_add(t, "$depths << END\n"); /* sums from the bottom, so that boxes stack */
    for (uint32_t i = 0; i < p->n_depths; i++) {
        double sum = 0;
        kvc_text_addf(t, "%u", i);
        for (int k = 0; k < KVC_CONTENT_PARTIAL; k++) {
            sum += (double)p->depth_tokens[i][k] / scale.unit;
            kvc_text_addf(t, " %s", kvc_plot_num(sum).s);
        }
        kvc_text_add(t, "\n");
    }
    kvc_text_add(t, "END\nset boxwidth 0.8\nset style fill solid 1 noborder\n");
    put_class_tics(t, 0, p->n_depths - 1, f->stats.block_tokens, width - 80, true);
    kvc_plot_axis(t, "x", "depth in the prompt, from so many tokens on");
    kvc_plot_scale(t, max / scale.unit, 4, scale.format);
    int rows = width < 500 ? 2 : 1;
    kvc_plot_margins(t, width, height, 30 + rows * KVC_PLOT_LINE, KVC_PLOT_BELOW);
    kvc_text_addf(t, "set key at screen 0.5,screen %s top center horizontal Left reverse samplen "
                     "1 maxcols %d textcolor rgb '%s'\n",
                  kvc_plot_num(1 - 22.0 / height).s, width < 500 ? 2 : 4,
                  kvc_colour_light("ink"));
    kvc_text_addf(t, "set label 'tokens' at screen %s,screen %s left textcolor rgb '%s'\nplot ",
                  kvc_plot_num(8.0 / width).s, kvc_plot_num(1 - 12.0 / height).s,
                  kvc_colour_light("muted"));
    const char *const *names = depth_names[p->by_session];
    for (int k = 0; k < KVC_CONTENT_PARTIAL; k++)
        if (names[k])
            kvc_text_addf(t, "NaN with boxes lc rgb '%s' title '%s', ",
                          kvc_colour_light(kind_colours[k]), names[k]);
    for (int k = KVC_CONTENT_PARTIAL - 1; k >= 0; k--) /* the tallest first, behind */
        if (names[k])
            kvc_text_addf(t, "%s$depths using 1:%d with boxes lc rgb '%s' notitle",
                          k < KVC_CONTENT_PARTIAL - 1 ? ", " : "", k + 2,
                          kvc_colour_light(kind_colours[k]));
    kvc_text_add(t, "\n");
    kvc_plot_end(t);
}

/* ---- time to live ---- */

static size_t last_age(const struct kvc_traffic *f)
{
    size_t n = kvc_traffic_ttl_for(f, 0);
    return n < 6 ? 6 : n;
}

static void put_age_tics(struct kvc_text *t, size_t last, const struct kvc_profile *p, bool named,
                         bool narrow)
{
    static const uint32_t all[] = {1, 10, 60, 300, 1800, 7200, 43200, 172800, 604800};
    static const uint32_t few[] = {1, 10, 60, 600, 3600, 21600, 86400, 604800};
    const uint32_t *at = narrow ? few : all;
    size_t n = narrow ? sizeof(few) / sizeof(few[0]) : sizeof(all) / sizeof(all[0]);
    double end = (double)p->age_limit_ns[last] * 1e-9;
    kvc_text_addf(t, "set logscale x\nset xrange [1:%s]\nset xtics (", kvc_plot_num(end).s);
    for (size_t i = 0, k = 0; i < n && at[i] <= end; i++) {
        bool close = narrow && end > 7200 && i % 2 && at[i] != 604800;
        kvc_text_addf(t, "%s\"%s\" %u", k++ ? ", " : "",
                      named && !close ? kvc_traffic_age_name(at[i] * 1000000000ull).s : "", at[i]);
    }
    kvc_text_add(t, ")\n");
}

/* Seconds, hit rate left, held on average and at peak. */
static void put_ages(struct kvc_text *t, const struct kvc_traffic *f, size_t last, double unit)
{
    const struct kvc_profile *p = &f->profile;
    double bound = kvc_traffic_bound(f);
    kvc_text_add(t, "$ages << END\n");
    for (size_t i = 0; i <= last; i++) {
        kvc_text_addf(t, "%s %s %s %s\n", kvc_plot_num((double)p->age_limit_ns[i] * 1e-9).s,
                      kvc_plot_num(100 * bound * (1 - kvc_traffic_ttl_loss(f, i))).s,
                      kvc_plot_num(p->held_mean_blocks[i] * unit).s,
                      kvc_plot_num((double)p->held_peak_blocks[i] * unit).s);
    }
    kvc_text_add(t, "END\n");
}

static void plot_ttl(struct kvc_text *t, int width, int height, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    if (!f->stats.has_prefix || !p->seen_tokens || !f->stats.span_ns)
        return;
    size_t last = last_age(f);
    bool narrow = width < 500, bytes = f->kv_bytes_per_token > 0;
    double bound = 100 * kvc_traffic_bound(f);
    double block = f->stats.block_tokens * (double)(bytes ? f->kv_bytes_per_token : 1);
    double max = (double)p->held_peak_blocks[last] * block; /* longer ones never hold less */
    struct scale scale = scale_for(max, bytes);
    char held[64];
    snprintf(held, sizeof(held), "%s held, at peak", bytes ? scale.name : "tokens");
    kvc_plot_begin(t, width, height);
    put_ages(t, f, last, block / scale.unit);
    int high = (height - 26 - 36 - KVC_PLOT_BELOW) / 2;
    kvc_text_add(t, "set multiplot\n");
    kvc_plot_margins(t, width, height, 26, height - 26 - high);
    put_age_tics(t, last, p, false, narrow);
    kvc_plot_scale(t, bound, 4, "%g %%");
    kvc_text_addf(t, "set arrow from graph 0,first %s to graph 1,first %s nohead dt 2 lc rgb "
                     "'%s'\n",
                  kvc_plot_num(bound).s, kvc_plot_num(bound).s, kvc_colour_light("ink"));
    kvc_plot_label(t, "hit rate that is left", "graph 0,1", "left offset 0,0.7", "blue");
    kvc_plot_label(t, "without a limit", "graph 1,1", "right offset 0,0.7", "ink");
    kvc_text_addf(t, "plot $ages using 1:2 with linespoints pt 7 ps 0.4 lw 2 lc rgb '%s'\n",
                  kvc_colour_light("blue"));
    kvc_text_add(t, "unset arrow\nunset label\n");
    kvc_plot_margins(t, width, height, 62 + high, height - 62 - 2 * high);
    put_age_tics(t, last, p, true, narrow);
    kvc_plot_scale(t, max / scale.unit, 4, scale.format);
    kvc_plot_axis(t, "x", "time to live after the last use, log scale");
    kvc_plot_label(t, held, "graph 0,1", "left offset 0,0.7", "orange");
    kvc_plot_label(t, "on average", "graph 1,1", "right offset 0,0.7", "green");
    kvc_text_addf(t, "plot $ages using 1:4 with linespoints pt 7 ps 0.4 lw 2 lc rgb '%s', "
                     "$ages using 1:3 with linespoints pt 7 ps 0.4 lw 2 lc rgb '%s'\n",
                  kvc_colour_light("orange"), kvc_colour_light("green"));
    kvc_text_add(t, "unset multiplot\n");
    kvc_plot_end(t);
}

/* ---- all ---- */

enum kvc_status kvc_traffic_plots_draw(struct kvc_traffic_plots *plots,
                                       const struct kvc_traffic *f, struct kvc_error *err)
{
    static const struct {
        void (*plot)(struct kvc_text *t, int width, int height, const struct kvc_traffic *f);
        int height;
    } kinds[KVC_TRAFFIC_PLOTS] = { [KVC_TRAFFIC_RATES] = { plot_rates, 240 },
                                   [KVC_TRAFFIC_LENGTHS] = { plot_lengths, 340 },
                                   [KVC_TRAFFIC_DEPTHS] = { plot_depths, 340 },
                                   [KVC_TRAFFIC_TTL] = { plot_ttl, 430 } };
    struct kvc_text scripts[2 * KVC_TRAFFIC_PLOTS], pictures[2 * KVC_TRAFFIC_PLOTS];
    memset(plots, 0, sizeof(*plots));
    memset(scripts, 0, sizeof(scripts));
    memset(pictures, 0, sizeof(pictures));
    for (unsigned i = 0; i < 2 * KVC_TRAFFIC_PLOTS; i++)
        kinds[i / 2].plot(&scripts[i], i % 2 ? 370 : 720, kinds[i / 2].height, f);
    enum kvc_status status = kvc_plot_draw(scripts, pictures, 2 * KVC_TRAFFIC_PLOTS,
                                           plots->why_not, sizeof(plots->why_not), err);
    for (unsigned i = 0; i < 2 * KVC_TRAFFIC_PLOTS; i++) {
        *(i % 2 ? &plots->narrow[i / 2] : &plots->wide[i / 2]) = pictures[i];
        kvc_text_clear(&scripts[i]);
    }
    return status;
}

void kvc_traffic_plots_clear(struct kvc_traffic_plots *plots)
{
    for (size_t i = 0; i < KVC_TRAFFIC_PLOTS; i++) {
        kvc_text_clear(&plots->wide[i]);
        kvc_text_clear(&plots->narrow[i]);
    }
}
