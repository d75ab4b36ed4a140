/* SPDX-License-Identifier: Apache-2.0
 * One fitted kernel table: a closed form times exp(mean + sum of components), the sum weighted per
 * measured shape (site) and blended between sites. In files the weights and components are one
 * character a number (docs/models.md). */
#ifndef KVC_MODELS_KERNEL_TABLE_H
#define KVC_MODELS_KERNEL_TABLE_H

#include "base/json.h"
#include "models/kernel_family.h"

#define KVC_KERNEL_RANK 8    /* components at most */
#define KVC_KERNEL_DIGITS 91 /* values that a character of a file tells apart */

struct kvc_kernel_error { /* of predictions on measured rows, percent */
    size_t rows;
    double mape, p90, bias; /* bias: the median signed error */
};

struct kvc_kernel_ends { /* between which knots a site was measured itself */
    unsigned char first[KVC_KERNEL_AXES], last[KVC_KERNEL_AXES];
    unsigned char corner[KVC_KERNEL_AXES]; /* of the largest product of both axes: tokens in all */
};

struct kvc_kernel_table {
    const struct kvc_kernel_family *family;
    char key[KVC_KERNEL_KEY];
    char kind[16]; /* fitted, or assumed for closed forms without rows */
    char *source;
    double constants[KVC_KERNEL_CONSTANTS], params[KVC_KERNEL_PARAMS];
    size_t n_knots[KVC_KERNEL_AXES]; /* 1 where the family has no second axis */
    double *knot[KVC_KERNEL_AXES];   /* natural logarithms, ascending */
    double most[KVC_KERNEL_AXES]; /* largest values of the axes among the rows; 0: the last knot */
    size_t n_sites, n_cells, rank;
    double *site;      /* [n_sites][KVC_KERNEL_PLACE], see kvc_kernel_place */
    /* Square of what two shapes are expected to differ by: a constant, then per squared octave. */
    double distance[1 + KVC_KERNEL_PLACE];
    struct kvc_kernel_ends *ends; /* [n_sites]; NULL: not known, all as far as the table goes */
    double *weight;    /* [n_sites][rank] */
    double *mean;      /* [n_cells], second axis fastest */
    double *component; /* [rank][n_cells] */
    /* on the rows it was fitted to; on a quarter of the rows, and of the shapes, kept aside */
    struct kvc_kernel_error fitted, random, shape;
};

void kvc_kernel_table_clear(struct kvc_kernel_table *table);
void kvc_kernel_table_write(const struct kvc_kernel_table *table, struct kvc_json *j);
/* Strings are copied. A table that does not hold together is an error that names file. */
enum kvc_status kvc_kernel_table_read(struct kvc_kernel_table *table, const struct kvc_jval *v,
                                      const char *file, struct kvc_error *err);

/* A table at one shape. */
struct kvc_kernel_curve {
    const struct kvc_kernel_table *table;
    double x[KVC_KERNEL_SITE];
    double params[KVC_KERNEL_PARAMS]; /* the table's, until the caller sets others */
    double weight[KVC_KERNEL_RANK];
    double octaves; /* to the nearest measured shape, in its farthest dimension; 0: measured */
    /* Where the rows of this shape, or of those that it is blended from, begin and end: beyond,
     * others tell. product: most of both axes multiplied. 0 and HUGE_VAL: no bound. */
    double first[KVC_KERNEL_AXES], last[KVC_KERNEL_AXES], product;
};

void kvc_kernel_curve_at(const struct kvc_kernel_table *table, const double *site,
                         struct kvc_kernel_curve *out);
double kvc_kernel_curve_ns(const struct kvc_kernel_curve *curve, const struct kvc_peaks *peaks,
                           const double *axes);

/* Where a knot stands on its axis: the last one for all rows up to the largest. */
double kvc_kernel_knot(const struct kvc_kernel_table *table, size_t axis, size_t knot);
double kvc_kernel_product(const struct kvc_kernel_table *table, const unsigned char *knot);

/* Which of n values is nearest to v, of equals the first. */
size_t kvc_kernel_nearest(const double *value, size_t n, double v);

#endif
