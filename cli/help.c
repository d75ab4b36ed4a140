/* SPDX-License-Identifier: Apache-2.0
 * Help and the manual page, both made from the tables that also parse the command line. */
#include "cli/internal.h"

#include "base/units.h"
#include "sim/scenario/scenario.h"

#include <string.h>

#define WIDTH 100

/* Words of text from column on, wrapped; returns with the line ended. */
static void wrap(FILE *out, const char *text, int indent, int column)
{
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (n && column > indent && column + (int)n + 1 > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        if (n) {
            bool space = column > indent;
            fprintf(out, "%s%.*s", space ? " " : "", (int)n, text);
            column += (int)n + (space ? 1 : 0);
        }
        text += n;
        if (*text == '\n') {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        text += *text != '\0';
    }
    fputc('\n', out);
}

static void option_line(FILE *out, const char *head, const char *help, const char *default_text)
{
    char text[1024];
    int n = fprintf(out, "  %s", head);
    if (n > 34)
        fprintf(out, "\n%36s", "");
    else
        fprintf(out, "%*s", 36 - n, "");
    if (default_text && default_text[0] == '(') /* "(words)" of a scenario key */
        snprintf(text, sizeof(text), "%s [%.*s]", help, (int)strlen(default_text) - 2,
                 default_text + 1);
    else if (default_text && default_text[0])
        snprintf(text, sizeof(text), "%s [%s]", help, default_text);
    else
        snprintf(text, sizeof(text), "%s", help);
    wrap(out, text, 36, 36);
}

static void option_head(const struct kvc_cli_option *o, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s%s", o->name[1] ? "--" : "-", o->name, o->arg ? " " : "",
             o->arg ? o->arg : "");
}

static void key_head(const struct kvc_scenario_key *k, char *buf, size_t size)
{
    if (k->flag && kvc_name_equal(k->flag, k->name))
        snprintf(buf, size, "--%s %s", k->flag, k->arg);
    else if (k->flag)
        snprintf(buf, size, "--%s, --%s %s", k->flag, k->name, k->arg);
    else
        snprintf(buf, size, "--%s %s", k->name, k->arg);
}

#define LISTED 9

/* The help of a key with the names it takes, when they are few. */
static void key_help(const struct kvc_scenario_key *k, char *buf, size_t size)
{
    const char *const *list = k->choices ? k->choices : k->names ? k->names() : NULL;
    size_t n = 0, len;
    snprintf(buf, size, "%s", k->help);
    while (list && list[n])
        n++;
    if (n < 2 || n > LISTED)
        return;
    for (size_t i = 0; i < n; i++) {
        len = strlen(buf);
        snprintf(buf + len, size - len, "%s%s", i == 0 ? ": " : i + 1 < n ? ", " : " or ", list[i]);
    }
}

static void keys_of(FILE *out, const struct kvc_scenario_key *keys, size_t n,
                    void (*put)(FILE *out, const char *head, const char *help,
                                const char *default_text))
{
    char head[160], help[512];
    for (size_t i = 0; i < n; i++) {
        key_head(&keys[i], head, sizeof(head));
        key_help(&keys[i], help, sizeof(help));
        put(out, head, help, keys[i].default_text);
    }
}

static void options(FILE *out, const struct kvc_cli_option *o)
{
    char head[160];
    for (; o && o->name; o++) {
        option_head(o, head, sizeof(head));
        option_line(out, head, o->help, o->default_text);
    }
}

/* "mooncake, azure, .." */
static void format_names(char *buf, size_t size)
{
    const char *const *names = kvc_trace_formats();
    buf[0] = '\0';
    for (size_t i = 0; names[i]; i++) {
        size_t n = strlen(buf);
        snprintf(buf + n, size - n, "%s%s", i ? ", " : "", names[i]);
    }
}

#define FORMATS_NOTE "docs/formats/README.md says in one table what each can and cannot tell"

void kvc_cli_help_command(FILE *out, const struct kvc_cli_command *c)
{
    fprintf(out, "usage: kvcast %s %s\n\n", c->name, c->arguments);
    wrap(out, c->summary, 0, 0);
    if (c->description) {
        fputc('\n', out);
        wrap(out, c->description, 0, 0);
    }
    if (c->options && c->options[0].name) {
        fprintf(out, "\nOptions\n");
        options(out, c->options);
    }
    if (c->log_formats) {
        char names[1024];
        format_names(names, sizeof(names));
        fprintf(out, "\nFormats of logs (" FORMATS_NOTE ")\n  ");
        wrap(out, names, 2, 2);
    }
    if (c->scenario_keys) {
        size_t n;
        const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
        fprintf(out, "\nScenario keys (in a scenario file they are nested JSON keys)\n");
        keys_of(out, keys, n, option_line);
        keys = kvc_scenario_tenant_keys(&n);
        keys_of(out, keys, n, option_line);
    }
    fprintf(out, "\nCommon options\n");
    options(out, kvc_cli_common);
}

void kvc_cli_help_program(FILE *out)
{
    fprintf(out, "usage: kvcast COMMAND [ARGUMENTS] [OPTIONS]\n\n"
                 "Forecasts what a KV-cache hierarchy does for a given LLM traffic: hit-rate\n"
                 "bounds, time to first token and cost per token, from a request log.\n\n"
                 "Commands ('kvcast COMMAND --help' tells more)\n");
    for (const struct kvc_cli_command *const *c = kvc_cli_commands(); *c; c++) {
        int n = fprintf(out, "  %s", (*c)->name);
        fprintf(out, "%*s", 14 - n, "");
        wrap(out, (*c)->summary, 14, 14);
    }
    fprintf(out, "\nCommon options\n");
    options(out, kvc_cli_common);
    fprintf(out, "\nExit codes: 0 fine, 1 the run failed, 2 wrong usage, 3 bad input\n");
}

/* ---- the manual page ---- */

/* Text for roff: backslashes and hyphens escaped, no line beginning with a control character. */
static void roff(FILE *out, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        line_start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\n' && text[1] == '\n')
            fputs("\n.PP", out);
        else
            fputc(*text, out);
    }
}

static void roff_item(FILE *out, const char *head, const char *help, const char *default_text)
{
    fputs(".TP\n.B ", out);
    roff(out, head);
    fputc('\n', out);
    roff(out, help);
    if (default_text && default_text[0] == '(') {
        fputs(" (default: ", out);
        roff(out, default_text + 1);
    } else if (default_text && default_text[0]) {
        fputs(" (default: ", out);
        roff(out, default_text);
        fputc(')', out);
    }
    fputc('\n', out);
}

static void roff_options(FILE *out, const struct kvc_cli_option *o)
{
    char head[160];
    for (; o && o->name; o++) {
        option_head(o, head, sizeof(head));
        roff_item(out, head, o->help, o->default_text);
    }
}

static void roff_command(FILE *out, const struct kvc_cli_command *c)
{
    fputs(".SS kvcast ", out);
    roff(out, c->name);
    fputc(' ', out);
    roff(out, c->arguments);
    fputc('\n', out);
    roff(out, c->summary);
    fputs(".\n", out);
    if (c->description) {
        fputs(".PP\n", out);
        roff(out, c->description);
        fputc('\n', out);
    }
    roff_options(out, c->options);
    if (c->log_formats) {
        char names[1024];
        format_names(names, sizeof(names));
        fputs(".PP\nFormats of logs (" FORMATS_NOTE "):\n", out);
        roff(out, names);
        fputs(".\n", out);
    }
    if (c->scenario_keys)
        fputs(".PP\nEvery scenario key below is an option too.\n", out);
}

static const char manual_head[] =
    ".SH NAME\nkvcast \\- forecast what a KV\\-cache hierarchy does for LLM traffic\n"
    ".SH SYNOPSIS\n.B kvcast\n.I COMMAND\n.RI [ ARGUMENTS ]\n.RI [ OPTIONS ]\n"
    ".SH DESCRIPTION\n"
    "Reads a request log, replays it through modelled GPU memory, DRAM, NVMe and shared remote\n"
    "tiers with a real engine's scheduler, and reports the hit\\-rate ceiling and what is reached\n"
    "of it, time to first token and cost per token.\n.PP\n"
    "A trace argument is a log in any known format (plain, .zst, .gz, \\- for standard input) or\n"
    "a .kvt that \\fBkvcast import\\fR wrote. Sizes take units (80GiB, 512GB, 25GB/s, 400Gb/s,\n"
    "150us, 2h); a bare number for a quantity that has a unit is refused.\n"
    ".SH COMMANDS\n";

static const char manual_tail[] =
    ".SH EXIT STATUS\n.TP\n.B 0\nfine\n.TP\n.B 1\nthe run failed\n.TP\n.B 2\nwrong usage\n"
    ".TP\n.B 3\nbad input\n";

void kvc_cli_manual(FILE *out)
{
    size_t n;
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    fprintf(out, ".\\\" Made by 'kvcast --man' from the program's tables; do not edit.\n"
                 ".TH KVCAST 1 \"\" \"kvcast %s\" \"User Commands\"\n", kvc_version());
    fputs(manual_head, out);
    for (const struct kvc_cli_command *const *c = kvc_cli_commands(); *c; c++)
        roff_command(out, *c);
    fputs(".SH COMMON OPTIONS\n", out);
    roff_options(out, kvc_cli_common);
    fputs(".SH SCENARIO\nA scenario is a JSON file, // comments allowed. Each key is also an "
          "option:\n\\fB{\"tiers\": {\"dram\": {\"capacity\": \"512GiB\"}}}\\fR is\n"
          "\\fB\\-\\-tiers.dram.capacity 512GiB\\fR. Unknown keys are errors.\n", out);
    keys_of(out, keys, n, roff_item);
    keys = kvc_scenario_tenant_keys(&n);
    keys_of(out, keys, n, roff_item);
    fputs(manual_tail, out);
}
