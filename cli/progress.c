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

/* "1.2 GB". */
static void format_bytes(double v, char *buf, size_t size)
{
    char count[32];
    format_count(v, count, sizeof(count));
    size_t n = strlen(count);
    bool prefix = n && strchr("kMGT", count[n - 1]);
    snprintf(buf, size, "%.*s %.1sB", (int)(prefix ? n - 1 : n), count,
             prefix ? count + n - 1 : "");
}

static void format_time(double s, char *buf, size_t size)
{
    if (s < 99.5)
        snprintf(buf, size, "%.0f s", s);
    else if (s < 5400)
        snprintf(buf, size, "%.0f min", s / 60);
    else
        snprintf(buf, size, "%.1f h", s / 3600);
}

static void show(struct kvc_cli *cli, const char *phase, uint64_t done, uint64_t total, double t)
{
    char rate[32], amount[32], left[32], rows[96] = "";
    double elapsed = t - cli->progress.start_s;
    double per_s = (double)done / elapsed;
    bool reading = strcmp(phase, "reading") == 0, bytes = reading || !strcmp(phase, "writing");
    (bytes ? format_bytes : format_count)(per_s, rate, sizeof(rate));
    (bytes ? format_bytes : format_count)((double)done, amount, sizeof(amount));
    if (reading && cli->progress.rows) {
        char count[32], of_rows[32];
        format_count((double)cli->progress.rows, count, sizeof(count));
        format_count((double)cli->progress.rows / elapsed, of_rows, sizeof(of_rows));
        snprintf(rows, sizeof(rows), ", %s rows, %s rows/s", count, of_rows);
    }
    if (total && done && done <= total) {
        format_time((double)(total - done) / per_s, left, sizeof(left));
        fprintf(stderr, "\r\033[K%s: %.0f %%, %s/s%s, %s left", phase,
                100.0 * (double)done / (double)total, rate, rows, left);
    } else if (bytes) {
        fprintf(stderr, "\r\033[K%s: %s of an unknown size, %s/s%s", phase, amount, rate, rows);
    } else {
        fprintf(stderr, "\r\033[K%s: %s, %s/s", phase, amount, rate);
    }
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

/* ---- forecasts ---- */

static void print_estimate(struct kvc_cli *cli, const struct kvc_import_estimate *e)
{
    char read[32], rows[32], blocks[32], memory[32], out[32], file[32], left[48] = "";
    format_bytes((double)e->text_bytes, read, sizeof(read));
    format_count((double)e->requests_total, rows, sizeof(rows));
    format_count((double)e->blocks_total, blocks, sizeof(blocks));
    format_bytes((double)e->memory_total_bytes, memory, sizeof(memory));
    format_bytes((double)e->output_bytes_total, out, sizeof(out));
    format_bytes((double)e->file_total_bytes, file, sizeof(file));
    double elapsed = now_s() - cli->progress.start_s;
    kvc_cli_progress_clear(cli);
    if (e->total_bytes > e->done_bytes && e->done_bytes) {
        format_time(elapsed * (double)(e->total_bytes - e->done_bytes) / (double)e->done_bytes,
                    left, sizeof(left));
        fprintf(stderr, "kvcast: estimate after %s: %s requests, %s blocks, %s of memory, %s%s"
                "a trace of %s, %s left\n", read, rows, blocks, memory,
                e->file_total_bytes ? file : "",
                e->file_total_bytes ? " in temporary files, " : "", out, left);
    } else {
        fprintf(stderr, "kvcast: size of the log unknown; so far %s: %s requests, %s blocks, %s of "
                "memory%s%s%s, a trace of %s\n", read, rows, blocks, memory,
                e->file_total_bytes ? ", " : "", e->file_total_bytes ? file : "",
                e->file_total_bytes ? " in temporary files" : "", out);
    }
}

static void estimate(void *user, const struct kvc_import_estimate *e)
{
    struct kvc_cli *cli = user;
    if (!cli->progress.rows)
        cli->progress.start_s = now_s();
    cli->progress.rows = e->requests + 1;
    if (e->fresh)
        print_estimate(cli, e);
}

kvc_estimate_fn kvc_cli_estimate(struct kvc_cli *cli, void **user)
{
    *user = cli;
    return cli->progress_mode >= 0 && !cli->quiet ? estimate : NULL;
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
