/* SPDX-License-Identifier: Apache-2.0
 * The columns of kvcast's own CSV, which export writes and import reads. */
#ifndef KVC_TRACES_KVCAST_CSV_H
#define KVC_TRACES_KVCAST_CSV_H

#define KVC_CSV_HEADER                                                                             \
    "arrival_ns,session,think_ns,tenant,model,status,input_tokens,output_tokens,cached_tokens,"    \
    "block_tokens,hash_ids,output_hash_ids"
#define KVC_CSV_COLUMNS 12

#endif
