/* SPDX-License-Identifier: Apache-2.0
 * The fast reader of Mooncake rows: one pass, no allocation, eight digits at a time. It proves
 * that a row is plain and right, and says no to all others; it never rejects anything itself. */
#include "traces/mooncake.h"
#include "traces/trace.h"

#include <string.h>

#define DEEPEST 16 /* of values under unknown keys */
#define MOST_KEYS 24

struct key {
    const char *text;
    size_t n;
};

static inline const char *space(const char *p)
{
    while ((unsigned char)*p <= ' ' && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* Value of the digits at *pp, at least one, no needless zero in front, below 2^64. */
static inline bool digits(const char **pp, uint64_t *out)
{
    const char *p = *pp;
    uint64_t w = 0;
    unsigned n;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&w, p, 8);
    w ^= 0x3030303030303030u;
    /* High bit of each byte that is no digit; exact up to the first such byte. */
    uint64_t other = ((w + 0x7676767676767676u) | w) & 0x8080808080808080u;
    n = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
    if (n == 0)
        return false;
    w <<= (8 - n) * 8;
    w = w * 10 + (w >> 8); /* pairs in every other byte */
    w = ((w & 0x000000ff000000ffu) * 0x000f424000000064u +
         ((w >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >> 32;
#else
    for (n = 0; n < 8 && p[n] >= '0' && p[n] <= '9'; n++)
        w = w * 10 + (uint64_t)(p[n] - '0');
    if (n == 0)
        return false;
#endif
    if (*p == '0' && n > 1)
        return false;
    p += n;
    if (n == 8) {
        for (; *p >= '0' && *p <= '9'; p++) {
            uint64_t d = (uint64_t)(*p - '0');
            if (w > (UINT64_MAX - d) / 10)
                return false;
            w = w * 10 + d;
        }
    }
    *out = w;
    *pp = p;
    return true;
}

/* Text of a string after its opening quote, without escapes and beyond-ASCII bytes. */
static inline bool plain_string(const char **pp, struct key *out)
{
    const char *p = *pp;
    while ((unsigned char)(*p - 0x20) < 0x5f && *p != '"' && *p != '\\')
        p++;
    if (*p != '"')
        return false;
    out->text = *pp;
    out->n = (size_t)(p - *pp);
    *pp = p + 1;
    return true;
}

/* A number that is not negative and has few enough digits for one exact division or product of
 * doubles, which then is the nearest double (Clinger 1990). */
static bool decimal(const char **pp, double *out)
{
    static const double ten[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
                                  1e22 };
    const char *p = *pp, *first = p;
    uint64_t mantissa;
    int exponent = 0;
    if (!digits(&p, &mantissa))
        return false;
    if (*p == '.') {
        const char *point = p++;
        while (*p >= '0' && *p <= '9' && p - first <= 16)
            mantissa = mantissa * 10 + (uint64_t)(*p++ - '0');
        exponent = (int)(point + 1 - p);
        if (!exponent)
            return false;
    }
    if (p - first > 16 || mantissa > (uint64_t)1 << 53)
        return false;
    if (*p == 'e' || *p == 'E') {
        bool minus = *++p == '-';
        int e = 0;
        if (*p == '-' || *p == '+')
            p++;
        const char *from = p;
        while (*p >= '0' && *p <= '9' && p - from < 3)
            e = e * 10 + (*p++ - '0');
        if (p == from)
            return false;
        exponent += minus ? -e : e;
    }
    if (exponent < -22 || exponent > 22)
        return false;
    *out = exponent < 0 ? (double)mantissa / ten[-exponent] : (double)mantissa * ten[exponent];
    *pp = p;
    return true;
}

static bool milliseconds(const char **pp, uint64_t *ns)
{
    const char *p = *pp;
    uint64_t whole;
    double ms;
    if (digits(&p, &whole) && *p != '.' && *p != 'e' && *p != 'E') {
        *pp = p;
        *ns = whole * 1000000;
        return whole < KVC_LOG_TIME_MAX / 1000000;
    }
    return decimal(pp, &ms) && kvc_ms_to_ns(ms, ns);
}

static bool count(const char **pp, uint32_t *out)
{
    uint64_t v;
    *out = 0;
    if (!digits(pp, &v) || v > KVC_TOKENS_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool null(const char **pp)
{
    if (memcmp(*pp, "null", 4) != 0)
        return false;
    *pp += 4;
    return true;
}

/* A string, an integer (its digits are the name) or null. */
static bool name(const char **pp, struct kvc_span *out)
{
    const char *p = *pp;
    uint64_t v;
    struct key s;
    if (*p == '"') {
        p++;
        if (!plain_string(&p, &s))
            return false;
        *out = (struct kvc_span){ s.text, s.n };
    } else if (*p == 'n') {
        if (!null(&p))
            return false;
    } else {
        if (!digits(&p, &v))
            return false;
        *out = (struct kvc_span){ *pp, (size_t)(p - *pp) };
    }
    *pp = p;
    return true;
}

/* Ids numbered at first appearance stand in a row along a chain: the text of the next is that of
 * this one, plus one in its last digit, as long as that is no 9. first is the text of the id v,
 * *pp is behind the separator after it, gap bytes long. Takes ids while that holds. */
static inline size_t counted_ids(const char **pp, const char *first, size_t gap, uint64_t v,
                                 uint64_t *ids)
{
    size_t n = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const char *p = *pp;
    size_t pitch = (size_t)(p - first), len = pitch - gap, low = len < 8 - gap ? len : 8 - gap;
    size_t high = len - low; /* leading digits, which stay, and those in the window, which count */
    if (high > 8)
        return 0;
    uint64_t window_mask = low + gap == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * (low + gap))) - 1;
    uint64_t high_mask = high == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * high)) - 1;
    uint64_t step = (uint64_t)1 << (8 * (low - 1)), lead, window, a, b;
    memcpy(&lead, first, 8);
    memcpy(&window, first + high, 8);
    window &= window_mask;
    for (int left = '9' - first[len - 1]; left > 0; left--) {
        memcpy(&b, p + high, 8);
        window += step;
        if ((b & window_mask) != window)
            break;
        if (high) {
            memcpy(&a, p, 8);
            if ((a ^ lead) & high_mask)
                break;
        }
        ids[n++] = ++v;
        p += pitch;
    }
    *pp = p;
#else
    (void)pp, (void)first, (void)gap, (void)v, (void)ids;
#endif
    return n;
}

static bool id_list(const char **pp, uint64_t *ids, size_t *n_ids)
{
    const char *p = *pp;
    size_t n = 0;
    if (*p == 'n')
        return null(pp);
    if (*p != '[')
        return false;
    p = space(p + 1);
    if (*p == ']') {
        *pp = p + 1;
        return true;
    }
    for (;;) {
        const char *first = p;
        if (!digits(&p, &ids[n++]))
            return false;
        if (*p == ',') {
            size_t gap = p[1] == ' ' ? 2 : 1;
            p += gap;
            n += counted_ids(&p, first, gap, ids[n - 1], ids + n);
        } else if (*(p = space(p)) == ']') {
            break;
        } else if (*p++ != ',') {
            return false;
        }
        p = space(p);
    }
    *n_ids = n;
    *pp = p + 1;
    return true;
}

static bool new_key(struct key *keys, unsigned *n, const struct key *k)
{
    if (*n == MOST_KEYS)
        return false;
    for (unsigned i = 0; i < *n; i++)
        if (keys[i].n == k->n && memcmp(keys[i].text, k->text, k->n) == 0)
            return false;
    keys[(*n)++] = *k;
    return true;
}

static bool pass_value(const char **pp, unsigned depth);

static bool pass_number(const char **pp)
{
    double ignored;
    *pp += **pp == '-';
    return decimal(pp, &ignored);
}

static bool pass_object(const char **pp, unsigned depth)
{
    struct key keys[MOST_KEYS];
    unsigned n = 0;
    const char *p = space(*pp + 1);
    for (;;) {
        struct key k;
        if (*p == '}' && n == 0)
            break;
        if (*p++ != '"' || !plain_string(&p, &k) || !new_key(keys, &n, &k))
            return false;
        p = space(p);
        if (*p++ != ':' || !pass_value(&p, depth + 1))
            return false;
        if (*p == '}')
            break;
        if (*p != ',')
            return false;
        p = space(p + 1);
    }
    *pp = p + 1;
    return true;
}

static bool pass_array(const char **pp, unsigned depth)
{
    const char *p = space(*pp + 1);
    bool first = true;
    for (; !(*p == ']' && first); first = false) {
        if (!pass_value(&p, depth + 1))
            return false;
        if (*p == ']')
            break;
        if (*p != ',')
            return false;
        p = space(p + 1);
    }
    *pp = p + 1;
    return true;
}

/* Passes over one value under an unknown key and the space around it, proving it right. */
static bool pass_value(const char **pp, unsigned depth)
{
    const char *p = space(*pp);
    struct key s;
    bool ok = depth <= DEEPEST;
    switch (*p) {
    case '"':
        p++;
        ok = plain_string(&p, &s);
        break;
    case '{':
        ok = ok && pass_object(&p, depth);
        break;
    case '[':
        ok = ok && pass_array(&p, depth);
        break;
    case 't':
        ok = memcmp(p, "true", 4) == 0;
        p += 4;
        break;
    case 'f':
        ok = memcmp(p, "false", 5) == 0;
        p += 5;
        break;
    case 'n':
        ok = null(&p);
        break;
    default:
        ok = pass_number(&p);
    }
    if (ok)
        *pp = space(p);
    return ok;
}

enum field {
    UNKNOWN = 0, TIMESTAMP = 1, INPUT = 2, OUTPUT = 4, IDS = 8, SESSION = 16, DELAY = 32,
    MODEL = 64, TENANT = 128, USER = 256
};

/* The known key at *pp, after its opening quote, with the closing one; else UNKNOWN, not moved. */
static inline enum field known_key(const char **pp)
{
    const char *p = *pp;
#define TRY(key, field)                                                                            \
    if (memcmp(p, key "\"", sizeof(key)) == 0) {                                                   \
        *pp = p + sizeof(key);                                                                     \
        return field;                                                                              \
    }
    switch (*p) {
    case 't':
        TRY("timestamp", TIMESTAMP)
        TRY("tenant", TENANT)
        break;
    case 'i':
        TRY("input_length", INPUT)
        break;
    case 'o':
        TRY("output_length", OUTPUT)
        break;
    case 'h':
        TRY("hash_ids", IDS)
        break;
    case 's':
        TRY("session_id", SESSION)
        break;
    case 'd':
        TRY("delay", DELAY)
        break;
    case 'm':
        TRY("model", MODEL)
        break;
    case 'u':
        TRY("user", USER)
        break;
    default:
        break;
    }
#undef TRY
    return UNKNOWN;
}

static bool value(const char **pp, enum field f, uint64_t *ids, struct kvc_log_row *row,
                  struct kvc_span *user)
{
    switch (f) {
    case TIMESTAMP:
        return milliseconds(pp, &row->time_ns);
    case INPUT:
        return count(pp, &row->input_tokens) && row->input_tokens;
    case OUTPUT:
        return count(pp, &row->output_tokens);
    case IDS:
        return id_list(pp, ids, &row->n_ids);
    case SESSION:
        return name(pp, &row->session);
    case DELAY:
        return **pp == 'n' ? null(pp) : milliseconds(pp, &row->think_ns);
    case MODEL:
        return name(pp, &row->model);
    case TENANT:
        return name(pp, &row->tenant);
    case USER:
        return name(pp, user);
    default:
        return pass_value(pp, 1);
    }
}

bool kvc_mooncake_scan(const char *text, size_t n, uint64_t *ids, struct kvc_log_row *row)
{
    struct key unknown[MOST_KEYS];
    unsigned n_unknown = 0, seen = 0;
    struct kvc_span user = { 0 };
    const char *p = space(text);
    /* One by one: zeroing the whole of it costs more than a short row. */
    row->time_ns = 0;
    row->think_ns = KVC_TIME_NONE;
    row->ids = ids;
    row->n_ids = 0;
    row->text_ids = false;
    row->session = row->tenant = row->model = user;
    row->status = KVC_ROW_OK;
    if (*p++ != '{')
        return false;
    for (;;) {
        struct key k;
        p = space(p);
        if (*p++ != '"')
            return false;
        enum field f = known_key(&p);
        if ((seen & f) || (f == UNKNOWN && (!plain_string(&p, &k) ||
                                            !new_key(unknown, &n_unknown, &k))))
            return false;
        seen |= f;
        p = space(p);
        if (*p++ != ':')
            return false;
        p = space(p);
        if (!value(&p, f, ids, row, &user))
            return false;
        p = space(p);
        if (*p != ',')
            break;
        p++;
    }
    if (*p++ != '}' || space(p) < text + n)
        return false;
    if (!row->tenant.text)
        row->tenant = user;
    return (seen & (TIMESTAMP | INPUT | OUTPUT)) == (TIMESTAMP | INPUT | OUTPUT);
}
