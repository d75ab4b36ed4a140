/* SPDX-License-Identifier: Apache-2.0
 * kvcast validate --prefix: TTFTs of a prefix by length and tier beside their replays. */
#ifndef KVC_CLI_VALIDATE_PREFIX_H
#define KVC_CLI_VALIDATE_PREFIX_H

#include "cli/cli.h"

int kvc_validate_prefix(struct kvc_cli *cli); /* an exit code */

#endif
