/* SPDX-License-Identifier: Apache-2.0
 * Promises closure, and is fifo. */
#define TOUCHED NULL
#define MORE .flags = KVC_EVICT_CLOSED,
#include "bad.h"
