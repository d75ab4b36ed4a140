/* SPDX-License-Identifier: Apache-2.0
 * What a tokenizer.json says besides its model: normalizer, pre-tokenizer, post-processor and
 * added tokens. A kind or an option that is not done exactly is refused with its name. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#define GPT2_PATTERN                                                                               \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

struct loader {
    struct kvc_tokenizer *tok;
    struct kvc_error *err;
    char where[64]; /* the part at hand */
};

#define BAD(ld, v, ...) \
    kvc_fail_at((ld)->err, KVC_ERR_INPUT, (ld)->tok->file, kvc_jval_line(v), (ld)->where, \
                __VA_ARGS__)
#define CANNOT(ld, v, ...) \
    kvc_fail_at((ld)->err, KVC_ERR_UNSUPPORTED, (ld)->tok->file, kvc_jval_line(v), (ld)->where, \
                __VA_ARGS__)

static const struct kvc_jval *given(const struct kvc_jval *object, const char *key)
{
    const struct kvc_jval *v = kvc_jval_member(object, key);
    return v && kvc_jval_kind(v) != KVC_JNULL ? v : NULL;
}

static enum kvc_status get_string(struct loader *ld, const struct kvc_jval *object,
                                  const char *key, const char **out)
{
    const struct kvc_jval *v = kvc_jval_member(object, key);
    if (!v || !kvc_jval_string(v))
        return BAD(ld, v ? v : object, "\"%s\" must be a string", key);
    *out = kvc_jval_string(v);
    return KVC_OK;
}

static enum kvc_status get_bool(struct loader *ld, const struct kvc_jval *object, const char *key,
                                bool otherwise, bool *out)
{
    const struct kvc_jval *v = given(object, key);
    *out = otherwise;
    if (v && !kvc_jval_bool(v, out))
        return BAD(ld, v, "\"%s\" must be true or false", key);
    return KVC_OK;
}

/* The parts of a Sequence, or the one part itself, each handed to load. */
static enum kvc_status each_part(struct loader *ld, const struct kvc_jval *v, const char *list,
                                 enum kvc_status (*load)(struct loader *, const struct kvc_jval *,
                                                         const char *), unsigned depth)
{
    const char *type;
    char outer[sizeof(ld->where)];
    enum kvc_status st = KVC_OK;
    if (kvc_jval_kind(v) != KVC_JOBJECT)
        return BAD(ld, v, "must be an object");
    st = get_string(ld, v, "type", &type);
    if (st != KVC_OK)
        return st;
    if (strcmp(type, "Sequence") != 0)
        return load(ld, v, type);
    const struct kvc_jval *parts = kvc_jval_member(v, list);
    if (!parts || kvc_jval_kind(parts) != KVC_JARRAY || depth > 8)
        return BAD(ld, parts ? parts : v, depth > 8 ? "Sequences within Sequences: too deep"
                                                    : "a Sequence needs the list \"%s\"", list);
    memcpy(outer, ld->where, sizeof(outer));
    size_t i = 0;
    for (const struct kvc_jval *p = kvc_jval_first(parts); p && st == KVC_OK;
         p = kvc_jval_next(p)) {
        snprintf(ld->where, sizeof(ld->where), "%.24s.%s[%zu]", outer, list, i++);
        st = each_part(ld, p, list, load, depth + 1);
    }
    memcpy(ld->where, outer, sizeof(outer));
    return st;
}

/* ---- normalizer ---- */

static struct kvc_norm *new_norm(struct kvc_tokenizer *tok, enum kvc_norm_kind kind)
{
    if (!kvc_grow((void **)&tok->norms, &tok->cap_norms, tok->n_norms + 1, sizeof(*tok->norms)))
        return NULL;
    tok->norms[tok->n_norms] = (struct kvc_norm){.kind = kind};
    return &tok->norms[tok->n_norms++];
}

static enum kvc_status load_replace(struct loader *ld, const struct kvc_jval *v)
{
    const struct kvc_jval *pattern = given(v, "pattern");
    const char *from, *to;
    enum kvc_status st = get_string(ld, v, "content", &to);
    if (st != KVC_OK)
        return st;
    if (!pattern || kvc_jval_kind(pattern) != KVC_JOBJECT)
        return BAD(ld, v, "Replace needs a \"pattern\" object");
    if (!kvc_jval_member(pattern, "String"))
        return CANNOT(ld, pattern, "a Replace normalizer is supported with a String pattern only");
    st = get_string(ld, pattern, "String", &from);
    if (st != KVC_OK)
        return st;
    if (!*from)
        return BAD(ld, pattern, "Replace needs a pattern that is not empty");
    struct kvc_norm *norm = new_norm(ld->tok, KVC_NORM_REPLACE);
    if (norm) {
        norm->pattern = kvc_strdup(from);
        norm->content = kvc_strdup(to);
    }
    return norm && norm->pattern && norm->content ? KVC_OK : kvc_fail_nomem(ld->err);
}

static enum kvc_status load_norm(struct loader *ld, const struct kvc_jval *v, const char *type)
{
    const char *text;
    struct kvc_norm *norm;
    if (strcmp(type, "Replace") == 0)
        return load_replace(ld, v);
    if (strcmp(type, "NFC") == 0) {
        if (!ld->tok->nfc)
            ld->tok->nfc = kvc_nfc_create();
        return ld->tok->nfc && new_norm(ld->tok, KVC_NORM_NFC) ? KVC_OK : kvc_fail_nomem(ld->err);
    }
    if (strcmp(type, "Prepend") != 0)
        return CANNOT(ld, v, "normalizer \"%.40s\" is not supported: NFC, Prepend, Replace and "
                      "Sequence are", type);
    enum kvc_status st = get_string(ld, v, "prepend", &text);
    if (st != KVC_OK)
        return st;
    norm = new_norm(ld->tok, KVC_NORM_PREPEND);
    if (norm)
        norm->content = kvc_strdup(text);
    return norm && norm->content ? KVC_OK : kvc_fail_nomem(ld->err);
}

/* ---- pre-tokenizer ---- */

static enum kvc_status new_step(struct loader *ld, const struct kvc_jval *v,
                                enum kvc_step_kind kind, struct kvc_step **out)
{
    struct kvc_tokenizer *tok = ld->tok;
    if (tok->byte_level)
        return CANNOT(ld, v, "ByteLevel is supported as the last pre-tokenizer only");
    if (tok->n_steps == KVC_STEPS_MAX)
        return CANNOT(ld, v, "more than %d pre-tokenizers", KVC_STEPS_MAX);
    *out = &tok->steps[tok->n_steps++];
    **out = (struct kvc_step){.kind = kind};
    return KVC_OK;
}

static enum kvc_status new_split(struct loader *ld, const struct kvc_jval *v, const char *pattern,
                                 bool literal, enum kvc_split_behavior behavior, bool invert)
{
    struct kvc_step *step;
    char why[256] = "";
    enum kvc_status st = new_step(ld, v, KVC_STEP_SPLIT, &step);
    if (st != KVC_OK)
        return st;
    step->behavior = behavior;
    step->invert = invert;
    if (!*pattern)
        return BAD(ld, v, "a pattern that is empty");
    st = literal ? kvc_pattern_literal(&step->pattern, pattern, why)
                 : kvc_pattern_compile(&step->pattern, pattern, why);
    if (st == KVC_ERR_NOMEM)
        return kvc_fail_nomem(ld->err);
    if (st != KVC_OK)
        return kvc_fail_at(ld->err, st, ld->tok->file, kvc_jval_line(v), ld->where,
                           "the pattern: %s", why);
    return KVC_OK;
}

static enum kvc_status load_split(struct loader *ld, const struct kvc_jval *v)
{
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const struct kvc_jval *pattern = given(v, "pattern");
    const char *name, *text;
    bool invert;
    if (!pattern || kvc_jval_kind(pattern) != KVC_JOBJECT)
        return BAD(ld, v, "Split needs a \"pattern\" object");
    bool literal = kvc_jval_member(pattern, "String") != NULL;
    enum kvc_status st = get_string(ld, pattern, literal ? "String" : "Regex", &text);
    if (st == KVC_OK)
        st = get_string(ld, v, "behavior", &name);
    if (st == KVC_OK)
        st = get_bool(ld, v, "invert", false, &invert);
    if (st != KVC_OK)
        return st;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return new_split(ld, v, text, literal, (enum kvc_split_behavior)i, invert);
    }
    return CANNOT(ld, v, "behavior \"%.40s\" is not supported", name);
}

static enum kvc_status load_byte_level(struct loader *ld, const struct kvc_jval *v)
{
    bool space, regex;
    struct kvc_step *step;
    enum kvc_status st = get_bool(ld, v, "add_prefix_space", true, &space);
    if (st == KVC_OK)
        st = get_bool(ld, v, "use_regex", true, &regex);
    if (st == KVC_OK && space)
        st = new_step(ld, v, KVC_STEP_SPACE, &step);
    if (st == KVC_OK && regex)
        st = new_split(ld, v, GPT2_PATTERN, false, KVC_ISOLATED, false);
    if (st == KVC_OK && ld->tok->byte_level)
        st = CANNOT(ld, v, "ByteLevel is supported as the last pre-tokenizer only");
    ld->tok->byte_level = true;
    return st;
}

/* add_prefix_space is the older way to say "prepend_scheme". */
static enum kvc_status load_prepend_scheme(struct loader *ld, const struct kvc_jval *v,
                                           enum kvc_prepend *out)
{
    static const char *const names[] = {"always", "first", "never"};
    const char *name = "always";
    bool space;
    enum kvc_status st = get_bool(ld, v, "add_prefix_space", true, &space);
    if (st == KVC_OK && given(v, "prepend_scheme"))
        st = get_string(ld, v, "prepend_scheme", &name);
    else if (st == KVC_OK && !space)
        name = "never";
    if (st != KVC_OK)
        return st;
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        *out = (enum kvc_prepend)i;
        if (!space && *out != KVC_PREPEND_NEVER)
            return BAD(ld, v, "add_prefix_space false contradicts prepend_scheme \"%s\"", name);
        return KVC_OK;
    }
    return CANNOT(ld, v, "prepend_scheme \"%.40s\" is not supported", name);
}

static enum kvc_status load_metaspace(struct loader *ld, const struct kvc_jval *v)
{
    const char *replacement;
    struct kvc_step *step;
    bool cut;
    size_t len = 0;
    enum kvc_prepend prepend = KVC_PREPEND_ALWAYS;
    enum kvc_status st = get_string(ld, v, "replacement", &replacement);
    if (st == KVC_OK)
        st = get_bool(ld, v, "split", true, &cut);
    if (st == KVC_OK)
        st = load_prepend_scheme(ld, v, &prepend);
    if (st == KVC_OK)
        st = new_step(ld, v, KVC_STEP_METASPACE, &step);
    if (st != KVC_OK)
        return st;
    if (*replacement)
        kvc_utf8_get(replacement, &len);
    if (!len || replacement[len])
        return BAD(ld, v, "the replacement must be one character");
    memcpy(step->replacement, replacement, len);
    step->prepend = prepend;
    return cut ? new_split(ld, v, replacement, true, KVC_WITH_NEXT, false) : KVC_OK;
}

static enum kvc_status load_step(struct loader *ld, const struct kvc_jval *v, const char *type)
{
    bool each;
    enum kvc_status st;
    if (strcmp(type, "Split") == 0)
        return load_split(ld, v);
    if (strcmp(type, "ByteLevel") == 0)
        return load_byte_level(ld, v);
    if (strcmp(type, "Metaspace") == 0)
        return load_metaspace(ld, v);
    if (strcmp(type, "Digits") != 0)
        return CANNOT(ld, v, "pre-tokenizer \"%.40s\" is not supported: Split, ByteLevel, "
                      "Metaspace, Digits and Sequence are", type);
    st = get_bool(ld, v, "individual_digits", false, &each);
    return st != KVC_OK ? st : new_split(ld, v, "\\p{N}", false,
                                         each ? KVC_ISOLATED : KVC_CONTIGUOUS, false);
}

/* ---- post-processor ---- */

static enum kvc_status push_id(struct loader *ld, const struct kvc_jval *v, bool after)
{
    uint64_t id;
    struct kvc_token_ids *ids = after ? &ld->tok->after : &ld->tok->before;
    if (!kvc_jval_u64(v, &id) || id > INT32_MAX)
        return BAD(ld, v, "a token id must be a number below 2^31");
    return kvc_token_ids_push(ids, (uint32_t)id) ? KVC_OK : kvc_fail_nomem(ld->err);
}

/* {"SpecialToken": {"id": "<s>"}} stands for the ids listed under that name. */
static enum kvc_status load_special(struct loader *ld, const struct kvc_jval *processor,
                                    const struct kvc_jval *v, bool after)
{
    const char *name;
    enum kvc_status st = get_string(ld, v, "id", &name);
    const struct kvc_jval *all = given(processor, "special_tokens");
    if (st != KVC_OK)
        return st;
    const struct kvc_jval *entry = all ? kvc_jval_member(all, name) : NULL;
    const struct kvc_jval *ids = entry ? kvc_jval_member(entry, "ids") : NULL;
    if (!ids || kvc_jval_kind(ids) != KVC_JARRAY)
        return BAD(ld, v, "special token \"%.60s\" has no ids in \"special_tokens\"", name);
    for (const struct kvc_jval *id = kvc_jval_first(ids); id && st == KVC_OK;
         id = kvc_jval_next(id))
        st = push_id(ld, id, after);
    return st;
}

static enum kvc_status load_template(struct loader *ld, const struct kvc_jval *v)
{
    const struct kvc_jval *single = given(v, "single"), *what;
    unsigned texts = 0;
    enum kvc_status st = KVC_OK;
    if (!single || kvc_jval_kind(single) != KVC_JARRAY)
        return BAD(ld, v, "TemplateProcessing needs the list \"single\"");
    for (const struct kvc_jval *p = kvc_jval_first(single); p && st == KVC_OK;
         p = kvc_jval_next(p)) {
        if (kvc_jval_kind(p) == KVC_JOBJECT && kvc_jval_member(p, "Sequence"))
            texts++;
        else if (kvc_jval_kind(p) == KVC_JOBJECT && (what = kvc_jval_member(p, "SpecialToken")))
            st = load_special(ld, v, what, texts > 0);
        else
            st = BAD(ld, p, "a template holds SpecialToken and Sequence only");
    }
    return st == KVC_OK && texts != 1 ? BAD(ld, single, "a template needs one Sequence") : st;
}

/* RobertaProcessing: "cls": ["<s>", 0] before, "sep" behind. */
static enum kvc_status load_around(struct loader *ld, const struct kvc_jval *v)
{
    enum kvc_status st = KVC_OK;
    for (int after = 0; after < 2 && st == KVC_OK; after++) {
        const struct kvc_jval *pair = given(v, after ? "sep" : "cls");
        if (!pair || kvc_jval_kind(pair) != KVC_JARRAY || kvc_jval_count(pair) != 2)
            return BAD(ld, v, "\"cls\" and \"sep\" must be pairs of text and id");
        st = push_id(ld, kvc_jval_next(kvc_jval_first(pair)), after);
    }
    return st;
}

static enum kvc_status load_post(struct loader *ld, const struct kvc_jval *v, const char *type)
{
    if (strcmp(type, "ByteLevel") == 0) /* moves offsets, not ids */
        return KVC_OK;
    if (ld->tok->before.n || ld->tok->after.n)
        return CANNOT(ld, v, "more than one post-processor that adds tokens");
    if (strcmp(type, "TemplateProcessing") == 0)
        return load_template(ld, v);
    if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0)
        return load_around(ld, v);
    return CANNOT(ld, v, "post-processor \"%.40s\" is not supported", type);
}

static enum kvc_status load_group(struct loader *ld, const struct kvc_jval *root, const char *key,
                                  const char *list,
                                  enum kvc_status (*load)(struct loader *, const struct kvc_jval *,
                                                          const char *))
{
    const struct kvc_jval *v = given(root, key);
    snprintf(ld->where, sizeof(ld->where), "%s", key);
    return v ? each_part(ld, v, list, load, 0) : KVC_OK;
}

enum kvc_status kvc_tokenizer_load_parts(struct kvc_tokenizer *tok, const struct kvc_jval *root,
                                         struct kvc_error *err)
{
    struct loader ld = {.tok = tok, .err = err};
    enum kvc_status st = load_group(&ld, root, "normalizer", "normalizers", load_norm);
    if (st == KVC_OK)
        st = load_group(&ld, root, "pre_tokenizer", "pretokenizers", load_step);
    if (st == KVC_OK)
        st = load_group(&ld, root, "post_processor", "processors", load_post);
    return st;
}
