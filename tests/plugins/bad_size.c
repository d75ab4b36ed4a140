/* SPDX-License-Identifier: Apache-2.0
 * Compiled against a shorter table. */
#define OPS_SIZE 24
#include "bad.h"
