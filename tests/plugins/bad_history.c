/* SPDX-License-Identifier: Apache-2.0
 * Ranks by times of info that no flag asks for. */
#define FIELD touched_ns
#include "bad_field.h"
