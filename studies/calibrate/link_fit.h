/* SPDX-License-Identifier: Apache-2.0
 * Bandwidth, latency and time per operation of links, fitted to readings. An operation of b bytes
 * keeps the link busy for s = per_op + b / bandwidth. With q under way at once, one more ending
 * whenever another begins, one ends every max(s, (latency + s) / q); q that begin together take
 * latency + q s. Directions are fitted apart. */
#ifndef KVC_STUDIES_LINK_FIT_H
#define KVC_STUDIES_LINK_FIT_H

#include "models/measured_fit.h"
#include "models/models.h"
#include "studies/calibrate/readings.h"

enum { KVC_LINK_RATE, KVC_LINK_LATENCY, KVC_LINK_PER_OP, KVC_LINK_CONSTANTS };

struct kvc_link_fit { /* of one link and direction */
    const struct kvc_link_profile *base;
    enum kvc_towards direction;
    struct kvc_measured_fit fit; /* constants as numbered above */
    const struct kvc_reading **row; /* [fit.n] */
    double least_bytes, most_bytes; /* of an operation */
    double least_depth, most_depth;
    bool bare; /* its latency is the wire's; what engines do around a transfer is not in it */
    struct kvc_text sources;        /* tools, files, rows */
};

struct kvc_link_both { /* of one link, both directions at once */
    const struct kvc_link_profile *base;
    double rate[2];   /* mean of the rows of each direction */
    size_t rows[2];
    struct kvc_text sources;
};

struct kvc_link_fits { /* all zero = empty */
    struct kvc_link_fit *fit;
    struct kvc_link_both *both;
    size_t n, n_both;
};

/* One for each link and direction that r has rows of. host_link: of rows that name none; NULL: the
 * PCIe generation whose rates theirs are, which a note then says. */
enum kvc_status kvc_link_fits_run(struct kvc_link_fits *out, struct kvc_readings *r,
                                  const char *host_link, struct kvc_error *err);
void kvc_link_fits_clear(struct kvc_link_fits *fits);
/* Both directions together; where only one was measured, twice that. 0: neither was. */
double kvc_link_both_rate(const struct kvc_link_both *both);

/* What the fit says of a row, in bytes per second. */
double kvc_link_predict(const double constants[KVC_LINK_CONSTANTS], const struct kvc_reading *row);

/* The fit of a link that its latency or time per operation is taken from: of reads where there are
 * any, else of writes. NULL: it does not tell it. */
const struct kvc_link_fit *kvc_link_fits_source(const struct kvc_link_fits *fits,
                                                const struct kvc_link_profile *base,
                                                size_t constant);

/* Whether the rows, though they do not tell the constant, rule out the profile's figure: then value
 * is one that they allow. */
bool kvc_link_fit_bounds(const struct kvc_link_fit *f, size_t constant);

#endif
