/* SPDX-License-Identifier: Apache-2.0
 * ServeGen's rate models in memory: clients, each with windows of a rate and a law of the gaps
 * between its requests, and longer windows with distributions of lengths. */
#ifndef KVC_TRACES_SERVEGEN_H
#define KVC_TRACES_SERVEGEN_H

#include <kvcast/kvcast.h>

enum kvc_servegen_law { KVC_GAPS_NONE, KVC_GAPS_GAMMA, KVC_GAPS_WEIBULL };

struct kvc_servegen_window { /* of requests */
    uint64_t start_s;
    double per_s, shape; /* the law's scale follows from the rate */
    uint8_t law;
};

struct kvc_servegen_pmf { /* n 0: not in the model */
    uint32_t n;
    uint32_t *value;    /* ascending or not, as in the file */
    double *cumulative; /* the last one is the sum */
};

enum kvc_servegen_field { /* of lengths */
    KVC_SG_INPUT, KVC_SG_TEXT, KVC_SG_OUTPUT, KVC_SG_IMAGE_COUNT, KVC_SG_IMAGE, KVC_SG_AUDIO_COUNT,
    KVC_SG_AUDIO, KVC_SG_VIDEO_COUNT, KVC_SG_VIDEO, KVC_SG_FIELDS
};

struct kvc_servegen_lengths {
    uint64_t start_s;
    struct kvc_servegen_pmf field[KVC_SG_FIELDS];
};

struct kvc_servegen_client {
    uint32_t number; /* of its chunk */
    struct kvc_servegen_window *window; /* by start */
    size_t n_windows, windows_cap;
    struct kvc_servegen_lengths *lengths; /* by start */
    size_t n_lengths, lengths_cap;
    bool has_trace, has_dataset;
};

struct kvc_servegen {
    struct kvc_servegen_client *client; /* by number, those with windows only */
    size_t n, cap;
    uint64_t window_s; /* how long a window lasts */
};

/* path: a folder or a tar, packed or not, with chunk-N-trace.csv and chunk-N-dataset.json in it,
 * at any depth. Clear the models in any case. */
enum kvc_status kvc_servegen_load(struct kvc_servegen *models, const char *path,
                                  struct kvc_error *err);
void kvc_servegen_clear(struct kvc_servegen *models);
/* One file of them; name as above, for messages too. Others are passed over. */
enum kvc_status kvc_servegen_take(struct kvc_servegen *models, const char *name, const char *text,
                                  size_t n, struct kvc_error *err);
/* When all are taken: orders, checks. */
enum kvc_status kvc_servegen_settle(struct kvc_servegen *models, const char *path,
                                    struct kvc_error *err);
/* The lengths of a request at that second; NULL: the model has none. */
const struct kvc_servegen_lengths *kvc_servegen_lengths_at(const struct kvc_servegen_client *c,
                                                           uint64_t second);

#endif
