/* SPDX-License-Identifier: Apache-2.0
 * The GPU is measured by a module of its own, so that the program needs no CUDA to be built or run.
 */
#include "bench/gpu_module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static void *open_module(char *tried, size_t size)
{
    static const char *const places[] = {"/kvcast-gpu.so", "/../lib/kvcast/kvcast-gpu.so"};
    char self[3072], path[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    void *module = NULL;

    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    snprintf(tried, size, "no module %s", places[0] + 1);
    for (size_t i = 0; i < 2 && slash && !module; i++) {
        snprintf(path, sizeof path, "%s%s", self, places[i]);
        if (access(path, R_OK) != 0)
            continue;
        module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        const char *why = module ? NULL : dlerror();
        if (why)
            snprintf(tried, size, "%.350s", why);
    }
    return module;
}

enum kvc_status kvc_bench_gpu(const struct kvc_bench_options *o,
                              const struct kvc_bench_sink *sink, struct kvc_error *err)
{
    char why[400] = "";
    void *module = open_module(why, sizeof why);
    kvc_gpu_bench_fn run;

    if (!module)
        return kvc_fail(err, KVC_ERR_UNSUPPORTED,
                        "the GPU is not measured: %s; 'make cuda' builds it where nvcc is", why);
    void *symbol = dlsym(module, KVC_GPU_BENCH_ENTRY);
    memcpy(&run, &symbol, sizeof run);
    int rc = symbol ? run(KVC_GPU_BENCH_ABI, o, sink, why, sizeof why) : KVC_GPU_BENCH_OTHER_ABI;
    dlclose(module);
    switch (rc) {
    case KVC_GPU_BENCH_OK:
        return KVC_OK;
    case KVC_GPU_BENCH_NONE:
        return kvc_fail(err, KVC_ERR_UNSUPPORTED, "no GPU can be used here: %s", why);
    case KVC_GPU_BENCH_CANCELLED:
        return kvc_fail(err, KVC_ERR_CANCELLED, "the measuring was cancelled");
    case KVC_GPU_BENCH_OTHER_ABI:
        return kvc_fail(err, KVC_ERR_UNSUPPORTED, "kvcast-gpu.so is of another version: run 'make "
                        "cuda' again");
    default:
        return kvc_fail(err, KVC_ERR_IO, "the GPU failed: %s", why);
    }
}
