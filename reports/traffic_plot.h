/* SPDX-License-Identifier: Apache-2.0
 * Pictures of a trace's profile. */
#ifndef KVC_REPORTS_TRAFFIC_PLOT_H
#define KVC_REPORTS_TRAFFIC_PLOT_H

#include "reports/traffic.h"

enum kvc_traffic_plot {
    KVC_TRAFFIC_RATES,
    KVC_TRAFFIC_LENGTHS,
    KVC_TRAFFIC_DEPTHS,
    KVC_TRAFFIC_TTL,
    KVC_TRAFFIC_PLOTS
};

struct kvc_traffic_plots {
    char why_not[200]; /* no picture: why */
    struct kvc_text wide[KVC_TRAFFIC_PLOTS], narrow[KVC_TRAFFIC_PLOTS];
};

/* Fails only when memory runs out. */
enum kvc_status kvc_traffic_plots_draw(struct kvc_traffic_plots *plots,
                                       const struct kvc_traffic *traffic, struct kvc_error *err);
void kvc_traffic_plots_clear(struct kvc_traffic_plots *plots);

#endif
