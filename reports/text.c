/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/out.h"

#include <string.h>

/* Length of the well-formed UTF-8 sequence at s, 0 if there is none (RFC 3629). */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

void kvc_text_html(struct kvc_text *t, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        size_t n = utf8_length(s);
        bool control = *s < 0x20 && *s != '\n' && *s != '\t';
        if (*s == '&')
            kvc_text_add(t, "&amp;");
        else if (*s == '<')
            kvc_text_add(t, "&lt;");
        else if (*s == '>')
            kvc_text_add(t, "&gt;");
        else if (*s == '"')
            kvc_text_add(t, "&quot;");
        else if (*s == '\'')
            kvc_text_add(t, "&#39;");
        else if (!n || control || *s == 0x7f)
            kvc_text_add(t, "\xef\xbf\xbd");
        else
            kvc_text_addn(t, (const char *)s, n);
        s += n ? n : 1;
    }
}

void kvc_text_csv(struct kvc_text *t, const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        kvc_text_add(t, s);
        return;
    }
    kvc_text_add(t, "\"");
    for (; *s; s++) {
        if (*s == '"')
            kvc_text_add(t, "\"");
        kvc_text_addn(t, s, 1);
    }
    kvc_text_add(t, "\"");
}
