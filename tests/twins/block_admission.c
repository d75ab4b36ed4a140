/* SPDX-License-Identifier: Apache-2.0
 * Admission block by block. born, last and the like of the policies are not used here: what was
 * asked for is remembered beside the cache. */
#include "tests/twins/block_internal.h"

static double given(const struct block_cache *c, const char *name, double otherwise)
{
    for (uint32_t i = 0; i < c->log->n_admission_options; i++)
        if (!strcmp(c->log->admission_option[i].name, name))
            return c->log->admission_option[i].value;
    return otherwise;
}

static void count(struct block_cache *c)
{
    for (uint32_t i = 0; i < c->length; i++)
        c->asks[c->path[i]]++;
    c->asked_for += c->length;
}

static void second_ask(struct block_cache *c)
{
    double memory = given(c, "memory", 0);
    if (memory > 0 && (double)c->asked_for >= memory * (double)c->capacity) {
        memset(c->asks, 0, c->n_blocks * sizeof(*c->asks));
        c->asked_for = 0;
    }
    count(c);
}

static bool second(const struct block_cache *c, uint32_t b)
{
    return c->asks[b] >= given(c, "times", 2);
}

static void tinylfu_ask(struct block_cache *c)
{
    count(c);
    for (uint32_t i = 0; i < c->length; i++)
        if (c->asks[c->path[i]] > 15)
            c->asks[c->path[i]] = 15;
    if ((double)c->asked_for < given(c, "sample", 10) * (double)c->capacity)
        return;
    c->asked_for /= 2;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        c->asks[b] /= 2;
}

/* All that were asked for as often fit. */
static bool tinylfu(const struct block_cache *c, uint32_t b)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->n_blocks; i++)
        n += c->asks[i] >= c->asks[b];
    return c->asks[b] && n <= c->capacity;
}

static void ttl_ask(struct block_cache *c)
{
    for (uint32_t i = 0; i < c->length; i++) {
        uint32_t b = c->path[i];
        c->gap[b] = c->asks[b]++ ? c->now_ns - c->asked_at[b] : NEVER;
        c->asked_at[b] = c->now_ns;
    }
}

/* Pauses of a session up to the request in hand, or of all of them; their mean is due. */
static bool mean_pause(const struct block_cache *c, uint32_t session, uint64_t *due)
{
    uint64_t sum = 0, n = 0;
    for (uint32_t r = 0; r < c->request; r++) {
        uint32_t id = c->log->session[r], before = r;
        while (before > 0 && (before == r || c->log->session[before] != id ||
                              !c->log->length[before]))
            before--;
        if (id == NONE || !c->log->length[r] || before == r || c->log->session[before] != id ||
            !c->log->length[before] || (session != NONE && id != session))
            continue;
        sum += c->log->now_ns[r] - c->log->now_ns[before];
        n++;
    }
    *due = n ? sum / n : 0;
    return n > 0;
}

static bool ttl(const struct block_cache *c, uint32_t b)
{
    uint64_t due = c->asks[b] ? c->gap[b] : NEVER;
    if (due == NEVER && (c->session == NONE || !mean_pause(c, c->session, &due)))
        mean_pause(c, NONE, &due);
    return due < (uint64_t)given(c, "ttl", 300e9);
}

void block_asks(struct block_cache *c)
{
    const char *name = c->log->admission;
    if (!strcmp(name, "second"))
        second_ask(c);
    if (!strcmp(name, "tinylfu"))
        tinylfu_ask(c);
    if (!strcmp(name, "ttl"))
        ttl_ask(c);
}

bool block_admits(const struct block_cache *c, uint32_t b, uint32_t at)
{
    const char *name = c->log->admission;
    uint64_t most = (uint64_t)given(c, "tokens", 32768), size = c->log->block_tokens;
    return !strcmp(name, "depth")     ? (at + 1) * size <= most
           : !strcmp(name, "size")    ? c->tokens <= most
           : !strcmp(name, "second")  ? second(c, b)
           : !strcmp(name, "tinylfu") ? tinylfu(c, b)
                                      : ttl(c, b);
}

uint32_t block_admission(struct block_cache *c)
{
    const char *name = c->log->admission;
    uint32_t end = 0;
    if (!name || !strcmp(name, "always"))
        return c->length;
    block_asks(c);
    for (; end < c->length; end++) {
        uint32_t b = c->path[end];
        if (!block_admits(c, b, end) && !(c->resident[b] && strcmp(name, "depth")))
            break;
    }
    return end;
}
