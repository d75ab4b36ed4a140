/* SPDX-License-Identifier: Apache-2.0
 * Ranks by touches of info that no flag asks for. */
#define FIELD touches
#include "bad_field.h"
