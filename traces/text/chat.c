/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/text/chat.h"

#include <string.h>

void kvc_chat_begin(struct kvc_chat *c, struct kvc_prompt *p)
{
    struct kvc_span model = c->model;
    *c = (struct kvc_chat){ .model = model };
    kvc_prompt_begin(p);
}

/* ---- texts ---- */

static void add_text(struct kvc_prompt *p, enum kvc_piece_kind kind, const struct kvc_tape *t,
                     uint32_t at)
{
    char *room = kvc_prompt_room(p, (size_t)t->v[at].n + 16);
    if (room)
        kvc_prompt_wrote(p, kind, kvc_tape_decode(t, at, room));
}

static void add_quoted(struct kvc_prompt *p, enum kvc_piece_kind kind, const struct kvc_tape *t,
                       uint32_t at)
{
    size_t most = (size_t)t->v[at].n + 16, k = 0;
    char *room = kvc_prompt_room(p, 3 * most + 2); /* plain text lies behind the quoted one */
    if (!room)
        return;
    char *plain = room + 2 * most + 2;
    size_t n = kvc_tape_decode(t, at, plain);
    room[k++] = '"';
    for (size_t i = 0; i < n; i++) {
        if (plain[i] == '"' || plain[i] == '\\')
            room[k++] = '\\';
        room[k++] = plain[i];
    }
    room[k++] = '"';
    kvc_prompt_wrote(p, kind, k);
}

static void add_json(struct kvc_prompt *p, enum kvc_piece_kind kind, const struct kvc_tape *t,
                     uint32_t at);

static void add_object(struct kvc_prompt *p, enum kvc_piece_kind kind, const struct kvc_tape *t,
                       uint32_t at)
{
    bool first = true;
    kvc_prompt_add(p, kind, "{", 1);
    for (uint32_t i = at + 1; i < kvc_tape_end(t, at); i = kvc_tape_next(t, i + 1)) {
        if (kvc_tape_is(t, i, "cache_control"))
            continue;
        if (!first)
            kvc_prompt_add(p, kind, ",", 1);
        first = false;
        add_quoted(p, kind, t, i);
        kvc_prompt_add(p, kind, ":", 1);
        add_json(p, kind, t, i + 1);
    }
    kvc_prompt_add(p, kind, "}", 1);
}

/* JSON without blanks, keys as they come, texts unescaped but for quote and backslash; without
 * cache_control, which is no part of a prompt. */
static void add_json(struct kvc_prompt *p, enum kvc_piece_kind kind, const struct kvc_tape *t,
                     uint32_t at)
{
    static const char *const words[] = { "false", "true" };
    const char *word = words[t->v[at].truth];
    switch (kvc_tape_kind(t, at)) {
    case KVC_JNULL:
        kvc_prompt_add(p, kind, "null", 4);
        break;
    case KVC_JBOOL:
        kvc_prompt_add(p, kind, word, strlen(word));
        break;
    case KVC_JNUMBER:
        kvc_prompt_add(p, kind, t->v[at].text, t->v[at].n);
        break;
    case KVC_JSTRING:
        add_quoted(p, kind, t, at);
        break;
    case KVC_JARRAY:
        kvc_prompt_add(p, kind, "[", 1);
        for (uint32_t i = at + 1; i < kvc_tape_end(t, at); i = kvc_tape_next(t, i)) {
            if (i > at + 1)
                kvc_prompt_add(p, kind, ",", 1);
            add_json(p, kind, t, i);
        }
        kvc_prompt_add(p, kind, "]", 1);
        break;
    default:
        add_object(p, kind, t, at);
    }
}

/* A text as it is, anything else as JSON. */
static void add_value(struct kvc_prompt *p, enum kvc_piece_kind kind, const struct kvc_tape *t,
                      uint32_t at)
{
    if (kvc_tape_kind(t, at) == KVC_JSTRING)
        add_text(p, kind, t, at);
    else
        add_json(p, kind, t, at);
}

/* ---- parts of a message ---- */

struct part {
    struct kvc_chat *c;
    struct kvc_prompt *p;
    const struct kvc_tape *t;
    enum kvc_piece_kind text_kind; /* of plain text here */
    bool thinking;                 /* counts here */
};

static uint32_t member(const struct part *m, uint32_t at, const char *key)
{
    return kvc_tape_member(m->t, at, key);
}

static bool is_text(const struct part *m, uint32_t at)
{
    return at && kvc_tape_kind(m->t, at) == KVC_JSTRING;
}

static void add_media(struct part *m, uint32_t content, uint32_t detail)
{
    const struct kvc_tape_node *node = &m->t->v[content];
    char word[8] = "", escaped[KVC_TAPE_ROOM];
    struct kvc_span span = kvc_tape_word(m->t, detail, escaped);
    char *room = kvc_prompt_room(m->p, (size_t)node->n + 16);
    if (!room)
        return;
    if (span.n && span.n < sizeof(word))
        memcpy(word, span.text, span.n);
    size_t n = kvc_tape_decode(m->t, content, room);
    uint32_t tokens = kvc_image_tokens(&m->c->model, room, n, word[0] ? word : NULL);
    m->c->images++;
    m->c->unknown_images += tokens == KVC_ID_NONE;
    /* The digest is taken before the room moves: its text is not kept. */
    kvc_prompt_media(m->p, room, n, tokens);
}

/* Where the content of an image, a sound or a file may stand. */
static bool add_media_part(struct part *m, uint32_t at)
{
    static const char *const within[] = { "image_url", "source", "input_audio", "file", "video_url",
                                          "audio_url", "image", "document" };
    static const char *const keys[] = { "data", "url", "image_url", "file_id", "file_data",
                                        "file_url", "uri", "content", "id" };
    uint32_t detail = member(m, at, "detail");
    for (size_t i = 0; i < sizeof(within) / sizeof(within[0]); i++) {
        uint32_t v = member(m, at, within[i]);
        if (is_text(m, v)) {
            add_media(m, v, detail);
            return true;
        }
        if (v && kvc_tape_kind(m->t, v) == KVC_JOBJECT) {
            detail = member(m, v, "detail") ? member(m, v, "detail") : detail;
            at = v;
            break;
        }
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        uint32_t v = member(m, at, keys[i]);
        if (is_text(m, v)) {
            add_media(m, v, detail);
            return true;
        }
    }
    return false;
}

static void add_call(struct part *m, uint32_t at)
{
    uint32_t function = member(m, at, "function");
    if (!function || kvc_tape_kind(m->t, function) != KVC_JOBJECT)
        function = at;
    uint32_t name = member(m, function, "name"), arguments = member(m, function, "arguments");
    if (!arguments)
        arguments = member(m, function, "input");
    if (name)
        add_value(m->p, KVC_PIECE_TOOL_CALL, m->t, name);
    kvc_prompt_add(m->p, KVC_PIECE_TOOL_CALL, "(", 1);
    if (arguments)
        add_value(m->p, KVC_PIECE_TOOL_CALL, m->t, arguments);
    kvc_prompt_add(m->p, KVC_PIECE_TOOL_CALL, ")", 1);
}

static void add_thinking(struct part *m, uint32_t text)
{
    if (!text)
        return;
    if (m->thinking)
        add_value(m->p, KVC_PIECE_THINKING, m->t, text);
    else
        m->c->thinking_left_out++;
}

static void add_content(struct part *m, uint32_t at);

static uint32_t first_of(const struct part *m, uint32_t at, const char *const *keys)
{
    uint32_t v = 0;
    for (; *keys && !v; keys++)
        v = member(m, at, *keys);
    return v;
}

static bool type_ends(const struct part *m, uint32_t type, const char *word)
{
    char room[KVC_TAPE_ROOM];
    struct kvc_span span = kvc_tape_word(m->t, type, room);
    size_t n = strlen(word);
    return span.n >= n && memcmp(span.text + span.n - n, word, n) == 0;
}

static bool type_has(const struct part *m, uint32_t type, const char *word)
{
    char room[KVC_TAPE_ROOM];
    struct kvc_span span = kvc_tape_word(m->t, type, room);
    return span.n && memmem(span.text, span.n, word, strlen(word));
}

static void add_result(struct part *m, uint32_t at)
{
    static const char *const keys[] = { "content", "output", "response", "result", NULL };
    uint32_t v = first_of(m, at, keys);
    struct part inner = *m;
    inner.text_kind = KVC_PIECE_TOOL_RESULT;
    if (v)
        add_content(&inner, v);
}

/* One part of a message's content, or one item of a Responses list, by its type. */
static void add_part(struct part *m, uint32_t at)
{
    static const char *const texts[] = { "text", "content", "refusal", NULL };
    static const char *const thoughts[] = { "thinking", "summary", "content", "text", "data",
                                            "encrypted_content", NULL };
    uint32_t type = member(m, at, "type"), text = member(m, at, "text");
    if (is_text(m, at)) {
        add_text(m->p, m->text_kind, m->t, at);
        return;
    }
    m->c->cache_marks += member(m, at, "cache_control") != 0;
    if (type_has(m, type, "thinking") || kvc_tape_is(m->t, type, "reasoning")) {
        add_thinking(m, first_of(m, at, thoughts));
    } else if (type_ends(m, type, "text") || kvc_tape_is(m->t, type, "refusal") ||
               (!type && is_text(m, text))) {
        uint32_t v = first_of(m, at, texts);
        if (v)
            add_value(m->p, m->text_kind, m->t, v);
    } else if (type_ends(m, type, "tool_use") || type_ends(m, type, "_call")) {
        add_call(m, at);
    } else if (type_ends(m, type, "result") || type_ends(m, type, "call_output") ||
               type_ends(m, type, "call_response")) {
        add_result(m, at);
    } else if (!add_media_part(m, at)) {
        m->c->odd_parts++;
        add_json(m->p, m->text_kind, m->t, at);
    }
}

/* A text, a list of parts, or a part. */
static void add_content(struct part *m, uint32_t at)
{
    if (kvc_tape_kind(m->t, at) != KVC_JARRAY) {
        if (kvc_tape_kind(m->t, at) == KVC_JOBJECT)
            add_part(m, at);
        else
            add_value(m->p, m->text_kind, m->t, at);
        return;
    }
    for (uint32_t i = at + 1; i < kvc_tape_end(m->t, at); i = kvc_tape_next(m->t, i))
        add_part(m, i);
}

/* All of a message but its frame. */
static void add_message_body(struct part *m, uint32_t at)
{
    static const char *const thoughts[] = { "reasoning_content", "reasoning", "thinking", NULL };
    static const char *const contents[] = { "content", "parts", NULL };
    uint32_t name = member(m, at, "name"), content = first_of(m, at, contents);
    uint32_t calls = member(m, at, "tool_calls"), call = member(m, at, "function_call");
    m->c->cache_marks += member(m, at, "cache_control") != 0;
    if (is_text(m, name) && m->t->v[name].n)
        add_text(m->p, KVC_PIECE_NAME, m->t, name);
    add_thinking(m, first_of(m, at, thoughts));
    if (content)
        add_content(m, content);
    if (is_text(m, member(m, at, "refusal")))
        add_text(m->p, m->text_kind, m->t, member(m, at, "refusal"));
    if (calls && kvc_tape_kind(m->t, calls) == KVC_JARRAY)
        for (uint32_t i = calls + 1; i < kvc_tape_end(m->t, calls); i = kvc_tape_next(m->t, i))
            add_call(m, i);
    if (call && kvc_tape_kind(m->t, call) == KVC_JOBJECT)
        add_call(m, call);
}

/* ---- messages ---- */

static enum kvc_role role_of(const struct kvc_tape *t, uint32_t at)
{
    char room[KVC_TAPE_ROOM];
    uint32_t type = kvc_tape_member(t, at, "type");
    struct kvc_span word = kvc_tape_word(t, kvc_tape_member(t, at, "role"), room);
    if (word.text)
        return kvc_role_named(word.text, word.n);
    word = kvc_tape_word(t, type, room);
    if (!word.n || kvc_tape_is(t, type, "message"))
        return KVC_ROLE_USER;
    bool result = memmem(word.text, word.n, "output", 6) != NULL;
    bool input = memmem(word.text, word.n, "input", 5) != NULL;
    return result ? KVC_ROLE_TOOL : input ? KVC_ROLE_USER : KVC_ROLE_ASSISTANT;
}

static bool is_result(const struct kvc_tape *t, uint32_t at)
{
    uint32_t content = kvc_tape_member(t, at, "content");
    if (!content || kvc_tape_kind(t, content) != KVC_JARRAY ||
        kvc_tape_end(t, content) == content + 1)
        return false;
    uint32_t type = kvc_tape_member(t, content + 1, "type");
    return type && kvc_tape_is(t, type, "tool_result");
}

/* Where a user spoke last: thinking before that is of turns that are over. */
static uint32_t last_user(const struct kvc_tape *t, uint32_t list)
{
    uint32_t last = list;
    for (uint32_t i = list + 1; i < kvc_tape_end(t, list); i = kvc_tape_next(t, i))
        if (kvc_tape_kind(t, i) == KVC_JOBJECT && role_of(t, i) == KVC_ROLE_USER &&
            !is_result(t, i))
            last = i;
    return last;
}

static void add_messages(struct kvc_chat *c, struct kvc_prompt *p, const struct kvc_tape *t,
                         uint32_t list)
{
    uint32_t user = last_user(t, list);
    for (uint32_t i = list + 1; i < kvc_tape_end(t, list); i = kvc_tape_next(t, i)) {
        struct part m = { c, p, t, KVC_PIECE_TEXT, i > user };
        if (kvc_tape_kind(t, i) != KVC_JOBJECT) {
            kvc_prompt_message(p, KVC_ROLE_USER);
            add_content(&m, i);
            continue;
        }
        enum kvc_role role = role_of(t, i);
        uint32_t type = kvc_tape_member(t, i, "type");
        bool item = type && !kvc_tape_member(t, i, "role") && !kvc_tape_is(t, type, "message");
        /* Reasoning that doesn't count leaves no message behind. */
        if (item && !m.thinking && kvc_tape_is(t, type, "reasoning")) {
            c->thinking_left_out++;
            continue;
        }
        if (role == KVC_ROLE_TOOL)
            m.text_kind = KVC_PIECE_TOOL_RESULT;
        kvc_prompt_message(p, role);
        if (item)
            add_part(&m, i);
        else
            add_message_body(&m, i);
    }
}

/* ---- bodies ---- */

static void add_tools(struct kvc_chat *c, struct kvc_prompt *p, const struct kvc_tape *t,
                      uint32_t body)
{
    static const char *const keys[] = { "tools", "functions" };
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        uint32_t list = kvc_tape_member(t, body, keys[k]);
        if (!list || kvc_tape_kind(t, list) != KVC_JARRAY || kvc_tape_end(t, list) == list + 1)
            continue;
        kvc_prompt_message(p, KVC_ROLE_SYSTEM);
        for (uint32_t i = list + 1; i < kvc_tape_end(t, list); i = kvc_tape_next(t, i)) {
            c->cache_marks += kvc_tape_member(t, i, "cache_control") != 0;
            add_json(p, KVC_PIECE_TOOLS, t, i);
        }
    }
}

static void add_system(struct kvc_chat *c, struct kvc_prompt *p, const struct kvc_tape *t,
                       uint32_t body)
{
    static const char *const keys[] = { "system", "instructions", "system_instructions" };
    struct part m = { c, p, t, KVC_PIECE_TEXT, true };
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        uint32_t v = kvc_tape_member(t, body, keys[k]);
        if (!v || t->v[v].kind == KVC_JBOOL || t->v[v].kind == KVC_JNUMBER)
            continue;
        kvc_prompt_message(p, KVC_ROLE_SYSTEM);
        add_content(&m, v);
    }
}

/* The prompt of a completion: one text, or a list of one. */
static bool add_completion(struct kvc_chat *c, struct kvc_prompt *p, const struct kvc_tape *t,
                           uint32_t v)
{
    if (kvc_tape_kind(t, v) == KVC_JARRAY) {
        uint32_t first = v + 1;
        c->several = kvc_tape_end(t, v) > first && kvc_tape_next(t, first) < kvc_tape_end(t, v);
        c->token_ids = kvc_tape_end(t, v) > first && (kvc_tape_kind(t, first) == KVC_JNUMBER ||
                                                      kvc_tape_kind(t, first) == KVC_JARRAY);
        v = kvc_tape_end(t, v) > first ? first : 0;
    }
    if (!v || kvc_tape_kind(t, v) != KVC_JSTRING || c->several || c->token_ids)
        return false;
    add_text(p, KVC_PIECE_TEXT, t, v);
    return true;
}

bool kvc_chat_request(struct kvc_chat *c, struct kvc_prompt *p, const struct kvc_tape *t,
                      uint32_t body)
{
    static const char *const raw[] = { "prompt", "text_input", "inputs", "text", NULL };
    if (kvc_tape_kind(t, body) == KVC_JARRAY) {
        add_messages(c, p, t, body);
        return p->messages > 0;
    }
    if (kvc_tape_kind(t, body) != KVC_JOBJECT)
        return add_completion(c, p, t, body);
    uint32_t messages = kvc_tape_member(t, body, "messages");
    uint32_t input = kvc_tape_member(t, body, "input");
    c->continues = kvc_tape_member(t, body, "previous_response_id") ||
                   (input && kvc_tape_member(t, body, "conversation"));
    if (messages && kvc_tape_kind(t, messages) == KVC_JARRAY)
        input = 0;
    else
        messages = input && kvc_tape_kind(t, input) == KVC_JARRAY ? input : 0;
    for (size_t i = 0; !messages && !input && raw[i]; i++) {
        uint32_t v = kvc_tape_member(t, body, raw[i]);
        if (v)
            return add_completion(c, p, t, v);
    }
    if (!messages && !input)
        return false;
    add_tools(c, p, t, body);
    add_system(c, p, t, body);
    if (messages) {
        add_messages(c, p, t, messages);
    } else {
        kvc_prompt_message(p, KVC_ROLE_USER);
        add_value(p, KVC_PIECE_TEXT, t, input);
    }
    return true;
}

bool kvc_chat_answer(struct kvc_chat *c, struct kvc_prompt *p, const struct kvc_tape *t,
                     uint32_t body)
{
    struct part m = { c, p, t, KVC_PIECE_TEXT, true };
    uint32_t choices = kvc_tape_member(t, body, "choices");
    uint32_t output = kvc_tape_member(t, body, "output");
    size_t before = p->n_pieces;
    if (kvc_tape_kind(t, body) == KVC_JSTRING) {
        add_text(p, KVC_PIECE_TEXT, t, body);
        return p->n_pieces > before;
    }
    if (choices && kvc_tape_kind(t, choices) == KVC_JARRAY) {
        if (kvc_tape_end(t, choices) == choices + 1)
            return false;
        c->several = c->several || kvc_tape_next(t, choices + 1) < kvc_tape_end(t, choices);
        body = choices + 1;
        if (kvc_tape_member(t, body, "message"))
            body = kvc_tape_member(t, body, "message");
        else if (is_text(&m, member(&m, body, "text")))
            add_text(p, KVC_PIECE_TEXT, t, member(&m, body, "text"));
    } else if (output && kvc_tape_kind(t, output) == KVC_JARRAY) {
        body = output;
    }
    if (kvc_tape_kind(t, body) == KVC_JARRAY) {
        for (uint32_t i = body + 1; i < kvc_tape_end(t, body); i = kvc_tape_next(t, i)) {
            if (kvc_tape_member(t, i, "role"))
                add_message_body(&m, i);
            else if (!kvc_tape_is(t, i, ""))
                add_part(&m, i);
        }
    } else if (kvc_tape_kind(t, body) == KVC_JOBJECT) {
        add_message_body(&m, body);
    }
    return p->n_pieces > before;
}
