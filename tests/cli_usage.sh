#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage, exit codes and messages of the command line; nothing here needs a trace.
. "$(dirname "$0")/tap.sh"

# Exit code, and a pattern that stderr must hold ("" = must be empty).
expect() { # name, code, pattern, arguments..
    name=$1 code=$2 pattern=$3
    shift 3
    "$kvcast" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    rc=$?
    if [ $rc = "$code" ] && { [ -n "$pattern" ] && grep -q -e "$pattern" "$dir/err" ||
        { [ -z "$pattern" ] && [ ! -s "$dir/err" ]; }; }; then
        report 0 "$name"
    else
        echo "# exit $rc; stderr:" && sed 's/^/# /' "$dir/err"
        report 1 "$name"
    fi
}

expect "no command shows usage and fails" 2 "usage: kvcast"
expect "help succeeds" 0 "" --help
grep -q 'replay' "$dir/out"; report $? "help lists the commands"
expect "help of a command succeeds" 0 "" replay --help
grep -q -e '--tiers.dram.capacity SIZE' "$dir/out"; report $? "help of replay lists the scenario keys"
grep -q -e '--tenants.NAME.reserve SHARE|BYTES' "$dir/out"; report $? ".. and those of tenants"
awk '/--router, --router.policy/ { on = 1 } on { text = text " " $0 } /load_weight/ { on = 0 }
     END { exit text !~ /plug-in/ }' "$dir/out"
report $? ".. and that a router may be a plug-in"
awk 'length > 110 { exit 1 }' "$dir/out"; report $? "help lines are not endless"
expect "'help COMMAND' is the same" 0 "" help replay
expect "version succeeds" 0 "" --version
grep -Eq '^kvcast [0-9]+\.[0-9]+\.[0-9]+$' "$dir/out"; report $? "version is one line"
expect "an unknown command names the nearest" 2 "did you mean 'replay'" reply
expect "an unknown command without a neighbour" 2 "unknown command 'xyzzy'" xyzzy
expect "a promised command says that it is not there yet" 2 "not in this release" sweep
expect "an unknown option names the nearest" 2 "did you mean --replicas" replay x --relicas 2
expect "an option without its value" 2 "needs a value" replay x --gpu
expect "an option whose value is the next option" 2 "needs a value" replay x --gpu --json
expect "a flag with a value" 2 "takes no value" replay x --json=1
expect "a bad number" 2 "whole number" replay x --seed abc
expect "a number out of range" 2 "from 1 to" replay x --threads 0
expect "a bad choice" 2 "auto, always or never" replay x --progress sometimes
expect "a bare number for a size" 2 "no unit" replay x --dram 512
expect "a bad unit" 2 "80GiB" replay x --dram=512XB
expect "a misspelt GPU" 2 "h200_sxm" replay x --gpu h200-smx
expect "a key that can't be honoured yet" 2 "not yet supported" replay x --models '{"a": "b"}'
expect "no trace" 2 "no trace" replay --preset kga-rag
expect "no model" 2 "no model" replay x
expect "no GPU" 2 "no GPU" replay x --model llama-3.1-8b
expect "a trace that is not there" 3 "nosuchfile" replay "$dir/nosuchfile" --preset kga-rag
expect "a folder as trace" 3 "$dir" replay "$dir" --preset kga-rag
expect "two traces" 2 "two traces" replay a b --preset kga-rag
expect "a word behind -- is no option" 3 "--gpu" replay --preset kga-rag -- --gpu

printf '{\n  "model": "llama-3.1-8b",\n  "clster": {}\n}\n' >"$dir/s.json"
printf '{\n  "model": "llama-3.1-8b",\n  "cluster": { "gqu": "x" }\n}\n' >"$dir/t.json"
expect "a scenario's wrong key is named with file and line" 3 "t.json:3:cluster.gqu: .*cluster.gpu" replay "$dir/t.json"
printf '{\n  "model": "llama-3.1-8b",\n  "model": "x"\n}\n' >"$dir/u.json"
expect "a scenario's repeated key" 3 "u.json:3:model: .*twice" replay "$dir/u.json"


# A key's value that is refused: 2 where a flag gave it, 3 and the file where that did.
printf '{"timestamp": 0, "input_length": 300, "output_length": 10, "hash_ids": [1]}\n' >"$dir/log.jsonl"
on="replay $dir/log.jsonl --model llama-3.1-8b --gpu h100-sxm"
expect "a refused tp" 2 "^kvcast: cluster.tp: 3 does not divide" $on --tp 3
expect "a refused dp" 2 "^kvcast: cluster.dp: " $on --cluster.dp 2
expect "a refused ep" 2 "^kvcast: cluster.ep: " $on --cluster.ep 2
expect "refused weights" 2 "^kvcast: weights_dtype: " $on --weights_dtype nvfp4
expect "a refused backend" 2 "^kvcast: engine.backend: " $on --gpu mi300x --engine.backend trtllm
expect "refused keys together" 2 "^kvcast: engine.cold: " $on --engine.cold true --cluster.dp 2
expect "a budget whose activations leave no room" 2 "engine.max_batched_tokens, whose activations" \
    $on --engine.max_batched_tokens 16777216
"$kvcast" $on --no-bounds --quiet --warmup 1h 2>"$dir/err" | grep -q 'All requests came within the warm-up'
report $? "a warm-up beyond the log is called so"
expect "a model that does not fit" 2 "^kvcast: model: .* does not fit" $on --model llama-3.1-405b
printf '{"model": "llama-3.1-8b", "cluster": {"gpu": "h100-sxm", "tp": 3}}\n' >"$dir/v.json"
expect "a file's tp" 3 "v.json:cluster.tp: 3 does not divide" replay "$dir/v.json" "$dir/log.jsonl"
expect "a flag's tp beside the file" 2 "^kvcast: cluster.tp: 5 does not divide" replay "$dir/v.json" "$dir/log.jsonl" --tp 5
expect "a group given at once beside the file" 2 "^kvcast: cluster.tp: 6 does not divide" \
    replay "$dir/v.json" "$dir/log.jsonl" --cluster '{"tp": 6}'
expect "refused weights of a file's model" 2 "^kvcast: weights_dtype: " replay "$dir/v.json" "$dir/log.jsonl" \
    --tp 2 --weights_dtype nvfp4
expect "a rate out of range" 2 "0GB/s is not between 1kB/s and 1PB/s" $on --dram 1GiB --tiers.dram.link.bandwidth 0GB/s
expect "a size out of range" 2 "1000PiB (1126PB) is not between 0B and 1000PB" $on --dram 1000PiB

if [ -w /dev/full ]; then
    "$kvcast" --man >/dev/full 2>"$dir/err"
    [ $? = 1 ] && grep -q 'disk full' "$dir/err"
    report $? "output that can't be written fails"
fi

"$kvcast" --man >"$dir/kvcast.1"
if [ -e docs/kvcast.1 ]; then
    diff docs/kvcast.1 "$dir/kvcast.1" >"$dir/diff"
    rc=$?
    sed 's/^/# /' "$dir/diff" | head -20
    report $rc "the committed manual page is current (make man)"
fi
if command -v groff >/dev/null 2>&1; then
    [ -z "$(groff -man -Tutf8 -ww "$dir/kvcast.1" 2>&1 >/dev/null)" ]
    report $? "the manual page is clean roff"
else
    n=$((n + 1))
    echo "ok $n # SKIP no groff to check the manual page with"
fi
echo "1..$n"
exit $failed
