/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/policies/trials.h"

#include "base/alloc.h"
#include "base/error.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 30
#define LOOK_MS 200
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#define MEMORY_MOST ((rlim_t)4 << 30) /* bytes; the bundled workloads take some 100 MiB */
#define WALL_TIMES 10 /* clock time for CPU time: the machine may be busy, and a plug-in asleep */

/* ---- a check in a child ---- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Until the child ends, which closes its end of the pipe, unless a process that it started has it
 * too: hence a look now and then. false: the time is over, and it is made to end. */
static bool wait_for_end(pid_t child, int fd, double limit_s, int *status)
{
    double end = now_s() + limit_s;
    bool in_time = true;
    while (waitpid(child, status, WNOHANG) == 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        in_time = now_s() < end;
        if (in_time && poll(&p, 1, LOOK_MS) == 0)
            continue;
        if (!in_time)
            kill(child, SIGKILL);
        waitpid(child, status, 0);
        break;
    }
    return in_time;
}

static void where(const struct kvc_trial_board *b, char *buf, size_t size)
{
    kvc_hook_where(&b->place, buf, size);
    size_t n = strlen(buf);
    if (b->stage[0] && n < size)
        snprintf(buf + n, size - n, ", of %s", b->stage);
}

/* The verdict on a child that has ended. */
static void judge(const struct kvc_trial_board *b, int status, bool in_time, double limit_s,
                  struct kvc_check_row *row)
{
    char place[300];
    where(b, place, sizeof(place));
    row->verdict = KVC_CHECK_FAILED;
    if (!in_time || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        snprintf(row->text, sizeof(row->text),
                 "it did not end within %g s of %s time%s: an endless loop? (--limit gives more "
                 "time)",
                 in_time ? limit_s : WALL_TIMES * limit_s, in_time ? "CPU" : "clock", place);
    else if (WIFSIGNALED(status))
        snprintf(row->text, sizeof(row->text), "it crashed (%s)%s", strsignal(WTERMSIG(status)),
                 place);
    else if (!b->finished)
        snprintf(row->text, sizeof(row->text), "it ended the program, with exit code %d,%s",
                 WEXITSTATUS(status), place);
    else {
        row->verdict = b->verdict;
        snprintf(row->text, sizeof(row->text), "%s", b->text);
    }
}

static void clear(struct kvc_trial_board *b)
{
    b->stage[0] = b->text[0] = '\0';
    b->finished = 0;
    b->verdict = KVC_CHECK_PASSED;
    b->place = (struct kvc_plugged_place){0};
}

/* A caller may have handlers that go on after a crash. */
static void default_signals(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU};
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        signal(crashes[i], SIG_DFL);
}

/* A process group of its own, so that what it starts ends with it, and nothing on stdout, where
 * the verdict is alone. */
static void stand_apart(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a terminal's ^C reaches the caller's group only */
#endif
    if (nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO);
}

/* One that takes ever more must not take the machine along; sanitizers map terabytes. */
static void bound_memory(void)
{
#ifndef SANITIZED
    struct rlimit most;
    if (getrlimit(RLIMIT_AS, &most) == 0 && most.rlim_max > MEMORY_MOST) {
        most.rlim_cur = MEMORY_MOST;
        setrlimit(RLIMIT_AS, &most);
    }
#endif
}

static enum kvc_status in_child(struct kvc_trials *t, void (*run)(struct kvc_trials *),
                                struct kvc_check_row *row, struct kvc_error *err)
{
    int ends[2], status = 0;
    clear(t->board);
    if (pipe(ends) != 0)
        return kvc_fail_errno(err, NULL, "making a pipe");
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit most = {(rlim_t)ceil(t->limit_s), (rlim_t)ceil(t->limit_s) + 1};
        close(ends[0]);
        stand_apart();
        default_signals();
        setrlimit(RLIMIT_CPU, &most);
        setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
        bound_memory();
        run(t);
        t->board->finished = 1;
        _exit(0);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return kvc_fail_errno(err, NULL, "starting a process");
    }
    bool in_time = wait_for_end(child, ends[0], WALL_TIMES * t->limit_s, &status);
    bool left = kill(-child, SIGKILL) == 0;
    close(ends[0]);
    judge(t->board, status, in_time, t->limit_s, row);
    if (left && row->verdict != KVC_CHECK_FAILED) {
        row->verdict = KVC_CHECK_FAILED;
        snprintf(row->text, sizeof(row->text), "it started processes and left them running");
    }
    return KVC_OK;
}

/* ---- in the child: what it says ---- */

void kvc_trial_fails(struct kvc_trials *t, const char *fmt, ...)
{
    va_list args;
    if (t->board->verdict == KVC_CHECK_FAILED)
        return;
    t->board->verdict = KVC_CHECK_FAILED;
    va_start(args, fmt);
    vsnprintf(t->board->text, sizeof(t->board->text), fmt, args);
    va_end(args);
}

void kvc_trial_skips(struct kvc_trials *t, const char *fmt, ...)
{
    va_list args;
    t->board->verdict = KVC_CHECK_SKIPPED;
    va_start(args, fmt);
    vsnprintf(t->board->text, sizeof(t->board->text), fmt, args);
    va_end(args);
}

void kvc_trial_stage(struct kvc_trials *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(t->board->stage, sizeof(t->board->stage), fmt, args);
    va_end(args);
}

/* ---- the whole ---- */

static enum kvc_status make_workloads(struct kvc_trials *t, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    t->workload = kvc_calloc(kvc_workloads(), sizeof(*t->workload));
    if (!t->workload)
        return kvc_fail_nomem(err);
    while (t->n_workloads < kvc_workloads() && st == KVC_OK) {
        st = kvc_workload_make(&t->workload[t->n_workloads], t->n_workloads, err);
        t->n_workloads += st == KVC_OK;
    }
    return st;
}

/* Whether hits say how good a policy of the kind is. */
static bool is_scored(uint32_t kind)
{
    return kind == KVC_POLICY_EVICTION || kind == KVC_POLICY_ADMISSION;
}

static struct kvc_check_row *next_row(struct kvc_policy_check *out, const struct kvc_trial *trial)
{
    struct kvc_check_row *row = &out->row[out->n_rows++];
    *row = (struct kvc_check_row){.name = trial->name, .what = trial->what};
    return row;
}

static enum kvc_status all_checks(struct kvc_trials *t, struct kvc_policy_check *out,
                                  struct kvc_error *err)
{
    const struct kvc_trial *trial = kvc_trial_table;
    struct kvc_trial_board *b = t->board;
    enum kvc_status st = in_child(t, trial->run, next_row(out, trial), err);
    out->passed = st == KVC_OK && out->row[0].verdict == KVC_CHECK_PASSED;
    if (!out->passed)
        return st;
    out->kind = b->kind;
    out->closed = b->kind == KVC_POLICY_EVICTION && (b->flags & KVC_EVICT_CLOSED);
    snprintf(out->path, sizeof(out->path), "%s", b->path);
    snprintf(out->name, sizeof(out->name), "%s", b->name);
    snprintf(out->summary, sizeof(out->summary), "%s", b->summary);
    if (is_scored(out->kind))
        st = make_workloads(t, err);
    for (trial++; trial->name && st == KVC_OK; trial++) {
        if (trial->kind != out->kind ||
            (t->only && strcmp(trial->name, "rules") != 0 && strcmp(trial->name, t->only) != 0))
            continue;
        st = in_child(t, trial->run, next_row(out, trial), err);
        out->passed = out->passed && out->row[out->n_rows - 1].verdict != KVC_CHECK_FAILED;
    }
    return st;
}

/* Figures mean nothing of a policy that breaks rules. */
static enum kvc_status measure(struct kvc_trials *t, struct kvc_policy_check *out,
                               struct kvc_error *err)
{
    static const struct kvc_trial scores = {.name = "scores", .what = "bundled workloads"};
    struct kvc_check_row *row = next_row(out, &scores);
    enum kvc_status st = in_child(t, kvc_trial_scores, row, err);
    if (st == KVC_OK && row->verdict == KVC_CHECK_PASSED)
        st = in_child(t, kvc_trial_cost, row, err);
    out->passed = row->verdict == KVC_CHECK_PASSED;
    if (st == KVC_OK && out->passed) {
        out->n_rows--; /* the figures say it */
        st = kvc_trial_compare(t, out, err);
    }
    return st;
}

enum kvc_status kvc_policy_check(const char *spec, const char *only, double limit_s,
                                 struct kvc_policy_check *out, struct kvc_error *err)
{
    struct kvc_policy_check found = {0};
    struct kvc_trials t = {.spec = spec, .only = only, .limit_s = limit_s > 0 ? limit_s : LIMIT_S};
    void *shared = mmap(NULL, sizeof(*t.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
    if (shared == MAP_FAILED)
        return kvc_fail_errno(err, NULL, "sharing memory");
    t.board = shared;
    snprintf(found.path, sizeof(found.path), "%s", spec);
    enum kvc_status st = all_checks(&t, &found, err);
    if (st == KVC_OK && found.passed && is_scored(found.kind) && !only)
        st = measure(&t, &found, err);
    for (size_t i = 0; i < t.n_workloads; i++)
        kvc_workload_clear(&t.workload[i]);
    kvc_free(t.workload);
    munmap(shared, sizeof(*t.board));
    if (st == KVC_OK)
        *out = found;
    return st;
}
