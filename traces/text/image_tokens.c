/* SPDX-License-Identifier: Apache-2.0
 * Tokens of images by the published rules. OpenAI, "Images and vision" (calculating costs), for
 * gpt-4o, gpt-4.1 and gpt-4-turbo: 85 with detail low; else fitted into 2048 x 2048, the shorter
 * side brought down to 768, and 85 + 170 for each tile of 512 x 512. Anthropic, "Vision": width x
 * height / 750 once the longer side is at most 1568. Other models: none here. */
#include "traces/text/chat.h"

#include <string.h>
#include <strings.h>

#define HEAD 4096 /* bytes of an image that are looked at for its size */

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static size_t decode_base64(const char *text, size_t n, unsigned char *out, size_t most)
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t k = 0;
    for (size_t i = 0; i < n && k < most; i++) {
        int v = sextet(text[i]);
        if (v < 0)
            break;
        bits = bits << 6 | (uint32_t)v;
        held += 6;
        if (held >= 8)
            out[k++] = (unsigned char)(bits >> (held -= 8));
    }
    return k;
}

static uint32_t be16(const unsigned char *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

/* The frame header of a JPEG, behind its other segments. */
static bool jpeg_size(const unsigned char *p, size_t n, uint32_t *w, uint32_t *h)
{
    size_t i = 2;
    while (i + 9 < n && p[i] == 0xff) {
        unsigned char kind = p[i + 1];
        if (kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc) {
            *h = be16(p + i + 5);
            *w = be16(p + i + 7);
            return true;
        }
        i += 2 + be16(p + i + 2);
    }
    return false;
}

static bool image_size(const unsigned char *p, size_t n, uint32_t *w, uint32_t *h)
{
    if (n >= 24 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0) {
        *w = be16(p + 16) << 16 | be16(p + 18);
        *h = be16(p + 20) << 16 | be16(p + 22);
        return true;
    }
    if (n >= 10 && memcmp(p, "GIF8", 4) == 0) {
        *w = p[6] | (uint32_t)p[7] << 8;
        *h = p[8] | (uint32_t)p[9] << 8;
        return true;
    }
    return n > 4 && p[0] == 0xff && p[1] == 0xd8 && jpeg_size(p, n, w, h);
}

static bool begins(const struct kvc_span *s, const char *word)
{
    size_t n = strlen(word);
    const char *text = s->text;
    size_t left = s->n;
    const char *slash = text ? memrchr(text, '/', left) : NULL; /* "openai/gpt-4o" */
    if (slash) {
        left -= (size_t)(slash + 1 - text);
        text = slash + 1;
    }
    return text && left >= n && strncasecmp(text, word, n) == 0;
}

static bool holds(const struct kvc_span *s, const char *word)
{
    return s->text && memmem(s->text, s->n, word, strlen(word));
}

static bool tiled(const struct kvc_span *m)
{
    bool family = begins(m, "gpt-4o") || begins(m, "gpt-4.1") || begins(m, "gpt-4-turbo") ||
                  begins(m, "chatgpt-4o");
    return family && !holds(m, "mini") && !holds(m, "nano");
}

static uint32_t tile_tokens(uint64_t w, uint64_t h)
{
    double fit = 2048.0 / (double)(w > h ? w : h), x = (double)w, y = (double)h;
    if (fit < 1) {
        x *= fit;
        y *= fit;
    }
    double shrink = 768 / (x < y ? x : y);
    if (shrink < 1) {
        x *= shrink;
        y *= shrink;
    }
    uint32_t across = (uint32_t)((x - 1e-6) / 512) + 1, down = (uint32_t)((y - 1e-6) / 512) + 1;
    return 85 + 170 * across * down;
}

uint32_t kvc_image_tokens(const struct kvc_span *model, const char *content, size_t n,
                          const char *detail)
{
    unsigned char head[HEAD];
    uint32_t w = 0, h = 0;
    bool claude = holds(model, "claude");
    if (!claude && !tiled(model))
        return KVC_ID_NONE;
    if (tiled(model) && detail && strcmp(detail, "low") == 0)
        return 85;
    if (n > 5 && memcmp(content, "data:", 5) == 0) {
        const char *comma = memchr(content, ',', n < 200 ? n : 200);
        if (!comma)
            return KVC_ID_NONE;
        n -= (size_t)(comma + 1 - content);
        content = comma + 1;
    }
    if (!image_size(head, decode_base64(content, n, head, HEAD), &w, &h) || !w || !h ||
        w > 65535 || h > 65535)
        return KVC_ID_NONE;
    if (!claude)
        return tile_tokens(w, h);
    double fit = 1568.0 / (double)(w > h ? w : h);
    double area = (double)w * (double)h * (fit < 1 ? fit * fit : 1);
    return (uint32_t)(area / 750 + 0.5);
}
