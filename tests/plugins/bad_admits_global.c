/* SPDX-License-Identifier: Apache-2.0
 * Keeps what it knows in a global variable. */
#include <kvcast/policy.h>

static uint64_t requests;

static void count(const struct kvc_admission_host *host, void *state,
                  const struct kvc_policy_request *request)
{
    (void)host, (void)state, (void)request;
    requests++;
}

static uint32_t answer(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment)
{
    (void)state, (void)request;
    return requests < 1000 ? host->seg_blocks[segment] : 0;
}

#define ADMITS answer
#define MORE .request = count,
#include "bad_admission.h"
