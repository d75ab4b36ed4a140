#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Equal scenario, trace and seed give equal bytes, whatever the number of threads and the compiler:
# the JSON of ceiling and replay, less its "runtime" part.
. "$(dirname "$0")/tap.sh"

# "runtime" is the last member of the object: cut from its line on.
bytes() { # program, threads, more flags
    "$1" replay "$dir/log.jsonl" --json --quiet --seed 7 --threads "$2" --model llama-3.1-70b \
        --weights_dtype fp8 --gpu h100-sxm --tp 8 --replicas 3 --dram 8GiB --nvme 40GiB \
        --router power-of-two --arrivals.scale 3 --engine.kv_cache_memory 6GiB ${3:-} |
        sed '/^  "runtime"/,$d'
    bound() { kvc=$1 t=$2; shift 2; "$kvc" ceiling "$dir/log.jsonl" --json --quiet --threads "$t" "$@"; }
    bound "$1" "$2" --capacity 1000,100000,inf --policy lru,opt,s3fifo --curve --certify --cost
    bound "$1" "$2" --capacity 1000,20000 --policy lru,opt,lecar --replicas 3 --router prefix,power-of-two --why --by session
    bound "$1" "$2" --capacity 1000,20000 --policy lru,opt,lruk:k=3 --sample 0.1 2>/dev/null
}

"$kvcast" gen rag-chat -o "$dir/log.jsonl" --duration 10min --seed 3 --quiet || exit 1
bytes "$kvcast" 1 >"$dir/1"
grep -q '"hit_tokens"' "$dir/1" && ! grep -q '"peak_rss_bytes"' "$dir/1"
report $? "the compared part holds results and no run times"
bytes "$kvcast" 1 | cmp -s - "$dir/1"; report $? "twice the same"
bytes "$kvcast" 1 --step-by-step | cmp -s - "$dir/1"; report $? "the same step by step"
for threads in 2 8; do
    bytes "$kvcast" $threads | cmp -s - "$dir/1"; report $? "the same with $threads threads"
done
"$kvcast" import "$dir/log.jsonl" -o "$dir/log.kvt" --quiet
cp "$dir/log.jsonl" "$dir/plain.jsonl" && mv "$dir/log.kvt" "$dir/log.jsonl"
bytes "$kvcast" 1 | cmp -s - "$dir/1"; report $? "the same from .kvt"
mv "$dir/plain.jsonl" "$dir/log.jsonl"

case $kvcast in
*/release/kvcast) ;;
*) exit $failed ;; # other variants are compared with this one
esac
if ! command -v clang >/dev/null 2>&1; then
    echo "ok $((n + 1)) - the same built by clang # SKIP clang is not installed"
    exit $failed
fi
make -s -j"$(nproc)" CC=clang VARIANT=clang-O3 CFLAGS=-O3 all >"$dir/make" 2>&1 ||
    sed 's/^/# /' "$dir/make"
bytes build/clang-O3/kvcast 1 | cmp -s - "$dir/1"; report $? "the same built by clang -O3"
exit $failed
