/* SPDX-License-Identifier: Apache-2.0
 * Times of collectives between GPUs, from the tables that know this number of them. */
#include "models/kernels_internal.h"

#include <string.h>

/* As carried, so that a profile's figure never changes which tables are asked: where one gives way
 * to a closed form a faster link could be the slower. */
static double link_of(const struct kvc_gpu *gpu)
{
    const struct kvc_gpu *carried = kvc_gpu_find(gpu->id);

    return (carried ? carried : gpu)->gpu_link_bytes_per_s.value;
}

/* A GPU that was not measured, or not with this engine, has the collectives of the one it is like,
 * if their links are as fast: another link is no measure of this one. */
static bool like_link(const struct kvc_kernels *k)
{
    const struct kvc_gpu *like = k->gpu->kernels_like ? kvc_gpu_find(k->gpu->kernels_like) : NULL;

    return (!k->gpu->kernels_measured || !k->there[OWN]) && like &&
           like->gpu_link_bytes_per_s.value == link_of(k->gpu);
}

/* A table that has this number of GPUs itself: nothing is known between counts. */
static bool find_collective(struct kvc_kernels *k, int at, const char *family, const char *op,
                            uint32_t gpus, struct kvc_kernel_answer *out)
{
    const struct kvc_kernel_family *f = kvc_kernel_family_find(family);
    const struct kvc_kernel_store *s = kvc_kernels_store(k, at);
    const double site[KVC_KERNEL_SITE] = {gpus};

    for (size_t i = 0; s && i < s->tables.n; i++) {
        const struct kvc_kernel_table *t = &s->tables.table[i];
        if (t->family != f || strncmp(t->key, op, strlen(op)) != 0 || strstr(t->key, "eager") ||
            strstr(t->key, "int8"))
            continue;
        kvc_kernels_answer(s, at, t, site, out);
        if (out->curve.octaves == 0)
            return true;
    }
    return false;
}

/* Adds times of doublings from 256 bytes, each from the table that holds there, never falling: a
 * message can always be padded to a larger one. B200's 8-GPU table has a hump below 1 MB that
 * served runs lack. */
static void add_messages(struct kvc_messages *out, const struct kvc_kernel_answer *small,
                         double small_max_bytes, const struct kvc_kernel_answer *large)
{
    out->n = 0;
    for (double bytes = 256; bytes <= 1073741824 && out->n < 64; bytes *= 2) {
        const struct kvc_kernel_answer *a = bytes > small_max_bytes ? large : small;
        out->bytes[out->n] = bytes;
        out->ns[out->n++] += kvc_kernel_answer_ns(a, bytes, 0);
    }
    for (size_t i = out->n; i-- > 1;)
        if (out->ns[i - 1] > out->ns[i])
            out->ns[i - 1] = out->ns[i];
}

/* Not one far below the link (L40S: 1 of 32 GB/s among eight): it says more of that machine. */
static bool find_nccl(struct kvc_kernels *k, bool like, const char *op, uint32_t gpus,
                      struct kvc_kernel_answer *out)
{
    return (find_collective(k, USERS, "nccl", op, gpus, out) ||
            find_collective(k, OWN_NCCL, "nccl", op, gpus, out) ||
            (like && find_collective(k, LIKE_NCCL, "nccl", op, gpus, out))) &&
           67108864e9 / kvc_kernel_answer_ns(out, 67108864, 0) >= link_of(k->gpu) / 8;
}

bool kvc_kernels_allreduce(struct kvc_kernels *kernels, uint32_t gpus, double custom_max_bytes,
                           struct kvc_messages *out)
{
    struct kvc_kernel_answer graph, nccl;
    bool like = like_link(kernels);
    const char *family = "custom_allreduce", *op = "all_reduce ";
    bool custom = find_collective(kernels, USERS, family, op, gpus, &graph) ||
                  find_collective(kernels, like ? LIKE : OWN, family, op, gpus, &graph);

    memset(out, 0, sizeof *out);
    if (!find_nccl(kernels, like, op, gpus, &nccl) || (like && !custom))
        return false;
    kvc_kernels_note(kernels, "all-reduce in a graph", custom ? &graph : &nccl);
    kvc_kernels_note(kernels, "all-reduce of large messages", &nccl);
    add_messages(out, custom ? &graph : &nccl, custom_max_bytes, &nccl);
    return true;
}

bool kvc_kernels_exchange(struct kvc_kernels *kernels, uint32_t gpus, struct kvc_messages *out)
{
    struct kvc_kernel_answer there, back;

    memset(out, 0, sizeof *out);
    if (!find_nccl(kernels, false, "all_gather ", gpus, &there) ||
        !find_nccl(kernels, false, "reduce_scatter ", gpus, &back))
        return false;
    kvc_kernels_note(kernels, "gather of all ranks' tokens", &there);
    kvc_kernels_note(kernels, "scatter of their sums", &back);
    add_messages(out, &there, 0, &there);
    add_messages(out, &back, 0, &back);
    return true;
}

double kvc_messages_ns(const struct kvc_messages *a, double bytes)
{
    if (a->n == 0)
        return 0;
    if (bytes <= a->bytes[0])
        return a->ns[0];
    for (size_t i = 1; i < a->n; i++)
        if (bytes <= a->bytes[i])
            return a->ns[i - 1] + (bytes - a->bytes[i - 1]) / (a->bytes[i] - a->bytes[i - 1]) *
                                      (a->ns[i] - a->ns[i - 1]);
    return a->ns[a->n - 1] * (bytes / a->bytes[a->n - 1]);
}
