/* SPDX-License-Identifier: Apache-2.0
 * Lengths of the requests that benchmark clients send. */
#ifndef KVC_STUDIES_CLIENT_LENGTHS_H
#define KVC_STUDIES_CLIENT_LENGTHS_H

#include "studies/engine/closed_loop.h"

/* n requests of lengths uniform in [shortest, 1] of those named, as NumPy's legacy generator draws
 * them after seed 0: all inputs first, then all outputs. InferenceX's client does so, its runs of
 * one shape differ in nothing else. shortest 1: all alike. */
void kvc_client_lengths(struct kvc_request_length *out, uint32_t n, uint32_t input,
                        uint32_t output, double shortest);

#endif
