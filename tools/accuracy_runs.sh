#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# accuracy_runs.sh SHARED: the sections of docs/accuracy.md on whole runs, read by accuracy.sh.
bench=$1/validation/llmservingsim_bench
kvcast=${KVCAST:-build/kvcast}

cat <<'TEXT'

## Served runs, request by request
`kvcast validate --requests F TRACE`: vLLM 0.19 on 300 ShareGPT requests in 29 s (LLMServingSim bench/examples @5daddb2), more
than either GPU can serve, replayed with prefix caching and the engine flags of meta.json. TTFT is counted as the engine logs it,
from queued to first token; queued is a request when the step under way as it comes has ended, so that the rest of that step is taken off
the predictions too (by the log's own arrivals half of Qwen3's wait 22 ms for it). RTX PRO 6000 by its own layer times, RTX 4090 (KV-bound, preempting) by a closed form through
published peak rates. First with vLLM's host constants as they are: nothing is fitted to these runs.

TEXT
profile=$(mktemp) pull=$(mktemp) table=$(mktemp) dir=$(mktemp -d)
trap 'rm -rf "$profile" "$pull" "$table" "$dir"' EXIT
for run in "RTXPRO6000 rtx-pro-6000" "RTX4090 rtx-4090"; do
    # shellcheck disable=SC2086
    set -- "$1" $run
    printf '### Llama-3.1-8B on %s\n' "$2"
    "$kvcast" validate --quiet --requests "$bench/$2/Llama-3.1-8B/vllm/requests.jsonl" \
        "$bench/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl" --block-tokens 16 --gpu "$3" > "$table" || exit 1
    cat "$table"
    echo
    [ "$2" = RTX4090 ] || awk -F'|' '
        function size(x) { return x < 0 ? -x : x }
        / TTFT / && size($5) > worst { worst = size($5) }
        / TPOT (mean|P50) / && size($5) > tpot { tpot = size($5) }
        END { printf "A prototype of this model reached 3 %% of TPOT (mean and P50; here %.1f, %s) and 8 %% of TTFT at all four (%.1f, %s).\n\n",
                     tpot, tpot <= 3 ? "met" : "missed", worst, worst <= 8 ? "met" : "missed" }' "$table"
done
"$kvcast" calibrate --quiet --requests "$bench/RTXPRO6000/Llama-3.1-8B/vllm/requests.jsonl" --model llama-3.1-8b --gpu rtx-pro-6000 \
    --trace "$bench/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl" --engine.max_seqs 128 --engine.max_batched_tokens 2048 \
    -o "$profile" > /dev/null 2>&1 || exit 1
cat <<'TEXT'
### Llama-3.1-8B on RTX4090, host constants fitted to the run on RTXPRO6000
`kvcast calibrate --requests` on one run, `kvcast validate --requests --profile` on the other.

TEXT
"$kvcast" validate --quiet --requests "$bench/RTX4090/Llama-3.1-8B/vllm/requests.jsonl" \
    "$bench/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl" --block-tokens 16 --profile "$profile" || exit 1
cat <<'TEXT'

### Qwen3-30B-A3B on two RTXPRO6000, two data-parallel ranks
The ranks deal the experts among them and step together (`cluster.dp`). First with vLLM's host constants, then with those fitted to the run of Llama-3.1-8B above.

TEXT
for own in "" "--profile $profile"; do
    # shellcheck disable=SC2086
    "$kvcast" validate --quiet --requests "$bench/RTXPRO6000/Qwen3-30B-A3B-Instruct-2507/vllm/requests.jsonl" \
        "$bench/workloads/sharegpt-qwen3-30b-a3b-300-sps10.jsonl" --block-tokens 16 --gpu rtx-pro-6000 $own || exit 1
    echo
done
cat <<'TEXT'
256 sequences run at most, and this run is just at the load where some wait, so that TTFT's mean and P99 follow the length of a step many
times over. Steps were 12 to 14 % too short before four facts were in, none fitted to this run: vLLM gathers and scatters tokens between the
ranks, which LLMServingSim measured with NCCL on these GPUs (4.3 of 45 ms with 128 sequences a rank; an all-reduce by L40S's share of PCIe made 3);
each rank's experts work on all gathered tokens (also measured); ranks are padded to the busiest one's graph; and FlashAttention 2
gives decodes beside prompts whole tiles (2.3 to 3.2 times the time of decodes alone with 8 query heads a KV head, measured). Of 45 ms
a step 1 to 2 are still open, by the tokens and times of all requests.

## A prefix by the tier that serves it
`kvcast validate --prefix F.csv --calibrate`: TTFT of a request whose prefix rests in one tier, by two requests replayed; the first
row of each table sets front end and host of that engine (eager mode, client and tokenizer are its own), all others are scored.

### Qwen3-Coder-30B-A3B (geometry of Qwen3-30B-A3B) on H20, vLLM 0.18.1 (agentic-kvc exp (a) @837df6b)
Attention, fp8 products and experts of H20 as InferSim measured them; bf16 products and experts are closed forms. DRAM is vLLM's own
offloading (`--kv-offloading-size`). What a load costs beside its copy (`engine.kv_load_time`, `engine.kv_load_token_time`, 12.9 ms and
0.19 us a token) is fitted to the two loads from DRAM, each beside the hit in HBM of its length, so they are shown and not scored.

TEXT
rows() { # those of a tier, as a table
    grep -e '^| tokens' -e '^|---' -e "$1"
}
load_cost() { # what --calibrate-loads finds, as scenario keys
    "$@" --calibrate-loads --json | awk -F'[:,]' '/"ms"/ && !ms { ms = $2 } /"us_per_token"/ { us = $2 }
        END { printf "--engine.kv_load_time %.1fms --engine.kv_load_token_time %.0fns", ms, us * 1e3 }'
}
free="--engine.kv_load_time 0s --engine.kv_load_token_time 0s"
h20() {
    "$kvcast" validate --quiet --prefix "$h20" --calibrate --model qwen3-30b-a3b --gpu h20 "$@" || exit 1
}
peer() {
    "$kvcast" validate --quiet --prefix "$pull" --calibrate --model gpt-oss-120b --gpu h200-sxm --tiers.remote.capacity 1TiB \
        --tiers.remote.staged true "$@" || exit 1
}
h20=$1/validation/h20_tier_latency/ttft_by_tier.csv
awk -F, 'NR == 1 { print "tokens,tier,ttft_ms"; next } { print $1 ",recompute," $2; print $1 ",p2p_pull," $3 }' \
    "$1/validation/llmd_p2p/prefix_pull.csv" > "$pull"
of_h20=$(load_cost h20)
of_h200=$(load_cost peer --engine.unified_kv true --tiers.remote.link rdma-400)
h20 | sed -e '/remote_rdma_hit/d' -e '/cpu_hit/s/| met |$/| fitted to |/'
printf '\nThe copies alone (%s):\n\n' "$free"
# shellcheck disable=SC2086
h20 $free | rows cpu_hit
printf '\nScored, by what the pulls on H200 below say of a load and nothing of this table (%s):\n\n' "$of_h200"
# shellcheck disable=SC2086
h20 $of_h200 | rows cpu_hit
cat <<'TEXT'

The RDMA row is MooncakeConnector's: another engine's GPU writes the prefix into this one's memory, 6.4 GB in some 0.85 s (@dc8e6dd). Its NIC is not
stated; an H20's of 400 Gb/s is assumed. First as the program has it for that connector (`tiers.remote.connector mooncake`): a piece for each page,
layer and K or V, 96 of 16 KiB for KV of this shape. The cost of a load is that of the loads from DRAM.

TEXT
remote() {
    name=$1
    shift
    h20 --tiers.remote.capacity 1TiB "$@" | rows rdma | sed "s/remote_rdma_hit/remote_rdma_hit, $name/"
}
remote MooncakeConnector --tiers.remote.connector mooncake
cat <<'TEXT'

What that rests on: the same with NIXL, a slower NIC, 16 pages joined, and whole pages.

TEXT
remote NIXL --tiers.remote.connector nixl
remote "MooncakeConnector, 200 Gb\\/s" --tiers.remote.connector mooncake --tiers.remote.link rdma-200 | tail -1
remote "MooncakeConnector, 16 pages joined" --tiers.remote.connector mooncake --tiers.remote.io_size 256KiB | tail -1
remote "whole pages" | tail -1
cat <<'TEXT'

### Connectors by the size of what they send
What was published of pieces and rates, beside the links' law (docs/models.md): the NIC's rate, or pieces of that size at the connector's pieces a
second. H20 is the row above, its 6.44 GB in some 0.85 s.

| source | connector, NIC | piece | measured GB/s | law | error % | |
|---|---|---|---|---|---|---|
TEXT
law() { # CONNECTOR LINK DEVICES BYTES MEASURED NOTE SOURCE: what a replay says that it uses
    printf '{"timestamp": 0, "input_length": 64, "output_length": 1, "hash_ids": [1, 2, 3, 4]}\n' > "$dir/one.jsonl"
    "$kvcast" replay "$dir/one.jsonl" --quiet --no-bounds --block-tokens 16 --model llama-3.1-8b --gpu h100-sxm --tiers.remote.capacity 1TiB \
        --tiers.remote.link "$2" --tiers.remote.devices "$3" --tiers.remote.connector "$1" --tiers.remote.io_size "$4" \
        --report "$dir/one.html" > /dev/null || exit 1
    grep -o 'remote: [^<]* as used</td><td>[^<]*' "$dir/one.html" | sed 's/.*>//' |
        awk -v who="$1" -v nic="$2" -v m="$5" -v note="$6" -v source="$7" '{ e = ($1 / m - 1) * 100
            printf "| %s | %s, %s | %s | %.2f | %.2f | %+.0f | %s |\n", source, who, nic, $10, m, $1, e, note }'
}
while IFS='|' read -r connector link devices bytes measured note source; do
    law "$connector" "$link" "$devices" "$bytes" "$measured" "$note" "$source" || exit 1
done <<'ROWS'
nixl|rdma-100|1|1KiB|0.715|sets the rate|LMCache pull request 4161, 256 pieces at a time
nixl|rdma-100|1|4KiB|4.69||the same
nixl|rdma-100|1|16KiB|11.67||the same
nixl|rdma-100|1|64KiB|12.09||the same
mooncake|rdma-400|1|16KiB|9.0|sets the rate|vLLM pull request 53825, H200, 128k tokens
mooncake|rdma-400|1|16KiB|14.4|16k tokens: 4,563 pieces in 5.2 ms|the same
mooncake|rdma-400|1|16KiB|7.6|NIC assumed|agentic-kvc exp (a), H20
mooncake|rdma-400|1|64KiB|37|slices, bonded NICs of 50 GB/s|Mooncake issue 1668
ROWS
cat <<'TEXT'

Not comparable: pages joined in a fresh engine (Mooncake docs vllm-v1-pd-performance.md, H800 TP8, Qwen3-8B: 142 GB/s over eight NICs, where a page's piece is
4 KiB and 0.55 million of them 2.3 GB/s a NIC); transfers whose NIC is not stated and that overlap (vLLM issue 50913: 1,785 pieces of 98 KB in 38.7 ms each
with NIXL; 105 ms with pieces of some 8 KB; pull request 25388: 56 pieces of 1.3 MB in 9.9 ms, 5.7 of them posting); GPU memory without relaxed ordering (Mooncake's
default, 15 GB/s where host memory gives 47, gpu-rdma-bandwidth-optimization.md), which no connector's figure here includes.
TEXT
cat <<'TEXT'

### gpt-oss-120b on H200, peer pull over NIXL (llm-d blog 2026-08-15)
One GPU, OffloadingConnector with a P2P tier, from host memory to host memory over rdma/ib, so a copy to the GPU follows the pull
(`tiers.remote.staged`); NIXL holds one descriptor for each block in host memory (vLLM issue 55179), so a block is one piece. NIC and
layout of KV are not stated. Taken here: a NIC of 400 Gb/s, all layers' KV stored whole (`engine.unified_kv`). Nothing is fitted to the
pulls: a load costs what loads from DRAM cost on H20.

TEXT
peer --engine.unified_kv true --tiers.remote.link rdma-400
printf '\nThe pulls as copies alone (%s):\n\n' "$free"
# shellcheck disable=SC2086
peer --engine.unified_kv true --tiers.remote.link rdma-400 $free | rows p2p_pull
cat <<'TEXT'

llm-d's guide (guides/p2p-kv-cache-sharing @01cac34) sizes such a rig at 41.5 KB of KV a token, so windowed layers keep their windows
only, and pulls move half as many bytes. Then with NICs of 400, 200 and 100 Gb/s, the cost of a load as before:

TEXT
for nic in 400 200 100; do
    peer --tiers.remote.link rdma-$nic | rows p2p_pull | sed "s/p2p_pull/p2p_pull, $nic Gb\\/s/" |
        if [ $nic = 400 ]; then cat; else sed 1,2d; fi
done
cat <<'TEXT'

So that the pulls are met rests on layout and NIC as much as on the cost of a load. Nor does the measurement repeat within 15 %: another
table of the same pulls by the same group (the guide's @067fe1b) has 49, 120, 196, 376 and 551 ms, 1.4 to 2.3 times as much, and
recomputes 10 to 18 % faster.

### Llama-3.1-8B on H100, the engine of vLLM 0.14 alone (headline D01)
TEXT
alone() { # how many times faster a load is than computing, less the front end
    "$kvcast" validate --quiet --prefix "$pull" --model llama-3.1-8b --gpu h100-sxm --json "$@" |
        awk -F'[:,]' -v front="$front" '/"tier"/ { tier = $2 } /"predicted_ms"/ { ms[n++] = $2 - front }
            END { printf "%.2f times at 1,024 tokens, %.1f at 100,000", ms[0] / ms[1], ms[2] / ms[3] }'
}
front=$(awk -F'"front_end_ns": *[{]"value": *' 'NF > 1 { print $2 / 1e6; exit }' "$(dirname "$0")/../models/profiles/engines.json")
printf 'tokens,tier,ttft_ms\n1024,miss,1\n1024,dram,1\n100000,miss,1\n100000,dram,1\n' > "$pull"
# shellcheck disable=SC2086
cat <<TEXT

No server, no tokenizer: loading is twice as fast as computing at 1,024 tokens and 22 times at 100,000 (vLLM blog 2026-01-08). Copies
alone make it $(alone $free);
with what a load costs on H20 it would be $(alone $of_h20).
So the engine by itself has no such cost: 5 ms at most, if "2x" may be 1.5. The two engines that were served over HTTP agree on it,
by other connectors, GPUs and models; whether version, server or host makes it is not known. Replays are of served engines and have it.
TEXT
