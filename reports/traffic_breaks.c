/* SPDX-License-Identifier: Apache-2.0
 * What breaks caching: the message, role and offset where prompts diverge. A trace holds no texts,
 * so this has to be found out at import; until it is, there is nothing to say. */
#include "reports/traffic.h"

void kvc_traffic_breaks_text(struct kvc_text *t, const struct kvc_traffic *traffic)
{
    (void)t;
    (void)traffic;
}

void kvc_traffic_breaks_json(struct kvc_json *j, const struct kvc_traffic *traffic)
{
    (void)traffic;
    kvc_json_null(j, "breaks");
}

void kvc_traffic_breaks_html(struct kvc_text *t, const struct kvc_traffic *traffic)
{
    (void)t;
    (void)traffic;
}
