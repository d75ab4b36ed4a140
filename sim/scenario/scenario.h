/* SPDX-License-Identifier: Apache-2.0
 * A scenario: all that changes a replay's result, parsed and with defaults filled in. */
#ifndef KVC_SIM_SCENARIO_H
#define KVC_SIM_SCENARIO_H

#include <kvcast/kvcast.h>
#include "models/connector.h"

enum kvc_scope { KVC_PER_GPU, KVC_PER_REPLICA, KVC_PER_NODE, KVC_CLUSTER };
enum kvc_write_mode { KVC_WRITE_THROUGH, KVC_WRITE_SELECTIVE, KVC_WRITE_BACK, KVC_WRITE_ON_EVICT };
enum kvc_arrival_mode { KVC_ARRIVALS_OPEN, KVC_ARRIVALS_CLOSED, KVC_ARRIVALS_PACED };

/* The rules by which a scheduler differs from vLLM's (the first of each); docs/replay.md. */
enum kvc_prefill_rule { KVC_PREFILL_MIXED, KVC_PREFILL_FIRST };
enum kvc_reserve_rule { KVC_RESERVE_NONE, KVC_RESERVE_ESTIMATED, KVC_RESERVE_FULL };
enum kvc_publish_rule { KVC_PUBLISH_SCHEDULED, KVC_PUBLISH_COMPUTED, KVC_PUBLISH_INSERTED };
enum kvc_preempt_rule { KVC_PREEMPT_LAST, KVC_PREEMPT_SHORTEST };
/* KV below host memory is loaded when the scheduler looks at a request, or fetched into host memory
 * from when it comes: until the scheduler looks, to the end, or for so long at most. */
enum kvc_prefetch_rule { KVC_PREFETCH_NEVER, KVC_PREFETCH_BEST_EFFORT, KVC_PREFETCH_WAIT_COMPLETE,
                         KVC_PREFETCH_TIMEOUT };

enum kvc_quota_mode { KVC_QUOTA_HYBRID, KVC_QUOTA_SOFT, KVC_QUOTA_HARD, KVC_QUOTA_ISOLATED };

#define KVC_NAME_MAX 64
#define KVC_SPEC_MAX 256 /* of a policy with its options, or a plug-in's path */
#define KVC_TENANT_RULES 32
#define KVC_LEVELS 4 /* hbm, dram, nvme, remote */

struct kvc_tier_config { /* lower tiers; HBM is in engine and cluster */
    char name[32];       /* "dram", "nvme", "remote" */
    bool present;
    uint64_t capacity_bytes; /* of one scope instance */
    enum kvc_scope scope;
    char policy[KVC_SPEC_MAX];
    char link[KVC_NAME_MAX]; /* profile name; "" = the custom figures below */
    double link_bytes_per_s, link_efficiency;
    uint64_t link_latency_ns;
    uint32_t link_queue_depth; /* 0: the link profile's */
    uint64_t link_io_bytes;    /* of one read or write; 0: a chunk's bytes of one GPU */
    enum kvc_connector connector; /* by which pages are pulled piece by piece; of remote */
    bool link_staged;          /* loads rest in host memory before they go to the GPU */
    uint32_t link_devices;   /* drives or NICs behind one scope instance; 0 = as many as its GPUs
                                for dram and remote, 1 for nvme */
    enum kvc_write_mode write;
    char admission[KVC_SPEC_MAX]; /* name[:option=value] */
    bool inclusive;
    bool store_output;       /* blocks of known outputs are written through too, not only
                                prompts' */
    uint32_t chunk_tokens;   /* unit of storage; 0 = the engine's page */
    double gb_month_usd;     /* NAN: the price list's */
    uint64_t ttl_ns;         /* 0: none */
};

struct kvc_amount { /* of an instance of a tier */
    enum { KVC_AMOUNT_UNSET, KVC_AMOUNT_NONE, KVC_AMOUNT_SHARE, KVC_AMOUNT_BYTES } kind;
    double share;
    uint64_t bytes;
};

/* What holds for a tenant, or, as "default", for those that have no rule; what a tenant's rule
 * leaves out (given has no bit) follows default's. docs/tenants.md says what it does. */
struct kvc_tenant_rule {
    char name[KVC_NAME_MAX];
    struct kvc_amount quota[KVC_LEVELS], reserve[KVC_LEVELS];
    uint32_t named[2];     /* levels whose quota, reservation is given by name, bit each */
    uint32_t given;        /* enum kvc_tenant_field, bit each, for the following ones */
    enum kvc_quota_mode quota_mode;
    uint64_t ttl_ns;       /* 0: none */
    uint32_t priority;     /* lower goes first and is evicted last */
    char salt[KVC_NAME_MAX]; /* of its namespace; "": that of all */
    char allow[256];       /* tenants whose namespace it shares, apart by newlines */
};
enum kvc_tenant_field { KVC_TENANT_MODE, KVC_TENANT_TTL, KVC_TENANT_PRIORITY, KVC_TENANT_SALT,
                        KVC_TENANT_ALLOW };

struct kvc_scenario {
    char trace[1024];
    char profile[1024]; /* figures of the user's own, models/user_profile.h */
    char preset[KVC_NAME_MAX];
    char model[KVC_NAME_MAX], weights_dtype[16], kv_dtype[32];
    struct {
        char preset[KVC_NAME_MAX], backend[16];
        uint32_t page_tokens;       /* 16 */
        uint32_t max_batched_tokens, max_seqs, max_model_len;
        double gpu_memory_utilization;
        bool prefix_caching, chunked_prefill;
        bool reserve_full_prompt;   /* scheduler_reserve_full_isl */
        bool plan_ahead;            /* a step is planned when the one before begins */
        bool cold;                  /* it has just started: kernels are compiled at first use */
        bool unhashed_first;        /* vLLM >= 0.24: freed unhashed blocks are reused first */
        enum kvc_prefill_rule prefill;
        enum kvc_reserve_rule reserve_output;
        enum kvc_publish_rule publish;
        enum kvc_preempt_rule preempt;
        enum kvc_prefetch_rule prefetch;
        uint32_t prefetch_threshold; /* tokens below which nothing is fetched */
        double prefetch_limit;       /* of what host memory holds beyond HBM, under way at once */
        bool partial_reuse;         /* hits end at tokens, not pages */
        uint64_t kv_cache_memory_bytes; /* 0 = derive */
        uint64_t sequence_memory_bytes; /* 0 = derive */
        bool unified_kv;
        double kv_resident, output_inflation;
        uint64_t kv_load_ns, kv_load_token_ns; /* of a load from below HBM, beside its bytes */
        char order[KVC_SPEC_MAX]; /* who of those that wait is admitted next; "": fcfs */
    } engine;
    struct {
        char gpu[KVC_NAME_MAX];
        uint32_t tp, pp, ep, dp, replicas, gpus_per_node;
    } cluster;
    char hbm_policy[KVC_SPEC_MAX];
    uint64_t hbm_ttl_ns;
    struct kvc_tier_config tiers[3]; /* dram, nvme, remote */
    uint32_t n_tenants;
    struct kvc_tenant_rule tenants[KVC_TENANT_RULES];
    struct {
        char policy[KVC_SPEC_MAX];
        double load_weight;
        uint64_t latency_ns;
    } router;
    struct {
        enum kvc_arrival_mode mode;
        double scale;          /* 2.0 = twice the rate */
        uint64_t spread_ns;    /* batched arrivals are spread evenly over this much */
        uint32_t concurrency;
        bool rounds;           /* closed: no turn before everybody's last one has ended */
    } arrivals;
    uint64_t warmup_ns, request_timeout_ns; /* 0 = none */
    struct { uint64_t ttft_p99_ns, tpot_p99_ns; } slo; /* 0 = none */
    struct {
        double gpu_hour_usd, dram_gb_month_usd, nvme_gb_month_usd, remote_gb_month_usd,
            power_usd_per_kwh; /* NAN: the profiles' figures; power then is in the rent */
    } prices;
    uint64_t seed;

    char trace_path[1024], profile_path[1024]; /* seen from the scenario file's folder */
    uint64_t given[2];     /* bit per key that was set; the others follow presets and profiles */
};

/* Names what is missing or does not go together; a replay starts with it. */
enum kvc_status kvc_scenario_check(const struct kvc_scenario *s, struct kvc_error *err);
/* Reads the user's profile; *out NULL where the scenario names none. */
struct kvc_user_profile;
enum kvc_status kvc_scenario_profile(struct kvc_user_profile **out, const struct kvc_scenario *s,
                                     struct kvc_error *err);
/* The name of the first: what holds for tenants without a rule of their own. */
#define KVC_TENANT_DEFAULT "default"
/* Whether the file begins like a scenario rather than a log (JSON lines). */
bool kvc_scenario_sniff(const char *path);

/* One key of a scenario. The table drives JSON, flags, the effective scenario, help and manual. */
enum kvc_key_kind {
    KVC_KEY_TEXT,   /* free */
    KVC_KEY_NAME,   /* from choices or names(), kept in their spelling */
    KVC_KEY_U32,
    KVC_KEY_U64,
    KVC_KEY_DOUBLE,
    KVC_KEY_BOOL,
    KVC_KEY_BYTES,
    KVC_KEY_RATE,   /* bytes per second */
    KVC_KEY_NS,
    KVC_KEY_ENUM    /* an int; choices in the order of its values */
};

struct kvc_scenario_key {
    const char *name;  /* dotted: "tiers.dram.capacity" */
    const char *flag;  /* short form without dashes, or NULL */
    const char *arg;   /* what the value is called in help */
    enum kvc_key_kind kind;
    size_t offset, size;
    double min, max;   /* of numbers, in the unit stored */
    const char *const *choices;        /* NULL-terminated */
    const char *const *(*names)(void); /* the same, for lists that live elsewhere */
    const char *default_text; /* "" = none (null); "(words)" = follows from other keys */
    const char *help;
};

const struct kvc_scenario_key *kvc_scenario_keys(size_t *n);
/* What holds for a tenant, as help shows it: name, arg, default and help only. */
const struct kvc_scenario_key *kvc_scenario_tenant_keys(size_t *n);
/* By dotted name or short flag; NULL when there is none. */
const struct kvc_scenario_key *kvc_scenario_key_find(const char *name);
/* Whether the name is a group of keys ("tiers.dram") or promised but not yet supported. */
bool kvc_scenario_key_group(const char *name);

#endif
