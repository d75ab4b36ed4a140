/* SPDX-License-Identifier: Apache-2.0
 * A command that calls plug-ins, in a process of its own: what they do to it is told in words. This
 * one sees where they are (policies/plugins/watch.h), and ends the run of one that does not come
 * back. */
#include "base/units.h"
#include "cli/internal.h"
#include "policies/plugins/guest.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 10 /* of CPU and of clock time, in one hook at one request */
#define LIMIT_VARIABLE "KVCAST_HOOK_LIMIT"
#define ASLEEP 10 /* so many limits of clock time end a hook that takes no CPU time: it waits */
#define LOOK_MS 250
#define MOST_ROUNDS 1000 /* of ending what is left */

struct watcher {
    struct kvc_watch *board;
    double limit_s;
    struct { /* by slot: where it was when it last moved, and when that was */
        uint32_t hook;
        uint64_t request;
        double cpu_s, clock_s;
    } last[KVC_WATCH_SLOTS];
    const struct kvc_watch_slot *stuck;
};

bool kvc_cli_names_plugin(int n, char **words)
{
    for (int i = 0; i < n; i++)
        for (const char *so = words[i]; (so = strstr(so, ".so")) != NULL;) {
            so += strlen(".so");
            if (!*so || strchr(":+,", *so))
                return true;
        }
    return false;
}

/* ---- the watch ---- */

static double seconds(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec : 0;
}

static double child_cpu_s(pid_t child)
{
    clockid_t clock;
    return clock_getcpuclockid(child, &clock) == 0 ? seconds(clock) : 0;
}

/* The CPU time as long by the clock: with threads it goes faster. */
static bool is_over(const struct watcher *w, double cpu_s, double clock_s)
{
    return (cpu_s > w->limit_s && clock_s > w->limit_s) || clock_s > ASLEEP * w->limit_s;
}

/* Whether some plug-in is in the hook and at the request where it was a limit ago. */
static bool is_stuck(struct watcher *w, pid_t child)
{
    double cpu_s = child_cpu_s(child), clock_s = seconds(CLOCK_MONOTONIC);
    for (size_t i = 0; i < KVC_WATCH_SLOTS; i++) {
        const struct kvc_watch_slot *slot = &w->board->slot[i];
        uint32_t hook = slot->place.hook;
        uint64_t request = slot->place.request;
        bool moved = hook == KVC_HOOK_NONE || hook != w->last[i].hook ||
                     request != w->last[i].request;
        if (moved) {
            w->last[i].hook = hook;
            w->last[i].request = request;
            w->last[i].cpu_s = cpu_s;
            w->last[i].clock_s = clock_s;
        } else if (is_over(w, cpu_s - w->last[i].cpu_s, clock_s - w->last[i].clock_s)) {
            w->stuck = slot;
            return true;
        }
    }
    return false;
}

/* Until the child has ended, or is made to. */
static void wait_for_end(struct watcher *w, pid_t child, int end, int *status)
{
    pid_t got;
    while (w->board && (got = waitpid(child, status, WNOHANG)) <= 0) {
        if (got < 0 && errno != EINTR)
            return;
        struct pollfd p = {.fd = end, .events = POLLIN};
        if (poll(&p, 1, LOOK_MS) > 0)
            break; /* it has closed its end */
        if (is_stuck(w, child))
            kill(child, SIGKILL);
        if (w->stuck)
            break;
    }
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
}

/* ---- what is told ---- */

/* The plug-in that was in a hook when all ended; of several nobody knows which. */
static const struct kvc_watch_slot *culprit(const struct watcher *w)
{
    const struct kvc_watch_slot *found = w->stuck;
    for (size_t i = 0; w->board && !w->stuck && i < KVC_WATCH_SLOTS; i++) {
        if (w->board->slot[i].place.hook == KVC_HOOK_NONE)
            continue;
        if (found)
            return NULL;
        found = &w->board->slot[i];
    }
    return found;
}

static int tell(const struct watcher *w, const char *what, const char *advice)
{
    const struct kvc_watch_slot *slot = culprit(w);
    char place[120];
    if (slot) {
        kvc_hook_where(&slot->place, place, sizeof(place));
        fprintf(stderr, "kvcast: %s: %s,%s: %s; %s\n", slot->path, slot->name, place, what, advice);
    } else {
        fprintf(stderr, "kvcast: %s, most likely in a plug-in; %s\n", what, advice);
    }
    return KVC_EXIT_FAILED;
}

static int judge(const struct watcher *w, int status, bool finished)
{
    static const char advice[] = "'kvcast policy check' tells in which hook, and at which request";
    char what[160];
    if (w->stuck) {
        snprintf(what, sizeof(what),
                 "it did not come back within %g s of CPU time, or %d times that by the clock "
                 "(an endless loop?)", w->limit_s, ASLEEP);
        return tell(w, what, "set " LIMIT_VARIABLE "=1m to give it more");
    }
    if (WIFEXITED(status) && finished)
        return WEXITSTATUS(status);
    if (WIFEXITED(status))
        return tell(w, "it ended the program", advice);
    int sig = WTERMSIG(status);
    if (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGABRT) {
        snprintf(what, sizeof(what), "it crashed (%s)", strsignal(sig));
        return tell(w, what, advice);
    }
    if (sig == SIGKILL)
        tell(w, "it was killed, by itself or because memory ran out", advice);
    signal(sig, SIG_DFL); /* as if it had come here */
    raise(sig);
    return KVC_EXIT_FAILED;
}

static void begin_watch(struct watcher *w)
{
    const char *limit = getenv(LIMIT_VARIABLE);
    uint64_t ns = 0;
    void *board = mmap(NULL, sizeof(*w->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0);
    w->board = board == MAP_FAILED ? NULL : board;
    w->limit_s = LIMIT_S;
    if (limit && kvc_parse_ns(limit, LIMIT_VARIABLE, &ns, NULL) == KVC_OK && ns)
        w->limit_s = (double)ns / 1e9;
    kvc_watch_begin(w->board);
}

/* ---- what is left behind ---- */

#ifdef __linux__
/* Processes that a plug-in started and that outlived the run are this one's children now. */
static size_t end_children(void)
{
    char path[64], text[4096];
    size_t ended = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    for (int round = 0; round < MOST_ROUNDS; round++) { /* theirs come to be ours, too */
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
        if (f)
            fclose(f);
        text[n] = '\0';
        if (!n)
            break;
        char *end = text;
        for (long pid; (pid = strtol(end, &end, 10)) > 0 && *end == ' '; ended++) {
            kill((pid_t)pid, SIGKILL);
            waitpid((pid_t)pid, NULL, 0); /* no other: its own are ours from now on, and live */
        }
    }
    return ended;
}
#endif

static void end_what_is_left(void)
{
#ifdef __linux__
    size_t ended = end_children();
    if (ended)
        fprintf(stderr, "kvcast: a plug-in had left %zu process%s behind: ended\n", ended,
                ended == 1 ? "" : "es");
#endif
}

/* ---- stdout ---- */

int kvc_cli_keep_stdout(void)
{
    int ours = fflush(stdout) == 0 ? dup(STDOUT_FILENO) : -1;
    if (ours >= 0)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    return ours;
}

void kvc_cli_take_stdout(int ours)
{
    if (ours < 0)
        return;
    fflush(stdout); /* what a plug-in has printed so far */
    dup2(ours, STDOUT_FILENO);
    close(ours);
}

int kvc_cli_apart(struct kvc_cli *cli, int (*run)(struct kvc_cli *cli))
{
    struct watcher watcher = {0};
    int ends[2], status = 0;
    char said = 0;
    fflush(NULL);
    if (pipe(ends) != 0)
        return run(cli);
    begin_watch(&watcher);
#ifdef __linux__
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
    pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return run(cli);
    }
    if (child == 0) {
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
        close(ends[0]);
        int rc = run(cli);
        while (write(ends[1], "f", 1) < 0 && errno == EINTR)
            ;
        close(ends[1]);
        return rc; /* and ends as any other */
    }
    close(ends[1]);
    wait_for_end(&watcher, child, ends[0], &status);
    bool finished = read(ends[0], &said, 1) == 1;
    close(ends[0]);
    end_what_is_left();
    int rc = judge(&watcher, status, finished);
    if (watcher.board)
        munmap(watcher.board, sizeof(*watcher.board));
    return rc;
}
