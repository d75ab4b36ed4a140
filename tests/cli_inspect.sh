#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 'kvcast inspect' on logs small enough to count by hand, and on the shared cases.
. "$(dirname "$0")/tap.sh"
cd "$(dirname "$0")/.." || exit 1

inspect() { # arguments..: JSON on one line without blanks, so that patterns can be plain
    "$kvcast" inspect --json --quiet "$@" >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ] &&
        tr -d ' \n' <"$dir/out" >"$dir/flat"
}
holds() { # name, pattern..
    name=$1
    shift
    for p in "$@"; do
        grep -qF -e "$p" "$dir/flat" || { echo "# not there: $p" && cut -c1-3000 "$dir/flat" | sed 's/^/# /'
            report 1 "$name"; return; }
    done
    report 0 "$name"
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }

# Three sessions of blocks of 512: a system prompt (1), a document (2) that two of them use, turns.
cat >"$dir/t.jsonl" <<'LOG'
{"timestamp": 0, "input_length": 1536, "output_length": 5, "hash_ids": [1, 2, 3], "session_id": "a"}
{"timestamp": 1000, "input_length": 2048, "output_length": 0, "hash_ids": [1, 2, 3, 4], "session_id": "a"}
{"timestamp": 40000, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 5], "session_id": "b"}
{"timestamp": 400000, "input_length": 1024, "output_length": 5, "hash_ids": [1, 6], "session_id": "c"}
LOG
inspect "$dir/t.jsonl"; report $? "JSON and nothing else"
# seen: a's second turn 1 2 3, b 1 2, c 1: 6 blocks of 512 = 3072 tokens of 5708
holds "tokens by kind add up" '"hit_tokens":3072,"token_hit_rate":0.538' \
    '"system_tokens":1536,"document_tokens":1024,"history_tokens":512,"document_or_history_tokens":1536,"new_tokens":2560,"partial_tokens":76,"unknown_tokens":0'
# ages: 1 s three blocks, 39 s two, 360 s one
holds "a TTL loses what is older" '"within_s":1,"touches":3,"hit_tokens":1536,"ttl_lost_share":0.5' \
    '"within_s":60,"touches":5,"hit_tokens":2560' '"within_s":600,"touches":6,"hit_tokens":3072,"ttl_lost_share":0,'
holds "no tenants: no overlap; no model: no bytes" '"overlap":null' '"kv_bytes_per_token":null' \
    '"held_peak_bytes":null' '"breaks":null' '"measured":null' '"offered":null'
holds "the hottest prefix" '"hottest":[{"from_token":0,"tokens":512,"requests":4,"sessions":3,"tenants":1,"hit_tokens":1536,"share_of_reuse":0.5,"kind":"system"}'
holds "keys of before" '"arrivals":{"requests_per_s":0.01' '"peak_minute_requests_per_s"' '"gap_variation"' \
    '"reused_touches":6,' '"reused_share"' '"one_hit_blocks":3,' '"one_hit_share":0.5' '"by_depth":[{"from_block":0,"touches":4,"reused":3' \
    '"working_set":[{"window_s":60,"mean_blocks"' '"peak_blocks"' '"import":{"rows":4'

inspect "$dir/t.jsonl" --model llama-3.1-70b
holds "with a model, bytes" '"kv_bytes_per_token":327680' # 80 layers x 2 x 8 heads x 128 x 2 bytes
"$kvcast" inspect "$dir/t.jsonl" --report "$dir/r.html" --quiet >"$dir/text" 2>"$dir/err" && [ ! -s "$dir/err" ]
report $? "text and a page"
grep -q '53.8 % of the input tokens can come from a cache' "$dir/r.html" && ! grep -Eq '<script|https?:| src=' "$dir/r.html"
report $? "the page fetches nothing and runs nothing"
grep -q 'Hit rate' "$dir/r.html" && [ "$(tail -c 8 "$dir/r.html")" = "</html>" ]; report $? "it is whole"
"$kvcast" inspect "$dir/t.jsonl" --report "$dir/s.html" --quiet >/dev/null && cmp -s "$dir/r.html" "$dir/s.html"
report $? "the same bytes again"
PATH="$dir" "$kvcast" inspect "$dir/t.jsonl" --report "$dir/u.html" --quiet >/dev/null &&
    grep -q 'gnuplot is not installed' "$dir/u.html" && grep -q 'Time to live' "$dir/u.html"
report $? "without gnuplot, tables and a word about it"

# A tenant of which no prompt has ids: unknown, not 0
cat >"$dir/u.jsonl" <<'LOG'
{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2], "user": "a"}
{"timestamp": 1000, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2], "user": "a"}
{"timestamp": 2000, "input_length": 1024, "output_length": 5, "hash_ids": [], "user": "b"}
LOG
inspect "$dir/u.jsonl"
holds "a tenant without ids has null hits" \
    '{"name":"a","requests":2,"input_tokens":2048,"hit_tokens":1024,"own_hit_tokens":1024}' \
    '{"name":"b","requests":1,"input_tokens":1024,"hit_tokens":null,"own_hit_tokens":null}'
"$kvcast" inspect "$dir/u.jsonl" --report "$dir/u.html" --quiet >"$dir/text" 2>"$dir/err"
grep -q '^  b  *1  *1,024  *unknown  *unknown  *unknown$' "$dir/text"; report $? "and the text says unknown"
grep '<td class="name">b</td>' "$dir/u.html" | grep -q unknown; report $? "and the page"

refused "a dtype without a model" 2 "nothing without --model" inspect "$dir/t.jsonl" --kv-dtype fp8
refused "an unknown model" 2 "nosuch" inspect "$dir/t.jsonl" --model nosuch
refused "no trace" 2 "no trace" inspect
"$kvcast" inspect "$dir/t.jsonl" --report "$dir/none/r.html" >/dev/null 2>"$dir/err"
[ $? = 1 ] && grep -q none/r.html "$dir/err"; report $? "a page that can't be written"

# A log without ids: unknown, never 0.
cat >"$dir/plain.jsonl" <<'LOG'
{"timestamp": 0, "input_length": 3000, "output_length": 5}
{"timestamp": 1000, "input_length": 2000, "output_length": 5}
LOG
inspect "$dir/plain.jsonl"
holds "no prefixes: null, and an offer with its assumption" '"sharing":null' \
    '"offered":[{"assumption":"promptsbeginwiththesame256tokens","shared_tokens":256,"turns_carry":"none","hit_tokens":256,"token_hit_rate":0.0512,' \
    '"shared_tokens":4096,"turns_carry":"none","hit_tokens":2000,"token_hit_rate":0.4,"prompts_covered":2}'
"$kvcast" inspect "$dir/plain.jsonl" --quiet | grep -q 'unknown, not 0'; report $? "and says so"

cases=../shared/cases/inputs
if [ -d $cases ]; then
    inspect $cases/c48-one-hit-wonders.mooncake.jsonl
    holds "c48: 36 of 37 blocks are used once" '"one_hit_blocks":36,"one_hit_share":0.97297'
    inspect $cases/c49-ttl-gaps.mooncake.jsonl # 300 s sliding: miss, hit, hit, miss
    holds "c49: what a TTL loses" '"within_s":300,"touches":4,"hit_tokens":2048,"ttl_lost_share":0.3333' \
        '"within_s":3600,"touches":6,"hit_tokens":3072,"ttl_lost_share":0,'
    inspect $cases/c13-fraction-digits.azure2023.csv
    holds "c16: no rate without prefixes" '"sharing":null' '"overlap":null'
    inspect $cases/c15-failures-and-offset.burstgpt.csv
    holds "c15: a turn that shrank carries nothing" '"shrunken_turns":1' \
        '"shared_tokens":0,"turns_carry":"prompt_and_answer","hit_tokens":1340,'
    inspect $cases/c17-inclusive-vs-exclusive.litellm-spendlogs.jsonl # 3400 + 2480 + 2480 of 10984
    holds "c17: what the log says was cached" '"measured":{"rows":3,"input_tokens":10984,"cached_tokens":8360,'
else
    for c in c48 c49 c16 c15 c17; do skip $c "shared cases are not here"; done
fi
# A .kvt tells all that its log does.
cat >"$dir/spend.jsonl" <<'LOG'
{"request_id": "1", "call_type": "acompletion", "startTime": "2026-03-02T08:00:00Z", "endTime": "2026-03-02T08:00:02Z", "model": "m", "prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920, "spend": 0.0125, "cache_hit": "False", "metadata": {"usage_object": {"prompt_tokens_details": {"cached_tokens": 300}}}, "status": "success"}
{"request_id": "2", "call_type": "acompletion", "startTime": "2026-03-02T08:00:05Z", "endTime": "2026-03-02T08:00:06Z", "model": "m", "prompt_tokens": 500, "completion_tokens": 10, "total_tokens": 510, "spend": 0.007, "cache_hit": "False", "metadata": {}, "status": "failure"}
LOG
cat >"$dir/server.log" <<'LOG'
INFO 03-02 08:00:00 [kv_cache_utils.py:1] GPU KV cache size: 87,381 tokens
INFO 03-02 08:00:00 [logger.py:42] Received request cmpl-3: prompt: 'ab', params: SamplingParams(n=1), prompt_token_ids: [1, 2, 3, 4, 5, 6, 7, 8], lora_request: None.
LOG
for log in spend.jsonl server.log; do
    "$kvcast" import --quiet "$dir/$log" -o "$dir/same.kvt"
    for how in "" "--json" "--json --prices input=1.25,cached=0.125,output=10"; do
        # shellcheck disable=SC2086
        "$kvcast" inspect $how "$dir/$log" >"$dir/of_log" 2>/dev/null
        # shellcheck disable=SC2086
        "$kvcast" inspect $how "$dir/same.kvt" >"$dir/of_kvt" 2>"$dir/err" && [ ! -s "$dir/err" ] &&
            cmp -s "$dir/of_log" "$dir/of_kvt"
        report $? "inspect $how of $log and of its .kvt are the same"
    done
done
grep -q '"kv_cache_tokens": 87381' "$dir/of_kvt"; report $? "what an engine states is in the .kvt"

echo "1..$n"
exit $failed
