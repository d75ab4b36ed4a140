/* SPDX-License-Identifier: Apache-2.0
 * kvcast validate alone: published figures beside what kvcast says under their conditions. */
#ifndef KVC_CLI_VALIDATE_HEADLINES_H
#define KVC_CLI_VALIDATE_HEADLINES_H

#include "cli/cli.h"

int kvc_validate_headlines(struct kvc_cli *cli); /* an exit code */

#endif
