/* SPDX-License-Identifier: Apache-2.0
 * kvcast calibrate with measurements of links and served runs. */
#ifndef KVC_CLI_CALIBRATE_PROFILE_H
#define KVC_CLI_CALIBRATE_PROFILE_H

#include "cli/cli.h"

int kvc_calibrate_profile(struct kvc_cli *cli); /* an exit code */
const char *kvc_calibrate_output(const struct kvc_cli *cli); /* -o, --output; NULL: neither */

#endif
