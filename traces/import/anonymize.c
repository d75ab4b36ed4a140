/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/anonymize.h"

#include "base/alloc.h"
#include "base/siphash.h"
#include "traces/import/import_state.h"

#include <stdio.h>
#include <string.h>

void kvc_import_shown_name(const struct kvc_import *im, const char *kind, const char *text,
                           size_t n, char out[KVC_SHOWN_NAME])
{
    struct kvc_sip hash;
    if (!im->options->anonymize) {
        snprintf(out, KVC_SHOWN_NAME, "%.*s", (int)(n < KVC_SHOWN_NAME ? n : KVC_SHOWN_NAME), text);
        return;
    }
    kvc_sip_start(&hash, im->name_key[0], im->name_key[1]);
    kvc_sip_bytes(&hash, kind, strlen(kind) + 1); /* a user and a model of one name differ */
    kvc_sip_bytes(&hash, text, n);
    snprintf(out, KVC_SHOWN_NAME, "%.20s-%016llx", kind, (unsigned long long)kvc_sip_end(&hash));
}

char **kvc_import_names(const struct kvc_import *im, const char *kind,
                        const struct kvc_intern *names)
{
    char **all = kvc_intern_names(names);
    if (!all || !im->options->anonymize)
        return all;
    bool ok = true;
    for (size_t i = 0; i < names->n; i++) {
        char shown[KVC_SHOWN_NAME];
        kvc_import_shown_name(im, kind, all[i], strlen(all[i]), shown);
        kvc_free(all[i]);
        all[i] = kvc_strdup(shown);
        ok = ok && all[i];
    }
    for (size_t i = 0; !ok && i < names->n; i++)
        kvc_free(all[i]);
    if (!ok)
        kvc_free(all);
    return ok ? all : NULL;
}

void kvc_import_hide(const struct kvc_import *im, struct kvc_error *error)
{
    if (!im->options->anonymize)
        return;
    error->field[0] = '\0';
    snprintf(error->text, sizeof(error->text), "can't be used; what is wrong quotes the log and is "
             "not shown with --anonymize");
}
