/* SPDX-License-Identifier: Apache-2.0
 * The fast reader of Mooncake rows: it proves that a row is plain and right, and says no to all
 * others; it never rejects anything itself. */
#include "traces/formats/mooncake.h"
#include "traces/parse/scan.h"
#include "traces/trace.h"

#include <string.h>

static bool milliseconds(const char **pp, uint64_t *ns)
{
    const char *p = *pp;
    uint64_t whole;
    double ms;
    if (kvc_scan_digits(&p, &whole) && *p != '.' && *p != 'e' && *p != 'E') {
        *pp = p;
        *ns = whole * 1000000;
        return whole < KVC_LOG_TIME_MAX / 1000000;
    }
    return kvc_scan_decimal(pp, &ms) && kvc_ms_to_ns(ms, ns);
}

/* A string, an integer (its digits are the name) or null. */
static bool name(const char **pp, struct kvc_span *out)
{
    const char *p = *pp;
    uint64_t v;
    struct kvc_scan_key s;
    if (*p == '"') {
        p++;
        if (!kvc_scan_plain_string(&p, &s))
            return false;
        *out = (struct kvc_span){ s.text, s.n };
    } else if (*p == 'n') {
        if (!kvc_scan_null(&p))
            return false;
    } else {
        if (!kvc_scan_digits(&p, &v))
            return false;
        *out = (struct kvc_span){ *pp, (size_t)(p - *pp) };
    }
    *pp = p;
    return true;
}

enum field {
    UNKNOWN = 0, TIMESTAMP = 1, INPUT = 2, OUTPUT = 4, IDS = 8, SESSION = 16, DELAY = 32,
    MODEL = 64, TENANT = 128, USER = 256, INSTANCE = 1024, AGENTIC = 512 /* any that changes what
                                                                            the row means */
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
        TRY("tool_wait_ms", AGENTIC)
        break;
    case 'i':
        TRY("input_length", INPUT)
        TRY("instance", INSTANCE)
        TRY("instance_id", INSTANCE)
        break;
    case 'o':
        TRY("output_length", OUTPUT)
        break;
    case 'h':
        TRY("hash_ids", IDS)
        break;
    case 's':
        TRY("session_id", SESSION)
        TRY("strict_priority", AGENTIC)
        break;
    case 'w':
        TRY("wait_for", AGENTIC)
        TRY("worker_id", INSTANCE)
        break;
    case 'b':
        TRY("branches", AGENTIC)
        break;
    case 'p':
        TRY("prefix_reset", AGENTIC)
        TRY("priority", AGENTIC)
        break;
    case 'r':
        TRY("request_kind", AGENTIC)
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
        return kvc_scan_count(pp, &row->input_tokens) && row->input_tokens;
    case OUTPUT:
        return kvc_scan_count(pp, &row->output_tokens);
    case IDS:
        return kvc_scan_id_list(pp, ids, &row->n_ids, &row->ascending);
    case SESSION:
        return name(pp, &row->session);
    case DELAY:
        return **pp == 'n' ? kvc_scan_null(pp) : milliseconds(pp, &row->think_ns);
    case MODEL:
        return name(pp, &row->model);
    case TENANT:
        return name(pp, &row->tenant);
    case INSTANCE:
        return name(pp, &row->instance);
    case USER:
        return name(pp, user);
    case AGENTIC:
        return false;
    default:
        return kvc_scan_pass_value(pp, 1);
    }
}

size_t kvc_mooncake_scan(const char *text, uint64_t *ids, struct kvc_log_row *row)
{
    struct kvc_scan_key unknown[KVC_SCAN_KEYS];
    unsigned n_unknown = 0, seen = 0;
    struct kvc_span user = { 0 };
    const char *p = kvc_scan_space(text);
    row->think_ns = KVC_TIME_NONE;
    row->ids = ids;
    row->n_ids = 0;
    row->ascending = false;
    row->session = row->model = row->tenant = row->instance = user;
    if (!kvc_scan_mark(&p, '{'))
        return 0;
    do {
        struct kvc_scan_key k;
        if (*p++ != '"')
            return 0;
        enum field f = known_key(&p);
        if ((seen & f) || (f == UNKNOWN && (!kvc_scan_plain_string(&p, &k) ||
                                            !kvc_scan_new_key(unknown, &n_unknown, &k))))
            return 0;
        seen |= f;
        if (!kvc_scan_mark(&p, ':') || !value(&p, f, ids, row, &user))
            return 0;
    } while (kvc_scan_mark(&p, ','));
    if (!kvc_scan_mark(&p, '}') || *p != '\n' || ~seen & (TIMESTAMP | INPUT | OUTPUT))
        return 0;
    if (!row->tenant.text)
        row->tenant = user;
    return (size_t)(p - text);
}
