/* SPDX-License-Identifier: Apache-2.0
 * What a stream of KV events showed, in the words of an import's notes. */
#include "base/distribution.h"
#include "traces/formats/kv_residency.h"
#include "traces/import/anonymize.h"
#include "traces/import/import.h"

#include <stdio.h>
#include <string.h>

static void tell_medium(struct kvc_import *im, struct kvc_medium *m)
{
    struct kvc_dist d;
    char name[KVC_SHOWN_NAME] = "engine";
    if (m->device && m->name[0])
        snprintf(name, sizeof(name), "%s", m->name);
    else if (!m->device)
        kvc_import_shown_name(im, "medium", m->name, strlen(m->name), name);
    kvc_import_note(im, "%s: %llu blocks stored (%llu of them again), %llu removed, %llu cleared, "
                    "at most %llu resident, %llu at the end; not counted: %llu stored while there, "
                    "%llu removed unseen", name,
                    (unsigned long long)m->stored, (unsigned long long)m->again,
                    (unsigned long long)m->removed, (unsigned long long)m->cleared,
                    (unsigned long long)m->peak, (unsigned long long)m->resident,
                    (unsigned long long)m->already, (unsigned long long)m->unknown);
    if (!m->n_lifetimes)
        return;
    kvc_distribution(m->lifetimes, m->n_lifetimes, 1e9, &d);
    kvc_import_note(im, "%s: the %llu removed blocks had been there %.3g s at the median, %.3g s "
                    "at p90, %.3g s at p99, %.3g s at most", name, (unsigned long long)d.count,
                    d.p50, d.p90, d.p99, d.max);
}

void kvc_residency_tell_media(struct kvc_residency *res, struct kvc_import *im)
{
    for (uint32_t m = 0; m < res->n_media; m++)
        tell_medium(im, &res->medium[m]);
}

void kvc_residency_tell_sharing(const struct kvc_residency *res, struct kvc_import *im)
{
    const struct kvc_sharing *s = &res->sharing;
    if (res->instances.n < 2)
        return;
    if (!s->apart) {
        if (!res->shared)
            kvc_import_note(im, "no hash of one instance occurs in another (%zu instances): salted "
                            "per process (PYTHONHASHSEED), or nothing in common; without token_ids "
                            "in the events nobody can tell, so no number is given",
                            res->instances.n);
        return;
    }
    kvc_import_keys(im, res->instances.n, s->apart, res->unreadable);
    if (res->unreadable)
        kvc_import_note(im, "keys are salted per process: %llu of %llu stored blocks hold tokens "
                        "that another of %zu instances stored under another hash, and can't be "
                        "read by it; set one PYTHONHASHSEED for all (and sha256_cbor) to share%s",
                        (unsigned long long)res->unreadable, (unsigned long long)s->apart,
                        res->instances.n, s->full ? "; counted in part" : "");
    else
        kvc_import_note(im, "%zu instances: equal tokens have equal hashes, so they can read one "
                        "another's blocks (%llu stored, %llu distinct)", res->instances.n,
                        (unsigned long long)s->apart, (unsigned long long)s->once);
}
