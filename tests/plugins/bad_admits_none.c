/* SPDX-License-Identifier: Apache-2.0
 * Lacks the one hook that there must be. */
#define ADMITS 0
#include "bad_admission.h"
