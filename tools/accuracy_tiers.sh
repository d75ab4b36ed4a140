#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# accuracy_tiers.sh SHARED: the section of docs/accuracy.md on SGLang's multi-turn benchmark over tiers, read by accuracy.sh.
data=$1/validation
kvcast=${KVCAST:-build/kvcast}
draws=${DRAWS:-20}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# log DRAW LENGTH OUTPUT ROUNDS RATE FREE: what bench_multiturn.py asks: clients whose prompts grow, in random order, round after
# round (a client is ready 10 s after the last answer of a round and the first ones are sent at RATE), or, FREE, any ready client.
log() {
    awk -v draw="$1" -v len="$2" -v out="$3" -v rounds="$4" -v rate="$5" -v free="$6" '
    function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
    function ask(c, r, more,    b, n) {
        n = len * (r + 1) + out * r
        printf "{\"timestamp\": %d, %s\"input_length\": %d, \"output_length\": %d, \"hash_ids\": [", asked++, more, n, out
        for (b = 0; b * 64 < n; b++)
            printf "%s%d", b ? ", " : "", (b + 1) * 64 <= n ? c * 10000 + b : 1000000 + c * 100 + r
        print "]}" }
    function shuffle(    c, j, t) {
        for (c = 0; c < 20; c++) order[c] = c
        for (c = 19; c; c--) { j = int(uniform() * (c + 1)); t = order[c]; order[c] = order[j]; order[j] = t } }
    function one_round(r,    i, at, more) {
        shuffle()
        at = 10000
        for (i = 0; i < 20; i++) {
            more = sprintf("\"session_id\": \"%d\", ", order[i])
            if (r)
                more = more sprintf("\"delay\": %d, ", at)
            if (i < 3)
                at -= log(1 - uniform()) / rate * 1000
            ask(order[i], r, more)
        } }
    function anybody(    c, m) { # but those that may still be under way, of four
        for (c = 0; c < 20; c++) if (turn[c] < rounds && asked - last[c] >= 4) ready[m++] = c
        for (c = 0; !m && c < 20; c++) if (turn[c] < rounds) ready[m++] = c
        c = ready[int(uniform() * m)]
        last[c] = asked
        ask(c, turn[c]++, "") }
    BEGIN { state = 7919 * draw + 1
        for (c = 0; c < 20; c++) last[c] = -4
        for (r = 0; !free && r < rounds; r++) one_round(r)
        for (i = 0; free && i < 20 * rounds; i++) anybody() }'
}

# replay LOG OPTIONS..: requests of a replay as rows
replay() {
    log=$1
    shift
    "$kvcast" replay "$log" --quiet --no-bounds --block-tokens 64 --engine sglang --engine.page_tokens 64 --policy radix \
        --arrivals.mode closed --arrivals.concurrency 4 --requests "$dir/rows" "$@" > "$dir/text" || exit 1
}

cat <<'TEXT'

## SGLang's multi-turn benchmark over HBM, host memory, Mooncake and NVMe
`benchmark/hicache/bench_multiturn.py`: 20 clients, 4 requests at once, each prompt its client's history and so many tokens more. What it
asks is written by `tools/accuracy_tiers.sh`: histories, queue in random order, barrier between rounds (`arrivals.rounds`) with its
pause of 10 s. Who comes when is drawn, so each row is the mean of 20 draws with the least and the most of them; one run was
measured. Pages of 64, SGLang's rules, whole leaves of the radix tree evicted (`--policy radix`). Nothing is fitted to any of it.

### Hit rates, Qwen3-8B on A100 40GB (Mooncake docs, ssd-offload-benchmark-results.md @3b5a594)
Prompts of 4,096 tokens more each round, answers of one. KV in HBM: SGLang's share of memory (0.833 of 40,960 MiB, chunks of 4,096, 32 graphs)
less 15.3 GiB of weights, 124,500 tokens; host memory twice that (`hicache-ratio` 2); Mooncake's 80 GiB with its mark at 95 % and
batches of 5 % (`watermark`, the default until 2026); five drives of 27 GB/s together as four of nvme-gen4-x4. What lies below host memory is
fetched while a request waits (`engine.prefetch`), for a limited time: with SGLang's default, `best_effort`, no request that finds the engine idle would hit there, and all did. The tenth round is longer than the model's context
and fails: the published means count it as 0 s. Hit rates are read off a chart, to about 2 points; *met*: a draw's is as near as that.

| round | tiers | measured % | predicted % | draws | |
|---|---|---|---|---|---|
TEXT
kv=18360
mooncake="--remote 80GiB --engine.prefetch timeout --tiers.remote.staged true --tiers.remote.link rdma-200 --tiers.remote.devices 2 \
--tiers.remote.policy watermark:high=0.95"
drives="--nvme 14TB --engine.prefetch timeout --tiers.nvme.staged true --tiers.nvme.link nvme-gen4-x4 --tiers.nvme.devices 4"
configurations() {
    cat <<END
gpu_only
gpu+host --dram $((2 * kv))MB
gpu+host+mooncake80GB --dram $((2 * kv))MB $mooncake
gpu+host+mooncake80GB+ssd --dram $((2 * kv))MB $drives
unlimited --dram $((2 * kv))MB $drives --engine.prefetch_limit 1000
at_random --dram $((2 * kv))MB $mooncake --tiers.remote.policy random
END
}
for draw in $(seq "$draws"); do
    log "$draw" 4096 1 9 16 0 > "$dir/log.jsonl"
    configurations | while read -r name options; do
        # shellcheck disable=SC2086
        replay "$dir/log.jsonl" --model qwen3-8b --gpu a100-80 --engine.max_batched_tokens 4096 --engine.kv_cache_memory ${kv}MB \
            --arrivals.rounds true $options
        awk -F, -v name="$name" 'NR > 1 { r = int($1 / 20); hit[r] += $15; of[r] += $13; ttft[r] += $6 / 20000 }
            END { for (r = 0; r < 9; r++) print name, r, 100 * hit[r] / of[r], ttft[r] }' "$dir/rows"
    done >> "$dir/rounds" || exit 1
done
per_round() { # of a column of $dir/rounds beside one of the measured: name, round, measured, mean, least, most
    awk -v mine="$1" -v theirs="$2" 'FNR == NR { k = $1 " " $2; x = $mine; sum[k] += x; n[k]++
            if (n[k] == 1 || x < low[k]) low[k] = x
            if (n[k] == 1 || x > high[k]) high[k] = x
            next }
        FNR > 1 { split($0, m, ","); k = m[2] " " m[1]
            print m[2], m[1], m[theirs], sum[k] / n[k], low[k], high[k] }' \
        "$dir/rounds" "$data/mooncake_tiers/ssd_offload_a100_qwen3-8b_per_turn.csv"
}
per_round 3 4 | awk '{ ok = $3 > $5 - 2 && $3 < $6 + 2; met += ok; rows++
        printf "| %d | %s | %.1f | %.1f | %.1f to %.1f | %s |\n", $2, $1, $3, $4, $5, $6, ok ? "met" : "missed" }
    END { printf "\n%d of %d are met.\n", met, rows }'
cat <<'TEXT'

What is missed, and by which mechanism that is not modelled:
- Mooncake alone, from the seventh round on: its pages go one by one by the end of their lease, a client's first pages before its last where they were
  read longer ago, and pages that are left behind are of no use; here a client's last blocks go first. Each miss writes a
  client's whole history again and pushes out another's, so that little makes much. With `--tiers.remote.policy random`, which makes as many gaps
TEXT
awk '$1 == "at_random" { sum[$2] += $3; n[$2]++ }
    END { printf "  as can be, rounds 7 and 8 are %.1f and %.1f %%: what was measured lies between.\n", sum[7] / n[7], sum[8] / n[8] }' "$dir/rounds"
cat <<'TEXT'
- HBM alone, second round: 12 of 20 clients hit, one fewer than in any draw.

The last round with drives: no fetch begins while those under way fill 0.8 of the host memory beyond HBM's size (`engine.prefetch_limit`),
99,600 tokens. Three requests of 36,864 tokens do, so that the fourth of the round computes everything if it comes before the first one's
fetch has ended: 19 of 20 hit, 84.4 %, in some draws as in the measured run. One round earlier three don't (98,304).

### The same with enough storage (SGLang issue 33984: two TB of NVMe)
Model and GPU are not stated, so times can't be compared; nor are the sizes of HBM and host memory, so the limit is left out. Hit rates, of all draws alike:

| round | measured | predicted | |
|---|---|---|---|
TEXT
awk 'FNR == NR { if ($1 == "unlimited") { x = $3 / 100; if (!($2 in low) || x < low[$2]) low[$2] = x; if (x > high[$2]) high[$2] = x }; next }
    FNR > 1 { split($0, m, ","); r = m[1]
        printf "| %d | %.6f | %.6f | %s |\n", r, m[3], low[r], (low[r] - m[3]) ^ 2 + (high[r] - m[3]) ^ 2 < 1e-11 ? "met" : "missed" }' \
    "$dir/rounds" "$data/sglang_hicache_threads/issue33984_hicache_ratio2_mooncake_ssd.csv"
cat <<'TEXT'

### TTFT of the A100's runs
Mean of a round in seconds. They ran `--attention-backend triton`; the tables hold SGLang's FlashAttention, which no public table does for
Triton's kernel. An A100 of 40 GB has the arithmetic of one of 80 GB.

| round | tiers | measured s | predicted s | error % |
|---|---|---|---|---|
TEXT
per_round 4 3 | awk '{ e = ($4 / $3 - 1) * 100; v[NR] = e < 0 ? -e : e
        printf "| %d | %s | %.1f | %.2f | %+.0f |\n", $2, $1, $3, $4, e }
    END { for (i = 1; i <= NR; i++) for (j = i + 1; j <= NR; j++) if (v[j] < v[i]) { x = v[i]; v[i] = v[j]; v[j] = x }
        printf "\nMedian of the absolute error %.0f %%.\n", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
cat <<'TEXT'

Without hits a round's time over its tokens says that Triton's attention reached some 84 TFLOPS where the table says 150. With hits, each 4,096
cached tokens cost 0.15 s more than that: as if they came from host memory at 4 GB/s, with and without storage behind it. No
source says why, and A10's runs, with the default kernels, do not show it:

### Qwen3-14B on two A10 (Mooncake docs, sglang-hicache-benchmark-results-v1.md @3b5a594)
2,048 tokens more each turn, answers of 16, no barrier. An A10 has no tables: this is what a user gets who states its memory and datasheet peaks in
a profile as those of an L40S (vLLM's kernels there, as shares of their own peaks; assumed, wide band). KV in HBM 9.5 GB by SGLang's share of memory,
Mooncake 150 GiB over two NICs of 100 Gb/s. *Prepopulated*: the second time that the log comes.

| tiers | TTFT measured s | predicted s | 80 % band | error % | input tokens/s measured | predicted | error % |
|---|---|---|---|---|---|---|---|
TEXT
cat > "$dir/a10.json" <<'PROFILE'
{"schema": "kvcast.profile.v1", "gpus": [{"name": "l40s", "device": "NVIDIA A10 24GB",
 "memory_bytes": {"value": 24146608128, "kind": "published", "source": "nvidia-smi, 23,028 MiB"},
 "hbm_bytes_per_s": {"value": 6e11, "kind": "datasheet", "source": "NVIDIA A10 datasheet"},
 "bf16_flops": {"value": 1.25e14, "kind": "datasheet", "source": "NVIDIA A10 datasheet"},
 "multiprocessors": {"value": 72, "kind": "datasheet", "source": "NVIDIA A10"}}]}
PROFILE
pool="--remote 150GiB --engine.prefetch timeout --tiers.remote.staged true --tiers.remote.link rdma-100 --tiers.remote.devices 2"
while read -r name times options; do
    for draw in $(seq "$draws"); do
        log "$draw" 2048 16 10 20 1 > "$dir/once.jsonl"
        for _ in $(seq "$times"); do cat "$dir/once.jsonl"; done > "$dir/log.jsonl"
        # shellcheck disable=SC2086
        replay "$dir/log.jsonl" --profile "$dir/a10.json" --model qwen3-14b --gpu l40s --tp 2 --engine.backend vllm \
            --engine.max_batched_tokens 2048 --engine.kv_cache_memory 9500MB $options
        band=$(grep -o 'TTFT mean [0-9.]* m*s to [0-9.]* m*s' "$dir/text" | sed 's/TTFT mean //')
        awk -F, -v first=$((200 * (times - 1))) -v band="$band" 'NR > 1 && $1 >= first { t += $6 / 200000; in_tokens += $13
                if (!began || $5 < began) began = $5
                if ($5 + $7 / 1000 > ended) ended = $5 + $7 / 1000 }
            END { print t, in_tokens / (ended - began), band }' "$dir/rows"
    done > "$dir/one" || exit 1
    awk -F, -v name="$name" '$1 == name { print $2, $3 }' "$data/mooncake_tiers/hicache_a10_qwen3-14b_overall.csv" |
        awk -v name="$name" -v times="$times" 'NR == 1 { m = $1; rate = $2; next }
            { t += $1; r += $2; n++; band = $3 " " $4 " to " $6 " " $7 }
            END { printf "| %s | %.2f | %.2f | %s | %+.0f | %.0f | %.0f | %+.0f |\n", name, m, t / n, (times > 1 ? "-" : band),
                      (t / n / m - 1) * 100, rate, r / n, (r / n / rate - 1) * 100 }' - "$dir/one"
done <<END
gpu_only 1
gpu+host 1 --dram 19GB
gpu+host+mooncake150GB 1 --dram 19GB $pool
gpu+host+mooncake150GB_prepopulated 2 --dram 19GB $pool
END
cat <<'TEXT'

Not replayed: SGLang issue 26305 (its GPUs are not stated) and the policy emulation of pull request 29049 (its trace is not among the data here).
TEXT
