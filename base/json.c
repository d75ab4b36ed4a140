/* SPDX-License-Identifier: Apache-2.0
 *
 * cJSON checks the structure; around it stands what it lacks. A lexer runs first: it blanks
 * comments, checks every token against RFC 8259, and notes where each value begins. cJSON's tree
 * lists values in the same order, so each node can be paired with its place and, for a number,
 * with its source text, from which integers are read exactly. */
#include "base/json.h"

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/error.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 63 /* cJSON's own buffer */

struct kvc_jval {
    const cJSON *item;
    const char *key;
    const char *number; /* source text, NUL-terminated where the value ends */
    size_t number_len;
    uint64_t line;
    size_t next, first, count; /* indexes into the document, 0 = none */
    size_t index;
};

struct document {
    cJSON *root;
    char *text;
    size_t n_nodes;
    struct kvc_jval nodes[];
};

struct token {
    uint64_t line;
    const char *text; /* numbers only */
    size_t len;
};

struct lexer {
    char *text;
    size_t n, i;
    bool comments;
    uint64_t line;
    unsigned depth;
    const char *file;
    struct kvc_error *err;
    struct token *tokens; /* one a value, in order of the text */
    size_t n_tokens, cap_tokens;
};

/* ---- lexing ---- */

static enum kvc_status bad(const struct lexer *lx, const char *what)
{
    enum kvc_status st = kvc_fail_at(lx->err, KVC_ERR_INPUT, lx->file, lx->line, NULL, "%s", what);
    if (lx->err)
        lx->err->byte = lx->i;
    return st;
}

static bool push(struct lexer *lx, const char *text, size_t len)
{
    void *p = lx->tokens;
    if (!kvc_grow(&p, &lx->cap_tokens, lx->n_tokens + 1, sizeof(*lx->tokens)))
        return false;
    lx->tokens = p;
    lx->tokens[lx->n_tokens++] = (struct token){lx->line, text, len};
    return true;
}

static enum kvc_status blank_comment(struct lexer *lx)
{
    if (!lx->comments)
        return bad(lx, "not JSON: a value, not '/', is expected here");
    if (lx->i + 1 >= lx->n || lx->text[lx->i + 1] != '/')
        return bad(lx, "a comment begins with //");
    while (lx->i < lx->n && lx->text[lx->i] != '\n')
        lx->text[lx->i++] = ' ';
    return KVC_OK;
}

static size_t skip_blank(const struct lexer *lx, size_t i)
{
    while (i < lx->n && strchr(" \t\r\n", lx->text[i]) && lx->text[i])
        i++;
    return i;
}

/* A comment may stand between a key and its colon. */
static bool colon_follows(struct lexer *lx)
{
    size_t i = skip_blank(lx, lx->i);
    while (lx->comments && i + 1 < lx->n && lx->text[i] == '/' && lx->text[i + 1] == '/') {
        while (i < lx->n && lx->text[i] != '\n')
            i++;
        i = skip_blank(lx, i);
    }
    return i < lx->n && lx->text[i] == ':';
}

static enum kvc_status lex_string(struct lexer *lx)
{
    for (lx->i++; lx->i < lx->n && lx->text[lx->i] != '"'; lx->i++) {
        unsigned char c = (unsigned char)lx->text[lx->i];
        if (c == '\n')
            return bad(lx, "a string ends within its line: the closing quote is missing");
        if (c < 0x20)
            return bad(lx, "a control character inside a string must be written as \\uXXXX");
        if (c != '\\')
            continue;
        if (lx->n - lx->i > 5 && !memcmp(lx->text + lx->i + 1, "u0000", 5))
            return bad(lx, "a NUL character (\\u0000) is not allowed in a string");
        lx->i++;
    }
    if (lx->i >= lx->n)
        return bad(lx, "the text ends inside a string");
    lx->i++;
    if (colon_follows(lx))
        return KVC_OK;
    return push(lx, NULL, 0) ? KVC_OK : kvc_fail_nomem(lx->err);
}

static bool is_delimiter(char c)
{
    return strchr(" \t\r\n,:]}/", c) != NULL; /* NUL included: the end of the text */
}

static enum kvc_status lex_number(struct lexer *lx)
{
    const char *s = lx->text + lx->i;
    struct kvc_decimal d;
    size_t len = kvc_decimal_parse(s, lx->n - lx->i, &d);
    if (!len || !is_delimiter(s[len]))
        return bad(lx, "not a JSON number (a quantity with a unit is written in quotes)");
    if (len > MAX_NUMBER)
        return bad(lx, "a number of more than 63 characters");
    if (!push(lx, s, len))
        return kvc_fail_nomem(lx->err);
    lx->i += len;
    return KVC_OK;
}

static enum kvc_status lex_word(struct lexer *lx)
{
    static const char *const words[] = {"true", "false", "null"};
    const char *s = lx->text + lx->i;
    for (size_t w = 0; w < 3; w++) {
        size_t len = strlen(words[w]);
        if (lx->n - lx->i < len || memcmp(s, words[w], len) || !is_delimiter(s[len]))
            continue;
        lx->i += len;
        return push(lx, NULL, 0) ? KVC_OK : kvc_fail_nomem(lx->err);
    }
    if (*s == '\0')
        return bad(lx, "a NUL byte in the text: this is not a JSON file");
    return bad(lx, "not JSON: strings and names stand in double quotes");
}

static enum kvc_status lex_token(struct lexer *lx)
{
    char c = lx->text[lx->i];
    if (c == '"')
        return lex_string(lx);
    if (c == '/')
        return blank_comment(lx);
    if (c == '-' || (c >= '0' && c <= '9'))
        return lex_number(lx);
    if (c == '{' || c == '[') {
        if (++lx->depth > KVC_JSON_DEPTH)
            return bad(lx, "nested deeper than 64 levels");
        if (!push(lx, NULL, 0))
            return kvc_fail_nomem(lx->err);
    } else if (c == '}' || c == ']') {
        lx->depth -= lx->depth > 0;
    } else if (c == '\n') {
        lx->line++;
    } else if (c == '\0' || !strchr(" \t\r,:", c)) {
        return lex_word(lx);
    }
    lx->i++;
    return KVC_OK;
}

static enum kvc_status lex(struct lexer *lx)
{
    enum kvc_status st = KVC_OK;
    if (lx->n >= 3 && !memcmp(lx->text, "\xef\xbb\xbf", 3))
        memset(lx->text, ' ', 3);
    while (st == KVC_OK && lx->i < lx->n)
        st = lex_token(lx);
    return st;
}

/* ---- the tree ---- */

/* Nodes in document order; the recursion is no deeper than KVC_JSON_DEPTH. */
static size_t build(struct document *doc, const struct lexer *lx, const cJSON *item, bool member)
{
    size_t at = doc->n_nodes++;
    struct kvc_jval *v = &doc->nodes[at];
    const struct token *tok = &lx->tokens[at];
    *v = (struct kvc_jval){.item = item, .key = member ? item->string : NULL, .line = tok->line,
                           .number = tok->text, .number_len = tok->len, .index = at};
    size_t last = 0;
    for (const cJSON *c = item->child; c; c = c->next) {
        size_t child = build(doc, lx, c, cJSON_IsObject(item));
        if (last)
            doc->nodes[last].next = child;
        else
            v->first = child;
        last = child;
        v->count++;
    }
    return at;
}

static size_t count_items(const cJSON *item)
{
    size_t n = 1;
    for (const cJSON *c = item->child; c; c = c->next)
        n += count_items(c);
    return n;
}

static int by_key(const void *a, const void *b)
{
    const struct kvc_jval *const *x = a, *const *y = b;
    int c = strcmp((*x)->key, (*y)->key);
    return c ? c : (*x)->index < (*y)->index ? -1 : 1;
}

static enum kvc_status check_object(const struct document *doc, const struct kvc_jval *object,
                                    const struct kvc_jval **scratch, const char *file,
                                    struct kvc_error *err)
{
    size_t n = 0;
    for (size_t i = object->first; i; i = doc->nodes[i].next)
        scratch[n++] = &doc->nodes[i];
    qsort(scratch, n, sizeof(*scratch), by_key);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(scratch[i - 1]->key, scratch[i]->key) == 0)
            return kvc_fail_at(err, KVC_ERR_INPUT, file, scratch[i]->line, scratch[i]->key,
                               "the key stands twice in one object (first in line %llu): keep one",
                               (unsigned long long)scratch[i - 1]->line);
    }
    return KVC_OK;
}

static enum kvc_status check_duplicates(const struct document *doc, const char *file,
                                        struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    const struct kvc_jval **scratch = kvc_malloc(doc->n_nodes, sizeof(*scratch));
    if (!scratch)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < doc->n_nodes && st == KVC_OK; i++) {
        if (cJSON_IsObject(doc->nodes[i].item) && doc->nodes[i].count > 1)
            st = check_object(doc, &doc->nodes[i], scratch, file, err);
    }
    kvc_free(scratch);
    return st;
}

/* cJSON says where it stopped; the line is counted from there. */
static enum kvc_status structure_error(struct lexer *lx, const char *stop, uint64_t first_line)
{
    size_t at = stop ? (size_t)(stop - lx->text) : 0;
    at = skip_blank(lx, at < lx->n ? at : lx->n);
    lx->line = first_line;
    for (size_t i = 0; i < at; i++)
        lx->line += lx->text[i] == '\n';
    lx->i = at;
    if (skip_blank(lx, 0) == lx->n)
        return bad(lx, "empty: a JSON value is expected");
    if (at >= lx->n)
        return bad(lx, "the text ends before the JSON value does: a bracket or value is missing");
    return bad(lx, "not JSON here: a comma, colon, value or bracket is missing or too many");
}

static enum kvc_status parse_tree(struct document **out, struct lexer *lx, uint64_t first_line)
{
    const char *stop = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(lx->text, lx->n + 1, &stop, 1);
    if (!root)
        return structure_error(lx, stop, first_line);
    size_t n = count_items(root);
    struct document *doc = NULL;
    if (n == lx->n_tokens)
        doc = kvc_malloc(1, sizeof(*doc) + n * sizeof(doc->nodes[0]));
    if (!doc) {
        cJSON_Delete(root);
        return n == lx->n_tokens ? kvc_fail_nomem(lx->err) : bad(lx, "not JSON");
    }
    doc->root = root;
    doc->text = lx->text;
    doc->n_nodes = 0;
    build(doc, lx, root, false);
    *out = doc;
    return KVC_OK;
}

enum kvc_status kvc_json_parse(struct kvc_jval **out, const char *text, size_t n, bool comments,
                               const char *file, uint64_t first_line, struct kvc_error *err)
{
    struct document *doc = NULL;
    struct lexer lx = {.n = n, .comments = comments, .line = first_line, .file = file, .err = err};
    enum kvc_status st;
    lx.text = kvc_malloc(n + 1, 1);
    if (!lx.text)
        return kvc_fail_nomem(err);
    if (n)
        memcpy(lx.text, text, n);
    lx.text[n] = '\0';
    st = lex(&lx);
    if (st == KVC_OK)
        st = parse_tree(&doc, &lx, first_line);
    if (st == KVC_OK)
        st = check_duplicates(doc, file, err);
    kvc_free(lx.tokens);
    if (st == KVC_OK) {
        *out = &doc->nodes[0];
    } else if (doc) {
        kvc_json_free(&doc->nodes[0]);
    } else {
        kvc_free(lx.text);
    }
    return st;
}

static struct document *document_of(const struct kvc_jval *v)
{
    const char *first = (const char *)(v - v->index);
    return (struct document *)(uintptr_t)(first - offsetof(struct document, nodes));
}

void kvc_json_free(struct kvc_jval *root)
{
    if (!root)
        return;
    struct document *doc = document_of(root);
    cJSON_Delete(doc->root);
    kvc_free(doc->text);
    kvc_free(doc);
}

/* ---- looking at values ---- */

enum kvc_jkind kvc_jval_kind(const struct kvc_jval *v)
{
    switch (v->item->type & 0xff) {
    case cJSON_True:
    case cJSON_False:
        return KVC_JBOOL;
    case cJSON_Number:
        return KVC_JNUMBER;
    case cJSON_String:
        return KVC_JSTRING;
    case cJSON_Array:
        return KVC_JARRAY;
    case cJSON_Object:
        return KVC_JOBJECT;
    default:
        return KVC_JNULL;
    }
}

const struct kvc_jval *kvc_jval_member(const struct kvc_jval *object, const char *key)
{
    if (!object || !cJSON_IsObject(object->item))
        return NULL;
    const struct kvc_jval *v = kvc_jval_first(object);
    while (v && strcmp(v->key, key) != 0)
        v = kvc_jval_next(v);
    return v;
}

const struct kvc_jval *kvc_jval_first(const struct kvc_jval *container)
{
    return container->first ? container + (container->first - container->index) : NULL;
}

const struct kvc_jval *kvc_jval_next(const struct kvc_jval *v)
{
    return v->next ? v + (v->next - v->index) : NULL;
}

size_t kvc_jval_count(const struct kvc_jval *container)
{
    return container->count;
}

uint64_t kvc_jval_line(const struct kvc_jval *v)
{
    return v->line;
}

const char *kvc_jval_key(const struct kvc_jval *v)
{
    return v->key;
}

const char *kvc_jval_string(const struct kvc_jval *v)
{
    return cJSON_IsString(v->item) ? v->item->valuestring : NULL;
}

bool kvc_jval_bool(const struct kvc_jval *v, bool *out)
{
    if (!cJSON_IsBool(v->item))
        return false;
    *out = cJSON_IsTrue(v->item) != 0;
    return true;
}

bool kvc_jval_number(const struct kvc_jval *v, double *out)
{
    if (!cJSON_IsNumber(v->item) || !isfinite(v->item->valuedouble))
        return false;
    *out = v->item->valuedouble;
    return true;
}

const char *kvc_jval_digits(const struct kvc_jval *v, size_t *n)
{
    *n = cJSON_IsNumber(v->item) ? v->number_len : 0;
    return *n ? v->number : NULL;
}

static bool integer(const struct kvc_jval *v, uint64_t *magnitude, bool *negative)
{
    struct kvc_decimal d;
    bool exact = false;
    if (!cJSON_IsNumber(v->item) || !kvc_decimal_parse(v->number, v->number_len, &d))
        return false;
    *negative = d.negative && d.digits;
    return kvc_decimal_scale(&d, 1, magnitude, &exact) && exact;
}

bool kvc_jval_u64(const struct kvc_jval *v, uint64_t *out)
{
    uint64_t m;
    bool negative;
    if (!integer(v, &m, &negative) || negative)
        return false;
    *out = m;
    return true;
}

bool kvc_jval_i64(const struct kvc_jval *v, int64_t *out)
{
    uint64_t m;
    bool negative;
    if (!integer(v, &m, &negative) || m > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = negative ? (m ? -(int64_t)(m - 1) - 1 : 0) : (int64_t)m;
    return true;
}
