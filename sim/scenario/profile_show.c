/* SPDX-License-Identifier: Apache-2.0
 * kvc_profile_show: presets are known here, the other profiles to models/. */
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "models/profile_show.h"
#include "sim/scenario/scenario_internal.h"

static void preset_json(struct kvc_json *j, const struct kvc_preset *p)
{
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "name", p->name);
    kvc_json_string(j, "summary", p->summary);
    kvc_json_string(j, "source", p->source);
    kvc_json_bool(j, "whole_scenario", p->whole);
    kvc_json_string(j, "refused", p->refused);
    kvc_json_open_object(j, "settings");
    for (const struct kvc_setting *s = p->settings; s && s->key; s++)
        kvc_json_string(j, s->key, s->value);
    kvc_json_close(j);
    kvc_json_close(j);
}

static void preset_text(struct kvc_text *t, const struct kvc_preset *p, bool brief)
{
    if (brief) {
        kvc_text_addf(t, "%-16s %s%s\n", p->name, p->refused ? "(not in this release) " : "",
                      p->summary);
        return;
    }
    kvc_text_addf(t, "%s: %s%s%s\n", p->name, p->summary, p->refused ? " -- " : "",
                  p->refused ? p->refused : "");
    for (const struct kvc_setting *s = p->settings; s && s->key; s++)
        kvc_text_addf(t, "  %-32s %s\n", s->key, s->value);
    kvc_text_addf(t, "  %-32s %s\n", "source", p->source);
}

static enum kvc_status unknown_preset(const char *name, struct kvc_error *err)
{
    const char *near = kvc_name_nearest(name, kvc_preset_engine_names());

    if (!near)
        near = kvc_name_nearest(name, kvc_preset_scenario_names());
    if (near)
        return kvc_fail(err, KVC_ERR_USAGE, "unknown preset '%s'; did you mean '%s'?", name, near);
    return kvc_fail(err, KVC_ERR_USAGE, "unknown preset '%s'; 'kvcast show preset' lists them",
                    name);
}

static enum kvc_status show_presets(char **out, const char *name, bool json, struct kvc_error *err)
{
    struct kvc_json j;
    struct kvc_text t = {0};

    if (name && !kvc_preset_find(name))
        return unknown_preset(name, err);
    if (json) {
        kvc_json_init(&j, true);
        kvc_json_open_object(&j, NULL);
        kvc_json_string(&j, "schema", "kvcast.show.v1");
        kvc_json_string(&j, "kind", "preset");
        kvc_json_open_array(&j, "profiles");
    }
    for (const struct kvc_preset *p = kvc_presets(); p->name; p++) {
        if (name && !kvc_name_equal(p->name, name))
            continue;
        if (json)
            preset_json(&j, p);
        else
            preset_text(&t, p, !name);
    }
    if (json) {
        kvc_json_close(&j);
        kvc_json_close(&j);
        t.buf = kvc_json_take(&j);
    }
    if (t.failed || !t.buf) {
        kvc_text_clear(&t);
        return kvc_fail_nomem(err);
    }
    *out = t.buf;
    return KVC_OK;
}

enum kvc_status kvc_profile_show(char **out, const char *kind, const char *name, bool json,
                                 struct kvc_error *err)
{
    if (kvc_name_equal(kind, "preset"))
        return show_presets(out, name, json, err);
    return kvc_models_show(out, kind, name, json, err);
}
