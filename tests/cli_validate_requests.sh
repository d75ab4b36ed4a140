#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# validate --requests: a replay's own rows are met exactly, an engine's clock has no front end in it,
# and served runs that were logged request by request are met within 10 %.
. "$(dirname "$0")/tap.sh"

awk 'BEGIN { for (i = 0; i < 40; i++) printf "{\"timestamp\": %d, \"input_length\": %d, \"output_length\": %d}\n",
    40 * i, 200 + 37 * i % 900, 1 + 11 * i % 60 }' > "$dir/log.jsonl"
engine="--model llama-3.1-8b --gpu h100-sxm --engine.max_seqs 8"
# shellcheck disable=SC2086
"$kvcast" replay "$dir/log.jsonl" $engine --no-bounds --requests "$dir/rows.csv" > /dev/null 2>&1
# shellcheck disable=SC2086
"$kvcast" validate --requests "$dir/rows.csv" "$dir/log.jsonl" $engine > "$dir/out" 2> "$dir/err"
report $? "the CSV of replay --requests is read"
awk -F'|' '/^\| TTFT|^\| TPOT|^\| E2E/ { n++; if ($5 + 0 > 0.05 || $5 + 0 < -0.05) bad = 1 } END { exit !(n == 12 && !bad) }' "$dir/out"
report $? "a replay meets its own rows"
# shellcheck disable=SC2086
"$kvcast" validate --requests "$dir/rows.csv" "$dir/log.jsonl" $engine --json 2>/dev/null | tr -d '\n ' > "$dir/out"
grep -q '"requests":40,"replayed":40,"preemptions":0,"front_end_taken_off_ms":0,' "$dir/out" &&
    grep -q '"ttft_ms":{"measured":{"mean":' "$dir/out"
report $? "the same as JSON"

# What an engine of these very times would log by its own clock, the front end taken off; it hears of a request between steps.
front=$(awk -F'"front_end_ns": *[{]"value": *' 'NF > 1 { print $2 / 1e6; exit }' "$(dirname "$0")/../models/profiles/engines.json")
awk -F, -v front="$front" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { t = 1000 + $c["arrival_s"]; printf "{\"input_toks\": %d, \"output_toks\": %d, \"queued_ts\": %.9f, \"first_token_ts\": %.9f, \"last_token_ts\": %.9f}\n",
      $c["input_tokens"], $c["output_tokens"], t + $c["unheard_ms"] / 1e3, t + ($c["ttft_ms"] - front) / 1e3, t + ($c["e2e_ms"] - front) / 1e3 }' "$dir/rows.csv" > "$dir/requests.jsonl"
printf '{"engine_kwargs": {"model": "meta-llama/Llama-3.1-8B", "max_num_seqs": 8, "max_num_batched_tokens": 8192}, "hardware": {"device_name": "NVIDIA H100 SXM5 80GB"}}' > "$dir/meta.json"
"$kvcast" validate --requests "$dir/requests.jsonl" "$dir/log.jsonl" > "$dir/out" 2> "$dir/err"
report $? "meta.json beside the log names model, GPU and flags"
grep -q 'engine.max_seqs 8' "$dir/err" && awk -F'|' '/^\| TTFT|^\| E2E/ { n++; if ($5 + 0 > 0.05 || $5 + 0 < -0.05) bad = 1 } END { exit !(n == 8 && !bad) }' "$dir/out"
report $? "an engine's clock is met without the front end"
printf '{"engine_kwargs": {"model": "Qwen/Qwen3-30B-A3B-Instruct-2507", "data_parallel_size": 2, "enable_expert_parallel": true}}' > "$dir/meta.json"
"$kvcast" validate --requests "$dir/requests.jsonl" "$dir/log.jsonl" --gpu h100-sxm > "$dir/out" 2> "$dir/err" && grep -q 'cluster.dp 2, cluster.ep 2' "$dir/err"
report $? "ranks that share the experts step together"
rm "$dir/meta.json"
refused "a profile that is not there" 3 "none.json: can.t open" validate --requests "$dir/requests.jsonl" "$dir/log.jsonl" --model llama-3.1-8b --gpu h100-sxm --profile "$dir/none.json"
refused "a model is needed" 2 "model" validate --requests "$dir/requests.jsonl" "$dir/log.jsonl"
printf '{"input_toks": 5, "output_toks": 2, "queued_ts": 9, "first_token_ts": 8, "last_token_ts": 10}\n' > "$dir/bad.jsonl"
printf 'input_tokens,output_tokens,arrival_s,ttft_ms,e2e_ms\n512,1,0,0,0\n512,1,1,0,0\n' > "$dir/zero.csv"
"$kvcast" validate --requests "$dir/zero.csv" --model llama-3.1-8b --gpu h100-sxm > "$dir/out" 2> "$dir/err" && grep -q '^| TTFT mean | 0.0 | [0-9.]* | - | - | |$' "$dir/out" && ! grep -q nan "$dir/out"
report $? "times of 0 have no error in percent"
refused "times that run backwards name their line" 3 "bad.jsonl:1" validate --requests "$dir/bad.jsonl" --model llama-3.1-8b --gpu h100-sxm
printf 'a,b\n1,2\n' > "$dir/bad.csv"
refused "a CSV without the columns says which" 3 "input_tokens" validate --requests "$dir/bad.csv" --model llama-3.1-8b --gpu h100-sxm

runs=$(dirname "$0")/../../shared/validation/llmservingsim_bench
for run in "RTXPRO6000 rtx-pro-6000" "RTX4090 rtx-4090"; do
    # shellcheck disable=SC2086
    set -- $run
    if [ -d "$runs/$1" ]; then
        "$kvcast" validate --requests "$runs/$1/Llama-3.1-8B/vllm/requests.jsonl" "$runs/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl" \
            --block-tokens 16 --gpu "$2" > "$dir/out" 2> "$dir/err" && [ "$(grep -c '| met |' "$dir/out")" = 6 ]
        report $? "Llama-3.1-8B on $1 is met within 10 %"
    else
        report 0 "Llama-3.1-8B on $1 is met within 10 % # SKIP no ../shared"
    fi
done

echo "1..$n"
exit $failed
