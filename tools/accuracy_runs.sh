#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# accuracy_runs.sh SHARED: the sections of docs/accuracy.md on whole runs, read by accuracy.sh.
bench=$1/validation/llmservingsim_bench
kvcast=${KVCAST:-build/kvcast}

cat <<'TEXT'

## Served runs, request by request
`kvcast validate --requests F TRACE`: vLLM 0.19 on 300 ShareGPT requests in 29 s (LLMServingSim bench/examples @5daddb2), more
than either GPU can serve, replayed with prefix caching and the engine flags of meta.json. TTFT is counted as the engine logs it,
from queued to first token. RTX PRO 6000 by its own layer times, RTX 4090 (KV-bound, preempting) by a closed form through
published peak rates. First with vLLM's host constants as they are: nothing is fitted to these runs.

TEXT
for run in "RTXPRO6000 rtx-pro-6000" "RTX4090 rtx-4090"; do
    # shellcheck disable=SC2086
    set -- "$1" $run
    printf '### Llama-3.1-8B on %s\n' "$2"
    "$kvcast" validate --quiet --requests "$bench/$2/Llama-3.1-8B/vllm/requests.jsonl" \
        "$bench/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl" --block-tokens 16 --gpu "$3" || exit 1
    echo
done
profile=$(mktemp) pull=$(mktemp)
trap 'rm -f "$profile" "$pull"' EXIT
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
The ranks deal the experts among them and step together (`cluster.dp`). Between the GPUs lies PCIe; how fast two of them exchange over it
is not stated and L40S's share is taken. First with vLLM's host constants, then with those fitted to the run of Llama-3.1-8B above.

TEXT
for own in "" "--profile $profile"; do
    # shellcheck disable=SC2086
    "$kvcast" validate --quiet --requests "$bench/RTXPRO6000/Qwen3-30B-A3B-Instruct-2507/vllm/requests.jsonl" \
        "$bench/workloads/sharegpt-qwen3-30b-a3b-300-sps10.jsonl" --block-tokens 16 --gpu rtx-pro-6000 $own || exit 1
    echo
done
cat <<'TEXT'
Steps are 12 to 14 % too short: 256 sequences run at most, and this run is just at the load where some wait, so that the few percent of
requests that do wait, and with them TTFT's mean and P99, follow the length of a step many times over. What is missing grows with the tokens of a
step: by the run's counters (`timeseries.csv`) 26 sequences a rank decode in 26 ms, as predicted, 128 in 45 (41), steps with prompts take longer
still. Slower exchange than L40S's share of PCIe would do that, padded batches too, and nothing published tells which.

## A prefix by the tier that serves it
`kvcast validate --prefix F.csv --calibrate`: TTFT of a request whose prefix rests in one tier, by two requests replayed; the first
row of each table sets front end and host of that engine (eager mode, client and tokenizer are its own), all others are scored.

### Qwen3-Coder-30B-A3B (geometry of Qwen3-30B-A3B) on H20, vLLM 0.18.1 (agentic-kvc exp (a) @837df6b)
Attention, fp8 products and experts of H20 as InferSim measured them; bf16 products and experts are closed forms.

TEXT
h20() {
    "$kvcast" validate --prefix "$h20" --calibrate --model qwen3-30b-a3b --gpu h20 "$@" || exit 1
}
h20=$1/validation/h20_tier_latency/ttft_by_tier.csv
h20
cat <<'TEXT'

The RDMA row moves 6.4 GB in about 0.86 s, 7.5 GB/s; NIC and transport are not stated, an H20's 400 Gb/s NIC is assumed. vLLM's pages
lie in a piece for each layer and K or V, 96 of 16 KiB for KV of this shape, and NIXL moves them one by one (ai-dynamo/dynamo issue
12750), some 0.7 million a second (LMCache pull request 4161). If that is how, and through host memory:

TEXT
h20 --tiers.remote.capacity 1TiB --tiers.remote.link rdma-400 --tiers.remote.io_size 16KiB --tiers.remote.staged true |
    grep -e '^| tokens' -e '^|---' -e rdma
cat <<'TEXT'

A load from DRAM costs some 13 ms beside its copy at 1,024 tokens. One DMA for each layer and K or V of a page (3.36 us each) would
explain that and take 1.5 s of 65,536 tokens, so it is not that; vLLM's poll for what has been loaded (1 ms and a step that
computes nothing) is a small part of it. Nothing of it is in the model. Two loads set both figures, and leave none to score:

TEXT
h20 --calibrate-loads | grep -e '^| tokens' -e '^|---' -e cpu_hit -e 'loads from' | awk '/^The/ { print "" } 1'
cat <<'TEXT'

### gpt-oss-120b on H200, peer pull over NIXL (llm-d blog 2026-08-15)
NIC, GPU count and KV layout are not stated. Taken: one GPU, a NIC of 400 Gb/s, all layers' KV stored whole (`engine.unified_kv`),
as vLLM does beside a KV connector. The pull is stated to go from host memory to host memory, so a copy to the GPU follows it
(`tiers.remote.staged`).

TEXT
awk -F, 'NR == 1 { print "tokens,tier,ttft_ms"; next } { print $1 ",recompute," $2; print $1 ",p2p_pull," $3 }' \
    "$1/validation/llmd_p2p/prefix_pull.csv" > "$pull"
peer() {
    "$kvcast" validate --prefix "$pull" --calibrate --model gpt-oss-120b --gpu h200-sxm --engine.unified_kv true \
        --tiers.remote.capacity 1TiB "$@" || exit 1
}
pulls() {
    peer --tiers.remote.staged true "$@" | grep -e '^| tokens' -e '^|---' -e p2p_pull -e 'loads from' |
        awk '/^The/ { print "" } 1'
    echo
}
peer --tiers.remote.link rdma-400 --tiers.remote.staged true
cat <<'TEXT'

In how many pieces a page is pulled is not known: above in one, here in one for each layer, then in one for each layer and K or V.

TEXT
pulls --tiers.remote.link rdma-400 --tiers.remote.io_size 32KiB
pulls --tiers.remote.link rdma-400 --tiers.remote.io_size 16KiB
cat <<'TEXT'
The same in one piece with a NIC of 200 Gb/s, and with what the shortest and the longest pull say of one (400 Gb/s).

TEXT
pulls --tiers.remote.link rdma-200
pulls --tiers.remote.link rdma-400 --calibrate-loads
