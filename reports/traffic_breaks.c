/* SPDX-License-Identifier: Apache-2.0
 * What breaks caching: the message, role and offset where prompts diverge, found at import from
 * texts. Without texts text and HTML stay silent, and JSON says null. */
#include "reports/html.h"
#include "reports/reports.h"
#include "reports/traffic.h"
#include "traces/text/text_blocks.h"

#include <math.h>
#include <stdio.h>

#define WORTH_SAYING 0.005 /* of all input tokens: less is no reason to touch a prompt */

static const char *kind_name(uint8_t kind)
{
    static const char *const names[KVC_BREAK_KINDS] = {"content", "clock",  "id",
                                                       "counter", "toggle", "word"};
    return kind < KVC_BREAK_KINDS ? names[kind] : "content";
}

static const char *looks_like(uint8_t kind)
{
    static const char *const words[KVC_BREAK_KINDS] = {
        "prompts just differ", "a time or a date", "an id", "a number", "one of a few words",
        "words that differ" };
    return words[kind < KVC_BREAK_KINDS ? kind : 0];
}

static const char *part_name(uint8_t part)
{
    switch (part) {
    case KVC_PIECE_TOOLS:
        return "tool definitions";
    case KVC_PIECE_TOOL_CALL:
        return "tool call";
    case KVC_PIECE_TOOL_RESULT:
        return "tool result";
    case KVC_PIECE_NAME:
        return "name";
    case KVC_PIECE_MEDIA:
        return "media";
    default:
        return "text";
    }
}

/* "system message 0, byte 29" */
static struct kvc_str where(const struct kvc_break *b)
{
    struct kvc_str s;
    const char *role = kvc_role_name((enum kvc_role)b->role);
    bool tools = b->part == KVC_PIECE_TOOLS;
    if (b->message >= KVC_BREAK_MESSAGES)
        snprintf(s.s, sizeof(s.s), "later %s messages", role);
    else if (tools)
        snprintf(s.s, sizeof(s.s), "tool definitions, byte %u", b->offset);
    else if (b->role == KVC_ROLE_NONE)
        snprintf(s.s, sizeof(s.s), "the prompt, byte %u", b->offset);
    else
        snprintf(s.s, sizeof(s.s), "%s message %u, byte %u", role, b->message, b->offset);
    return s;
}

static struct kvc_str values_of(const struct kvc_break *b)
{
    struct kvc_str s = {"-"};
    if (b->kind != KVC_BREAK_CONTENT)
        snprintf(s.s, sizeof(s.s), b->values > 8 ? "over 8" : "%u", (unsigned)b->values);
    return s;
}

static uint64_t lost(const struct kvc_traffic *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->trace->n_breaks; i++)
        sum += f->trace->breaks[i].lost_tokens;
    return sum;
}

static double usd_of(const struct kvc_traffic *f, uint64_t tokens)
{
    return (double)tokens * f->usd_per_lost_token;
}

bool kvc_traffic_has_breaks(const struct kvc_traffic *f)
{
    return f->trace->compared_prompts > 0;
}

void kvc_traffic_breaks_summary(const struct kvc_traffic *f, char *buf, size_t size)
{
    uint64_t sum = lost(f);
    double share = kvc_ratio(sum, f->stats.input_tokens);
    if (share < WORTH_SAYING)
        snprintf(buf, size,
                 "%s prompts were compared with the one before: next to nothing (%s tokens) goes "
                 "on alike behind a piece of text that changes.",
                 kvc_fmt_count(f->trace->compared_prompts).s, kvc_fmt_count(sum).s);
    else
        snprintf(buf, size,
                 "%s tokens, %s of all input%s%s: they stand alike behind a piece of text that "
                 "changes, where no cache finds them. Move what changes to the end of the prompt.",
                 kvc_fmt_tokens((double)sum).s, kvc_fmt_percent(share).s,
                 f->usd_per_lost_token > 0 ? ", worth up to " : "",
                 f->usd_per_lost_token > 0 ? kvc_fmt_usd(usd_of(f, sum)).s : "");
}

/* Places where prompts just differ are many; only frequent ones say something. */
static bool shown(const struct kvc_traffic *f, const struct kvc_break *b)
{
    return b->lost_tokens || b->prompts * 50 >= f->trace->compared_prompts;
}

void kvc_traffic_breaks_finding(const struct kvc_traffic *f, char *buf, size_t size)
{
    uint64_t sum = lost(f);
    const struct kvc_break *b = f->trace->breaks;
    buf[0] = '\0';
    double share = kvc_ratio(sum, f->stats.input_tokens);
    if (share >= WORTH_SAYING)
        snprintf(buf, size,
                 "%s of the input tokens stand alike behind a piece of text that changes, the most "
                 "of them behind %s in %.47s: out of reach of every cache until what changes "
                 "moves to the end of the prompt%s%s.",
                 kvc_fmt_percent(share).s, looks_like(b->kind), where(b).s,
                 f->usd_per_lost_token > 0 ? ". That is worth up to " : "",
                 f->usd_per_lost_token > 0 ? kvc_fmt_usd(usd_of(f, sum)).s : "");
}

void kvc_traffic_breaks_text(struct kvc_text *t, const struct kvc_traffic *f)
{
    char line[300];
    bool priced = f->usd_per_lost_token > 0;
    if (!kvc_traffic_has_breaks(f))
        return;
    kvc_traffic_breaks_summary(f, line, sizeof(line));
    kvc_text_add(t, "\nWhat breaks caching\n");
    kvc_traffic_wrap(t, "  ", "  ", line);
    if (f->trace->n_breaks)
        kvc_text_addf(t, "\n  %-33s%-21s%9s%8s%13s%s\n", "prompts part at", "what changes",
                      "prompts", "values", "tokens lost", priced ? "      at most" : "");
    for (uint32_t i = 0; i < f->trace->n_breaks && i < 10; i++) {
        const struct kvc_break *b = &f->trace->breaks[i];
        if (!shown(f, b))
            continue;
        kvc_text_addf(t, "  %-33s%-21s%9s%8s%13s", where(b).s, looks_like(b->kind),
                      kvc_fmt_count(b->prompts).s, values_of(b).s,
                      kvc_fmt_count(b->lost_tokens).s);
        if (priced)
            kvc_text_addf(t, "%13s", kvc_fmt_usd(usd_of(f, b->lost_tokens)).s);
        kvc_text_add(t, "\n");
    }
}

void kvc_traffic_breaks_json(struct kvc_json *j, const struct kvc_traffic *f)
{
    if (!kvc_traffic_has_breaks(f)) {
        kvc_json_null(j, "breaks");
        return;
    }
    kvc_json_open_object(j, "breaks");
    kvc_json_u64(j, "compared_prompts", f->trace->compared_prompts);
    kvc_json_u64(j, "lost_tokens", lost(f));
    kvc_json_double(j, "lost_usd", f->usd_per_lost_token > 0 ? usd_of(f, lost(f)) : NAN);
    kvc_json_open_array(j, "places");
    for (uint32_t i = 0; i < f->trace->n_breaks; i++) {
        const struct kvc_break *b = &f->trace->breaks[i];
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "kind", kind_name(b->kind));
        kvc_json_string(j, "role", kvc_role_name((enum kvc_role)b->role));
        kvc_json_string(j, "part", part_name(b->part));
        if (b->message < KVC_BREAK_MESSAGES) {
            kvc_json_u64(j, "message", b->message);
            kvc_json_u64(j, "offset_bytes", b->offset);
        } else {
            kvc_json_null(j, "message");
            kvc_json_null(j, "offset_bytes");
        }
        kvc_json_u64(j, "prompts", b->prompts);
        if (b->kind == KVC_BREAK_CONTENT || b->values > 8)
            kvc_json_null(j, "values");
        else
            kvc_json_u64(j, "values", b->values);
        kvc_json_u64(j, "lost_tokens", b->lost_tokens);
        kvc_json_double(j, "lost_usd",
                        f->usd_per_lost_token > 0 ? usd_of(f, b->lost_tokens) : NAN);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}

void kvc_traffic_breaks_html(struct kvc_text *t, const struct kvc_traffic *f)
{
    uint64_t sum = lost(f);
    bool priced = f->usd_per_lost_token > 0;
    if (!f->trace->n_breaks)
        return;
    kvc_html_table(t, priced ? "Prompts part at|What changes|#Prompts|#Values|#Tokens lost|"
                               "#At most|"
                             : "Prompts part at|What changes|#Prompts|#Values|#Tokens lost|");
    for (uint32_t i = 0; i < f->trace->n_breaks && i < 10; i++) {
        const struct kvc_break *b = &f->trace->breaks[i];
        if (!shown(f, b))
            continue;
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, where(b).s);
        kvc_html_cell(t, looks_like(b->kind));
        kvc_html_number(t, kvc_fmt_count(b->prompts));
        kvc_html_number(t, values_of(b));
        kvc_html_number(t, kvc_fmt_count(b->lost_tokens));
        if (priced)
            kvc_html_number(t, kvc_fmt_usd(usd_of(f, b->lost_tokens)));
        kvc_html_bar(t, sum ? (double)b->lost_tokens / (double)sum : 0, "blue");
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
}
