/* SPDX-License-Identifier: Apache-2.0
 * What the files of the scenario share. */
#ifndef KVC_SIM_SCENARIO_INTERNAL_H
#define KVC_SIM_SCENARIO_INTERNAL_H

#include "base/json.h"
#include "sim/scenario/scenario.h"

struct kvc_setting {
    const char *key, *value;
};

struct kvc_preset {
    const char *name, *summary, *source;
    bool whole;                         /* a whole scenario, else an engine */
    const char *refused;                /* why it can't be used yet; NULL = it can */
    const struct kvc_setting *settings; /* ends with a NULL key */
};

/* Every preset, usable or not; ends with a NULL name. */
const struct kvc_preset *kvc_presets(void);
const struct kvc_preset *kvc_preset_find(const char *name);
const char *const *kvc_preset_engine_names(void);
const char *const *kvc_preset_scenario_names(void);

/* Applies the members of a JSON object, prefix in front of their keys ("" or "tiers."). */
enum kvc_status kvc_scenario_apply_json(struct kvc_scenario *s, const struct kvc_jval *object,
                                        const char *prefix, const char *file,
                                        struct kvc_error *err);
/* Sets a key from text (NULL = none) without looking at the rest. */
enum kvc_status kvc_scenario_assign(struct kvc_scenario *s, const struct kvc_scenario_key *key,
                                    const char *text, struct kvc_error *err);
/* Text that reads back as the key's value; false when it is none (null). */
bool kvc_scenario_text(const struct kvc_scenario *s, const struct kvc_scenario_key *key, char *buf,
                       size_t size);
/* Whether a key was set, not derived; false of an unknown name. */
bool kvc_scenario_given(const struct kvc_scenario *s, const char *name);
/* Marks the key as set and works out again what follows from it. */
enum kvc_status kvc_scenario_set_key(struct kvc_scenario *s, const struct kvc_scenario_key *key,
                                     const char *text, struct kvc_error *err);
/* scenario_tenants.c: the rules of tenants. An object of them, or null; one field by its dotted
 * name behind "tenants."; and all as JSON. */
enum kvc_status kvc_scenario_tenants_apply(struct kvc_scenario *s, const struct kvc_jval *object,
                                           struct kvc_error *err);
enum kvc_status kvc_scenario_tenants_set(struct kvc_scenario *s, const char *name,
                                         const char *value, struct kvc_error *err);
/* What rules say together. */
enum kvc_status kvc_scenario_tenants_check(const struct kvc_scenario *s, struct kvc_error *err);
void kvc_scenario_tenants_json(struct kvc_json *j, const struct kvc_scenario *s);
/* A plain value as text; false when it is an object or a list. */
bool kvc_scenario_value_text(const struct kvc_jval *v, char *buf, size_t size, const char **out);
/* At most limit + 1 bytes of the file, plain, .zst or .gz; *out is the caller's. */
enum kvc_status kvc_scenario_read(const char *path, size_t limit, char **out, size_t *n,
                                  struct kvc_error *err);
enum kvc_status kvc_scenario_unknown(const char *name, struct kvc_error *err);

#endif
