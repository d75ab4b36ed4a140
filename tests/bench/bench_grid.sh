#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench_grid.sh: 40 configurations (policy x capacity) as one command over one forest, against one
# command each from the log. Wall time; lines as tools/bench.sh takes them.
log=../shared/traces/mooncake/conversation_trace.jsonl.zst
policies="lru fifo lfu sieve s3fifo twoq arc opt"
capacities="1000 3000 10000 30000 100000"
if [ ! -f "$log" ]; then
    printf 'skip\t40 configurations as one command\t%s is not here\n' "$log"
    exit 0
fi

now_ms() { echo $(($(date +%s%N) / 1000000)); }
list() { echo "$1" | tr ' ' ,; }

begin=$(now_ms)
for policy in $policies; do
    for capacity in $capacities; do
        "$KVCAST" ceiling "$log" --policy "$policy" --capacity "$capacity" --json --quiet >/dev/null ||
            exit 1
    done
done
apart=$(($(now_ms) - begin))
begin=$(now_ms)
"$KVCAST" ceiling "$log" --policy "$(list "$policies")" --capacity "$(list "$capacities")" \
    --json --quiet >/dev/null || exit 1
together=$(($(now_ms) - begin))
printf '40 configurations as one command, against one at a time\t%d.%d\tx faster\t-\t>=12\n' \
    $((apart / together)) $((apart * 10 / together % 10))
