#!/bin/sh
# The rules of kvcast/policy.h, and what you know of your policy on a log that you can count by hand.
kvcast=${KVCAST:-kvcast}
"$kvcast" policy check ./@NAME@.so || exit

# Blocks of 512 tokens in a cache of 3: a, a again, then six that come once, with two more a between.
# LRU stores all and loses the a each time; here it is stored at its second request and stays.
log=$(mktemp) && trap 'rm -f "$log"' EXIT
for id in 1 1 2 3 4 1 5 6 7 1; do
    t=$((t + 1000))
    echo "{\"timestamp\": $t, \"input_length\": 512, \"output_length\": 1, \"hash_ids\": [$id]}"
done >"$log"
hits=$("$kvcast" ceiling "$log" --format mooncake --block-tokens 512 --capacity 3 --policy lru+./@NAME@.so --json \
    --quiet | sed -n '/"points"/,$s/.*"raw_hit_blocks": \([0-9]*\).*/\1/p')
[ "$hits" = 2 ] && echo "a hits twice, as it should" || { echo "expected 2 hits, found $hits"; exit 1; }
