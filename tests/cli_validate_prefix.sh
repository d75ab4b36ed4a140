#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# validate --prefix: tiers beside their replays, and the published H20 tiers within their bar.
. "$(dirname "$0")/tap.sh"

printf 'tokens,tier,ttft_ms\n1024,hbm,50\n8192,hbm,55\n8192,dram,80\n8192,remote,120\n8192,miss,400\n' > "$dir/tiers.csv"
engine="--model llama-3.1-8b --gpu h100-sxm --tiers.remote.capacity 1TiB --tiers.remote.link tcp-25"
# shellcheck disable=SC2086
"$kvcast" validate --prefix "$dir/tiers.csv" $engine > "$dir/out" 2> "$dir/err"
report $? "each row is replayed"
awk -F'|' '/^\| [0-9]/ { ms[++n] = $5 } END { exit !(n == 5 && ms[1] < ms[2] && ms[2] < ms[3] && ms[3] < ms[4]) }' "$dir/out"
report $? "HBM is faster than DRAM, DRAM than a peer over TCP"
# 8192 tokens x 131072 bytes at 2.8 GB/s are 383 ms longer than HBM's hit
beside_hbm() {
    # shellcheck disable=SC2086
    "$kvcast" validate --prefix "$dir/tiers.csv" $engine --engine.kv_load_time "$1" --engine.kv_load_token_time "$2" 2>/dev/null |
        awk -F'|' '/^\| 8192 \| hbm/ { hbm = $5 } /^\| 8192 \| remote/ { print $5 - hbm }'
}
copy=$(beside_hbm 0s 0s)
echo "$copy" | awk '{ exit !($1 > 383 && $1 < 400) }'
report $? "a load takes its bytes over the link's rate"
beside_hbm 5ms 1us | awk -v copy="$copy" '{ d = $1 - copy; exit !(d > 13.1 && d < 13.3) }'
report $? "and what its engine takes beside them, once and for each token"
# shellcheck disable=SC2086
"$kvcast" validate --prefix "$dir/tiers.csv" $engine --calibrate --json 2>/dev/null | tr -d '\n ' > "$dir/out"
grep -q '"tokens":1024,"tier":"hbm","measured_ms":50,"predicted_ms":50,"error_percent":0,"verdict":"calibratedon"' "$dir/out"
report $? "the first row calibrates"
# three loads on a line of 20 ms and 4 us a token, one off it
printf 'tokens,tier,ttft_ms\n2048,remote,28.192\n8192,remote,52.768\n16384,remote,170.072\n32768,remote,151.072\n' > "$dir/line.csv"
# shellcheck disable=SC2086
"$kvcast" validate --prefix "$dir/line.csv" $engine --calibrate-loads > "$dir/out" 2> "$dir/err"
[ "$(grep -c 'calibrated on' "$dir/out")" = 2 ] && grep -q '^| 2048 | remote | 28.2 | 28.2 .*calibrated' "$dir/out" &&
    grep -q '^| 8192 .*| met |' "$dir/out" && grep -q '^| 16384 .*| missed |' "$dir/out" && grep -q 'of 4 loads from the remote tier' "$dir/out"
report $? "the shortest and the longest load calibrate a tier, those between are scored"
refused "loads are calibrated of prefixes only" 2 "calibrate-loads" validate C01 --calibrate-loads
printf 'tokens,tier,ttft_ms\n1024,tape,50\n' > "$dir/bad.csv"
printf 'tokens;tier;ttft_ms\n4096;miss;101,5\n' > "$dir/comma.csv"
refused "a decimal comma is no end of a number" 3 'comma.csv:2:ttft_ms: "101,5" is not a number' validate --prefix "$dir/comma.csv" --model llama-3.1-8b --gpu h100-sxm
refused "an unknown tier is named" 3 "'tape' is no tier" validate --prefix "$dir/bad.csv" --model llama-3.1-8b --gpu h100-sxm
printf 'tokens,tier,ttft_ms\n1024,miss,1\n1024,hbm,40\n' >"$dir/first.csv"
refused "no time below zero" 3 "leave out --calibrate" validate --prefix "$dir/first.csv" --calibrate --model llama-3.1-8b --gpu h100-sxm
refused "a GPU is needed" 2 "gpu" validate --prefix "$dir/tiers.csv" --model llama-3.1-8b

h20=$(dirname "$0")/../../shared/validation/h20_tier_latency/ttft_by_tier.csv
if [ -f "$h20" ]; then
    "$kvcast" validate --prefix "$h20" --calibrate --model qwen3-30b-a3b --gpu h20 > "$dir/out" 2> "$dir/err"
    [ "$(grep -c 'gpu_hit.*| met |' "$dir/out")" = 5 ] && [ "$(grep -c 'miss .*| met |' "$dir/out")" = 2 ]
    report $? "H20: HBM at each length and recompute are met within 15 %"
    # what ships is what these loads say, and the pulls of another engine on other GPUs are scored by it
    "$kvcast" validate --prefix "$h20" --calibrate --calibrate-loads --model qwen3-30b-a3b --gpu h20 --json 2>/dev/null |
        awk -F'[:,]' '/"dram_load"/ { on = 1 } on && /"ms"/ { ms = $2; on = 0 } /us_per_token/ { us = $2 }
            END { exit !(ms > 12.8 && ms < 13.0 && us > 0.185 && us < 0.195) }' &&
        grep -q '"kv_load_ns": {"value": 12900000,' "$(dirname "$0")/../models/profiles/engines.json" &&
        grep -q '"kv_load_token_ns": {"value": 190,' "$(dirname "$0")/../models/profiles/engines.json"
    report $? "H20's two loads say what a load costs in vllm's profile"
    awk -F, 'NR == 1 { print "tokens,tier,ttft_ms"; next } { print $1 ",recompute," $2; print $1 ",p2p_pull," $3 }' \
        "$(dirname "$0")/../../shared/validation/llmd_p2p/prefix_pull.csv" > "$dir/pull.csv"
    "$kvcast" validate --prefix "$dir/pull.csv" --calibrate --model gpt-oss-120b --gpu h200-sxm --engine.unified_kv true \
        --tiers.remote.capacity 1TiB --tiers.remote.link rdma-400 --tiers.remote.staged true > "$dir/out" 2> "$dir/err"
    [ "$(grep -c 'p2p_pull .*| met |' "$dir/out")" = 5 ]
    report $? "H200: every pull is met within 15 %, nothing fitted to them"
else
    report 0 "H20's tiers # SKIP no ../shared"
fi

echo "1..$n"
exit $failed
