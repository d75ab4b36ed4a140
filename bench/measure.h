/* SPDX-License-Identifier: Apache-2.0
 * Measuring this machine: memory copies, file reads, zstd, and copies and kernels of its GPU. Each
 * measurement is repeated; a row holds the median and how far the repeats lie apart. Nothing is
 * printed: rows and notes leave through callbacks. */
#ifndef KVC_BENCH_MEASURE_H
#define KVC_BENCH_MEASURE_H

#include <kvcast/kvcast.h>

#define KVC_BENCH_REPEATS 15 /* at most */
#define KVC_BENCH_LEAST_FILE ((uint64_t)32 << 20) /* less may lie in a drive's own cache */

/* What was run, of kernels that step times are made of. */
struct kvc_bench_kernel {
    const char *family;       /* as tables are named: "gemm", "generation_attention"; NULL: none */
    const char *dtype, *name; /* "bfloat16", "fp8"; who made it */
    bool bound;               /* slower than engines' */
    uint32_t m, n, k;         /* of products */
    uint32_t sequences, context, heads, kv_heads, head_dim; /* of attention */
};

struct kvc_bench_device { /* a GPU */
    char name[256];
    double memory_bytes, multiprocessors;
};

struct kvc_bench_row {
    const char *what;       /* "memory copy", "file read", "file write", "zstd compress",
                               "host to GPU", "gemm", .. */
    char how[96];           /* shape, method, placement: for people */
    const char *link;       /* "storage", "host": whose profile it is about; NULL: none's */
    bool write, batch;      /* as in studies/calibrate/readings.h */
    bool both;              /* ways at once: rate is their sum */
    double op_bytes, depth; /* 0: no operations in it */
    double rate;            /* median: bytes per second; of kernels flops per second, or 0 */
    double ns;              /* median time of one, of kernels; else 0 */
    double spread;          /* (largest - smallest) / median of the repeats */
    uint32_t repeats;
    double ratio;           /* of compression; else 0 */
    struct kvc_bench_kernel kernel;
};

struct kvc_bench_sink {
    void *user;
    bool (*row)(void *user, const struct kvc_bench_row *row); /* false ends the measuring */
    void (*note)(void *user, const char *text);
    void (*device)(void *user, const struct kvc_bench_device *device); /* before a GPU's rows */
};

struct kvc_bench_options {
    bool quick;
    const char *folder;  /* where the file of the file reads lies; NULL: $TMPDIR, else /tmp */
    uint64_t file_bytes; /* its size, at least KVC_BENCH_LEAST_FILE; 0: 1 GiB, quick 256 MiB */
    uint32_t gpu;        /* which device */
    bool dma; /* copies of blocks that are about the host link: one each, not by a kernel */
};

/* KVC_ERR_UNSUPPORTED: can't be measured here; err says why. */
enum kvc_status kvc_bench_memory(const struct kvc_bench_options *o,
                                 const struct kvc_bench_sink *sink, struct kvc_error *err);
enum kvc_status kvc_bench_files(const struct kvc_bench_options *o,
                                const struct kvc_bench_sink *sink, struct kvc_error *err);
enum kvc_status kvc_bench_zstd(const struct kvc_bench_options *o,
                               const struct kvc_bench_sink *sink, struct kvc_error *err);
/* By the module that 'make cuda' builds, looked for beside the program and in ../lib/kvcast. */
enum kvc_status kvc_bench_gpu(const struct kvc_bench_options *o,
                              const struct kvc_bench_sink *sink, struct kvc_error *err);

struct kvc_bench_machine {
    char cpu[128];
    uint32_t cpus, nodes; /* that may be used */
    bool hypervisor;
    double load;          /* of the last minute */
};
void kvc_bench_machine(struct kvc_bench_machine *out);

/* ---- shared by the measuring files ---- */

double kvc_bench_now_s(void);
/* Sorts the values; fills rate or ns, spread and repeats of row from them. */
void kvc_bench_settle(double *value, uint32_t n, double *median, struct kvc_bench_row *row);
KVC_PRINTF(2, 3)
void kvc_bench_note(const struct kvc_bench_sink *sink, const char *fmt, ...);
/* CPUs of a NUMA node that this process may run on, at most most; 0: there is no such node. */
uint32_t kvc_bench_node_cpus(uint32_t node, int *cpu, uint32_t most);
bool kvc_bench_pin(int cpu); /* the calling thread */

#endif
