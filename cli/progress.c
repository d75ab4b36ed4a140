/* SPDX-License-Identifier: Apache-2.0
 * One line on stderr with share, rate and time left, for anything longer than a second. */
#include "cli/internal.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void format_count(double v, char *buf, size_t size)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T"};
    size_t i = 0;
    for (; v >= 1000 && i < 4; i++)
        v /= 1000;
    snprintf(buf, size, v < 10 && i ? "%.1f%s" : "%.0f%s", v, prefix[i]);
}

static void show(struct kvc_cli *cli, const char *phase, uint64_t done, uint64_t total, double t)
{
    char rate[32], amount[32];
    double elapsed = t - cli->progress.start_s;
    double per_s = (double)done / elapsed;
    format_count(per_s, rate, sizeof(rate));
    format_count((double)done, amount, sizeof(amount));
    if (total && done && done <= total)
        fprintf(stderr, "\r\033[K%s: %.0f %%, %s/s, %.0f s left", phase,
                100.0 * (double)done / (double)total, rate, (double)(total - done) / per_s);
    else
        fprintf(stderr, "\r\033[K%s: %s, %s/s", phase, amount, rate);
    fflush(stderr);
    cli->progress.on_screen = true;
    cli->progress.shown_s = t;
}

static bool progress(void *user, const char *phase, uint64_t done, uint64_t total)
{
    struct kvc_cli *cli = user;
    double t = now_s();
    if (strncmp(cli->progress.phase, phase, sizeof(cli->progress.phase) - 1) != 0) {
        snprintf(cli->progress.phase, sizeof(cli->progress.phase), "%s", phase);
        cli->progress.start_s = t;
    }
    if (t - cli->progress.start_s >= 1.0 && t - cli->progress.shown_s >= 0.2)
        show(cli, phase, done, total, t);
    return true;
}

kvc_progress_fn kvc_cli_progress(struct kvc_cli *cli, void **user)
{
    bool wanted = cli->progress_mode > 0 || (cli->progress_mode == 0 && isatty(STDERR_FILENO));
    *user = cli;
    return wanted && !cli->quiet ? progress : NULL;
}

void kvc_cli_progress_clear(struct kvc_cli *cli)
{
    if (cli->progress.on_screen)
        fputs("\r\033[K", stderr);
    cli->progress.on_screen = false;
}
