/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/uring.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/rng.h"
#include "bench/measure.h"

#define MOST_THREADS 256

static uint64_t next_offset(const struct kvc_uring_job *job, uint64_t *rng)
{
    uint64_t slots = job->file_bytes / job->op_bytes;

    return kvc_rng_next(rng) % slots * job->op_bytes;
}

#if defined(__has_include)
#if __has_include(<linux/io_uring.h>) && defined(SYS_io_uring_setup)
#define HAVE_URING 1
#include <linux/io_uring.h>
#endif
#endif

#ifdef HAVE_URING

struct ring {
    int fd;
    struct io_uring_params p;
    char *sq, *cq;
    struct io_uring_sqe *sqes;
    size_t sq_bytes, cq_bytes, sqe_bytes;
};

static void *map(int fd, size_t bytes, off_t at)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, at);

    return p == MAP_FAILED ? NULL : p;
}

static void ring_close(struct ring *r)
{
    if (r->sq)
        munmap(r->sq, r->sq_bytes);
    if (r->cq)
        munmap(r->cq, r->cq_bytes);
    if (r->sqes)
        munmap(r->sqes, r->sqe_bytes);
    if (r->fd >= 0)
        close(r->fd);
}

static bool ring_open(struct ring *r, uint32_t depth)
{
    memset(r, 0, sizeof *r);
    r->fd = (int)syscall(SYS_io_uring_setup, depth, &r->p);
    if (r->fd < 0)
        return false;
    r->sq_bytes = r->p.sq_off.array + r->p.sq_entries * sizeof(uint32_t);
    r->cq_bytes = r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe);
    r->sqe_bytes = r->p.sq_entries * sizeof(struct io_uring_sqe);
    r->sq = map(r->fd, r->sq_bytes, IORING_OFF_SQ_RING);
    r->cq = map(r->fd, r->cq_bytes, IORING_OFF_CQ_RING);
    r->sqes = map(r->fd, r->sqe_bytes, IORING_OFF_SQES);
    if (r->sq && r->cq && r->sqes)
        return true;
    ring_close(r);
    return false;
}

static _Atomic uint32_t *at(char *ring, uint32_t offset)
{
    return (_Atomic uint32_t *)(void *)(ring + offset);
}

static void push(struct ring *r, const struct kvc_uring_job *job, uint32_t slot, uint64_t offset)
{
    _Atomic uint32_t *tail = at(r->sq, r->p.sq_off.tail);
    uint32_t t = atomic_load_explicit(tail, memory_order_relaxed);
    uint32_t i = t & (r->p.sq_entries - 1);
    struct io_uring_sqe *e = &r->sqes[i];

    memset(e, 0, sizeof *e);
    e->opcode = job->write ? IORING_OP_WRITE : IORING_OP_READ;
    e->fd = job->fd;
    e->addr = (uint64_t)(uintptr_t)(job->buffer + slot * job->op_bytes);
    e->len = (uint32_t)job->op_bytes;
    e->off = offset;
    e->user_data = slot;
    atomic_store_explicit(at(r->sq, r->p.sq_off.array + i * 4), i, memory_order_relaxed);
    atomic_store_explicit(tail, t + 1, memory_order_release);
}

/* The slot that ended, or -1 - errno. */
static int64_t pop(struct ring *r, const struct kvc_uring_job *job)
{
    _Atomic uint32_t *head = at(r->cq, r->p.cq_off.head);
    uint32_t h = atomic_load_explicit(head, memory_order_relaxed);
    const struct io_uring_cqe *cqes = (const void *)(r->cq + r->p.cq_off.cqes);
    const struct io_uring_cqe *c = &cqes[h & (r->p.cq_entries - 1)];
    int64_t slot = (int64_t)c->user_data;

    if (c->res != (int32_t)job->op_bytes)
        slot = c->res < 0 ? c->res - 1 : -1 - EIO;
    atomic_store_explicit(head, h + 1, memory_order_release);
    return slot;
}

static uint32_t ready(struct ring *r)
{
    return atomic_load_explicit(at(r->cq, r->p.cq_off.tail), memory_order_acquire) -
           atomic_load_explicit(at(r->cq, r->p.cq_off.head), memory_order_relaxed);
}

static void drive(struct ring *r, const struct kvc_uring_job *job, struct kvc_uring_result *out)
{
    uint64_t rng = kvc_rng_stream(job->seed, "file bench");
    uint32_t under_way = 0, fresh = 0;
    double begin = kvc_bench_now_s();
    bool on = true;

    for (; under_way < job->depth; under_way++, fresh++)
        push(r, job, under_way, next_offset(job, &rng));
    while (under_way) {
        long n = syscall(SYS_io_uring_enter, r->fd, fresh, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            out->error = errno;
            return;
        }
        fresh = 0;
        on = on && !out->error && kvc_bench_now_s() - begin < job->seconds;
        for (uint32_t k = ready(r); k; k--) {
            int64_t slot = pop(r, job);
            under_way--;
            if (slot < 0)
                out->error = (int)(-1 - slot);
            else
                out->ops++;
            if (slot >= 0 && on) {
                push(r, job, (uint32_t)slot, next_offset(job, &rng));
                under_way++;
                fresh++;
            }
        }
    }
    out->seconds = kvc_bench_now_s() - begin;
}

bool kvc_uring_run(const struct kvc_uring_job *job, struct kvc_uring_result *out)
{
    struct ring r;

    memset(out, 0, sizeof *out);
    if (!ring_open(&r, job->depth))
        return false;
    drive(&r, job, out);
    ring_close(&r);
    return true;
}

#else

bool kvc_uring_run(const struct kvc_uring_job *job, struct kvc_uring_result *out)
{
    (void)job;
    memset(out, 0, sizeof *out);
    return false;
}

#endif

/* ---- threads ---- */

struct worker {
    const struct kvc_uring_job *job;
    uint32_t index;
    double until;
    uint64_t ops;
    int error;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    const struct kvc_uring_job *job = w->job;
    uint64_t rng = kvc_rng_stream(job->seed + w->index, "file bench");
    char *buffer = job->buffer + w->index * job->op_bytes;

    while (!w->error && kvc_bench_now_s() < w->until) {
        off_t offset = (off_t)next_offset(job, &rng);
        ssize_t n = job->write ? pwrite(job->fd, buffer, job->op_bytes, offset)
                               : pread(job->fd, buffer, job->op_bytes, offset);
        if (n == (ssize_t)job->op_bytes)
            w->ops++;
        else if (!(n < 0 && errno == EINTR))
            w->error = n < 0 ? errno : EIO;
    }
    return NULL;
}

void kvc_uring_run_threads(const struct kvc_uring_job *job, struct kvc_uring_result *out)
{
    struct worker worker[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    uint32_t n = job->depth < MOST_THREADS ? job->depth : MOST_THREADS, started = 0;
    double begin = kvc_bench_now_s();

    memset(out, 0, sizeof *out);
    for (; started < n; started++) {
        worker[started] =
            (struct worker){.job = job, .index = started, .until = begin + job->seconds};
        if (pthread_create(&thread[started], NULL, work, &worker[started]) != 0)
            break;
    }
    if (!started)
        out->error = EAGAIN;
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        out->ops += worker[i].ops;
        out->error = worker[i].error ? worker[i].error : out->error;
    }
    out->seconds = kvc_bench_now_s() - begin;
}
