/* SPDX-License-Identifier: Apache-2.0
 * Lacks a hook that every policy needs. */
#define VICTIM NULL
#include "bad.h"
