/* SPDX-License-Identifier: Apache-2.0
 * Made for another version of the interface. */
#define ABI 99
#include "bad.h"
