/* SPDX-License-Identifier: Apache-2.0
 * The prediction of one engine row: its configuration, the step model of that, the closed loop. */
#ifndef KVC_STUDIES_ENGINE_PREDICT_H
#define KVC_STUDIES_ENGINE_PREDICT_H

#include "models/profiles.h"
#include "studies/engine/study.h"

struct kvc_engine_model { /* of a configuration */
    struct kvc_step_config config;
    const struct kvc_engine_profile *engine;
    struct kvc_step_model *model; /* NULL: text says why */
    char text[256];
};

struct kvc_engine_models { /* built once each; all zero = empty */
    struct kvc_engine_model *model;
    size_t n, cap;
};

/* What the row is of; false, and text says why, where it can't be predicted. */
bool kvc_engine_configure(const struct kvc_engine_row *r, struct kvc_step_config *c,
                          char text[256]);
/* Its index; a model may say that there is none. */
enum kvc_status kvc_engine_model_find(struct kvc_engine_models *models,
                                      const struct kvc_step_config *config, size_t *index,
                                      struct kvc_error *err);
void kvc_engine_models_clear(struct kvc_engine_models *models);

/* Whether one request has room beside the weights. */
bool kvc_engine_fits(const struct kvc_engine_model *m, const struct kvc_engine_row *r);
struct kvc_host_costs kvc_engine_host(const struct kvc_engine_profile *engine);
enum kvc_status kvc_engine_predict(const struct kvc_engine_model *m,
                                   const struct kvc_engine_row *r,
                                   const struct kvc_host_costs *host,
                                   struct kvc_engine_prediction *p, struct kvc_error *err);
/* A disaggregated row as one of its kinds of workers. */
void kvc_engine_side(const struct kvc_engine_row *r, bool prefill, struct kvc_engine_row *out);
enum kvc_status kvc_engine_predict_disagg(const struct kvc_engine_model *prefill,
                                          const struct kvc_engine_model *decode,
                                          const struct kvc_engine_row *r,
                                          const struct kvc_host_costs *host,
                                          struct kvc_engine_prediction *p, struct kvc_error *err);
/* Of its configuration, which concurrency and the experts' parallel sizes are not of; an odd one's
 * rows are kept aside. */
uint64_t kvc_engine_configuration(const struct kvc_engine_row *r, const struct kvc_step_config *c);

#endif
