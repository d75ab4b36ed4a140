#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# export from the outside: the reports of a trace and of its export, imported again, are equal.
. "$(dirname "$0")/tap.sh"

# The parts of a report that may differ between equal runs end it.
reports() { # trace, file
    "$kvcast" ceiling --json "$1" --capacity 100,1000,inf --policy lru,opt 2>/dev/null | sed '/"runtime"/,$d' >"$2"
    "$kvcast" replay --json "$1" --model llama-3.1-8b --gpu h100-sxm --dram 64GiB 2>"$dir/err" |
        sed '/"runtime"/,$d; /"trace":.*"[^"]*[.]kvt"/d' >>"$2"
    [ -s "$2" ]
}

round() { # name, log, format, suffix, block tokens
    "$kvcast" import --quiet "$2" -o "$dir/a.kvt" &&
        "$kvcast" export --quiet "$dir/a.kvt" --format "$3" -o "$dir/x$4" &&
        "$kvcast" import --quiet "$dir/x$4" ${5:+--block-tokens $5} -o "$dir/b.kvt" &&
        reports "$dir/a.kvt" "$dir/a.txt" && reports "$dir/b.kvt" "$dir/b.txt" &&
        cmp "$dir/a.txt" "$dir/b.txt"
    report $? "$1"
}

"$kvcast" gen agent --duration 3m --seed 5 -o "$dir/gen.jsonl" --quiet
round "mooncake: equal reports" "$dir/gen.jsonl" mooncake .jsonl 16
grep -q '"token_hit_rate"' "$dir/b.txt" && grep -q '"ttft_ms"' "$dir/b.txt"; report $? "that hold figures"
round "csv: equal reports" "$dir/gen.jsonl" csv .csv.gz

shared=../shared/traces
skip_or() { # name, log, format, suffix, block tokens
    if [ -r "$2" ]; then round "$@"; else n=$((n + 1)); echo "ok $n # SKIP no $2"; fi
}
skip_or "conversation, mooncake" $shared/mooncake/conversation_trace.jsonl.zst mooncake .zst
skip_or "kv-cache-tester, mooncake" $shared/kv-cache-tester/single/trace_0094.json mooncake .gz 64
skip_or "sharegpt with known answers, csv" $shared/llmservingsim/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl.zst csv .csv

"$kvcast" export "$dir/a.kvt" --format csv -o - >"$dir/out" 2>"$dir/err"
[ "$(head -c 11 "$dir/out")" = "arrival_ns," ]; report $? "export to stdout"
"$kvcast" export "$dir/gen.jsonl" -o "$dir/y.jsonl" --json 2>/dev/null | grep -q '"schema": "kvcast.export.v1"'
report $? "--json tells what was written"
refused "no output named" 2 "where to" export "$dir/a.kvt"
refused "no trace named" 2 "no trace" export -o "$dir/z"
refused "an unknown format" 2 "can't be written; there are" export "$dir/a.kvt" --format parquet -o "$dir/z"
refused "over the trace itself" 2 "would overwrite" export "$dir/a.kvt" -o "$dir/a.kvt"
refused "a folder that isn't there" 1 "no/z" export "$dir/a.kvt" -o "$dir/no/z"
[ ! -e "$dir/z" ]; report $? "nothing was written"

echo "1..$n"
exit $failed
