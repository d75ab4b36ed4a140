/* SPDX-License-Identifier: Apache-2.0
 * 'kvcast ceiling' with --by, --replicas, --router, --isolate or --why: each policy behind each
 * router is a column of its own, its hits those of the closeup. */
#include "cli/ceiling/ceiling.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"
#include "reports/closeup.h"

#include <stdio.h>
#include <string.h>

#define MOST_PARTS 100 /* of groups and tenants in a result */

struct ceiling_closeups {
    struct kvc_closeup_asked asked;
    const char **router; /* asked for; of tables that last */
    size_t n_routers;
    struct kvc_closeup **closeup;        /* by router, of the trace */
    struct kvc_closeup_result *content;
    struct kvc_closeup_result **result;  /* by column, then by point */
    size_t n_results;
    char **label; /* by column: policy, and router where there are replicas */
    size_t n_labels;
};

/* ---- words ---- */

static struct kvc_closeup_options options_of(const struct ceiling *c, const char *router)
{
    const struct kvc_closeup_asked *a = &c->closeups->asked;
    return (struct kvc_closeup_options){
        .struct_size = sizeof(struct kvc_closeup_options), .by = a->by, .isolate = a->isolate,
        .replicas = a->replicas, .router = router, .why = a->why, .seed = kvc_cli_seed(c->cli),
        .most_parts = MOST_PARTS,
    };
}

enum kvc_status kvc_ceiling_take_router(struct ceiling *c, const char *word, struct kvc_error *err)
{
    struct ceiling_closeups *u = c->closeups;
    const struct kvc_closeup_options o = options_of(c, word);
    enum kvc_status st = kvc_closeup_create(NULL, NULL, &o, err);
    if (st != KVC_OK)
        return st;
    const char **grown = kvc_realloc(u->router, u->n_routers + 1, sizeof(*grown));
    if (!grown)
        return kvc_fail_nomem(err);
    u->router = grown;
    char *copy = kvc_strdup(word);
    if (!copy)
        return kvc_fail_nomem(err);
    u->router[u->n_routers++] = copy;
    return KVC_OK;
}

static bool is_field(const char *word)
{
    static const char *const known[] = {"tenant", "session", "model", "prefix"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (kvc_name_equal(word, known[i]))
            return false;
    return true;
}

enum kvc_status kvc_ceiling_closeup_words(struct ceiling *c, struct kvc_error *err)
{
    static const char *const any[] = {"by", "replicas", "router", "isolate", "why"};
    const char *replicas = kvc_cli_value(c->cli, "replicas");
    uint64_t n = 1;
    bool wanted = false;
    enum kvc_status st = KVC_OK;
    for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
        wanted |= kvc_cli_flag(c->cli, any[i]);
    if (!wanted)
        return KVC_OK;
    c->closeups = kvc_calloc(1, sizeof(*c->closeups));
    if (!c->closeups)
        return kvc_fail_nomem(err);
    struct kvc_closeup_asked *a = &c->closeups->asked;
    if (replicas)
        st = kvc_parse_u64(replicas, "--replicas", &n, err);
    if (st == KVC_OK && (n < 1 || n > 4096))
        st = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--replicas",
                         "%s is no number of replicas; give 1 to 4096", replicas);
    if (st == KVC_OK && kvc_cli_flag(c->cli, "router") && n == 1)
        st = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--router",
                         "a router chooses among replicas; give --replicas N, 2 or more");
    if (st != KVC_OK)
        return err->status = KVC_ERR_USAGE;
    a->replicas = (uint32_t)n;
    a->by = kvc_cli_value(c->cli, "by");
    a->why = kvc_cli_flag(c->cli, "why");
    a->isolate = kvc_cli_value(c->cli, "isolate");
    if (a->isolate && is_field(a->isolate)) { /* a field of the log, which names the tenants then */
        if (c->import.tenant_field && strcmp(c->import.tenant_field, a->isolate) != 0)
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--isolate",
                               "%.64s is a field, whose values become the tenants, and "
                               "--tenant-field names another; give --isolate tenant", a->isolate);
        c->import.tenant_field = a->isolate;
        a->isolate = "tenant";
    }
    const struct kvc_closeup_options o = options_of(c, NULL);
    return kvc_closeup_create(NULL, NULL, &o, err);
}

/* ---- the work ---- */

/* A closeup for each router, and columns: each policy behind each router. */
static enum kvc_status prepare(struct ceiling *c, struct kvc_error *err)
{
    struct ceiling_closeups *u = c->closeups;
    size_t n = c->n_policies * u->n_routers;
    enum kvc_status st = KVC_OK;
    const char **policy = kvc_calloc(n, sizeof(*policy)); /* the first of each is c's, moved */
    u->closeup = kvc_calloc(u->n_routers, sizeof(struct kvc_closeup *));
    u->label = kvc_calloc(n, sizeof(char *));
    if (!policy || !u->closeup || !u->label) {
        kvc_free(policy);
        return kvc_fail_nomem(err);
    }
    for (size_t i = 0; i < u->n_routers && st == KVC_OK; i++) {
        const struct kvc_closeup_options o = options_of(c, u->router[i]);
        st = kvc_closeup_create(&u->closeup[i], c->trace, &o, err);
    }
    for (size_t i = 0; i < n; i++) {
        const char *own = c->policy[i / u->n_routers];
        policy[i] = i % u->n_routers ? kvc_strdup(own) : own;
        st = st == KVC_OK && !policy[i] ? kvc_fail_nomem(err) : st;
    }
    for (size_t i = 0; i < n && st == KVC_OK; i++) {
        char label[128];
        snprintf(label, sizeof(label), u->asked.replicas > 1 ? "%s/%s" : "%s", policy[i],
                 u->router[i % u->n_routers]);
        u->label[u->n_labels++] = kvc_strdup(label);
        st = u->label[i] ? KVC_OK : kvc_fail_nomem(err);
    }
    kvc_free(c->policy);
    c->policy = policy;
    c->n_policies = n;
    u->asked.has_prefix = c->stats.has_prefix;
    u->asked.has_tokens = c->stats.has_tokens;
    return st;
}

enum kvc_status kvc_ceiling_closeup_start(struct ceiling *c, struct kvc_error *err)
{
    struct ceiling_closeups *u = c->closeups;
    if (!u)
        return KVC_OK;
    enum kvc_status st = prepare(c, err);
    if (st == KVC_OK)
        st = kvc_closeup_run(u->closeup[0], "content", KVC_CAPACITY_INF, &u->content, err);
    if (st == KVC_OK)
        c->seen = kvc_closeup_trace(u->closeup[0]);
    return st;
}

static enum kvc_status look(void *user, size_t i, struct kvc_error *err)
{
    const struct ceiling *c = user;
    const struct ceiling_closeups *u = c->closeups;
    size_t column = i / c->n_points, point = i % c->n_points;
    enum kvc_status st = kvc_closeup_run(u->closeup[column % u->n_routers], c->policy[column],
                                         c->point[point].blocks, &u->result[i], err);
    if (st == KVC_OK)
        c->hits[i] = u->result[i]->all.hits;
    return st;
}

enum kvc_status kvc_ceiling_closeup_run(struct ceiling *c, struct kvc_error *err)
{
    struct ceiling_closeups *u = c->closeups;
    u->n_results = c->n_points * c->n_policies;
    u->result = kvc_calloc(u->n_results, sizeof(struct kvc_closeup_result *));
    return u->result ? kvc_parallel(kvc_cli_threads(c->cli), u->n_results, look, c, err)
                     : kvc_fail_nomem(err);
}

void kvc_ceiling_closeup_clear(struct ceiling *c)
{
    struct ceiling_closeups *u = c->closeups;
    if (!u)
        return;
    for (size_t i = 0; u->result && i < u->n_results; i++)
        kvc_closeup_result_destroy(u->result[i]);
    kvc_closeup_result_destroy(u->content);
    for (size_t i = 0; i < u->n_routers; i++) {
        kvc_closeup_destroy(u->closeup ? u->closeup[i] : NULL);
        kvc_free((void *)(uintptr_t)u->router[i]);
    }
    for (size_t i = 0; i < u->n_labels; i++)
        kvc_free(u->label[i]);
    kvc_free(u->label);
    kvc_free(u->result);
    kvc_free(u->closeup);
    kvc_free(u->router);
    kvc_free(u);
    c->closeups = NULL;
}

/* ---- output ---- */

const char *kvc_ceiling_label(const struct ceiling *c, size_t column)
{
    return c->closeups ? c->closeups->label[column] : c->policy[column];
}

uint32_t kvc_ceiling_replicas(const struct ceiling *c)
{
    return c->closeups ? c->closeups->asked.replicas : 1;
}

void kvc_ceiling_closeup_ladder(const struct ceiling *c, size_t column, size_t point,
                                struct kvc_ladder *l)
{
    const struct ceiling_closeups *u = c->closeups;
    if (!u)
        return;
    const struct kvc_closeup_result *r = u->result[column * c->n_points + point];
    l->policy = u->label[column];
    if (u->asked.isolate) {
        l->content = &u->content->shared;
        l->below[KVC_GAP_SHARING] = &c->content;
    }
    if (!r->n_replicas)
        return;
    l->capacity_blocks = l->capacity_blocks > KVC_CAPACITY_INF / r->n_replicas
                             ? KVC_CAPACITY_INF : l->capacity_blocks * r->n_replicas;
    l->below[KVC_GAP_CAPACITY] = &r->optimum_pool;
    l->below[KVC_GAP_POLICY] = &r->pool;
    l->below[KVC_GAP_ROUTING] = &r->all.hits;
}

void kvc_ceiling_closeup_json_content(struct kvc_json *j, const struct ceiling *c)
{
    if (c->closeups)
        kvc_closeup_json(j, c->closeups->content, &c->closeups->asked);
}

void kvc_ceiling_closeup_json_point(struct kvc_json *j, const struct ceiling *c, size_t column,
                                    size_t point)
{
    const struct ceiling_closeups *u = c->closeups;
    if (!u)
        return;
    if (u->asked.replicas > 1)
        kvc_json_string(j, "router", u->router[column % u->n_routers]);
    kvc_closeup_json(j, u->result[column * c->n_points + point], &u->asked);
}

void kvc_ceiling_closeup_json(struct kvc_json *j, const struct ceiling *c)
{
    const struct kvc_crossing *x =
        c->closeups ? kvc_closeup_crossing(c->closeups->closeup[0]) : NULL;
    if (x)
        kvc_crossing_json(j, x, c->closeups->asked.isolate);
}

enum kvc_status kvc_ceiling_closeup_text(const struct ceiling *c, struct kvc_error *err)
{
    const struct ceiling_closeups *u = c->closeups;
    struct kvc_text t = {0};
    if (!u || !c->n_points)
        return KVC_OK;
    uint64_t *capacity = kvc_malloc(c->n_points, sizeof(*capacity));
    if (!capacity)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < c->n_points; i++)
        capacity[i] = c->point[i].blocks;
    if (u->asked.isolate && u->asked.has_prefix)
        kvc_crossing_text(&t, kvc_closeup_crossing(u->closeup[0]), u->asked.isolate);
    for (size_t i = 0; i < u->n_routers && !c->stats.sessions; i++)
        if (kvc_name_equal(u->router[i], "sticky"))
            kvc_text_add(&t, "\nno request names a session, so sticky sends them in turn "
                             "(--infer-sessions may find some)\n");
    for (size_t p = 0; p < c->n_policies; p++) {
        const struct kvc_closeup_rows rows = {
            .policy = u->label[p], .capacity_blocks = capacity, .n = c->n_points,
            .result = u->result + p * c->n_points, .content = u->content,
        };
        kvc_closeup_text(&t, &rows, &u->asked);
    }
    enum kvc_status st = t.failed ? kvc_fail_nomem(err) : KVC_OK;
    if (st == KVC_OK && t.buf)
        fputs(t.buf, stdout);
    kvc_text_clear(&t);
    kvc_free(capacity);
    return st;
}
