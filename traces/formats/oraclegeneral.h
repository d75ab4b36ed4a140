/* SPDX-License-Identifier: Apache-2.0
 * libCacheSim's oracleGeneral, the one log format that is not text. */
#ifndef KVC_TRACES_ORACLEGENERAL_H
#define KVC_TRACES_ORACLEGENERAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the bytes, a file's first, are records of it: the ones of other binary files give
 * references far beyond any trace. */
bool kvc_oraclegeneral_sniff(const char *head, size_t n);

#endif
