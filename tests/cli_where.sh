#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --where: a part of a log is what a log of those rows alone is, to the digest, from logs and from .kvt.
. "$(dirname "$0")/tap.sh"
digest() { "$kvcast" inspect "$@" --json --quiet | sed -n 's/^    "digest": "\(.*\)".*/\1/p'; }
same() { # name, pattern of the rows, words
    grep "$2" "$dir/log.jsonl" >"$dir/part.jsonl"
    want=$(digest "$dir/part.jsonl" --block-tokens 16)
    [ -n "$want" ] && [ "$(digest "$dir/log.jsonl" --block-tokens 16 --where "$3")" = "$want" ] &&
        [ "$(digest "$dir/log.kvt" --where "$3")" = "$want" ]
    report $? "$1"
}

for seed in 1 2 3; do
    "$kvcast" gen rag-chat -o "$dir/log.jsonl" --duration 3m --seed $seed --tenants 4 --models big=1,small=2 --think 20s --quiet
    "$kvcast" import "$dir/log.jsonl" --block-tokens 16 -o "$dir/log.kvt" --quiet
    same "seed $seed: one tenant" '"tenant": "t0"' tenant=t0
    same "seed $seed: two of them" '"tenant": "t[13]"' tenant=t3,tenant=t1
    same "seed $seed: one model" '"model": "small"' model=small
    same "seed $seed: a tenant's requests to a model" '"model": "big".*"tenant": "t1"\|"tenant": "t1".*"model": "big"' \
        model=big,tenant=t1
    same "seed $seed: all of them" . tenant=t0,tenant=t1,tenant=t2,tenant=t3
done

"$kvcast" replay "$dir/log.kvt" --where tenant=t1 --json --quiet --model llama-3.1-8b --gpu h100-sxm >"$dir/out"
report $? "a replay of a part"
grep -q '"part_of_the_log"' "$dir/out"; report $? "warns that the others are not there"
"$kvcast" replay "$dir/log.kvt" --json --quiet --model llama-3.1-8b --gpu h100-sxm | grep -q '"part_of_the_log"'
[ $? = 1 ]; report $? "and a replay of all does not"
"$kvcast" ceiling "$dir/log.jsonl" --where tenant=t1 --capacity 100 >/dev/null 2>"$dir/err"
grep -q "left out by --where tenant=t1" "$dir/err"; report $? "a ceiling of a part says what is left out"
"$kvcast" import "$dir/log.jsonl" --where tenant=t1 -o "$dir/part.kvt" --json --quiet | grep -q '"filtered": [1-9]'
report $? "so does an import"
"$kvcast" replay "$dir/part.kvt" --json --quiet --model llama-3.1-8b --gpu h100-sxm | grep -q '"part_of_the_log"'
report $? "which its .kvt remembers"

refused "a tenant that is not there" 2 'did you mean "t1"' inspect "$dir/log.jsonl" --where tenant=t11
refused "one of a .kvt" 2 'no request is of tenant "t9"' inspect "$dir/log.kvt" --where tenant=t9
refused "another word" 2 "tenant=NAME or model=NAME" inspect "$dir/log.jsonl" --where session=1
refused "names that are taken away" 2 "takes away" import "$dir/log.jsonl" -o "$dir/x.kvt" --where tenant=t1 --anonymize
sed 's/, "model": "[a-z]*"//' "$dir/log.jsonl" >"$dir/bare.jsonl"
refused "a log without models" 2 "no request states a model" inspect "$dir/bare.jsonl" --where model=big
echo "1..$n"
exit $failed
