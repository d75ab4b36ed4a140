/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/text/break_spans.h"

#include <string.h>

#define WORDS 6     /* that may differ in one place: "Monday, 2 March 2026 at 08:15" has six */
#define LONGEST 256 /* bytes of one: a signed URL or a token is hardly longer */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alnum(char c)
{
    return is_digit(c) || is_letter(c);
}

static bool in_word(char c)
{
    return is_digit(c) || is_letter(c) || c == '_' || c == '-' || c == ':' || c == '.' ||
           c == '+' || c == '/' || (unsigned char)c >= 0x80;
}

/* The end of the word at or behind at. */
static size_t word_end(const char *text, size_t n, size_t at)
{
    size_t from = at;
    while (at < n && at - from < LONGEST && in_word(text[at]))
        at++;
    return at;
}

static size_t next_word(const char *text, size_t n, size_t at)
{
    while (at < n && !in_word(text[at]))
        at++;
    return at;
}

static size_t alike(const struct kvc_break_spans *s, size_t i, size_t j)
{
    size_t k = 0;
    while (i + k < s->n && j + k < s->old_n && s->text[i + k] == s->old[j + k])
        k++;
    return k;
}

/* Texts that end alike count from less than otherwise. */
static bool enough(const struct kvc_break_spans *s, size_t i, size_t j, size_t k)
{
    return k >= KVC_BREAK_ALIKE || (k > 0 && i + k == s->n && j + k == s->old_n);
}

size_t kvc_break_pass(struct kvc_break_spans *s, struct kvc_break_value *value)
{
    size_t begin = s->at, old_begin = s->old_at;
    while (begin > 0 && old_begin > 0 && s->at - begin < LONGEST && in_word(s->text[begin - 1])) {
        begin--;
        old_begin--;
    }
    size_t end[WORDS], old_end[WORDS];
    for (size_t w = 0; w < WORDS; w++) {
        end[w] = word_end(s->text, s->n, w ? next_word(s->text, s->n, end[w - 1]) : s->at);
        old_end[w] = word_end(s->old, s->old_n,
                              w ? next_word(s->old, s->old_n, old_end[w - 1]) : s->old_at);
    }
    for (size_t sum = 0; sum <= 2 * (WORDS - 1); sum++) {
        for (size_t a = 0; a <= sum && a < WORDS; a++) {
            size_t b = sum - a;
            if (b >= WORDS)
                continue;
            size_t k = alike(s, end[a], old_end[b]);
            if (!enough(s, end[a], old_end[b], k))
                continue;
            *value = (struct kvc_break_value){s->text + begin, s->old + old_begin,
                                              end[a] - begin, old_end[b] - old_begin};
            s->at = end[a] + k;
            s->old_at = old_end[b] + k;
            return k;
        }
    }
    return 0;
}

/* ---- what it looks like ---- */

static bool has_word(const char *text, size_t n, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= n; i++) {
        size_t k = 0;
        while (k < len && (text[i + k] | 0x20) == word[k])
            k++;
        if (k == len && (i == 0 || !is_alnum(text[i - 1])) &&
            (i + len == n || !is_alnum(text[i + len])))
            return true;
    }
    return false;
}

static bool names_a_day(const char *text, size_t n)
{
    static const char *const words[] = {
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mon",
        "tue", "wed", "thu", "fri", "sat", "sun", "january", "february", "march", "april", "june",
        "july", "august", "september", "october", "november", "december", "jan", "feb", "mar",
        "apr", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "gmt", "utc", "am", "pm" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (has_word(text, n, words[i]))
            return true;
    return false;
}

/* "8:15", "2026-03-02", "02/03/2026", or the seconds, ms, us or ns since 1970 of 2001 to 2286. */
static bool is_clock(const char *text, size_t n)
{
    size_t digits = 0, whole = 0, colons = 0, dashes = 0;
    while (whole < n && is_digit(text[whole]))
        whole++;
    for (size_t i = 0; i < n; i++) {
        bool between = i > 0 && i + 1 < n && is_digit(text[i - 1]) && is_digit(text[i + 1]);
        digits += is_digit(text[i]);
        colons += text[i] == ':' && between;
        dashes += (text[i] == '-' || text[i] == '/') && between;
    }
    bool plain = whole == n || (digits + 1 == n && text[whole] == '.');
    if (plain && text[0] == '1' && (whole == 10 || whole == 13 || whole == 16 || whole == 19))
        return true;
    return digits >= 2 && (colons > 0 || dashes == 2) && digits <= 20;
}

static bool is_id(const char *text, size_t n)
{
    size_t digits = 0, letters = 0, hex = 0, others = 0;
    for (size_t i = 0; i < n; i++) {
        bool d = is_digit(text[i]), l = is_letter(text[i]);
        digits += d;
        letters += l;
        hex += d || (l && (text[i] | 0x20) <= 'f');
        others += !d && !l && text[i] != '-' && text[i] != '_';
    }
    if (others || n < 8)
        return false;
    return (digits >= 2 && letters >= 2) || (hex == n && digits && n >= 16) || digits >= 12;
}

static bool is_number(const char *text, size_t n)
{
    size_t digits = 0, others = 0;
    for (size_t i = 0; i < n; i++) {
        digits += is_digit(text[i]);
        others += !is_digit(text[i]) && !strchr(".,+-/ ", text[i]);
    }
    return digits && !others;
}

enum kvc_break_kind kvc_break_classify(const char *text, size_t n)
{
    size_t from = 0;
    bool number = is_number(text, n), day = names_a_day(text, n);
    for (size_t i = 0; i <= n; i++) {
        if (i < n && in_word(text[i]))
            continue;
        size_t end = i;
        while (end > from && (text[end - 1] == '.' || text[end - 1] == ':'))
            end--; /* of the sentence */
        if (end > from && is_clock(text + from, end - from))
            return KVC_BREAK_CLOCK;
        if (end > from && is_id(text + from, end - from) && !day)
            return KVC_BREAK_ID;
        from = i + 1;
    }
    return day ? KVC_BREAK_CLOCK : number ? KVC_BREAK_COUNTER : KVC_BREAK_WORD;
}
