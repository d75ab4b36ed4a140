/* SPDX-License-Identifier: Apache-2.0
 * Oniguruma's dialect (Ruby syntax, as the tokenizers library uses it) put into PCRE2's. Only what
 * is known to mean the same gets through; the rest is refused, never guessed. Blanks are spelled
 * out because PCRE2 counts U+180E as one, scripts because PCRE2 means their extensions. */
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS "\\p{Z}\\x{9}-\\x{d}\\x{85}"
#define DEPTH_MAX 64
#define LENGTH_MAX 16384

struct translation {
    const char *regex, *s; /* s: what comes next */
    struct kvc_text *out;
    char *why;
    bool caseless[DEPTH_MAX + 1]; /* of the open groups */
    unsigned depth;
    char before; /* the letter just passed, within a caseless group */
};

static bool refuse(const struct translation *t, const char *what)
{
    snprintf(t->why, 256, "%s is not supported (at byte %zu of \"%.100s\")", what,
             (size_t)(t->s - t->regex), t->regex);
    return false;
}

static bool in(const char *set, char c)
{
    return c && strchr(set, c);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool emit(struct translation *t, const char *text)
{
    kvc_text_add(t->out, text);
    return true;
}

/* A character that means itself. Some letters fold together with ligatures, as one character. */
static bool emit_literal(struct translation *t, uint32_t c, bool in_class)
{
    char lower = (char)(c | 0x20);
    if (t->caseless[t->depth] && !in_class) {
        if (c >= 0x80)
            return refuse(t, "a letter beyond ASCII in (?i:..)");
        if ((t->before == 's' && in("st", lower)) || (t->before == 'f' && in("fil", lower)))
            return refuse(t, "a pair of letters with a ligature in (?i:..)");
        t->before = lower;
    } else if (t->caseless[t->depth] && c >= 0x80) {
        return refuse(t, "a letter beyond ASCII in (?i:..)");
    }
    if (c < 0x80 && (is_digit((char)c) || is_letter((char)c)))
        kvc_text_addf(t->out, "%c", (int)c);
    else
        kvc_text_addf(t->out, "\\x{%x}", (unsigned)c);
    return true;
}

/* ---- escapes ---- */

static bool hex(struct translation *t, size_t digits, uint32_t *c)
{
    char text[9] = "";
    char *end;
    for (size_t i = 0; i < digits; i++) {
        if (!is_digit(t->s[i]) && !in("abcdefABCDEF", t->s[i]))
            return refuse(t, "this hexadecimal escape");
        text[i] = t->s[i];
    }
    *c = (uint32_t)strtoul(text, &end, 16);
    t->s += digits;
    if (*c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000) || *c == 0)
        return refuse(t, "an escape that is no character");
    return true;
}

/* \x41, \x{3042}, \u3042; t->s is behind the letter. */
static bool hex_escape(struct translation *t, char kind, uint32_t *c)
{
    if (kind == 'u')
        return hex(t, 4, c);
    if (*t->s != '{')
        return hex(t, 2, c) && (*c < 0x80 || refuse(t, "\\x with a byte beyond 7f"));
    size_t n = strcspn(++t->s, "}");
    if (n < 1 || n > 6 || t->s[n] != '}')
        return refuse(t, "this hexadecimal escape");
    if (!hex(t, n, c))
        return false;
    t->s++;
    return true;
}

static bool property(struct translation *t, char kind)
{
    static const char *const categories[] = {
        "C", "Cc", "Cf", "Cn", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn",
        "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk",
        "Sm", "So", "Z", "Zl", "Zp", "Zs"};
    static const char *const scripts[] = {
        "Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Georgian", "Greek", "Han",
        "Hangul", "Hebrew", "Hiragana", "Katakana", "Latin", "Tamil", "Telugu", "Thai"};
    bool negated = kind == 'P';
    if (*t->s != '{')
        return refuse(t, "\\p without braces");
    if (*++t->s == '^') {
        negated = !negated;
        t->s++;
    }
    size_t n = strcspn(t->s, "}");
    if (t->caseless[t->depth])
        return refuse(t, "\\p in (?i:..)");
    for (size_t i = 0; t->s[n] && i < sizeof(categories) / sizeof(categories[0]); i++) {
        if (strlen(categories[i]) == n && !memcmp(categories[i], t->s, n)) {
            kvc_text_addf(t->out, "\\%c{%s}", negated ? 'P' : 'p', categories[i]);
            t->s += n + 1;
            return true;
        }
    }
    for (size_t i = 0; t->s[n] && i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (strlen(scripts[i]) == n && !memcmp(scripts[i], t->s, n)) {
            kvc_text_addf(t->out, "\\%c{sc:%s}", negated ? 'P' : 'p', scripts[i]);
            t->s += n + 1;
            return true;
        }
    }
    return refuse(t, "this \\p{..}");
}

/* Behind a backslash; *set: a set of characters, not one. */
static bool escape(struct translation *t, bool in_class, bool *set)
{
    static const char letters[] = "nrtfvae";
    static const char codes[] = "\n\r\t\f\v\a\033";
    char c = *t->s;
    uint32_t code;
    *set = true;
    if (!c)
        return refuse(t, "a backslash at the end");
    if (c == 'p' || c == 'P')
        return t->s++, property(t, c);
    if (c == 's')
        return t->s++, emit(t, in_class ? BLANKS : "[" BLANKS "]");
    if (c == 'S' && !in_class)
        return t->s++, emit(t, "[^" BLANKS "]");
    if (c == 'd')
        return t->s++, emit(t, "\\p{Nd}");
    if (c == 'D')
        return t->s++, emit(t, "\\P{Nd}");
    *set = false;
    if (in(letters, c))
        return t->s++, emit_literal(t, (uint32_t)codes[strchr(letters, c) - letters], in_class);
    if (c == 'x' || c == 'u')
        return t->s++, hex_escape(t, c, &code) && emit_literal(t, code, in_class);
    if (is_digit(c) || is_letter(c))
        return refuse(t, "this escape");
    size_t len;
    code = kvc_utf8_get(t->s, &len);
    t->s += len;
    return emit_literal(t, code, in_class);
}

/* ---- classes ---- */

/* One thing in a class; before: what stood to the left. Sets of other sets are joined, which is
 * what a class within a class means. */
enum class_item { CLASS_BEGIN, CLASS_CHAR, CLASS_SET, CLASS_DASH, CLASS_RANGE };

static bool class_char(struct translation *t, enum class_item *before)
{
    bool set = false, ok;
    enum class_item was = *before;
    if (*t->s == '\\') {
        t->s++;
        ok = escape(t, true, &set);
    } else {
        size_t len;
        uint32_t c = kvc_utf8_get(t->s, &len);
        t->s += len;
        ok = emit_literal(t, c, true);
    }
    if (set && was == CLASS_DASH)
        return ok && refuse(t, "a range that ends in a set");
    *before = set ? CLASS_SET : was == CLASS_DASH ? CLASS_RANGE : CLASS_CHAR;
    return ok;
}

static bool dash(struct translation *t, enum class_item *before)
{
    char next = *++t->s;
    if (*before == CLASS_CHAR && next != ']' && next != '[' && next != '-') {
        *before = CLASS_DASH;
        return emit(t, "-");
    }
    if (*before == CLASS_BEGIN || next == ']') {
        *before = CLASS_SET;
        return emit(t, "\\-");
    }
    return refuse(t, "a '-' here (write \\-)");
}

static bool class(struct translation *t)
{
    enum class_item before = CLASS_BEGIN;
    unsigned nested = 0;
    emit(t, *++t->s == '^' ? "[^" : "[");
    t->s += *t->s == '^';
    if (*t->s == ']')
        return refuse(t, "an empty class");
    for (bool ok = true; ok;) {
        if (!*t->s)
            return refuse(t, "a class without end");
        if (*t->s == ']' && before == CLASS_DASH)
            return refuse(t, "a range without end");
        if (*t->s == ']' && nested-- == 0)
            break;
        if (*t->s == ']') {
            t->s++;
            before = CLASS_SET;
        } else if (*t->s == '[') {
            if (in("^:]", t->s[1]) || before == CLASS_DASH)
                return refuse(t, "this class within a class");
            t->s++;
            nested++;
            before = CLASS_BEGIN;
        } else if (t->s[0] == '&' && t->s[1] == '&') {
            return refuse(t, "&& in a class");
        } else {
            ok = *t->s == '-' ? dash(t, &before) : class_char(t, &before);
        }
        if (!ok)
            return false;
    }
    t->s++;
    return emit(t, "]");
}

/* ---- groups and counts ---- */

static bool open_group(struct translation *t)
{
    static const char *const kinds[] = {"(?:", "(?i:", "(?=", "(?!", "(?>"};
    if (t->depth == DEPTH_MAX)
        return refuse(t, "nesting beyond 64 groups");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t n = strlen(kinds[i]);
        if (strncmp(t->s, kinds[i], n) != 0)
            continue;
        t->s += n;
        t->caseless[t->depth + 1] = t->caseless[t->depth] || i == 1;
        t->depth++;
        return emit(t, kinds[i]);
    }
    if (t->s[1] == '?' || t->s[1] == '*')
        return refuse(t, "this kind of group");
    t->s++;
    t->caseless[t->depth + 1] = t->caseless[t->depth];
    t->depth++;
    return emit(t, "(?:"); /* nothing refers back to it */
}

static bool count(struct translation *t)
{
    const char *s = t->s + 1;
    size_t a = strspn(s, "0123456789");
    size_t comma = s[a] == ',';
    size_t b = comma ? strspn(s + a + 1, "0123456789") : 0;
    size_t n = a + comma + b;
    if (a < 1 || a > 4 || b > 4 || s[n] != '}')
        return refuse(t, "a '{' that is no count like {1,3}");
    if (s[n + 1] == '+' || (s[n + 1] == '?' && !comma))
        return refuse(t, "this sign behind a count");
    kvc_text_addn(t->out, t->s, n + 2);
    t->s += n + 2;
    return true;
}

static bool element(struct translation *t)
{
    bool set;
    char c = *t->s;
    size_t len;
    if (!in("\\", c) && !is_letter(c))
        t->before = 0;
    switch (c) {
    case '\\':
        t->s++;
        return escape(t, false, &set);
    case '[':
        return class(t);
    case '(':
        return open_group(t);
    case '{':
        return count(t);
    case ')':
        if (!t->depth)
            return refuse(t, "a ')' without '('");
        t->depth--;
        /* fall through */
    case '|': case '.': case '*': case '+': case '?':
        t->s++;
        kvc_text_addn(t->out, &c, 1);
        return true;
    case '^': case '$':
        return refuse(t, "an anchor");
    default:
        break;
    }
    uint32_t code = kvc_utf8_get(t->s, &len);
    t->s += len;
    return emit_literal(t, code, false);
}

bool kvc_pattern_translate(struct kvc_text *out, const char *regex, char *why)
{
    struct translation t = {.regex = regex, .s = regex, .out = out, .why = why};
    size_t n = strlen(regex);
    if (n > LENGTH_MAX || !kvc_utf8_valid(regex, n)) {
        snprintf(why, 256, n > LENGTH_MAX ? "longer than 16 KiB" : "not UTF-8");
        return false;
    }
    kvc_text_add(out, "");
    while (*t.s) {
        if (!element(&t))
            return false;
    }
    return !t.depth || refuse(&t, "a group without end");
}
