/* SPDX-License-Identifier: Apache-2.0
 * Calls itself as a built-in admission policy does. */
#define NAME "second"
#include "bad_admission.h"
