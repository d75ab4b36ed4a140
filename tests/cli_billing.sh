#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What logs state of money, caches and engines, and what inspect makes of it.
. "$(dirname "$0")/tap.sh"

has() { # name, text that stdout must hold
    grep -q -F -e "$2" "$dir/out"
    fine=$?
    [ $fine = 0 ] || sed 's/^/# /' "$dir/out"
    report $fine "$1"
}

call() { # id, cached tokens, spend
    printf '{"request_id": "%s", "call_type": "acompletion", "startTime": "2026-03-02T09:00:00Z", ' "$1"
    printf '"prompt_tokens": 200000, "completion_tokens": 1000, "model": "m", "spend": %s, ' "$3"
    printf '"metadata": {"usage_object": {"prompt_tokens": 200000, "completion_tokens": 1000, '
    printf '"prompt_tokens_details": {"cached_tokens": %s}}}}\n' "$2"
}

# 10,000 tokens at 1.25, 190,000 at 0.125 and 1,000 at 10 dollars a million are 0.04625; the gateway
# billed 200,000 at 1.25 and the 190,000 once more.
call req-9 190000 0.28375 >"$dir/log.jsonl"
prices=input=1.25,cached=0.125,output=10
"$kvcast" inspect --quiet --json "$dir/log.jsonl" --prices $prices >"$dir/out" 2>&1
has "the right cost" '"cost_usd": 0.04625'
has "what the log says it was" '"stated_spend_usd": 0.28375'
has "the value with cached tokens billed twice" '"cost_if_cached_billed_twice_usd": 0.28375'
has "it is told" '"spend_bills_cached_twice": true'
has "what the cache saved" '"saved_usd": 0.21375'
"$kvcast" inspect --quiet "$dir/log.jsonl" --prices $prices >"$dir/out" 2>&1
has "in words" 'USD 0.2375 too much'

call req-10 190000 0.04625 >"$dir/right.jsonl"
"$kvcast" inspect --quiet --json "$dir/right.jsonl" --prices $prices >"$dir/out" 2>&1
has "a right bill is not blamed" '"spend_bills_cached_twice": false'

# What a log doesn't say is a range, not a number.
{ call req-11 190000 0.1; call req-12 null 0.1; } >"$dir/some.jsonl"
"$kvcast" inspect --quiet --json "$dir/some.jsonl" --prices $prices >"$dir/out" 2>&1
has "unknown cached tokens are apart" '"requests_of_unknown_cached_tokens": 1'
has "their least cost" '"unknown_low_usd": 0.035'
has "their greatest cost" '"unknown_high_usd": 0.26'
"$kvcast" import --quiet "$dir/some.jsonl" -o "$dir/t.kvt" &&
    "$kvcast" inspect --quiet --json "$dir/t.kvt" --prices $prices >"$dir/out" 2>&1
has "a trace keeps what was cached" '"cost_usd": 0.04625'
has "and what was spent" '"stated_spend_usd": 0.2'
"$kvcast" inspect --quiet --json "$dir/log.jsonl" --prices $prices,model=other >"$dir/out" 2>&1
has "prices of another model" '"cost_usd": 0,'
"$kvcast" inspect --quiet --json "$dir/log.jsonl" >"$dir/out" 2>&1
has "no prices, no cost" '"at_prices": null'
refused "a price that is none" 2 "input=x" inspect "$dir/log.jsonl" --prices input=x,cached=1,output=1
refused "a price that lacks" 2 "output is missing" inspect "$dir/log.jsonl" --prices input=1,cached=1
refused "a word that is none" 2 "there are input" inspect "$dir/log.jsonl" --prices in=1

# ---- a server's log without requests ----
cat >"$dir/server.log" <<'END'
(EngineCore_DP0 pid=4101) INFO 03-02 08:14:01 [gpu_worker.py:298] Available KV cache memory: 6.00 GiB
(EngineCore_DP0 pid=4101) INFO 03-02 08:14:01 [kv_cache_utils.py:1087] GPU KV cache size: 87,381 tokens
(APIServer pid=4010) INFO 03-02 08:14:31 [loggers.py:273] Engine 001: Avg prompt throughput: 8.4 tokens/s, Avg generation throughput: 9.1 tokens/s, Running: 6 reqs, Waiting: 0 reqs, GPU KV cache usage: 41.3%, Prefix cache hit rate: 41.5%
END
refused "import makes no request of it" 3 "no request can be made" import "$dir/server.log" -o "$dir/s.kvt"
[ ! -e "$dir/s.kvt" ]; report $? "and no file"
"$kvcast" inspect --quiet --json "$dir/server.log" >"$dir/out" 2>&1
report $? "inspect shows it"
has "there is no trace" '"trace": null'
has "the size" '"kv_cache_tokens": 87381'
has "bytes of a token" '"kv_bytes_per_token_if_all_layers_alike": 73728'
has "a share" '"kv_used_peak": 0.413'
"$kvcast" inspect --quiet "$dir/server.log" >"$dir/out" 2>&1
has "in words too" '87,381 tokens, 6 GiB on each GPU'

# Ten prompts that differ by a minute in front of 408 bytes (a blank, 400 digits, 5 letters, two ends of
# texts): 9 x 408 bytes are lost at 4 a token, each of
# which costs 1.25 - 0.125 dollars a million more.
for i in 0 1 2 3 4 5 6 7 8 9; do
    printf '{"timestamp": 1%s000, "output_length": 1, "messages": [{"role": "system", "content": "It is 08:1%s ' $i $i
    printf '%0400d"}, {"role": "user", "content": "Hello"}]}\n' 0
done >"$dir/clock.jsonl"
"$kvcast" inspect --quiet --json "$dir/clock.jsonl" --tokenizer bytes:4 --prices $prices >"$dir/out" 2>&1
has "a clock in front is told" '"kind": "clock"'
has "with the tokens behind it" '"lost_tokens": 918'
has "and their price" '"lost_usd": 0.00103275'

echo "1..$n"
exit $failed
