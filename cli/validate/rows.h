/* SPDX-License-Identifier: Apache-2.0
 * kvcast validate --rows: engine runs beside their predictions. */
#ifndef KVC_CLI_VALIDATE_ROWS_H
#define KVC_CLI_VALIDATE_ROWS_H

#include "cli/cli.h"

int kvc_validate_rows(struct kvc_cli *cli); /* an exit code */

#endif
