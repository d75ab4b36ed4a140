#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 'kvcast ceiling' on a log small enough to count by hand.
. "$(dirname "$0")/tap.sh"

# JSON on one line without blanks, so that patterns can be plain.
ceiling() {
    "$kvcast" ceiling "$dir/t.jsonl" --json --quiet "$@" >"$dir/out" 2>"$dir/err" || return 1
    [ ! -s "$dir/err" ] && tr -d ' \n' <"$dir/out" >"$dir/flat"
}
holds() { # name, pattern..
    name=$1
    shift
    for p in "$@"; do
        grep -qF -e "$p" "$dir/flat" || { echo "# not there: $p" && sed 's/^/# /' "$dir/flat"
            report 1 "$name"; return; }
    done
    report 0 "$name"
}

# Blocks of 512: a b c, a b d(partial, 100 tokens), a b c, e, a b d(partial).
cat >"$dir/t.jsonl" <<'LOG'
{"timestamp": 0, "input_length": 1536, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 1000, "input_length": 1124, "output_length": 5, "hash_ids": [0, 1, 3]}
{"timestamp": 2000, "input_length": 1536, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 512, "output_length": 5, "hash_ids": [4]}
{"timestamp": 4000, "input_length": 1124, "output_length": 5, "hash_ids": [0, 1, 3]}
LOG

# content: 0 + 2 + 3 + 0 + 3 blocks; tokens 1024 + 1536 + 1124; without tails 2 + 3 + 2 blocks
ceiling; report $? "JSON and nothing else"
holds "the content bound, with and without partial tails" \
    '"schema":"kvcast.ceiling.v1"' '"requests":5,' '"block_touches":13,' '"blocks":5,' \
    '"content":{"raw_hit_blocks":8,' '"raw_hit_tokens":3684,' '"hit_blocks":7,' \
    '"hit_tokens":3584,' '"request_hit_rate":0.6}' '"curve":[]'
# LRU at 3: after abc: a b c; abd hits 2, leaves a b d; abc hits 2; e leaves e a b; abd hits 2.
# OPT at 3: abc next at 3; abd hits 2, d bypassed or c dropped for one of them.
ceiling --capacity 0,3,inf --policy lru,opt
holds "LRU and the optimum at given capacities" \
    '{"policy":"lru","capacity_blocks":0,"capacity_bytes":null,"raw_hit_blocks":0,' \
    '{"policy":"lru","capacity_blocks":3,"capacity_bytes":null,"raw_hit_blocks":6,' \
    '{"policy":"opt","capacity_blocks":3,"capacity_bytes":null,"raw_hit_blocks":7,' \
    '{"policy":"lru","capacity_blocks":"inf","capacity_bytes":null,"raw_hit_blocks":8,' \
    '{"policy":"opt","capacity_blocks":"inf","capacity_bytes":null,"raw_hit_blocks":8,'
# of 13 blocks 8 are there again; the optimum loses 1 to capacity, LRU 1 more to its rule
holds "each gap has its cause, and they add up" \
    '"gaps":{"token_hit_rate":{"content":' '"raw_block_hit_rate":{"content":0.6153846153846154,"sharing":null,"capacity":0.07692307692307693,"policy":0.07692307692307693,"routing":null,"reached":0.46153846153846156}'
# after abd the cache holds 3 of a b c d, all touched again; a b from the first request to the second
# and from the third to the last do not cross that instant: 3 + 4 = 7
ceiling --capacity 3 --policy opt --certify
holds "the optimum with its proof" \
    '"certificates":[{"capacity_blocks":3,"capacity_bytes":null,"raw_hit_blocks":7,"most_held_blocks":3,"free_reuses":4,' \
    '"bound_blocks":7,"optimal":true,"instants":[1],"runs":[0,2,3,0,2]}]'
# without opt in the list it is there all the same
ceiling --capacity 3 --policy lru
holds "and capacity is told from policy whatever is listed" \
    '"raw_block_hit_rate":{"content":0.6153846153846154,"sharing":null,"capacity":0.07692307692307693,"policy":0.07692307692307693,"routing":null,"reached":0.46153846153846156}'
# a b, a b c, a b: full blocks that cost 1, 1 + 1/64 and 1 + 2/64; lru loses the last b to e
ceiling --capacity 2 --cost
holds "what hits save, between two bounds" '"cost":{"unit":"first_blocks","points":[' \
    '"content":7.078125,"upper_bound":6.046875,"reached":6.046875,"reached_by":"opt",' \
    '"policies":[{"policy":"lru","saved":5.03125},{"policy":"opt","saved":6.046875}]}]}'
ceiling --capacity 2 --model llama-3.1-8b --gpu h100-sxm
holds "in seconds of a GPU" '"cost":{"unit":"gpu_seconds","points":[{"capacity_blocks":2,'
# of so small a trace everything is kept: exact, and a warning
"$kvcast" ceiling "$dir/t.jsonl" --sample 0.1 --capacity 3 --policy lru,opt --json 2>"$dir/err" |
    tr -d ' \n' >"$dir/flat"
holds "samples, with what they keep" '"kept_share":1,"valid":false,' \
    '"policy":"lru","capacity_blocks":3,"capacity_bytes":null,"raw_block_hit_rate":0.46153846153' \
    '"policy":"opt","capacity_blocks":3,"capacity_bytes":null,"raw_block_hit_rate":0.53846153846'
grep -q "run without --sample" "$dir/err"; report $? "and a warning where they are no use"
"$kvcast" ceiling "$dir/t.jsonl" --sample 0.1 --capacity 3 --policy lru --quiet |
    grep -q "^not to be relied on"; report $? "that --quiet leaves beside the figures"
# ranks hit, by request: a1 b2 | a1 b2 c4 | a2 b3 d5
ceiling --capacity 1 --policy LRU --curve all
holds "the curve, every change of slope" '"curve":[[0,0],[1,2],[2,5],[5,8]]'
# every row of the table in docs/ has been run, and help names it
"$kvcast" ceiling --help >"$dir/help"
ceiling --capacity 3 --policy all,lru
missing=
for p in $(sed -n 's/^| \([a-z0-9]*\) |.*/\1/p' docs/policies.md | grep -vx policy); do
    grep -qF "{\"policy\":\"$p\",\"capacity_blocks\":3," "$dir/flat" || missing="$missing $p"
    grep -qw "$p" "$dir/help" || missing="$missing $p(help)"
done
[ -z "$missing" ]; report $? "--policy all runs all of docs/policies.md, and help names them$missing"
# a block of Llama-3.1-8B in bf16: 512 x 131,072 bytes = 64 MiB
ceiling --capacity 200MiB,2 --policy opt --model llama-3.1-8b
holds "sizes become whole blocks of the model's KV" \
    '"capacity_blocks":3,"capacity_bytes":209715200,"raw_hit_blocks":7,' \
    '"capacity_blocks":2,"capacity_bytes":134217728,"raw_hit_blocks":6,'
ceiling --capacity 200MiB --policy opt --model llama-3.1-8b --kv-dtype fp8
holds "FP8 halves a block" '"capacity_blocks":6,'

"$kvcast" ceiling "$dir/t.jsonl" --capacity 3 --curve 2>/dev/null >"$dir/flat"
holds "the text has the same rates" "61.454%" "53.846%" "46.154%"

"$kvcast" import "$dir/t.jsonl" --sample 0.125 -o "$dir/sample.kvt" 2>"$dir/err"
report $? "an import keeps samples"
grep -q "counts and times of it are not the log's" "$dir/err"; report $? "and says what they are not"
"$kvcast" ceiling "$dir/sample.kvt" --capacity 3 --policy lru,opt --json 2>/dev/null |
    sed -n '/"sample": {/,$p' >"$dir/a"
"$kvcast" import "$dir/t.jsonl" -o "$dir/whole.kvt" --quiet 2>/dev/null
"$kvcast" ceiling "$dir/whole.kvt" --sample 0.125 --capacity 3 --policy lru,opt --json 2>/dev/null |
    sed -n '/"sample": {/,$p' >"$dir/b"
[ -s "$dir/a" ] && cmp -s "$dir/a" "$dir/b"; report $? "samples drawn on the way tell what samples of the whole do"

printf '%s\n' '{"timestamp": 0, "input_length": 900, "output_length": 5}' \
    '{"timestamp": 9, "input_length": 900, "output_length": 5}' >"$dir/t.jsonl"
if ceiling --capacity 5 --curve; then
    holds "without block ids rates are null, not 0" '"raw_hit_blocks":null' \
        '"raw_block_hit_rate":null' '"token_hit_rate":null' '"request_hit_rate":null' '"curve":[]'
else
    sed 's/^/# /' "$dir/err"
    report 1 "a log without block ids is read"
fi

ceiling --capacity 1k,2M --policy lru --tiers a=1k,b=1M
holds "counts in thousands and millions" '"capacity_blocks":1000,' '"capacity_blocks":2000000,' \
    '"name":"b","capacity_blocks":1000000,'

cat >"$dir/who.jsonl" <<'LOG'
{"timestamp": 0, "input_length": 1536, "output_length": 9, "hash_ids": [0, 1, 2], "tenant": "\u001b[31mred\nnose"}
{"timestamp": 9, "input_length": 1024, "output_length": 9, "hash_ids": [0, 3], "tenant": "free"}
LOG
"$kvcast" ceiling "$dir/who.jsonl" --capacity 3 --policy opt --by tenant --why --quiet >"$dir/flat"
holds "control characters of names don't reach the terminal" "?[31mred?nose  "
holds "and a tenant's part of the optimum is no bound of its own" "under opt, at each capacity in blocks; of each its share"
"$kvcast" import "$dir/who.jsonl" -o "$dir/who.kvt" --quiet 2>/dev/null
refused "a field that a .kvt has not kept" 2 "keeps tenant, session and model" ceiling "$dir/who.kvt" --isolate region
refused "a tenant that is not there" 2 "1 is free" ceiling "$dir/who.jsonl" --policy priority:tenant=2
sed 's/, "tenant.*"}/}/' "$dir/who.jsonl" >"$dir/nobody.jsonl"
"$kvcast" ceiling "$dir/nobody.jsonl" --capacity 3 --policy thinktime,priority:tenant=0 --by tenant >"$dir/flat" 2>"$dir/err"
holds "requests without a tenant are called so, not all" "none stated" "all   "
grep -q "so thinktime expects" "$dir/err" && grep -q "so priority's tenant" "$dir/err"
report $? "and policies that lack what they go by say so"
refused "options for all" 2 "takes no options" ceiling x --policy all:k=2

refused "no trace" 2 "no trace" ceiling
refused "two traces" 2 "too many" ceiling a b
refused "an unknown policy names the nearest" 2 'did you mean "opt"' ceiling x --policy optt
refused "known policies are named" 2 "known are lru, fifo" ceiling x --policy nonsense
refused "an empty policy" 2 "empty word" ceiling x --policy lru,,opt
refused "bytes without a model" 2 "needs --model" ceiling x --capacity 512GiB
refused "a capacity that is none" 2 "capacity" ceiling x --capacity ten
refused "a negative capacity" 2 "not a whole number of blocks" ceiling x --capacity=-5
refused "a broken number of blocks" 2 "not a whole number of blocks" ceiling x --capacity 5.5
refused "an unknown model names the nearest" 2 'did you mean' ceiling x --model llama-3.1-80b
refused "an unknown KV dtype" 2 "kvcast show kv" ceiling x --model llama-3.1-8b --kv-dtype fp9
refused "a KV dtype without a model" 2 "without --model" ceiling x --kv-dtype fp8
refused "an unknown GPU names the nearest" 2 'did you mean "h100' ceiling x --model llama-3.1-8b --gpu h100
refused "a GPU without a model" 2 "needs --model" ceiling x --gpu h100-sxm
"$kvcast" ceiling "$dir/t.jsonl" --capacity 3 --policy all+second:times=3 --quiet --json >"$dir/a"; report $? "all with an admission policy"
"$kvcast" ceiling "$dir/t.jsonl" --capacity 3 --policy all --admission second:times=3 --quiet --json | cmp -s - "$dir/a"
report $? "is what --admission makes of it"
refused "all with none" 2 "there is no admission policy" ceiling "$dir/t.jsonl" --capacity 3 --policy all+secnd
refused "a replay of samples" 3 "load is not the log's" replay "$dir/sample.kvt" --model llama-3.1-8b --gpu h100-sxm
refused "samples without capacities" 2 "sample.kvt:a trace of samples: needs --capacity" ceiling "$dir/sample.kvt"
refused "what is exact of samples" 2 "not with --curve" ceiling "$dir/sample.kvt" --capacity 3 --curve
refused "samples of samples" 2 "one in 8 already" ceiling "$dir/sample.kvt" --capacity 3 --sample 0.1
refused "samples that forget" 2 "give one" import "$dir/t.jsonl" --sample 0.1 --forget 1h -o "$dir/none.kvt"
refused "a sample that is most of it" 2 "0.0001 to 0.125" ceiling x --sample 0.5
refused "a sample without capacities" 2 "needs --capacity" ceiling x --sample 0.1
refused "a sample of what is exact" 2 "not with --certify" ceiling x --sample 0.1 --capacity 3 --certify
refused "a tier without a number" 2 'tiers: "" is not' ceiling x --tiers hbm=
refused "two tiers of one name" 2 "two tiers called a" ceiling x --tiers a=1,a=2
refused "two admission policies at once" 2 "more than one" ceiling x --policy lru+second+depth
refused "a tier without a capacity" 2 "not NAME=CAPACITY" ceiling x --tiers hbm
refused "a tier of bytes without a model" 2 "tiers: .*needs --model" ceiling x --tiers hbm=80GiB
refused "a curve that is not all" 2 "all" ceiling x --curve=some
refused "a trace that is not there" 3 "nosuchfile" ceiling "$dir/nosuchfile"

echo "1..$n"
exit $failed
