/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"
#include "base/signals.h"
#include "reports/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define SVG_LIMIT (16u << 20)

const struct kvc_colour kvc_colours[] = {
    {"ink", "#1b1f24", "#e6e9ed"},    {"muted", "#59636e", "#9aa4af"},
    {"grid", "#d9dee3", "#363c44"},   {"blue", "#0068a3", "#5ab4f0"},
    {"orange", "#bf4f00", "#ff9a56"}, {"green", "#00795a", "#3fc79d"},
    {"purple", "#94467d", "#d99bc8"}, {"gold", "#876000", "#e0b13c"},
};
const size_t kvc_n_colours = sizeof(kvc_colours) / sizeof(kvc_colours[0]);

const char *kvc_colour_light(const char *name)
{
    for (size_t i = 0; i < kvc_n_colours; i++) {
        if (strcmp(kvc_colours[i].name, name) == 0)
            return kvc_colours[i].light;
    }
    return "#000000";
}

/* ---- running ---- */

static int spawn(pid_t *pid, const char *folder)
{
    char path[4096], home[4200];
    const char *search = getenv("PATH");
    char *const argv[] = {"gnuplot", "-d", "plots.gp", NULL};
    snprintf(path, sizeof(path), "PATH=%s", search ? search : "/usr/local/bin:/usr/bin:/bin");
    snprintf(home, sizeof(home), "HOME=%s", folder);
    char *const env[] = {path, home, "LC_ALL=C", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t hears; /* the signals that wait here */
    sigset_t none;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return rc;
    if ((rc = posix_spawnattr_init(&hears))) {
        posix_spawn_file_actions_destroy(&actions);
        return rc;
    }
    sigemptyset(&none);
    rc = posix_spawnattr_setsigmask(&hears, &none);
    if (!rc)
        rc = posix_spawnattr_setflags(&hears, POSIX_SPAWN_SETSIGMASK);
    if (!rc)
        rc = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!rc)
        rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_addopen(&actions, 2, "errors", O_WRONLY | O_CREAT, 0600);
    if (!rc)
        rc = posix_spawnp(pid, "gnuplot", &actions, &hears, argv, env);
    posix_spawnattr_destroy(&hears);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* True when the child ended by itself with status 0. */
static bool wait_for(pid_t pid)
{
    int status = 0;
    const struct timespec nap = {0, 5000000};
    for (int waited = 0; waited < PATIENCE_MS && !kvc_signals_waiting(); waited += 5) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (got < 0 && errno != EINTR)
            return errno == ECHILD; /* the program ignores SIGCHLD: judge by the files */
        nanosleep(&nap, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return false;
}

static void first_error_line(const char *folder, char *out, size_t size)
{
    char name[4200], line[160];
    snprintf(out, size, "gnuplot failed");
    snprintf(name, sizeof(name), "%s/errors", folder);
    FILE *f = fopen(name, "r");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[strspn(line, " ^")] != '\0' && strstr(line, "line")) {
            snprintf(out, size, "gnuplot failed: %s", line);
            break;
        }
    }
    if (f)
        fclose(f);
}

static void remove_folder(const char *folder, size_t n)
{
    char name[4200];
    for (size_t i = 0; i < n + 2; i++) {
        if (i < n)
            snprintf(name, sizeof(name), "%s/%zu.svg", folder, i);
        else
            snprintf(name, sizeof(name), "%s/%s", folder, i == n ? "plots.gp" : "errors");
        unlink(name);
    }
    rmdir(folder);
}

static enum kvc_status collect(const char *folder, struct kvc_text *outputs, size_t n,
                               char *why_not, size_t why_size, struct kvc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char name[4200], *svg;
        size_t size;
        struct kvc_error ignored;
        snprintf(name, sizeof(name), "%s/%zu.svg", folder, i);
        enum kvc_status status = kvc_file_get(name, SVG_LIMIT, &svg, &size, &ignored);
        if (status == KVC_ERR_NOMEM)
            return kvc_fail_nomem(err);
        if (status != KVC_OK) {
            snprintf(why_not, why_size, "gnuplot drew only %zu of %zu pictures", i, n);
            return KVC_OK;
        }
        kvc_svg_clean(&outputs[i], svg);
        kvc_free(svg);
        if (outputs[i].failed)
            return kvc_fail_nomem(err);
    }
    return KVC_OK;
}

static enum kvc_status draw(const struct kvc_text *script, struct kvc_text *outputs, size_t n,
                            char *why_not, size_t why_size, struct kvc_error *err)
{
    const char *tmp = getenv("TMPDIR");
    char folder[4096], name[4200];
    pid_t pid;
    why_not[0] = '\0';
    if (!tmp || !*tmp || strlen(tmp) > 4000)
        tmp = "/tmp";
    snprintf(folder, sizeof(folder), "%s/kvcast-XXXXXX", tmp);
    if (!mkdtemp(folder)) {
        snprintf(why_not, why_size, "no temporary folder could be made in %.100s", tmp);
        return KVC_OK;
    }
    snprintf(name, sizeof(name), "%s/plots.gp", folder);
    struct kvc_error ignored;
    enum kvc_status status = KVC_OK;
    int rc;
    if (kvc_outfile_put(name, script->buf ? script->buf : "", script->len, &ignored) != KVC_OK)
        snprintf(why_not, why_size, "%.150s", ignored.text);
    else if ((rc = spawn(&pid, folder)) != 0)
        snprintf(why_not, why_size, "%s",
                 rc == ENOENT ? "gnuplot is not installed" : "gnuplot could not be started");
    else if (!wait_for(pid))
        first_error_line(folder, why_not, why_size);
    else
        status = collect(folder, outputs, n, why_not, why_size, err);
    remove_folder(folder, n);
    return status;
}

/* A signal that would end the program waits until the folder is gone; gnuplot hears it at once. */
enum kvc_status kvc_gnuplot_run(const struct kvc_text *script, struct kvc_text *outputs, size_t n,
                                char *why_not, size_t why_size, struct kvc_error *err)
{
    sigset_t before;
    kvc_signals_hold(&before);
    enum kvc_status status = draw(script, outputs, n, why_not, why_size, err);
    kvc_signals_release(&before);
    return status;
}

/* ---- cleaning ---- */

/* "rgb( 12,  3,255)" at s: its length and the named colour, else 0. */
static size_t match_colour(const char *s, const struct kvc_colour **out)
{
    unsigned r, g, b;
    int n = 0;
    if (sscanf(s, "rgb(%u ,%u ,%u )%n", &r, &g, &b, &n) != 3 || !n)
        return 0;
    for (size_t i = 0; i < kvc_n_colours; i++) {
        unsigned long hex = strtoul(kvc_colours[i].light + 1, NULL, 16);
        if (hex == (((unsigned long)r << 16) | (g << 8) | b)) {
            *out = &kvc_colours[i];
            return (size_t)n;
        }
    }
    return 0;
}

/* Length of what is dropped at s: comments to people and programs that the page does not need. */
static size_t match_dropped(const char *s)
{
    static const char *const spans[][2] = {{"<title>", "</title>"}, {"<desc>", "</desc>"},
                                           {"<defs>", "</defs>"},   {" id=\"", "\""},
                                           {" font-family=\"", "\""}};
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        size_t n = strlen(spans[i][0]);
        const char *end = strncmp(s, spans[i][0], n) == 0 ? strstr(s + n, spans[i][1]) : NULL;
        if (end)
            return (size_t)(end - s) + strlen(spans[i][1]);
    }
    if (strncmp(s, "<g ", 3) == 0) { /* gnuplot leaves many empty groups */
        const char *end = strchr(s, '>');
        end = end ? end + 1 + strspn(end + 1, " \t\n") : NULL;
        if (end && strncmp(end, "</g>", 4) == 0)
            return (size_t)(end - s) + 4;
    }
    return 0;
}

void kvc_svg_clean(struct kvc_text *out, const char *svg)
{
    const char *box = strstr(svg, "viewBox=\""), *s = box ? strchr(box, '>') : NULL;
    if (!s)
        return;
    size_t n = strcspn(box + 9, "\"");
    kvc_text_add(out, "<svg viewBox=\"");
    kvc_text_addn(out, box + 9, n);
    kvc_text_add(out, "\" role=\"img\">");
    const char *from = ++s;
    while (*s) {
        const struct kvc_colour *colour = NULL;
        size_t colour_n = *s == 'r' ? match_colour(s, &colour) : 0;
        size_t drop = colour_n ? colour_n : *s == '<' || *s == ' ' ? match_dropped(s) : 0;
        if (!drop && *s == '\n' && (s[1] == '\n' || s[1] == '\t'))
            drop = 1;
        if (!drop) {
            s++;
            continue;
        }
        kvc_text_addn(out, from, (size_t)(s - from));
        if (colour)
            kvc_text_addf(out, "var(--%s,%s)", colour->name, colour->light);
        s += drop;
        from = s;
    }
    kvc_text_add(out, from);
}

/* ---- all pictures ---- */

enum kvc_status kvc_plot_draw(const struct kvc_text *scripts, struct kvc_text *pictures, size_t n,
                              char *why_not, size_t why_size, struct kvc_error *err)
{
    struct kvc_text script = {0}, drawn[KVC_PLOT_MOST];
    size_t k = 0;
    enum kvc_status status = KVC_OK;
    memset(drawn, 0, sizeof(drawn));
    why_not[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        script.failed |= scripts[i].failed;
        if (!scripts[i].len)
            continue;
        kvc_text_addf(&script, "set output '%zu.svg'\n", k++);
        kvc_text_addn(&script, scripts[i].buf, scripts[i].len);
    }
    kvc_text_add(&script, "set output\n");
    if (script.failed)
        status = kvc_fail_nomem(err);
    else if (k)
        status = kvc_gnuplot_run(&script, drawn, k, why_not, why_size, err);
    bool use = status == KVC_OK && !why_not[0];
    k = 0;
    for (size_t i = 0; i < n; i++) {
        if (!scripts[i].len)
            continue;
        if (use)
            pictures[i] = drawn[k++];
        else
            kvc_text_clear(&drawn[k++]);
    }
    kvc_text_clear(&script);
    return status;
}

enum kvc_status kvc_plots_draw(struct kvc_plots *plots, const struct kvc_result *result,
                               const struct kvc_findings *findings, struct kvc_error *err)
{
    int heights[KVC_PLOTS] = {400, 400, 450, 62, 390};
    struct kvc_text scripts[2 * KVC_PLOTS], pictures[2 * KVC_PLOTS];
    memset(plots, 0, sizeof(*plots));
    memset(scripts, 0, sizeof(scripts));
    memset(pictures, 0, sizeof(pictures));
    for (uint32_t i = 0, links = 0; i < result->n_series && links < KVC_PLOT_MAX_LINKS; i++) {
        if (strncmp(result->series[i].name, "link:", 5) == 0 && result->series[i].n) {
            heights[KVC_PLOT_LINKS] += 105;
            links++;
        }
    }
    for (unsigned i = 0; i < 2 * KVC_PLOTS; i++)
        if (!kvc_plot_script(&scripts[i], (enum kvc_plot)(i / 2), i % 2 ? 370 : 720,
                             heights[i / 2], result, findings) && !scripts[i].failed)
            kvc_text_clear(&scripts[i]);
    enum kvc_status status = kvc_plot_draw(scripts, pictures, 2 * KVC_PLOTS, plots->why_not,
                                           sizeof(plots->why_not), err);
    plots->drawn = status == KVC_OK && !plots->why_not[0];
    for (unsigned i = 0; i < 2 * KVC_PLOTS; i++) {
        *(i % 2 ? &plots->narrow[i / 2] : &plots->wide[i / 2]) = pictures[i];
        kvc_text_clear(&scripts[i]);
    }
    return status;
}

void kvc_plots_clear(struct kvc_plots *plots)
{
    for (size_t i = 0; i < KVC_PLOTS; i++) {
        kvc_text_clear(&plots->wide[i]);
        kvc_text_clear(&plots->narrow[i]);
    }
}
