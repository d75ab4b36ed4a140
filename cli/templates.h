/* SPDX-License-Identifier: Apache-2.0
 * What 'kvcast policy new' writes: the files of cli/templates/ and kvcast/policy.h, carried inside
 * the program. */
#ifndef KVC_CLI_TEMPLATES_H
#define KVC_CLI_TEMPLATES_H

#include "models/blobs.h"

extern const struct kvc_blob kvc_cli_templates[]; /* ends with a NULL name */

#endif
