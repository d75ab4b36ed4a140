/* SPDX-License-Identifier: Apache-2.0
 * Step times that many small replays share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/replay/engine.h"
#include "tests/replay_case.h"

/* All of a scenario that step times depend on. */
struct shape {
    char model[KVC_NAME_MAX], gpu[KVC_NAME_MAX], backend[KVC_NAME_MAX];
    char weights_dtype[32], kv_dtype[32];
    uint32_t tp, pp, ep, dp, gpus_per_node, batch_tokens, max_seqs;
    double kv_resident;
};

struct built {
    struct built *next;
    struct shape shape;
    struct kvc_step_model *model;
};

static struct shape shape_of(const struct kvc_scenario *sc)
{
    struct shape s;

    memset(&s, 0, sizeof s);
    snprintf(s.model, sizeof s.model, "%s", sc->model);
    snprintf(s.gpu, sizeof s.gpu, "%s", sc->cluster.gpu);
    snprintf(s.backend, sizeof s.backend, "%s", sc->engine.backend);
    snprintf(s.weights_dtype, sizeof s.weights_dtype, "%s", sc->weights_dtype);
    snprintf(s.kv_dtype, sizeof s.kv_dtype, "%s", sc->kv_dtype);
    s.tp = sc->cluster.tp;
    s.pp = sc->cluster.pp;
    s.ep = sc->cluster.ep;
    s.dp = sc->cluster.dp;
    s.gpus_per_node = sc->cluster.gpus_per_node;
    s.batch_tokens = sc->cluster.pp > 1 ? sc->engine.max_batched_tokens : 0;
    s.max_seqs = sc->engine.max_seqs < 256 ? sc->engine.max_seqs : 256; /* more capture no more */
    s.kv_resident = sc->engine.kv_resident;
    return s;
}

static struct kvc_step_model *build(const struct shape *s)
{
    struct kvc_step_config config = {.llm = kvc_llm_find(s->model), .gpu = kvc_gpu_find(s->gpu),
                                     .backend = s->backend, .tp = s->tp, .pp = s->pp, .ep = s->ep,
                                     .dp = s->dp, .batch_tokens = s->batch_tokens,
                                     .max_seqs = s->max_seqs,
                                     .kv_resident = s->kv_resident,
                                     .gpus_per_node = s->gpus_per_node};
    struct kvc_step_model *model = NULL;

    if (kvc_dtype_parse(s->weights_dtype, &config.weights) &&
        kvc_dtype_parse(s->kv_dtype, &config.kv))
        kvc_step_model_create(&model, &config, NULL);
    return model;
}

struct kvc_step_model *replay_step_times(const struct kvc_scenario *sc)
{
    static struct built *all;
    struct shape shape = shape_of(sc);

    for (struct built *b = all; b; b = b->next)
        if (memcmp(&b->shape, &shape, sizeof shape) == 0)
            return b->model;
    struct built *b = malloc(sizeof *b);
    if (!b)
        abort();
    *b = (struct built){all, shape, build(&shape)};
    all = b;
    return b->model;
}

enum kvc_status replay_run_lent(struct kvc_result **out, const struct kvc_trace *t,
                                const struct kvc_scenario *sc,
                                const struct kvc_replay_options *options, struct kvc_error *err)
{
    /* Some build their own all the same: it must be what the scenario's times are here. */
    bool own = sc->profile[0] || t->n_requests % 8 == 0;

    return kvc_replay_run_with(out, t, sc, options, own ? NULL : replay_step_times(sc), err);
}
