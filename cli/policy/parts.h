/* SPDX-License-Identifier: Apache-2.0
 * What 'kvcast policy' prints. */
#ifndef KVC_CLI_POLICY_PARTS_H
#define KVC_CLI_POLICY_PARTS_H

#include "studies/policies/check.h"

bool kvc_policy_built_in(const char *name); /* of any kind */
struct kvc_plugin;

/* That plug-in alone; NULL: all that is built in. */
void kvc_policy_list_text(const struct kvc_plugin *plugin);
enum kvc_status kvc_policy_list_json(const struct kvc_plugin *plugin, struct kvc_error *err);
void kvc_policy_check_text(const struct kvc_policy_check *found);
enum kvc_status kvc_policy_check_json(const struct kvc_policy_check *found, struct kvc_error *err);

#endif
