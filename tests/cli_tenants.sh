#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 'kvcast ceiling' from close up: the example of docs/tenants.md, sums, and words that are wrong.
. "$(dirname "$0")/tap.sh"
page=$(dirname "$0")/../docs/tenants.md
program=$(cd "$(dirname "$kvcast")" && pwd)/$(basename "$kvcast")

# Fenced blocks of the page: the log, and commands with what they print.
awk -v to="$dir/" '
    /^```/ { inside = !inside; if (inside) k++; first = 1; next }
    !inside { next }
    first && /^\$ / { print substr($0, 3) >(to "run" k); first = 0; next }
    first { first = 0; if (!log_at) log_at = k }
    { print >(to (k == log_at ? "log.jsonl" : "want" k)) }' "$page"
for command in "$dir"/run*; do
    k=${command##*run}
    # shellcheck disable=SC2046 # words of the page
    (cd "$dir" && set -- $(cat "run$k") && [ "$1" = kvcast ] && shift && "$program" "$@" >"got$k" 2>"err$k")
    if cmp -s "$dir/got$k" "$dir/want$k"; then fine=0; else
        fine=1
        diff "$dir/want$k" "$dir/got$k" | sed 's/^/# /'
    fi
    report $fine "the page's $(cat "$command") prints what it says"
done
[ -f "$dir/run2" ] && [ -f "$dir/run3" ]; report $? "the page has both commands"

# All figures of a list of parts in JSON add up to the whole: tokens, hits, causes.
sums() { # name, options..
    name=$1
    shift
    "$kvcast" ceiling "$dir/log.jsonl" --json --quiet "$@" 2>"$dir/err" | awk '
        function value() { v = $0; gsub(/[^0-9]/, "", v); return v + 0 }
        /"input_tokens":/ && !whole { whole = value() }
        /"missed_tokens": \{/ { causes = 1; sum = 0 }
        causes && /"(first_sight|partial_block|alignment|evicted|ttl|other_replica|salted|not_ready|diverged|failed)":/ { sum += value() }
        /"hit_tokens":/ && !/raw|shared/ { hit = value() }
        /"input_tokens":/ { own = value() }
        causes && /\}/ { causes = 0; n++; part[n] = sum; at[n] = hit; all[n] = own }
        END { for (i = 1; i <= n; i++)
                  if (part[i] + at[i] != all[i] && part[i] + at[i] != whole) {
                      print "# part", i, part[i], at[i], all[i]; bad = 1 }
              if (!n) print "# no causes"
              exit bad || !n }'
    report $? "$name"
}
sums "hits and causes add up in every part" --capacity 0,1,2,3,inf --policy all --why --by session
sums ".. in namespaces, behind routers" --capacity 1,2,3 --policy lru,ttl --why --by prefix --isolate tenant \
    --replicas 2 --router round-robin,least-loaded,prefix,sticky,power-of-two

ceiling() { "$kvcast" ceiling "$dir/log.jsonl" --json --quiet "$@" 2>"$dir/err" | tr -d ' \n' >"$dir/flat"; }
holds() {
    name=$1
    shift
    for p in "$@"; do
        grep -qF -e "$p" "$dir/flat" || { echo "# not there: $p" && cut -c1-3000 "$dir/flat" | sed 's/^/# /'
            report 1 "$name"; return; }
    done
    report 0 "$name"
}
# of gold's three prompts and free's three by hand, see the page
ceiling --capacity 3 --policy lru --why --by tenant
holds "causes, by tenant and by whom, in JSON" \
    '"by":[{"name":"gold","requests":3,"input_tokens":4608,' '"first_sight":2836,"partial_block":276,' \
    '"evicted_by":{"names":["gold","free"],"tokens":[[0,1536,0],[512,0,0]]}'
ceiling --capacity 3 --policy lru --isolate tenant
holds "what isolation costs and what crosses" '"crossing":{"isolate":"tenant","namespaces":2,' \
    '"blocks":6,"tokens":2836,"crossing_blocks":1,"crossing_tokens":512,' '"common_blocks":[[3,1],[1,4]]' \
    '"shared_hit_tokens":3072,'
# a router by session: gold's prompts and free's name none, so they go in turn
ceiling --capacity 3 --policy lru,opt --replicas 2 --router sticky
holds "replicas behind a router, and one pool" '"router":"sticky"' '"pool":{"raw_hit_blocks":11,' \
    '"replicas":[{"name":"0","requests":3,"input_tokens":4608,' '"assigned_content":{"raw_hit_blocks":10,'
sed 's/"tenant"/"team"/' "$dir/log.jsonl" >"$dir/team.jsonl"
"$kvcast" ceiling "$dir/team.jsonl" --isolate team --capacity 3 --policy lru --quiet >"$dir/got" 2>"$dir/err"
grep -q '^2 namespaces by tenant; 1 of 6' "$dir/got"; report $? "namespaces by any field of the log"

"$kvcast" ceiling "$dir/log.jsonl" --capacity 3 --policy all --replicas 2 >"$dir/got" 2>"$dir/err" &&
    grep -q "without optforced" "$dir/err" && grep -q "thinktime/round-robin" "$dir/got"
report $? "all policies that can run behind a router"
refused "namespaces by a field that no row has" 2 "no row names" ceiling "$dir/log.jsonl" --isolate tenent

refused "groups of unknown kind" 2 "tenant, session, model and prefix" ceiling x --by user
refused "no replicas" 2 "1 to 4096" ceiling x --replicas 0
refused "an unknown router names the nearest" 2 'did you mean "sticky"' ceiling x --replicas 2 --router stick
refused "a router of nobody" 2 "give --replicas" ceiling x --router prefix
refused "two fields for the tenant" 2 "give --isolate tenant" ceiling x --isolate team --tenant-field user
"$kvcast" import "$dir/log.jsonl" -o "$dir/t.kvt" --quiet 2>"$dir/err"
refused "a field of a .kvt" 2 "keeps tenant, session and model" ceiling "$dir/t.kvt" --isolate team

# ---- what if: each is another run, which can be had by itself ----
"$kvcast" gen rag-chat -o "$dir/many.jsonl" --duration 2m --tenants 3 --quiet
replay() { "$kvcast" replay "$dir/many.jsonl" --block-tokens 16 --model llama-3.1-8b --gpu h100-sxm --quiet \
    --engine.kv_cache_memory 4GiB "$@"; }
replay --what-if noisy=t1,isolation --report "$dir/page.html" >"$dir/text"; report $? "a replay with two what-ifs"
replay --what-if noisy=t1,isolation --json | sed '/^  "runtime"/,$d' >"$dir/json"
hits() { awk -F'[:,]' -v name="\"$1\"" '/"name"/ { gsub(/ /, ""); on = $2 == name } on && /"hit_tokens"/ { gsub(/ /, ""); print $2; exit }'; }
if_hits() { sed -n "/\"kind\": \"$1\"/,/\"kind\"/p" "$dir/json" | hits "$2"; }
replay --json --tenants.default.salt true >"$dir/apart"
for t in t0 t1 t2; do
    [ -n "$(if_hits isolation $t)" ] &&
        [ "$(if_hits isolation $t)" = "$(sed -n '/^  "tenants"/,/^  \]/p' "$dir/apart" | hits $t)" ]
    report $? "isolation: $t hits what it does with a salt for each"
done
[ -z "$(if_hits noisy t1)" ] || [ "$(if_hits noisy t1)" = 0 ]; report $? "noisy: t1 is not there"
grep -v '"tenant": "t1"' "$dir/many.jsonl" >"$dir/quiet.jsonl"
mv "$dir/many.jsonl" "$dir/all.jsonl" && mv "$dir/quiet.jsonl" "$dir/many.jsonl"
replay --json >"$dir/without"
for t in t0 t2; do
    [ "$(if_hits noisy $t)" = "$(sed -n '/^  "tenants"/,/^  \]/p' "$dir/without" | hits $t)" ]
    report $? "noisy: $t hits what it does in a log without t1's rows"
done
grep -q "^Without t1: t0 would hit [0-9.]* %, TTFT p50 " "$dir/text" && grep -q "^With all kept apart: t1 would hit " "$dir/text"
report $? "both in text"
for words in "<h3>Without the requests of t1</h3>" "<h3>With each tenant kept apart</h3>" \
    "The others hit [0-9.,]* [kMG]* *tokens beside it" "the difference is the price of isolation"; do
    grep -q "$words" "$dir/page.html"; report $? "on the page: $words"
done
mv "$dir/all.jsonl" "$dir/many.jsonl"
refused "a what-if that is none" 2 "noisy=TENANT and isolation" replay "$dir/many.jsonl" --model llama-3.1-8b \
    --gpu h100-sxm --what-if louder=t1
refused "a tenant that is not there" 3 "did you mean" replay "$dir/many.jsonl" --model llama-3.1-8b \
    --gpu h100-sxm --what-if noisy=t11

# ---- rules of the replay ----

replays() { # scenario, options..: text of a replay of the page's log, one model, 1 GiB
    printf '%s' "$1" >"$dir/rules.json"
    shift
    "$kvcast" replay "$dir/rules.json" "$dir/log.jsonl" --model llama-3.1-8b --gpu h100-sxm --quiet \
        --engine.kv_cache_memory 1GiB --no-bounds "$@" >"$dir/out" 2>"$dir/err"
}
wrong() { # name, pattern, scenario
    replays "$3"
    rc=$?
    grep -q -e "$2" "$dir/err" && [ $rc = 3 ]
    fine=$?
    [ $fine = 0 ] || { echo "# exit $rc" && sed 's/^/# /' "$dir/err"; }
    report $fine "$1"
}
wrong "a reservation beyond the tenant's own quota" 'tenants.gold.reserve: .*quota of tenant gold' \
    '{"tenants": {"gold": {"quota": 0.5, "reserve": 0.6}}}'
wrong "a salt that is shared" 'tenants.gold.shared: .*salt says the opposite' \
    '{"tenants": {"gold": {"salt": true, "shared": true}}}'
wrong "an empty salt" 'tenants.gold.salt' '{"tenants": {"gold": {"salt": ""}}}'
wrong "a list with a tenant that there is not" \
    'tenants.gold.allow: the trace has no tenant "nope"; there are gold, free' \
    '{"tenants": {"gold": {"allow": ["nope"]}}}'
wrong "more than there is, in bytes" 'hbm come to 1GiB, and an instance of it holds 1022MiB' \
    '{"tenants": {"gold": {"reserve": "1GiB"}}}'

replays '{"tenants": {"gold": {"reserve": 1}}}'
grep -q '3 completed, 0 failed, 3 unservable' "$dir/out" && grep -q 'Warning: 3 requests don.t fit beside what other tenants have reserved' "$dir/out" &&
    ! grep -q 'KV pages' "$dir/out" && grep -q 'Tenant free .* TTFT none' "$dir/out"
report $? "all of memory reserved serves its owner, and says why not the others"
replays '{"tenants": {"gold": {"reserve": 1}}}' --json
tr -d ' \n' <"$dir/out" >"$dir/flat"
holds "what each held over time" '"resident_bytes_over_time":['
replays '{"engine": {"kv_cache_memory": "240MiB"}}' --engine.kv_cache_memory 240MiB
grep -q "Jain's index of fairness" "$dir/out" && grep -q '^Left a tier: whose' "$dir/out" &&
    grep -q '^KV held on average in each eighth' "$dir/out"
report $? "text has fairness, losses, and what each held"
sed 's/"output_length": 9/"output_length": 1/' "$dir/log.jsonl" >"$dir/short.jsonl"
"$kvcast" replay "$dir/short.jsonl" --model llama-3.1-8b --gpu h100-sxm --quiet >"$dir/out" 2>"$dir/err"
grep -q 'TPOT *none' "$dir/out" && grep -q '80 % bands: TTFT' "$dir/out" && ! grep -q 'TPOT mean' "$dir/out"
report $? "no band of what there is none of"

sed 's/"gold"/"(ttl)"/; s/"free"/"(decoding)"/' "$dir/log.jsonl" >"$dir/odd.jsonl"
"$kvcast" replay "$dir/odd.jsonl" --model llama-3.1-8b --gpu h100-sxm --quiet --no-bounds --json \
    --what-if 'noisy=(ttl)' 2>"$dir/err" | tr -d ' \n' >"$dir/flat"
holds "tenants called like kvcast's own rows stand in quotes" '"name":"\"(ttl)\""' \
    '"to":["\"(ttl)\"","\"(decoding)\"","(decoding)","(ttl)","(other)"]' '"tenant":"(ttl)"'

# Without every third pair of rows: turns in which two replicas' ties are broken stay as they were.
awk -v all="$dir/pairs.jsonl" -v a="$dir/a.jsonl" 'BEGIN {
    srand(7)
    for (i = 0; i < 240; i++) {
        t += int(300 * rand()); n = 1 + int(6 * rand()); base = 100 * int(13 * rand()); ids = "0"
        for (k = 0; k < n; k++) ids = ids ", " base + k
        b = int(i / 2) % 3 == 0
        row = sprintf("{\"timestamp\": %d, \"input_length\": %d, \"output_length\": %d, " \
                      "\"hash_ids\": [%s], \"tenant\": \"%s\"}", t, 512 * (n + 1),
                      1 + int(60 * rand()), ids, b ? "b" : "a")
        print row >all
        if (!b) print row >a
    } }'
two() { "$kvcast" replay "$@" --model llama-3.1-8b --gpu h100-sxm --engine.kv_cache_memory 2GiB --quiet \
    --replicas 2 --router prefix --no-bounds 2>"$dir/err" | tr '\n' ' '; }
two "$dir/pairs.jsonl" --what-if noisy=b |
    sed 's/.*Without b: a would hit \([0-9.]* %\), TTFT p50 \([0-9.]* ms\), p99 \([0-9.]* m*s\) .*/\1, \2, \3/' >"$dir/x"
two "$dir/a.jsonl" |
    sed 's/.*Caches serve \([0-9.]* %\) .*TTFT is \([0-9.]* ms\) at the median and \([0-9.]* m*s\) at .*/\1, \2, \3/' >"$dir/y"
[ "$(wc -c <"$dir/x")" -lt 40 ] && cmp -s "$dir/x" "$dir/y"
report $? "without a neighbour, behind a router, is the log without it: $(cat "$dir/x")"
echo "1..$n"
exit $failed
