#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 'kvcast policy': what is listed, what new writes compiles and passes its own test, what check says of
# plug-ins that break a rule, and docs/plugins.md as it stands.
. "$(dirname "$0")/tap.sh"
case $kvcast in /*) ;; *) kvcast=$PWD/$kvcast ;; esac
root=$PWD
plugins=$(dirname "$kvcast")/tests/plugins
[ -d "$plugins" ] || plugins=$root/build/${VARIANT:-release}/tests/plugins
holds() { # name, pattern..
    name=$1
    shift
    for p in "$@"; do
        grep -q -e "$p" "$dir/out" || { echo "# not there: $p" && sed 's/^/# /' "$dir/out"
            report 1 "$name"; return; }
    done
    report 0 "$name"
}

# ---- list ----
"$kvcast" policy list >"$dir/out"; report $? "list"
missing=
for p in $(sed -n 's/^| \([a-z0-9]*\) |.*/\1/p' docs/policies.md | grep -vx policy); do
    line=$(grep "^  $p  " "$dir/out" | head -1)
    [ -n "${line#"  $p "}" ] || { missing="$missing $p"; continue; }
    closed=$(sed -n "s/^| $p |.*| \([a-z]*\) |\$/\1/p" docs/policies.md)
    case $closed,$line in yes,*"; closed" | no,*[!d]) ;; *) missing="$missing $p(closed)" ;; esac
done
[ -z "$missing" ]; report $? "list has all of docs/policies.md, and the same that is closed$missing"
holds "routers and options are listed, with their ranges" "power-of-two" "ttl=5m" "(1 to 16)"
holds "and what takes single blocks" "any block; single blocks"
"$kvcast" policy list --json >"$dir/out"
holds "as JSON too" '"schema": "kvcast.policy-list.v1"' '"prefix_closed": true' '"single_blocks": true' '"kind": "routing"'

# ---- new ----
case ${VARIANT:-release} in
asan | tsan) flags=-fsanitize=$(echo "${VARIANT}" | sed 's/asan/address,undefined/; s/tsan/thread/') ;;
*) flags= ;;
esac
cd "$dir" || exit 1
for kind in eviction admission routing ordering; do
    "$kvcast" policy new "my-$kind" --kind $kind --quiet 2>err; report $? "new --kind $kind"
    for cc in gcc clang; do
        command -v $cc >/dev/null 2>&1 || continue
        rm -f my-$kind/*.so
        make -s -C "my-$kind" CC=$cc CFLAGS="-O2 $flags" >log 2>&1; report $? "its policy compiles with $cc -Wall -Wextra -Werror"
    done
    make -s -C "my-$kind" test KVCAST="$kvcast" CFLAGS="-O2 $flags" >out 2>&1; report $? "and passes its own test"
    holds "which the kit is part of" "it keeps the rules"
done
refused "a file that is there stays" 2 "is there already" policy new my-eviction
refused "a name that is none" 2 "small letters" policy new "My policy"
refused "a built-in's name" 2 "built-in" policy new sieve
refused "a kind that is none" 2 "eviction, admission, routing or ordering" policy new x --kind placement
refused "nothing to do" 2 "list, new or check" policy
refused "something else to do" 2 "no part of kvcast policy" policy make
refused "a check of nothing" 2 "path" policy check
refused "a check of a name" 2 "no path" policy check lru

"$kvcast" policy list ./my-eviction/my-eviction.so >"$dir/out"; report $? "list of a plug-in"
holds "has its options with their ranges and help, and it alone" "my-eviction" "keep=0.5 .*(0 to 1)"
grep -q "  sieve " "$dir/out" && report 1 "it alone"
refused "a list of a name" 2 "no path" policy list lru

# ---- check ----
"$kvcast" policy check ./my-eviction/my-eviction.so:keep=0.3 --json >out; report $? "check --json"
holds "it is whole" '"schema": "kvcast.policy-check.v1"' '"passed": true' '"workload": "turncoat"' \
    '"best_built_in": 0' '"lru_ns_per_block_touch"'
"$kvcast" policy check ./nothing.so >out; [ $? = 3 ]; report $? "a file that is not there: exit code 3"
holds "and it says so" "FAILED.*loads" "No such file"
"$kvcast" policy check ./my-eviction/Makefile >out; [ $? = 3 ]; report $? "a file that is no plug-in: exit code 3"
holds "and it says what to do" "can't be loaded" "cc -shared"
"$kvcast" policy check ./my-eviction/my-eviction.so:keeep=1 >out; [ $? != 0 ]; report $? "an option it has not"
holds "is named, with those there are" "keeep" "keep=0.5"
"$kvcast" policy check "$plugins/bad_loop.so" --limit 1s >out; [ $? = 1 ]; report $? "an endless loop: exit code 1"
holds "with the hook, the request and the case" "did not end" "in victim, at request" "random forest"
"$kvcast" policy check "$plugins/bad_fork.so" --json >out; [ $? = 1 ]; report $? "one that starts processes: exit code 1"
holds "is told, and what it prints is not" "left them running" '"checks"'
head -n 2 out | grep -q '"schema"'; report $? "the verdict alone is on stdout"

# ---- runs ----
"$kvcast" gen rag-chat -o chat.jsonl --duration 2m --quiet
"$kvcast" ceiling chat.jsonl --quiet --capacity 500,3000 --policy "sieve,twoq:in=0.5,$plugins/sieve.so,$plugins/twoq.so:in=0.5" \
    --threads 4 --json >out
report $? "plug-ins run beside built-in policies, on several threads"
sed -n '/"points"/,$s/.*"raw_hit_blocks": \([0-9]*\),/\1/p' out | tr '\n' ' ' >hits
awk '{ exit !($1 == $3 && $2 == $4 && $5 == $7 && $6 == $8) }' hits
rc=$?
[ $rc = 0 ] || sed 's/^/# /' hits
report $rc "and give the same hits"
# bad_fork prints on stdout, and leaves processes that would keep a pipe open.
clean() { # JSON alone in out, and the processes are told in err
    [ "$(grep -c '^{$' out)" = 1 ] && head -n 2 out | grep -q '"schema"' && [ "$(grep -c '^}$' out)" = 1 ] &&
        grep -qx '{' err && grep -q 'had left 2 processes behind: ended' err
}
timeout 60 "$kvcast" ceiling chat.jsonl --quiet --capacity 500 --policy "$plugins/bad_fork.so" --json 2>err | cat >out
clean; report $? "what a plug-in prints is not in the output of ceiling, and its processes do not outlive it"
timeout 60 "$kvcast" replay chat.jsonl --quiet --model llama-3.1-8b --gpu h100-sxm --engine.kv_cache_memory 8GiB \
    --policy "$plugins/bad_fork.so" --no-bounds --json 2>err | cat >out
clean; report $? "nor in that of replay"
"$kvcast" ceiling chat.jsonl --quiet --capacity 500 --json \
    --policy "lru+second:times=3,lru+$plugins/second.so:times=3,$plugins/lru.so+$plugins/second.so:times=3" >out
report $? "admission policies too, behind a policy's name or path"
holds "and give the same hits" "$(sed -n '/"points"/,$s/.*"raw_hit_blocks": \([0-9]*\),/\1/p' out | sort | uniq -c |
    sed -n 's/^ *3 \(.*\)/"raw_hit_blocks": \1,/p')"
"$kvcast" ceiling chat.jsonl --quiet --capacity 500 --json --policy lru --admission "$plugins/second.so" --by session >a
"$kvcast" ceiling chat.jsonl --quiet --capacity 500 --json --policy lru+second --by session >b
sed 's|lru+/.*second.so|lru+second|' a | cmp -s - b; report $? "as --admission, and from close up"
refused "one that breaks a rule gives no figure" 1 "bad, in admits, at request 0: it admits" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "lru+$plugins/bad_admits_more.so"
refused "nor two at once" 2 "more than one" ceiling chat.jsonl --policy "lru+second+$plugins/second.so"
refused "nor one of another kind" 3 "a policy of admission, and one of eviction" ceiling chat.jsonl --policy "$plugins/second.so"
refused "a plug-in that breaks a rule gives no figure" 1 "bad, in stored, at request 0: rank was given NaN" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "$plugins/bad_nan.so"
refused "one that crashes is told" 1 "'kvcast policy check' tells in which hook" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "$plugins/bad_fault.so"
export KVCAST_HOOK_LIMIT=300ms
refused "with the hook it was in" 1 "bad, in victim, at request [0-9]*: it \(crashed\|ended the program\)" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "$plugins/bad_fault.so"
refused "one that does not come back is ended" 1 "bad, in victim, at request [0-9]*: it did not come back within 0.3 s" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "$plugins/bad_loop.so"
refused "one that sleeps while it is loaded, by the clock" 1 "bad_asleep.so: plug-in, in load: it did not come back" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "$plugins/bad_asleep.so"
refused "in a replay too" 1 "bad, in rank, at request [0-9]*: it did not come back" replay chat.jsonl --quiet --model llama-3.1-8b \
    --gpu h100-sxm --order "$plugins/bad_rank_loop.so"
refused "a router behind a ceiling's replicas too" 1 "bad, in pick, at request 7: it did not come back within 0.3 s" \
    ceiling chat.jsonl --quiet --capacity 500 --policy lru --replicas 3 --router "$plugins/bad_pick_loop.so"
unset KVCAST_HOOK_LIMIT
refused "and one that ends the program" 1 "it ended the program" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "$plugins/bad_exit.so"
# Where the thread was not the program's only one, what it held is lost: no leak of the library's.
whole=${ASAN_OPTIONS:-}
export ASAN_OPTIONS="$whole:detect_leaks=0"
refused "or only its thread" 1 "\(it ended the program\|a thread was ended\)" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "lru,$plugins/bad_thread.so,sieve"
ASAN_OPTIONS=$whole
refused "one that writes where it may only read gives no figure, to nobody" 1 "it wrote to seg_depth" \
    ceiling chat.jsonl --quiet --capacity 500 --policy "lru,$plugins/bad_write.so,opt"
for wrong in bad_write bad_beyond; do
    refused "nor in a replay: $wrong" 1 "it wrote" replay chat.jsonl --quiet --model llama-3.1-8b --gpu h100-sxm \
        --policy "$plugins/$wrong.so"
done
refused "nor one of another version" 3 "version 99" ceiling chat.jsonl --policy "$plugins/bad_abi.so"
refused "an option twice" 2 "the option k is given twice" ceiling chat.jsonl --policy lruk:k=3:k=4
refused "a colon and no option" 2 "no option follows" ceiling chat.jsonl --policy lru:
refused "nor behind an option" 2 "no option follows" ceiling chat.jsonl --policy lruk:k=3:+second
refused "nor behind a path" 2 "no option follows" ceiling chat.jsonl --policy "$plugins/twoq.so:"
refused "nor one that is not there" 3 "nothing.so" ceiling chat.jsonl --policy ./nothing.so
refused "an option that a plug-in has not" 2 'no option "size"' ceiling chat.jsonl --policy "$plugins/twoq.so:size=1"
refused "a router is no cache policy" 3 "a policy of routing" ceiling chat.jsonl --policy ./my-routing/my-routing.so

behind() { "$kvcast" ceiling chat.jsonl --quiet --capacity 500 --policy lru,sieve --replicas 3 --why --json --router "$@"; }
behind "least-loaded" >a && behind "$plugins/least.so" >b; report $? "a router's plug-in serves ceilings"
sed "s|$plugins/least.so|least-loaded|" b | cmp - a; report $? "as the built-in one does, to the last figure"
behind "round-robin,$plugins/stay.so:slack=0,$plugins/stay.so:slack=1000" >out; report $? "with options, beside others"
holds "under its own name" 'stay.so:slack=1000"'
refused "one that names no replica gives no figure" 1 "bad, in pick, named a replica that is none of the 3" \
    ceiling chat.jsonl --quiet --capacity 500 --policy lru --replicas 3 --router "$plugins/bad_stray.so"
refused "nor one of another kind" 3 "a policy of eviction, and one of routing" \
    ceiling chat.jsonl --capacity 500 --replicas 3 --router "$plugins/lru.so"

replay() { "$kvcast" replay chat.jsonl --quiet --json --model llama-3.1-8b --gpu h100-sxm --replicas 3 "$@"; }
cp "$plugins/stay.so" stay.so
replay --router ./stay.so:slack=2 >out; report $? "a router's plug-in serves a replay"
holds "which says whose router it was" '"completed": [1-9]' 'stay.so:slack=2'
replay --order ./fcfs.so >a 2>err; [ $? = 3 ]; report $? "an order that is not there"
cp "$plugins/fcfs.so" fcfs.so
replay --engine.kv_cache_memory 4GiB >a && replay --engine.kv_cache_memory 4GiB --order ./fcfs.so >b
report $? "an order's plug-in serves a replay"
for f in a b; do sed '/"runtime"/,$d; s/fcfs.so/fcfs/; s|\./fcfs|fcfs|' $f >$f.same; done
cmp a.same b.same; report $? "and asked at each step, gives what the built-in one gives, to the last figure"
replay --engine.kv_cache_memory 4GiB --order lpm:most=1000 >out; report $? "a built-in order with an option"
holds "is named in the scenario" '"order": "lpm:most=1000"'
refused "a rank that is NaN gives no figure" 1 "bad, in rank, at request [0-9]*: a rank is NaN" replay chat.jsonl --quiet \
    --model llama-3.1-8b --gpu h100-sxm --engine.kv_cache_memory 2GiB --order "$plugins/bad_rank_nan.so"
refused "an order that is none" 2 "did you mean fair" replay chat.jsonl --model llama-3.1-8b --gpu h100-sxm --order fare
refused "a router must be one" 3 "a policy of eviction" replay chat.jsonl --model llama-3.1-8b --gpu h100-sxm \
    --replicas 3 --router ./my-eviction/my-eviction.so

cp "$plugins/second.so" "$plugins/bad_admits_more.so" .
tier() { replay --tiers.dram.capacity 20GiB --tiers.dram.admission "$@"; }
strip() { sed '/"cpu_s\|"wall_s\|peak_rss\|"admission"\|digest/d' "$1"; }
tier second:times=3 >a && tier ./second.so:times=3 >b; report $? "an admission policy's plug-in serves a tier"
strip a >a.figures; strip b | cmp - a.figures; report $? "as the built-in one does"
grep -q '"refused_bytes": [1-9]' a; report $? "and refuses something"
refused "one that breaks a rule gives no figure there" 1 "bad, in admits, at request" replay chat.jsonl \
    --model llama-3.1-8b --gpu h100-sxm --tiers.dram.capacity 20GiB --tiers.dram.admission ./bad_admits_more.so

# ---- the tutorial, word by word ----
mkdir tutorial bin && ln -s "$kvcast" bin/kvcast && cd tutorial || exit 1
awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on' "$root/docs/plugins.md" >all.sh
PATH=$dir/bin:$PATH CFLAGS="-O2 $flags" sh -e all.sh >"$dir/out" 2>"$dir/err"
rc=$?
[ $rc = 0 ] || sed 's/^/# /' "$dir/err"
report $rc "docs/plugins.md runs as it stands"
holds "to a verdict" "it keeps the rules" "regret"
awk '$2 == "lru" { lru[$1] = $4 } $2 ~ /worth=0$/ && NF > 6 { bad = bad || lru[$1] != $4; n++ } END { exit bad || n != 2 }' "$dir/out"
report $? "and worth=0 is lru, as it says"
awk '$2 == "lru+second" { want = $3 " " $4 } $2 ~ /head=0$/ { got = $3 " " $4 } END { exit got == "" || got != want }' "$dir/out"
report $? "and head=0 is second, as it says"
echo "1..$n"
exit $failed
