#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Logs in CSV and their times from the outside: what is unknown stays unknown, windows, arrivals.
. "$(dirname "$0")/tap.sh"

expect() { # name, code, pattern in stderr, arguments..
    name=$1 code=$2 pattern=$3
    shift 3
    "$kvcast" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    rc=$?
    if [ $rc = "$code" ] && { [ -z "$pattern" ] || grep -q -e "$pattern" "$dir/err"; }; then
        report 0 "$name"
    else
        echo "# exit $rc; stderr:" && sed 's/^/# /' "$dir/err"
        report 1 "$name"
    fi
}

# ---- no prefix information (c16) ----
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:20:03.0010000,4000,10\r\n2023-11-16 18:20:03.0020000,3200,8\r\n2023-11-16 18:20:03.0110000,7000,14' >"$dir/azure.csv"
expect "samples of a log without prefixes" 3 "no prompt of the log has block ids" import "$dir/azure.csv" --sample 0.1 -o "$dir/none.kvt"
expect "a ceiling without prefixes" 0 "reuse is unknown" ceiling "$dir/azure.csv"
grep -q "not in the log" "$dir/out"; report $? "says that they are not in the log"
! grep -q "0.000%" "$dir/out"; report $? "and shows no rate of 0"
expect "the same in JSON" 0 "" ceiling --json "$dir/azure.csv"
! grep -E '_rate|hit_(tokens|blocks)' "$dir/out" | grep -vq null; report $? "has null rates only"
expect "import tells the totals" 0 "3 requests over 0.01 s, 14,200 input tokens, no block ids" \
    import "$dir/azure.csv" -o "$dir/t.kvt"

# ---- windows ----
printf 'arrived_at,num_prefill_tokens,num_decode_tokens\n100,1,1\n130,2,1\n160,3,1\n190,4,1\n' >"$dir/v.csv"
expect "a window keeps a part" 0 "2 rows: outside the window from 30s to 90s" \
    import "$dir/v.csv" -o "$dir/t.kvt" --window 30s:90s
for w in 30s:90s :60s 30s: ; do
    "$kvcast" inspect --json --quiet --window $w "$dir/v.csv" >"$dir/out" 2>"$dir/err"
    echo "$w $(grep -m1 '"requests"' "$dir/out")"
done | tr -d ' ,' >"$dir/windows"
printf '30s:90s"requests":2\n:60s"requests":2\n30s:"requests":3\n' | cmp -s - "$dir/windows"
report $? "both ends, either end"
for w in 30s 10s:5s : a:b 5:10; do
    expect "--window $w is wrong usage" 2 "window" ceiling "$dir/v.csv" --window $w
done
expect "nothing in the window" 3 "the last comes 90.0 s after it" import "$dir/v.csv" -o "$dir/t.kvt" --window 5m:
"$kvcast" import --quiet "$dir/v.csv" -o "$dir/t.kvt"
expect "a .kvt has no window" 2 "when importing the log" ceiling "$dir/t.kvt" --window 1s:2s
expect "a replay of a window" 0 "outside the window" replay "$dir/v.csv" --model llama-3.1-8b --gpu h100-sxm --window :60s

# ---- arrivals ----
printf 'num_prefill_tokens,num_decode_tokens\n10,1\n20,2\n' >"$dir/lengths.csv"
expect "lengths alone are refused with a cure" 3 "lengths.csv:1:arrived_at: .*--arrivals poisson:R" \
    import "$dir/lengths.csv" -o "$dir/t.kvt"
expect "with arrivals they are read" 0 "2 requests" import "$dir/lengths.csv" -o "$dir/a.kvt" --arrivals poisson:2 --seed 7
expect "and again" 0 "" import "$dir/lengths.csv" -o "$dir/b.kvt" --arrivals poisson:2 --seed 7
cmp -s "$dir/a.kvt" "$dir/b.kvt"; report $? "one seed, one trace"
expect "another process" 2 "poisson:2.5 say" import "$dir/lengths.csv" -o "$dir/t.kvt" --arrivals weibull:1

# ---- order and clocks ----
printf 'arrived_at,num_prefill_tokens,num_decode_tokens\n5,1,1\n3,2,1\n-2,2,1\n' >"$dir/u.csv"
expect "rows out of order are counted" 0 "1 row: earlier than the row before" import "$dir/u.csv" -o "$dir/t.kvt"
grep -q "u.csv:4:arrived_at: \"-2\" is wrong: a time is expected: s from 0 on" "$dir/err"
report $? "a negative time is named with its place"
expect "strict stops at it" 3 "u.csv:4" import --strict "$dir/u.csv" -o "$dir/t.kvt"

# ---- batches ----
{ echo arrived_at,num_prefill_tokens,num_decode_tokens; i=0
  while [ $i -lt 60 ]; do for k in 1 2 3; do echo "$((i * 3)),10,1"; done; i=$((i + 1)); done; } >"$dir/batch.csv"
expect "arrivals in batches are noted" 0 "arrive in batches 3s apart.*arrivals.spread 3s" import "$dir/batch.csv" -o "$dir/t.kvt"

echo "1..$n"
exit $failed
