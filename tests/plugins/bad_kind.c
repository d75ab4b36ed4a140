/* SPDX-License-Identifier: Apache-2.0
 * Is of a kind that a newer kvcast may know. */
#define KIND 9
#include "bad_admission.h"
