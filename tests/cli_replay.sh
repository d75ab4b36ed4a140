#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The replay command from end to end on a small generated log.
. "$(dirname "$0")/tap.sh"
case $kvcast in /*) ;; *) kvcast=$PWD/$kvcast ;; esac
examples=$PWD/docs/examples
# The result without the part that differs between equal runs.
result() { sed '/"runtime"/,$d' "$1"; }
# The effective scenario inside a result.
scenario() { awk '/^  "scenario": \{/ { print "{"; p = 1; next } p && /^  \},?$/ { print "}"; exit } p' "$1"; }
number() { sed -n "s/.*\"$2\": *\([0-9.e+-]*\).*/\1/p" "$1" | head -1; }

cd "$dir" || exit 1
"$kvcast" gen rag-chat --duration 5m --rate 1 --seed 5 -o log.jsonl --quiet
report $? "a log is generated"

"$kvcast" replay log.jsonl --preset kga-rag --json --quiet >a.json 2>err
rc=$?
[ $rc = 0 ] && [ ! -s err ]
report $? "replay succeeds, silently with --quiet"
grep -q '"schema": "kvcast.replay.v1"' a.json
report $? "the JSON names its schema"

"$kvcast" replay log.jsonl --preset kga-rag --json --quiet --threads 1 >b.json
"$kvcast" replay log.jsonl --json --quiet --threads 8 --progress always --preset kga-rag >c.json 2>/dev/null
result a.json >a.res && result b.json | cmp -s - a.res && result c.json | cmp -s - a.res
report $? "equal runs give equal bytes, whatever the threads and the order of flags"

for other in build/clang/kvcast build/release/kvcast; do
    other=$OLDPWD/$other
    if [ -x "$other" ] && [ "$other" != "$kvcast" ]; then
        "$other" replay log.jsonl --preset kga-rag --json --quiet | sed '/"runtime"/,$d' >o.res
        cmp -s o.res a.res
        report $? "another build (${other#"$OLDPWD"/build/}) gives the same bytes"
    fi
done

"$kvcast" import log.jsonl -o log.kvt --quiet && "$kvcast" replay log.kvt --preset kga-rag --json --quiet >k.json
result k.json | cmp -s - a.res
report $? "a .kvt gives the same as its log"
"$kvcast" replay - --preset kga-rag --json --quiet <log.jsonl | sed '/"runtime"/,$d' | cmp -s - a.res
report $? "and so does stdin"

scenario a.json >effective.json
"$kvcast" replay effective.json log.jsonl --json --quiet >e.json 2>err || sed 's/^/# /' err
result e.json | cmp -s - a.res
report $? "the effective scenario of a result reproduces the result"

hits=$(number a.json hit_tokens)
missed=$(awk '/"missed_tokens"/ { p = 1; next } p && /\}/ { exit } p { gsub(/[^0-9]/, "", $2); s += $2 } END { printf "%.0f", s }' a.json)
inputs=$(number a.json input_tokens)
[ -n "$inputs" ] && [ "$inputs" -gt 0 ] && [ $((hits + missed)) = "$inputs" ]
report $? "hits and missed tokens add up to the input ($hits + $missed = $inputs)"

ladder=$("$kvcast" replay log.jsonl --preset kga-rag --dram 0 --nvme 0 --json --quiet |
    awk '/"hits": \{/ { h = 1 } h && /"token_hit_rate"/ && !r { gsub(/[^0-9.e-]/, "", $2); r = $2 }
        /"content_token_hit_rate"/ { gsub(/[^0-9.e-]/, "", $2); c = $2 }
        END { print (r > 0 && r <= c + 1e-12) ? "fine" : "wrong " r " " c }')
[ "$ladder" = fine ]
report $? "what is reached stays below the content bound $ladder"

slow=$("$kvcast" replay log.jsonl --preset kga-rag --engine.kv_cache_memory 20GB --tiers.dram.link.bandwidth 100MB/s --nvme 0 --json --quiet >s.json; number s.json mean)
fast=$("$kvcast" replay log.jsonl --preset kga-rag --engine.kv_cache_memory 20GB --tiers.dram.link.bandwidth 100GB/s --nvme 0 --json --quiet >f.json; number f.json mean)
awk -v s="$slow" -v f="$fast" 'BEGIN { exit !(s > 1.2 * f) }'
report $? "a hit in DRAM costs its link: mean TTFT $slow ms over 100 MB/s, $fast ms over 100 GB/s"

for s in "$examples"/*.json; do
    "$kvcast" replay "$s" log.jsonl --json --quiet >x.json 2>err || sed 's/^/# /' err
    grep -q '"schema": "kvcast.replay.v1"' x.json
    report $? "the example $(basename "$s") runs"
done

mkdir sub && cp log.jsonl sub/
printf '// seen from here\n{ "trace": "log.jsonl", "preset": "kga-rag" }\n' >sub/s.json
"$kvcast" replay sub/s.json --json --quiet >t.json 2>err || sed 's/^/# /' err
[ "$(number t.json arrived)" = "$(number a.json arrived)" ]
report $? "a scenario's trace is looked for beside the scenario"

gzip -c sub/s.json >sub/s.json.gz
"$kvcast" replay sub/s.json.gz --json --quiet >t.json 2>err || sed 's/^/# /' err
[ "$(number t.json arrived)" = "$(number a.json arrived)" ]
report $? "a scenario may be packed"
mkfifo pipe
cat log.jsonl >pipe &
"$kvcast" replay pipe --preset kga-rag --json --quiet | sed '/"runtime"/,$d' | cmp -s - a.res
report $? "a log may come from a pipe"

"$kvcast" replay log.jsonl --preset kga-rag --report r.html --db d.db --requests q.csv --quiet >text 2>err
rc=$?
[ $rc = 0 ] && [ -s text ] && [ -s r.html ] && [ -s d.db ] && [ "$(wc -l <q.csv)" -gt "$(number a.json arrived)" ]
report $? "text, report, database and a row per request are written"
grep -q '</html>' r.html && ! grep -Eq '(src|href)="(https?:)?//' r.html
report $? "the report is whole and fetches nothing"

(
    cat log.jsonl
    echo '{"timestamp": -5, "input_length": 10, "output_length": 1, "hash_ids": [0]}'
    echo 'not json'
) >bad.jsonl
"$kvcast" replay bad.jsonl --preset kga-rag --json >x.json 2>err
[ $? = 0 ] && grep -q '2 of .* rows could not be used' err && result x.json | cmp -s - a.res
report $? "bad rows are counted, shown and change nothing else"
"$kvcast" replay bad.jsonl --preset kga-rag --strict >x.json 2>err
[ $? = 3 ] && grep -q "^kvcast: bad.jsonl:$(($(wc -l <log.jsonl) + 1)):" err && [ ! -s x.json ]
report $? "--strict stops at the first with file and line"

"$kvcast" replay log.jsonl --model llama-3.1-405b --gpu h100-sxm --json --quiet >x.json 2>err
rc=$?
[ $rc != 0 ] && [ -s err ] && [ ! -s x.json ]
report $? "a model that does not fit the GPU is refused with a reason (exit $rc)"
refused "a share of memory below the weights" 2 "raise .*engine.gpu_memory_utilization" \
    replay log.jsonl --model llama-3.1-8b --gpu h100-sxm --engine.gpu_memory_utilization 0.1
refused "a backend without kernels there" 2 "engine.backend: no kernel times of trtllm" \
    replay log.jsonl --model llama-3.1-8b --gpu rtx-4090 --engine.backend trtllm
refused "DRAM is not staged in itself" 2 "tiers.dram.staged: dram is host memory" \
    replay log.jsonl --model llama-3.1-8b --gpu h100-sxm --dram 1GiB --tiers.dram.staged true
refused "KV of less than two pages names its key" 2 "^kvcast: engine.kv_cache_memory: holds less" \
    replay log.jsonl --model llama-3.1-8b --gpu h100-sxm --engine.kv_cache_memory 2MiB

if [ -w /dev/full ]; then
    "$kvcast" replay log.jsonl --preset kga-rag --quiet >/dev/full 2>err
    [ $? = 1 ] && [ -s err ]
    report $? "a summary that can't be written fails"
fi
"$kvcast" replay log.jsonl --preset kga-rag --quiet --report nosuchdir/r.html >/dev/null 2>err
rc=$?
[ $rc != 0 ] && grep -q nosuchdir err && [ ! -e nosuchdir ]
report $? "a report that can't be written fails and says where"
"$kvcast" replay nosuchlog --preset kga-rag --quiet --db nosuchdir/r.db >/dev/null 2>err
[ $? = 1 ] && grep -q "nosuchdir/r.db: can't write" err && ! grep -q nosuchlog err
report $? "before anything is read"

# c08: prompts alone share 2 + 5 blocks of 512; with the answers 4 + 6, of which each answer's last block
# lacks the token that was sampled last.
cat >turns.jsonl <<'LOG'
{"timestamp": 0, "input_length": 1024, "output_length": 1024, "hash_ids": [1, 2], "session_id": "s"}
{"timestamp": 60000, "input_length": 2560, "output_length": 512, "hash_ids": [1, 2, 3, 4, 5], "session_id": "s"}
{"timestamp": 120000, "input_length": 3584, "output_length": 10, "hash_ids": [1, 2, 3, 4, 5, 6, 7], "session_id": "s"}
LOG
"$kvcast" replay turns.jsonl --model llama-3.1-8b --gpu h100-sxm --json --quiet >x.json
[ "$(number x.json hit_tokens)" = 4096 ] && "$kvcast" ceiling turns.jsonl --json --quiet | grep -q '"hit_blocks": 7'
report $? "answers become prefixes, but for the token that was sampled last"

# What a model, GPU or engine can't do is said with the key and the cure.
says() { # name, code, pattern, arguments..
    name=$1 code=$2 pattern=$3
    shift 3
    "$kvcast" replay log.jsonl --quiet "$@" >out 2>err
    [ $? = "$code" ] && [ ! -s out ] && grep -q -e "$pattern" err
    report $? "$name"
}
says "tp that does not divide the heads" 2 'cluster.tp: 3 does not divide' --preset kga-rag --tp 3
says "a KV dtype that no kernel reads" 2 'kv_dtype: .*use bf16 or fp8' --preset kga-rag --model DeepSeek-V3 --tp 8 --kv-dtype nvfp4
says "weights without times" 2 'weights_dtype: .* int8 weights on h200_sxm; it has bf16, fp8' --preset kga-rag --weights_dtype int8
says "ranks of a dense model" 2 'cluster.dp: 2 .*cluster.replicas' --preset kga-rag --tp 1 --cluster.dp 2
says "a model without times" 2 'model: no step times' --model kimi-k3 --gpu h200-sxm
says "an engine's preset as a scenario's" 2 'preset: sglang presets an engine only' --preset sglang
"$kvcast" replay log.jsonl --preset kga-rag --json --quiet --scale 2 --arrivals.mode closed \
    --arrivals.concurrency 4 | grep -q '"times_ignored"'
report $? "closed arrivals say that the rate is ignored"

peer="--model llama-3.1-8b --gpu h100-sxm --tiers.remote.capacity 1TiB --no-bounds"
# shellcheck disable=SC2086
"$kvcast" replay log.jsonl $peer --json --quiet | grep -q '"whole_pages"'
report $? "pulls over RDMA without a connector say so"
# shellcheck disable=SC2086
"$kvcast" replay log.jsonl $peer --json --quiet --tiers.remote.connector mooncake --report peer.html >out &&
    ! grep -q '"whole_pages"' out && grep -q '18.02 GB/s in, 18.02 GB/s out by operations of 32KiB' peer.html
report $? "a connector sends a page of one layer's keys or values at a time"

# What is named like a scenario is judged as one.
echo '{ "modell": "llama-3.1-70b" }' >typo.json
"$kvcast" replay typo.json log.jsonl >out 2>err
[ $? = 3 ] && [ ! -s out ] && grep -q 'typo.json:1:modell: unknown key; did you mean model' err
report $? "a scenario with one unknown key"
: >empty.json
"$kvcast" replay empty.json log.jsonl >out 2>err
[ $? = 3 ] && grep -q 'empty.json: the file is empty' err
report $? "an empty scenario"
cp log.jsonl log.json
"$kvcast" replay log.json --preset kga-rag --json --quiet | sed '/"runtime"/,$d' | cmp -s - a.res
report $? "a log may be named .json"
# what is written must not be two things, or what is read: before the run
set -- log.jsonl --preset kga-rag
refused "two reports in one file" 2 "report and --requests both want same" replay "$@" --report same --requests same
[ ! -e same ]; report $? ".. and nothing is written"
cp log.jsonl mine.so
refused "a report over the plug-in" 2 "--report mine.so would overwrite what --tiers.hbm.policy reads" \
    replay "$@" --policy ./mine.so:k=2 --report mine.so
cmp -s log.jsonl mine.so; report $? ".. which is as it was"
refused "JSON and a page on stdout" 2 "both want stdout" replay "$@" --json --report /dev/stdout
refused "a trace over the salt" 2 "would overwrite what --salt-file reads" import log.jsonl --salt-file mine.so -o mine.so
echo "1..$n"
exit $failed
