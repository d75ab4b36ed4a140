/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes with so many under way at once: by io_uring through its system calls, and where
 * the kernel or a sandbox refuses it, by as many threads that wait for one each. */
#ifndef KVC_BENCH_URING_H
#define KVC_BENCH_URING_H

#include <kvcast/kvcast.h>

struct kvc_uring_job {
    int fd;
    bool write;
    size_t op_bytes;
    uint64_t file_bytes;
    uint32_t depth;
    char *buffer;        /* depth x op_bytes, aligned as direct I/O asks for */
    double seconds;      /* how long to go on */
    uint64_t seed;
};

struct kvc_uring_result {
    uint64_t ops;
    double seconds;
    int error; /* errno, 0: fine */
};

/* false: there is no io_uring here. */
bool kvc_uring_run(const struct kvc_uring_job *job, struct kvc_uring_result *out);
void kvc_uring_run_threads(const struct kvc_uring_job *job, struct kvc_uring_result *out);

#endif
