/* SPDX-License-Identifier: Apache-2.0
 * What the run costs, and per token. An hour's price is GPUs at their rental price, tiers at their
 * price per GB (1e9 bytes) and month, the network where there is a remote tier, and power where a
 * price of power is given (rental prices include it).
 *
 * Attribution: GPU cost goes to prompt tokens computed and to output tokens by the busy time of
 * prefill and decode, idle time in proportion; the tiers and the network go to cached tokens. A
 * tenant pays for its tokens of each kind. */
#include "sim/replay/collect.h"

#include "base/units.h"
#include "models/user_profile.h"

#include <math.h>

static double priced(double given, double profile)
{
    return isnan(given) ? profile : given;
}

static double per_million(double usd, uint64_t tokens)
{
    return tokens ? usd * 1e6 / (double)tokens : (double)NAN;
}

static double tier_usd_per_hour(const struct kvc_engine *e, const struct kvc_result *r,
                                uint32_t slot, double gb_month_usd)
{
    for (uint32_t i = 1, k = 0; i < r->n_tiers; i++, k++) {
        while (!e->sc->tiers[k].present)
            k++;
        if (k != slot)
            continue;
        double own = e->sc->tiers[k].gb_month_usd;
        return (double)r->tiers[i].capacity_bytes * 1e-9 * priced(own, gb_month_usd) /
               KVC_HOURS_PER_MONTH;
    }
    return 0;
}

static double part(double usd, uint64_t own, uint64_t all)
{
    return all ? usd * (double)own / (double)all : 0;
}

/* To tenants as to tokens: prefill by prompt tokens missed, decode by output tokens, tiers and the
 * network by tokens hit; what has no such token at all, by input tokens. */
static void share_cost(struct kvc_result *r, double tiers_usd, double gpu_usd, double prefill)
{
    uint64_t missed = r->input_tokens - r->hit_tokens;
    double rest = r->hit_tokens ? 0 : tiers_usd;
    rest += missed ? 0 : gpu_usd * prefill;
    rest += r->output_tokens ? 0 : gpu_usd * (1 - prefill);
    for (uint32_t k = 0; k < r->n_tenants; k++) {
        struct kvc_tenant_result *t = &r->tenants[k];
        t->cost_usd = part(gpu_usd * prefill, t->input_tokens - t->hit_tokens, missed) +
                      part(gpu_usd * (1 - prefill), t->output_tokens, r->output_tokens) +
                      part(tiers_usd, t->hit_tokens, r->hit_tokens) +
                      part(rest, t->input_tokens, r->input_tokens);
    }
}

void kvc_collect_cost(const struct kvc_engine *e, struct kvc_result *r)
{
    const struct kvc_scenario *sc = e->sc;
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, sc->cluster.gpu);
    const struct kvc_prices *p = kvc_prices_default();
    double gpus_per_replica = (double)sc->cluster.tp * sc->cluster.pp;
    double gpus = gpus_per_replica * e->n_replicas;
    double hours = (double)e->end_ns * 1e-9 / 3600, busy_s = 0;
    struct kvc_cost *c = &r->cost;

    for (uint32_t i = 0; i < r->n_replicas; i++)
        busy_s += r->replicas[i].busy_fraction * hours * 3600;
    c->part_gpu = gpus * priced(sc->prices.gpu_hour_usd, gpu->usd_per_hour.value);
    c->part_dram = tier_usd_per_hour(e, r, 0, priced(sc->prices.dram_gb_month_usd,
                                                     p->dram_gb_month_usd.value));
    c->part_nvme = tier_usd_per_hour(e, r, 1, priced(sc->prices.nvme_gb_month_usd,
                                                     p->nvme_gb_month_usd.value));
    double remote = tier_usd_per_hour(e, r, 2, priced(sc->prices.remote_gb_month_usd,
                                                      p->remote_gb_month_usd.value));
    if (sc->tiers[2].present)
        c->part_network = remote + gpus * p->network_usd_per_hour_per_gpu.value;
    if (!isnan(sc->prices.power_usd_per_kwh) && hours > 0)
        c->part_power = gpus_per_replica * busy_s / (hours * 3600) * gpu->tdp_w.value * 1e-3 *
                        p->pue.value * sc->prices.power_usd_per_kwh;
    c->usd_per_hour = c->part_gpu + c->part_dram + c->part_nvme + c->part_network + c->part_power;
    c->usd_total = c->usd_per_hour * hours;

    double prefill_s = (double)e->prefill_ns * 1e-9, decode_s = (double)e->decode_ns * 1e-9;
    double work_s = prefill_s + decode_s;
    double gpu_usd = (c->part_gpu + c->part_power) * hours;
    double tiers_usd = (c->part_dram + c->part_nvme + c->part_network) * hours;
    uint64_t missed = r->input_tokens - r->hit_tokens;
    c->usd_per_million_input_tokens = c->usd_per_million_output_tokens = NAN;
    if (work_s > 0) {
        c->usd_per_million_input_tokens = per_million(gpu_usd * prefill_s / work_s, missed);
        c->usd_per_million_output_tokens =
            per_million(gpu_usd * decode_s / work_s, r->output_tokens);
    }
    c->usd_per_million_cached_tokens = per_million(tiers_usd, r->hit_tokens);

    r->gpu_seconds_per_million_missed_tokens =
        e->computed_tokens ? prefill_s * gpus_per_replica * 1e6 / (double)e->computed_tokens : 0;

    /* Prefill time that the same requests would take more without lower tiers, at the GPUs' price,
     * less what the tiers cost. (Decode time is left out: it moves with how many happen to decode
     * at once.) It only turns into money where GPUs can be given back. */
    if (r->n_tiers > 1 && e->hbm_only_prefill_ns == KVC_TIME_NONE)
        c->saving_vs_hbm_only_usd_per_month = NAN;
    if (hours > 0 && e->hbm_only_prefill_ns != KVC_TIME_NONE) {
        double saved_gpu_s = ((double)e->hbm_only_prefill_ns * 1e-9 - prefill_s) * gpus_per_replica;
        double gpu_usd_per_s = gpus > 0 ? c->part_gpu / gpus / 3600 : 0;
        c->saving_vs_hbm_only_usd_per_month =
            (saved_gpu_s * gpu_usd_per_s / hours - c->part_dram - c->part_nvme - c->part_network) *
            KVC_HOURS_PER_MONTH;
    }
    share_cost(r, tiers_usd, gpu_usd, work_s > 0 ? prefill_s / work_s : 0);
}
