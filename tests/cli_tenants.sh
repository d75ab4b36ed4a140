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
refused "a field of a .kvt" 2 "when importing" ceiling "$dir/t.kvt" --isolate team

echo "1..$n"
exit $failed
