/* SPDX-License-Identifier: Apache-2.0
 * Writes more into a piece's memory than it said it would. */
#include <kvcast/policy.h>

static void mark(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    uint64_t *memory = host->memory(host, piece);
    (void)state, (void)ghost;
    for (int i = 0; i < 4; i++)
        memory[i] = 1;
    host->put(host, 0, piece);
}

#define STORED mark
#define MORE .piece_bytes = 8,
#include "bad.h"
