/* SPDX-License-Identifier: Apache-2.0
 * kvcast validate --requests: a served run, request by request, beside its replay. */
#ifndef KVC_CLI_VALIDATE_REQUESTS_H
#define KVC_CLI_VALIDATE_REQUESTS_H

#include "cli/cli.h"

int kvc_validate_requests(struct kvc_cli *cli); /* an exit code */

#endif
