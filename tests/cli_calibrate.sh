#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# calibrate with a user's own measurements, and a replay with the profile that comes of them.
. "$(dirname "$0")/tap.sh"

cat > "$dir/nvb.txt" <<'X'
nvbandwidth Version: v0.8
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     40.00

SUM host_to_device_memcpy_ce 40.00

Running host_to_device_bidirectional_memcpy_ce.
memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)
           0
 0     33.00

SUM host_to_device_bidirectional_memcpy_ce 33.00

Running device_to_host_bidirectional_memcpy_ce.
memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)
           0
 0     35.00
X
# A drive of 80 us, 2 us an operation and 5 GB/s, as fio would see it.
awk 'BEGIN {
    printf "{\"fio version\":\"fio-3.36\",\"global options\":{\"direct\":\"1\",\"ioengine\":\"io_uring\"},\"jobs\":["
    n = split("4096 32768 262144 2097152", size); m = split("1 8 64 256", depth)
    for (i = 1; i <= n; i++) for (k = 1; k <= m; k++) {
        busy = 2e-6 + size[i] / 5e9; every = (80e-6 + busy) / depth[k]; if (busy > every) every = busy
        printf "%s{\"groupid\":%d,\"error\":0,\"job options\":{\"rw\":\"randread\",\"iodepth\":\"%d\"},", (g ? "," : ""), g++, depth[k]
        printf "\"read\":{\"bw_bytes\":%.0f,\"iops\":%.6f},\"write\":{\"bw_bytes\":0}}\n", size[i] / every, 1 / every
    }
    print "]}" }' > "$dir/fio.json"

near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a / b > 0.99999 && a / b < 1.00001) }'; }
"$kvcast" calibrate --nvbandwidth "$dir/nvb.txt" --fio "$dir/fio.json" --gpu h100-sxm -o "$dir/p.json" > "$dir/out" 2> "$dir/err"
report $? "calibrate writes a profile of links"
grep -q 'latency: not told by these measurements' "$dir/out"
report $? "it says what a single big copy can't tell"
grep -q 'pcie5-x16, both ways at once: 68 GB/s together' "$dir/out"
report $? "both directions at once are a figure of their own"
figure() { # key: its value in p.json, of the last link that has it
    tr -d '\n ' < "$dir/p.json" | sed "s/.*\"$1\":{\"value\":\([0-9.e+]*\),.*/\1/"
}
near "$(figure latency_ns)" 80000 && near "$(figure per_op_ns)" 2000
report $? "the drive's constants come back"
tr -d '\n ' < "$dir/p.json" | grep -q '"name":"pcie5-x16","read_bytes_per_s":{"value":4000[0-9]*,"kind":"measured","source":"nvbandwidth(nvb.txt),1row"'
report $? "a figure names its kind and source"

# Three prompts that share nothing and the first again, which HBM no longer holds.
at=0
for i in 0 1 2 0; do
    awk -v k=$i -v t=$((at = at + 100000)) 'BEGIN { printf "{\"timestamp\":%d,\"input_length\":2048,\"output_length\":1,\"hash_ids\":[", t
        for (b = 0; b < 4; b++) printf "%s%d", (b ? "," : ""), k * 10 + b; print "]}" }'
done > "$dir/log.jsonl"
load() { # arguments of replay: mean load time in ns over the four requests, which is the link's alone
    "$kvcast" replay "$dir/log.jsonl" --model llama-3.1-8b --gpu h100-sxm --engine.kv_cache_memory 400MiB --no-bounds --json \
        --engine.kv_load_time 0s --engine.kv_load_token_time 0s "$@" 2> "$dir/err" |
        awk -F'[:,]' '/"load"/ { printf "%.0f\n", $2 * 1e6 * 4; exit }'
}
# 2047 tokens of 128 KiB, 16 a page: latency + pages x per operation + bytes / rate
near "$(load --dram 64GiB --profile "$dir/p.json")" "$(awk 'BEGIN { b = 536870912; print 10000 + 128 * 200 + 2047 * 131072 / (b / (b / 40 - 200)) }')"
report $? "a load from DRAM takes what the closed form says of the measured rate"
near "$(load --dram 64GiB)" "$(awk 'BEGIN { print 10000 + 128 * 200 + 2047 * 131072 / 47.8 }')"
report $? "and without the profile what the carried one says"
near "$(load --nvme 64GiB --profile "$dir/p.json")" "$(awk 'BEGIN { print 80000 + 10000 + 128 * 2000 + 2047 * 131072 / 5 }')"
report $? "so does one from the drive"
"$kvcast" calibrate "$dir/fio.json" --queue-depth 1 -o "$dir/q1.json" > /dev/null 2> "$dir/err"
near "$(load --nvme 64GiB --profile "$dir/q1.json")" "$(awk 'BEGIN { print 10000 + 128 * (80000 + 2000 + 16 * 131072 / 5) }')"
report $? "with one read at a time each waits its own latency"
printf '{ "model": "llama-3.1-8b", "cluster": { "gpu": "h200-sxm" }, "profile": "p.json", "tiers": { "dram": { "capacity": "64GiB" } } }' > "$dir/s.json"
(cd / && "$kvcast" replay "$dir/s.json" "$dir/log.jsonl" --no-bounds --json 2> "$dir/err") > "$dir/r.json"
report $? "a scenario names it as seen from its own folder"
grep -q '"profile_gpu"' "$dir/r.json" && grep -q '"profile": "p.json"' "$dir/r.json"
report $? "another GPU than the profile's is warned of"
# p.json states pcie5-x16 and nvme-gen5-x4
uses() { # 0: it is used, with these options
    "$kvcast" replay "$dir/log.jsonl" --model llama-3.1-8b --gpu h100-sxm --no-bounds --json --profile "$dir/p.json" "$@" 2> "$dir/err" > "$dir/r.json" &&
        ! grep -q '"profile_unused"' "$dir/r.json"
}
uses --dram 64GiB && uses --nvme 64GiB --tiers.nvme.link gds && uses --gpu a100-80 --nvme 64GiB && ! uses && ! uses --gpu a100-80 --dram 64GiB
report $? "so is a profile of which the run uses nothing"
# four H100's all-reduce was measured, four MI300X's was not
printf '{"schema":"kvcast.profile.v1","gpus":[{"name":"h100-sxm","gpu_link_bytes_per_s":{"value":1e11,"kind":"measured","source":"t"}},{"name":"mi300x","gpu_link_bytes_per_s":{"value":1e11,"kind":"measured","source":"t"}}]}' > "$dir/between.json"
tpot() { # of four GPUs, by this profile
    "$kvcast" replay "$dir/log.jsonl" --model llama-3.1-8b --tp 4 --no-bounds --json "$@" 2> "$dir/err" > "$dir/r.json" &&
        awk -F'[:,]' '/"ttft_ms"/ { t = 1 } t && /"mean"/ { print $2; exit }' "$dir/r.json"
}
untold() { ! grep -q '"profile_link_unused"' "$dir/r.json"; }
carried=$(tpot --gpu h100-sxm) && [ "$carried" ] && untold && [ "$(tpot --gpu h100-sxm --profile "$dir/between.json")" = "$carried" ] &&
    grep -q '"profile_link_unused"' "$dir/r.json" && grep -q "gpu_link_bytes_per_s, 100 GB/s in place of 450" "$dir/r.json"
report $? "and a link between GPUs whose collectives were measured"
carried=$(tpot --gpu mi300x) && [ "$(tpot --gpu mi300x --profile "$dir/between.json")" != "$carried" ] && untold &&
    tpot --gpu h100-sxm --tp 1 --profile "$dir/between.json" > "$dir/out" && untold
report $? "but not where it has a part in them, or there are none"

"$kvcast" calibrate --bench "$dir/p.json" -o "$dir/again.json" > /dev/null 2> "$dir/err" && cp "$dir/again.json" "$dir/p.json" &&
    near "$(figure latency_ns)" 80000
report $? "a profile can be fitted again from the measurements in it"
"$kvcast" calibrate "$dir/fio.json" -o - 2>/dev/null | grep -q '"schema": "kvcast.profile.v1"'
report $? "- is stdout"

# Host constants: a replay with known ones is the measurement.
fig() { printf '"%s":{"value":%s,"kind":"measured","source":"t"}' "$1" "$2"; }
printf '{"schema":"kvcast.profile.v1","engines":[{"backend":"vllm",%s,%s,%s,%s}]}' "$(fig host_per_step_ns 700000)" \
    "$(fig host_per_sequence_ns 25000)" "$(fig host_per_prefill_step_ns 5000000)" "$(fig front_end_ns 30000000)" > "$dir/truth.json"
awk 'BEGIN { srand(7); for (i = 0; i < 90; i++) { t += -log(1 - rand()) * 160; if (i % 30 == 0) t += 20000
    printf "{\"timestamp\":%d,\"input_length\":%d,\"output_length\":%d}\n", t, 200 + rand() * 3000, 20 + rand() * 120 } }' > "$dir/run.jsonl"
served="--model llama-3.1-8b --gpu h100-sxm"
"$kvcast" replay "$dir/run.jsonl" $served --profile "$dir/truth.json" --requests "$dir/run.csv" --no-bounds --quiet > /dev/null 2> "$dir/err" &&
    "$kvcast" calibrate --requests "$dir/run.csv" --trace "$dir/run.jsonl" $served -o "$dir/h.json" > "$dir/out" 2> "$dir/err"
report $? "host constants are fitted to requests' times"
awk '/host time per step  / { s = $5 } /per sequence/ { q = $5 } /with prefill/ { p = $7 } /front end/ { f = $3 }
     END { exit !(s > 490 && s < 910 && q > 18 && q < 32 && p > 3.5 && p < 6.5 && f > 25 && f < 35) }' "$dir/out"
report $? "and are those the run was made with, within 30 %"
[ -s "$dir/h.json" ] && "$kvcast" replay "$dir/run.jsonl" $served --profile "$dir/h.json" --no-bounds --json 2>/dev/null |
    awk -F'[:,]' '/"ttft_ms"/ { t = 1 } t && /"mean"/ { print $2; exit }' > "$dir/a"
awk -F, 'NR > 1 { s += $6 } END { print s / (NR - 1) }' "$dir/run.csv" > "$dir/b"
paste "$dir/a" "$dir/b" | awk '{ exit !($1 / $2 < 1.03 && $1 / $2 > 0.97) }'
report $? "a replay with the fitted ones meets the measured mean TTFT within 3 %"

# Of a GPU with a quarter of the bandwidth, as its profile says, the same host
printf '{"schema":"kvcast.profile.v1","gpus":[{"name":"h100-sxm",%s}]' "$(fig hbm_bytes_per_s 8e11)" > "$dir/slow.part"
{ cat "$dir/slow.part"; sed 's/.*"engines"/,"engines"/' "$dir/truth.json"; } > "$dir/slow.json"
{ cat "$dir/slow.part"; echo '}'; } > "$dir/gpu_only.json"
"$kvcast" replay "$dir/run.jsonl" $served --profile "$dir/slow.json" --requests "$dir/slow.csv" --no-bounds --quiet > /dev/null 2> "$dir/err" &&
    "$kvcast" calibrate --requests "$dir/slow.csv" --trace "$dir/run.jsonl" $served --profile "$dir/gpu_only.json" -o "$dir/h2.json" > "$dir/out2" 2> "$dir/err"
awk '/host time per step  / { s = $5 } /with prefill/ { p = $7 } END { exit !(s > 490 && s < 910 && p > 3.5 && p < 6.5) }' "$dir/out2"
report $? "a profile's GPU takes part in the fit"

# The same run as a client's times, and as JSON lines
awk -F, 'BEGIN { print "arrival,first_token,last_token,prompt_tokens,completion_tokens" }
    NR > 1 { printf "%.6f,%.6f,%.6f,%d,%d\n", 1.7e9 + $5, 1.7e9 + $5 + $6 / 1000, 1.7e9 + $5 + $7 / 1000, $13, $14 }' "$dir/run.csv" > "$dir/times.csv"
"$kvcast" calibrate --requests "$dir/times.csv" $served -o "$dir/t.json" > "$dir/out2" 2> "$dir/err"
report $? "times of arrival, first and last token do, without a trace"
per() { awk '/host time per step with/ { print $7 }' "$1"; }
awk -v a="$(per "$dir/out")" -v b="$(per "$dir/out2")" 'BEGIN { exit !(a > 0 && b / a > 0.8 && b / a < 1.25) }'
report $? "and tell the same"
awk -F, 'NR > 1 { printf "{\"arrival_time\": %s, \"first_token_time\": %s, \"last_token_time\": %s, \"prompt_tokens\": %d, \"completion_tokens\": %d}\n", $1, $2, $3, $4, $5 }' \
    "$dir/times.csv" > "$dir/times.jsonl"
"$kvcast" calibrate --requests "$dir/times.jsonl" $served -o - 2> "$dir/err" > "$dir/t2.json" && sed 's/times.jsonl/times.csv/' "$dir/t2.json" | cmp -s - "$dir/t.json"
report $? "JSON lines are the same again"
awk -F, 'NR > 1 { s = s c $1; f = f c $2 - $1; b = b c "[" $3 - $2 "]"; p = p c $4; g = g c $5; e = e c "\"\""; c = "," }
    END { printf "{\"backend\": \"vllm\", \"input_lens\": [%s,5], \"output_lens\": [%s,0], \"ttfts\": [%s,0.0], \"itls\": [%s,[]], \"start_times\": [%s,9], \"errors\": [%s,\"timeout\"]}\n", p, g, f, b, s, e }' \
    OFMT=%.9f CONVFMT=%.9f "$dir/times.csv" > "$dir/bench.json"
"$kvcast" calibrate --requests "$dir/bench.json" $served -o "$dir/t3.json" > "$dir/out3" 2> "$dir/err" && grep -q 'times of 90 requests' "$dir/out3"
report $? "so is the saved result of a benchmark, without the requests that failed"
awk -v a="$(per "$dir/out")" -v b="$(per "$dir/out3")" 'BEGIN { exit !(a > 0 && b / a > 0.8 && b / a < 1.25) }'
report $? "which tells the same, too"
"$kvcast" validate --requests "$dir/bench.json" $served --profile "$dir/t3.json" 2> "$dir/err" | grep -q '^| TTFT mean .* met |'
report $? "validate takes it, and the profile meets it"
printf '{"input_lens": [1, 2], "output_lens": [1, 2]}\n' > "$dir/bare.json"
refused "a result without details says how to save them" 3 "save-detailed" calibrate --requests "$dir/bare.json" $served -o "$dir/x.json"
cut -d, -f1,2,4,5 "$dir/times.csv" > "$dir/short.csv"
refused "a column that is missing is named" 3 "ttft_ms" calibrate --requests "$dir/short.csv" $served -o "$dir/x.json"
awk -F, 'BEGIN { print "input_tokens,output_tokens,ttft_ms,e2e_ms" } NR > 1 { print $13 "," $14 "," $6 "," $7 }' "$dir/run.csv" > "$dir/late.csv"
refused "without arrivals the traffic must be named" 3 "name the traffic with --trace" calibrate --requests "$dir/late.csv" $served -o "$dir/x.json"

awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 /= 1000; $4 /= 1000 } { print }' "$dir/late.csv" > "$dir/seconds.csv"
refused "seconds where milliseconds belong are told" 3 "seconds.csv: its requests were .* times faster" calibrate --requests "$dir/seconds.csv" --trace "$dir/run.jsonl" $served -o "$dir/x.json"
refused "two runs at once" 2 "--requests twice" calibrate --requests "$dir/times.csv" --requests "$dir/late.csv" $served -o "$dir/x.json"
tr ',.' ';,' < "$dir/late.csv" > "$dir/comma.csv"
refused "a decimal comma is no end of a number" 3 'comma.csv:2:ttft_ms: ".*,.*" is not a number: write it with a point' calibrate --requests "$dir/comma.csv" --trace "$dir/run.jsonl" $served -o "$dir/x.json"
sed '2s/$/ms/' "$dir/late.csv" > "$dir/unit.csv"
refused "nor is a unit" 3 'unit.csv:2:e2e_ms: ".*ms" is not a number' calibrate --requests "$dir/unit.csv" --trace "$dir/run.jsonl" $served -o "$dir/x.json"
sed '4s/^[0-9]*/&.5/' "$dir/late.csv" > "$dir/half.csv"
refused "half a token is none" 3 "half.csv:4: .*no whole numbers" calibrate --requests "$dir/half.csv" --trace "$dir/run.jsonl" $served -o "$dir/x.json"
sed '5s/,[0-9.]*,[0-9.]*$/,0,0/' "$dir/late.csv" > "$dir/zero.csv"
refused "a first token after no time at all is none" 3 "zero.csv: request 4 of 90 had its first token after 0 ms" calibrate --requests "$dir/zero.csv" --trace "$dir/run.jsonl" $served -o "$dir/x.json"
sed '5s/^[^,]*,/,/' "$dir/times.csv" > "$dir/when.csv"
refused "a missing arrival is called so" 3 "when.csv:5: its arrival .* is missing" calibrate --requests "$dir/when.csv" $served -o "$dir/x.json"
sed '5s/"arrival_time": [0-9.]*, //' "$dir/times.jsonl" > "$dir/when.jsonl"
refused "in JSON lines, too" 3 "when.jsonl:5: its arrival .* is missing" calibrate --requests "$dir/when.jsonl" $served -o "$dir/x.json"
sed '5s/"first_token_time": [0-9.]*, //' "$dir/times.jsonl" > "$dir/first.jsonl"
refused "and a missing first token" 3 "first.jsonl:5: the time of its first token is missing" calibrate --requests "$dir/first.jsonl" $served -o "$dir/x.json"
{ cat "$dir/times.csv"; sed 1d "$dir/times.csv"; } > "$dir/copies.csv"
"$kvcast" validate --requests "$dir/copies.csv" $served 2> "$dir/err" > "$dir/out" && grep -q 'copies.csv: 90 of its 180 rows equal another in arrival' "$dir/err" &&
    "$kvcast" validate --requests "$dir/times.csv" $served 2> "$dir/err" > "$dir/out" && ! grep -q 'equal another' "$dir/err"
report $? "rows that stand in a log twice are told"
awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = sprintf("%.6f", $3 + 0.001) } 1' "$dir/times.csv" | sed 1d | cat "$dir/times.csv" - > "$dir/later.csv"
"$kvcast" validate --requests "$dir/later.csv" $served 2> "$dir/err" > "$dir/out" && ! grep -q 'equal another' "$dir/err"
report $? "but not those whose last token came at another time"
"$kvcast" calibrate "$dir/fio.json" "$dir/fio.json" -o "$dir/twice.json" > "$dir/out" 2> "$dir/err" && grep -q 'fio.json: 16 of 16 rows stood in fio.json already' "$dir/out" &&
    grep -q '), 16 rows; operations' "$dir/out"
report $? "a file named twice counts once, and that is said"
head -c 400 "$dir/fio.json" > "$dir/cut.json"
refused "a file cut short is called so" 3 "cut.json:.*If it was cut short, run the tool again" calibrate "$dir/cut.json" -o "$dir/x.json"

# Prometheus: two scrapes
scrape() { # requests, ttft sum, queue sum, itl sum, itl count, steps
    printf '# TYPE vllm:time_to_first_token_seconds histogram\n'
    printf 'vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="0.25"} %s\n' $(($1 / 2))
    printf 'vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="+Inf"} %s\n' $1
    printf 'vllm:inter_token_latency_seconds_bucket{engine="0",model_name="m",le="0.01"} %s\n' $(($5 / 4))
    printf 'vllm:inter_token_latency_seconds_bucket{engine="0",model_name="m",le="0.025"} %s\n' $5
    printf 'vllm:inter_token_latency_seconds_bucket{engine="0",model_name="m",le="+Inf"} %s\n' $5
    printf 'vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} %s\nvllm:time_to_first_token_seconds_count{engine="0",model_name="m"} %s\n' $2 $1
    [ -z "$3" ] || printf 'vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} %s\nvllm:request_queue_time_seconds_count{engine="0",model_name="m"} %s\n' $3 $1
    printf 'vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} %s\nvllm:inter_token_latency_seconds_count{engine="0",model_name="m"} %s\n' $4 $5
    printf 'vllm:iteration_tokens_total_count{engine="0",model_name="m"} %s\nvllm:num_requests_running{engine="0",model_name="m"} 8.0\n' $6
    printf 'vllm:prompt_tokens_total{engine="0",model_name="m"} %s\nvllm:generation_tokens_total{engine="0",model_name="m"} %s\n' $(($1 * 1000)) $(($1 * 200))
}
scrape 100 20 5 200 20000 2500 > "$dir/m0"
scrape 300 64 17 620 60000 7500 > "$dir/m1"
scrape 300 64 "" 620 60000 7500 > "$dir/m2"
"$kvcast" calibrate --prometheus "$dir/m0" --prometheus "$dir/m1" $served -o "$dir/m.json" > "$dir/out" 2> "$dir/err"
report $? "two scrapes are an interval"
grep -q '200 requests of 1000 + 200 tokens, 0 % of the prompts cached, batch 8, TTFT 220 ms, 10.5 ms between tokens' "$dir/out"
report $? "its means are printed"
grep -q 'by its buckets TTFT P50, P90, P99 250, over 250, over 250 ms, between tokens P50, P90, P99 15, 23, 24.8 ms' "$dir/out"
report $? "and the quantiles of its buckets"
grep -q 'a step without prompts, .* ms by the fit, lies .* the bucket of its median' "$dir/out"
report $? "the median between tokens checks the fit"
grep -q 'not told by these measurements' "$dir/out"
report $? "one interval does not tell all constants"
"$kvcast" calibrate --prometheus "$dir/m0" --prometheus "$dir/m2" $served -o "$dir/m.json" 2> "$dir/err" | grep -q 'TTFT is waiting, prefill and front end in one'
report $? "without a histogram of waiting TTFT is not used, and why"

# What has not counted yet is not shown: cached tokens, or all buckets, begin at 0.
{ cat "$dir/m1"; printf 'vllm:prefix_cache_queries_total{engine="0",model_name="m"} 200000\nvllm:prefix_cache_hits_total{engine="0",model_name="m"} 50000\n'; } > "$dir/m5"
"$kvcast" calibrate --prometheus "$dir/m0" --prometheus "$dir/m5" $served -o "$dir/m.json" 2> "$dir/err" | grep -q ', 25 % of the prompts cached'
report $? "a counter that first shows later began at 0"
sed '/_bucket/d' "$dir/m0" > "$dir/m6"
"$kvcast" calibrate --prometheus "$dir/m6" --prometheus "$dir/m1" $served -o "$dir/m.json" 2> "$dir/err" | grep -q 'by its buckets TTFT P50, P90, P99 250, over 250, over 250 ms'
report $? "so did buckets"
scrape 300 64e200 17 620 60000 7500 > "$dir/m3"
refused "counters beyond sense" 3 "m3: by its counters a mean TTFT of 3.2e+202 ms" calibrate --prometheus "$dir/m0" --prometheus "$dir/m3" $served -o "$dir/x.json"
scrape 300 64 17 620000 60000 7500 > "$dir/m4"
refused "milliseconds where seconds belong" 3 "m4: by its counters a mean time between tokens of 1.55e+04 ms, where .* are expected" calibrate --prometheus "$dir/m0" --prometheus "$dir/m4" $served -o "$dir/x.json"
scrape 300 64 17 200.4 60000 7500 > "$dir/m7"
refused "and less than any GPU takes" 3 "m7: by its counters a mean time between tokens of 0.01 ms, where .* are expected" calibrate --prometheus "$dir/m0" --prometheus "$dir/m7" $served -o "$dir/x.json"

awk 'BEGIN { print "id,silicon_data_source,backend,model_path,system,precision,mode,isl,osl,gemm_quant_mode,moe_quant_mode,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms"
    for (i = 0; i < 12; i++) printf "r%d,dump,vllm,meta-llama/Llama-3.1-70B,b200_sxm,fp8,agg,%d,%d,fp8,fp8,%d,%d,%d,%.1f\n", i, 1024 * (1 + i % 2), 256 * (1 + i % 3), 2 ^ (i % 6), 4 + 4 * (i % 2), 120 + 60 * (i % 6), 6 + i % 6 }' > "$dir/rows.csv"
"$kvcast" calibrate --rows "$dir/rows.csv" -o "$dir/rows.json" > "$dir/out" 2> "$dir/told" && [ ! -s "$dir/out" ] &&
    grep -q 'engine rows (rows.csv)' "$dir/rows.json" &&
    "$kvcast" replay "$dir/run.jsonl" $served --profile "$dir/rows.json" --no-bounds --quiet > "$dir/out" 2> "$dir/err"
report $? "constants fitted to engine rows become a profile, too"
"$kvcast" replay "$dir/run.jsonl" $served --profile "$dir/rows.json" --no-bounds --quiet --json > "$dir/r.json" 2> "$dir/err" && ! grep -q '"profile_unused"' "$dir/r.json" &&
    "$kvcast" replay "$dir/run.jsonl" $served --engine sglang --profile "$dir/rows.json" --no-bounds --quiet --json > "$dir/r.json" 2> "$dir/err" && grep -q '"profile_unused"' "$dir/r.json"
report $? "which another engine uses nothing of"
"$kvcast" calibrate --rows "$dir/rows.csv" > "$dir/fit.json" 2> "$dir/err" &&
    awk -F'"' '/_ns"/ { key = $2 } /"not_told": ".*: not told by these measurements: / { print key }' "$dir/fit.json" > "$dir/untold" &&
    [ -s "$dir/untold" ] && ! grep -qFf "$dir/untold" "$dir/rows.json" &&
    [ "$(grep -c '^vllm, .*: not told by these measurements' "$dir/told")" = "$(grep -c . "$dir/told")" ] &&
    [ "$(sort -u "$dir/told" | grep -c .)" = "$(grep -c . "$dir/untold")" ]
report $? "what engine rows do not tell is said once each, and not in the profile"

sed 's/^vllm:/sglang:/; s/request_queue_time/queue_time/; s/num_requests_running/num_running_reqs/' "$dir/m0" > "$dir/g0"
sed 's/^vllm:/sglang:/; s/request_queue_time/queue_time/; s/num_requests_running/num_running_reqs/' "$dir/m1" > "$dir/g1"
"$kvcast" calibrate --prometheus "$dir/g0" --prometheus "$dir/g1" $served -o "$dir/g.json" > "$dir/out" 2> "$dir/err" && grep -q '"backend": "sglang"' "$dir/g.json"
report $? "SGLang's metrics are about SGLang's host"
head -2 "$dir/rows.csv" > "$dir/row.csv"
refused "one engine row is too few, and the file is named" 3 "row.csv: . of its rows of vllm" calibrate --rows "$dir/row.csv"
refused "another engine's scrape between" 3 "another engine than" calibrate --prometheus "$dir/m0" --prometheus "$dir/g1" $served -o "$dir/x.json"

# a GPU that no list has: matrix products of one that reaches 300 TFLOP/s and 1.7 TB/s, 4 us to launch
awk 'function ns(m, n, k, t, b) { t = 2 * m * n * k / 3e14; b = 2 * (m * k + n * k + m * n) / 1.7e12; return 4000 + 1e9 * (t > b ? t : b) }
    BEGIN { printf "{\"schema\": \"kvcast.profile.v1\", \"gpu\": \"l40s\", \"gpus\": [{\"name\": \"l40s\", \"device\": \"A New GPU\", \"memory_bytes\": {\"value\": 9.6e10, \"kind\": \"measured\", \"source\": \"CUDA\"}}], \"kernel_measurements\": ["
    split("28672 4096 6144 4096 8192", n); split("4096 14336 4096 4096 8192", k)
    for (s = 1; s <= 5; s++) for (m = 16; m <= 16384; m *= 4)
        printf "%s{\"family\": \"gemm\", \"gemm_dtype\": \"bfloat16\", \"m\": %d, \"n\": %d, \"k\": %d, \"ns\": %.1f}\n", (s > 1 || m > 16 ? "," : ""), m, n[s], k[s], ns(m, n[s], k[s])
    print ", {\"family\": \"gem\", \"ns\": 1}]}" }' > "$dir/box.json"
"$kvcast" calibrate "$dir/box.json" -o "$dir/gpu.json" > "$dir/out" 2> "$dir/err" && grep -q '^  a table of their own, .* off on shapes left out' "$dir/out" &&
    grep -q 'box.json: line 31: no kernel.s time: there is no such family' "$dir/out" && grep -q '"measured_to": \[16384\]' "$dir/gpu.json"
report $? "kernels of a GPU that is not listed become tables"
"$kvcast" replay "$dir/run.jsonl" --model llama-3.1-8b --gpu l40s --profile "$dir/gpu.json" --no-bounds --report "$dir/out" --quiet > "$dir/err" 2>&1 &&
    grep -q 'x A New GPU' "$dir/out" && grep -q 'kernels_of_profile' "$dir/out" && grep -q 'kvcast calibrate, 30 rows' "$dir/out"
report $? "which a replay takes, and says of whom the others are"
"$kvcast" calibrate "$dir/gpu.json" "$dir/box.json" -o "$dir/again.json" > "$dir/out" 2> "$dir/err" && grep -q ' bfloat16: 30 rows of 5 shapes' "$dir/out"
report $? "and that can be fitted again, the same rows once"
{ echo gemm_dtype,m,n,k,latency; for m in 1 2 4 8 16 32 64 128; do for w in 1024 2048 4096; do echo "bfloat16,$m,$w,4096,0.0$((10 + w / 256))"; done; done; } > "$dir/h100_sxm__gemm__vllm__1.csv"
"$kvcast" calibrate --kernels "$dir/h100_sxm__gemm__vllm__1.csv" -o "$dir/tables.json" > "$dir/out" 2> "$dir/err" &&
    "$kvcast" replay "$dir/run.jsonl" $served --profile "$dir/tables.json" --no-bounds --report "$dir/out" --quiet > "$dir/err" 2>&1 && grep -q 'h100_sxm gemm vllm 1' "$dir/out"
report $? "a file of kernel tables is a profile, too"
sed 's/"gpu": "l40s", "gpus": .*"kernel_m/"kernel_m/' "$dir/box.json" > "$dir/nobody.json"
refused "kernels of no GPU" 2 "name.* with --gpu\|say which with --gpu" calibrate "$dir/nobody.json" -o "$dir/x.json"
sed 's/"l40s"/"a100-80"/g; s/A New GPU/Another/' "$dir/box.json" > "$dir/other.json"
refused "kernels of two GPUs" 3 "other.json:gpu: is of Another, a file before it of A New GPU" calibrate "$dir/box.json" "$dir/other.json" -o "$dir/x.json"
refused "a profile of figures alone" 3 "no usable measurement in it; .* name --requests or --prometheus once more" calibrate "$dir/truth.json" -o "$dir/x.json"
{ echo '{"schema":"kvcast.profile.v1","gpu":"a100-80","measurements":['; echo '{"link":"rdma-400","op_bytes":65536,"depth":1,"bytes_per_s":4e9}]}'; } > "$dir/rdma.json"
"$kvcast" calibrate "$dir/p.json" "$dir/rdma.json" -o "$dir/x.json" > "$dir/out" 2> "$dir/err" && grep -q 'rdma.json: measured beside a100-80, a file before it beside h100_sxm' "$dir/out" && rm "$dir/x.json"
report $? "links measured beside two GPUs go together, and it says so"

refused "one scrape tells nothing" 2 "two scrapes" calibrate --prometheus "$dir/m0" $served -o "$dir/x.json"
refused "scrapes in the wrong order" 3 "in order of time" calibrate --prometheus "$dir/m1" --prometheus "$dir/m0" $served -o "$dir/x.json"
cat "$dir/m0" "$dir/m1" > "$dir/both"
refused "two scrapes in one file" 3 "both:[0-9]*: .* stands here a second time" calibrate --prometheus "$dir/m0" --prometheus "$dir/both" $served -o "$dir/x.json"
refused "no scrape at all" 3 "no metric of vLLM" calibrate --prometheus "$dir/nvb.txt" --prometheus "$dir/m0" $served -o "$dir/x.json"
refused "what was served must be named" 2 "no model is named" calibrate --prometheus "$dir/m0" --prometheus "$dir/m1" -o "$dir/x.json"
refused "nothing to fit to" 2 "nothing to fit to" calibrate -o "$dir/x.json"
refused "no place for the profile" 2 "-o PROFILE.json" calibrate "$dir/fio.json"
refused "a place that can't be" 1 "/nonexistent" calibrate "$dir/fio.json" -o /nonexistent/x.json
refused "over its own input" 2 "would overwrite the measurements" calibrate "$dir/fio.json" "$dir/nvb.txt" -o "$dir/nvb.txt"
refused "no such link" 2 "did you mean nvme-gen4-x4" calibrate "$dir/fio.json" --link fio=nvme-gen4 -o "$dir/x.json"
refused "no such tool" 2 "no tool is called" calibrate "$dir/fio.json" --link dd=nvme-gen4-x4 -o "$dir/x.json"
refused "a link for figures that name theirs" 2 "names its link itself" calibrate "$dir/p.json" --link bench=gds -o "$dir/x.json"
refused "another tool's output" 3 "does not look like" calibrate --fio "$dir/nvb.txt" -o "$dir/x.json"
refused "no tool's output" 3 "no output of a tool" calibrate "$dir/run.csv" -o "$dir/x.json"
refused "a profile must be one" 3 "not a profile" replay "$dir/log.jsonl" $served --profile "$dir/fio.json"
[ ! -e "$dir/x.json" ]
report $? "what was refused left no file"

echo "1..$n"
exit $failed
