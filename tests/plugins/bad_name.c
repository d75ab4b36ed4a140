/* SPDX-License-Identifier: Apache-2.0
 * Takes the name of a built-in policy. */
#define NAME "lru"
#include "bad.h"
