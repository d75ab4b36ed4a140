#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Logs that hold token ids (LLMServingSim), from the outside.
. "$(dirname "$0")/tap.sh"

row() { # time in ns, ids of the prompt
    count=$(printf '%s\n' "$2" | tr ',' '\n' | wc -l)
    printf '{"input_toks": %d, "output_toks": 1, "arrival_time_ns": %s, "input_tok_ids": [%s]}\n' \
        "$count" "$1" "$2"
}
flat() { # file, flags..
    "$kvcast" ceiling "$@" --json --quiet 2>"$dir/err" | tr -d ' \n' >"$dir/flat"
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

# Five tokens in common: one block of 4, none of 8. 9 tokens: 3 blocks of 4, the last partial.
{ row 0 1,2,3,4,5,6,7,8,9; row 1000000000 1,2,3,4,5,60,70,80,90; row 2500000000 1,2,3,4,5; } >"$dir/t.jsonl"
flat "$dir/t.jsonl" --block-tokens 4
holds "blocks of 4" '"requests":3,"span_s":2.5,' '"block_touches":8,' '"blocks":6,' \
    '"content":{"raw_hit_blocks":2,' '"hit_tokens":8,'
flat "$dir/t.jsonl" --block-tokens 8
holds "blocks of 8: the common part is shorter" '"content":{"raw_hit_blocks":0,'
flat "$dir/t.jsonl"
holds "16 unless told otherwise" '"block_tokens":16,'
digest=$(grep -o '"digest":"[0-9a-f]*"' "$dir/flat")
"$kvcast" import "$dir/t.jsonl" -o "$dir/t.kvt" >/dev/null 2>"$dir/err" && grep -q 'blocks of 16 tokens' "$dir/err"
report $? "import says so"
flat "$dir/t.kvt"
holds "the .kvt reads back the same" "$digest"
"$kvcast" replay "$dir/t.jsonl" --model llama-3.1-8b --gpu h100-sxm --json --quiet >"$dir/out" 2>"$dir/err"
report $? "replay takes the log"
refused "an unknown format lists both" 2 'auto, mooncake, llmservingsim' \
    inspect "$dir/t.jsonl" --format nosuch

{ row 0 1,2; echo '{"input_toks": 9, "output_toks": 4, "arrival_time_ns": -5}'; row 7 1,2; } >"$dir/bad.jsonl"
"$kvcast" inspect "$dir/bad.jsonl" >"$dir/out" 2>"$dir/err" && grep -q 'bad.jsonl:2:arrival_time_ns: -5' "$dir/err" &&
    grep -q '3 rows: 2 used, 1 bad' "$dir/out"
report $? "a bad row is counted and named"
refused "--strict stops there" 3 'bad.jsonl:2:arrival_time_ns' inspect --strict "$dir/bad.jsonl"

# ---- real logs ----
logs=../shared/traces/llmservingsim/workloads
expected=../shared/expected/sharegpt_llama.json
real=$logs/sharegpt-llama-3.1-8b-300-sps10.jsonl.zst
skip_real() { # name, file
    [ ! -r "$2" ] || return 1
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2 is not here"
}

if ! skip_real "rates of prompts without token ids" $logs/workload_me2_01_mixed.jsonl; then
    flat $logs/workload_me2_01_mixed.jsonl --capacity 1000
    holds "without token ids rates are null" '"requests":608,' '"input_tokens":5604402,' \
        '"output_tokens":1837003,' '"block_tokens":null,' '"raw_hit_blocks":null' \
        '"token_hit_rate":null'
fi

# Figures of one entry: hit blocks, hit tokens, and two rates to six digits.
wanted() { # pattern that begins the entry
    tr -d ' \n' <$expected | sed 's/{"policy"/\n&/g; s/"infinite":/\n&/; s/"finite":/\n&/' | grep -F -e "$1" | head -1 |
        sed 's/.*"block_prefix":\([^,]*\),.*"token_prefix":\([^,]*\),.*"prefix_hit_blocks":\([0-9]*\),.*"prefix_hit_tokens":\([0-9]*\),.*/\3 \4 \1 \2/'
}
got() { # pattern that begins the entry
    sed 's/{"policy"/\n&/g; s/"content":/\n&/; s/"points":/\n&/' "$dir/flat" | grep -F -e "$1" | head -1 |
        sed 's/.*"raw_hit_blocks":\([0-9]*\),"raw_block_hit_rate":\([^,]*\),"raw_hit_tokens":\([0-9]*\),"raw_token_hit_rate":\([^,]*\),.*/\1 \3 \2 \4/'
}
rounded() { # blocks tokens rate rate
    awk '{ printf "%d %d %.6f %.6f\n", $1, $2, $3, $4 }'
}
same() { # name, pattern there, pattern here
    want=$(wanted "$2" | rounded) have=$(got "$3" | rounded)
    [ -n "$want" ] && [ "${want%% *}" -gt 0 ] && [ "$want" = "$have" ]
    fine=$?
    [ $fine = 0 ] || echo "# expected $want, got $have"
    report $fine "$1"
}
if ! skip_real "ShareGPT's hit rates" $real && ! skip_real "ShareGPT's hit rates" $expected; then
    flat $real --block-tokens 16 --policy lru,opt --capacity 500,1000,2000,5000,10000
    holds "ShareGPT's blocks" '"requests":300,' '"block_touches":16225,' '"blocks":15003,'
    same "ShareGPT, infinite cache" '"infinite":' '"content":'
    for c in 500 1000 2000 5000 10000; do
        same "ShareGPT, lru at $c" '{"policy":"lru","order":"rev","capacity_blocks":'$c, \
            '{"policy":"lru","capacity_blocks":'$c,
        same "ShareGPT, opt at $c" '{"policy":"optb","order":"fwd","capacity_blocks":'$c, \
            '{"policy":"opt","capacity_blocks":'$c,
    done
fi

echo "1..$n"
exit $failed
