#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/json.md: every key that real runs print stands there, and every key there is printed by one.
. "$(dirname "$0")/tap.sh"
docs=$(dirname "$0")/../docs
command -v awk >/dev/null || exit 1

# "holder key" of each member of pretty-printed JSON; an array's members are those of what it holds. A
# scenario's keys have their own table.
members() {
    awk '{
        match($0, /^ */); d = RLENGTH / 2
        skip = skip && d > 1
        if (!match($0, /^ *"[^"]*": /)) { if ($0 ~ /[[{]$/) up[d + 1] = up[d]; next }
        key = substr($0, 2 * d + 2); key = substr(key, 1, index(key, "\"") - 1)
        gsub(/ /, "_", key)
        if (!skip) print (up[d] == "" ? "top" : up[d]), key
        if (key == "scenario" && d == 1) skip = 1
        if ($0 ~ /[[{]$/) up[d + 1] = key
    }' "$@" | sort -u
}

# The same of the page's section on a schema, and of the one on all.
documented() { # schema
    awk -v want="$1" '
        /^## / { on = $0 == "## All" || index($0, "`" want "`"); next }
        /^### In / { n = 0; sub(/ of `.*/, ""); sub(/^### In /, ""); gsub(/`/, ""); n = split($0, holder, /, */); next }
        on && /^\| `/ { split($0, cell, "|"); m = split(cell[2], key, "`")
            for (i = 2; i <= m; i += 2) for (k = 1; k <= n; k++) print holder[k], key[i] }' "$docs/json.md" | sort -u
}

# Keys that runs have and the page has not; a holder with the key "*" holds names.
covers() { # schema, outputs..
    schema=$1
    shift
    members "$@" >"$dir/seen"
    documented "$schema" >"$dir/written"
    missing=$(awk 'NR == FNR { if ($2 == "*") any[$1] = 1; have[$0] = 1; next }
                   !($0 in have) && !($1 in any)' "$dir/written" "$dir/seen")
    [ -z "$missing" ]; report $? "$schema: docs/json.md has every key"
    [ -z "$missing" ] || echo "$missing" | sed 's/^/# not there: in /'
    cat "$dir/seen" >>"$dir/ever"
}

"$kvcast" gen rag-chat -o "$dir/log.jsonl" --duration 2m --tenants 3 --models a=1,b=1 --quiet
kvt() { "$kvcast" "$@" --json --quiet 2>/dev/null; }
kvt ceiling "$dir/log.jsonl" --capacity 500,2000 --policy lru,opt --why --by tenant --replicas 2 --isolate tenant \
    --certify --cost --tiers hbm=100,dram=500 --curve --model llama-3.1-8b >"$dir/c1"
kvt ceiling "$dir/log.jsonl" --capacity 500 --sample 0.1 >"$dir/c2"
covers kvcast.ceiling.v1 "$dir/c1" "$dir/c2"
kvt replay "$dir/log.jsonl" --model llama-3.1-8b --gpu h100-sxm --replicas 2 --engine.kv_cache_memory 4GiB --dram 20GiB \
    --nvme 100GiB --remote 1TiB --router prefix --tenants.t0.quota 0.3 --what-if noisy=t1,isolation >"$dir/r"
covers kvcast.replay.v1 "$dir/r"
kvt import "$dir/log.jsonl" -o "$dir/log.kvt" --where model=a >"$dir/i"
covers kvcast.import.v1 "$dir/i"
kvt export "$dir/log.kvt" --format mooncake -o "$dir/o.jsonl" >"$dir/e"
covers kvcast.export.v1 "$dir/e"
kvt policy list >"$dir/l"
covers kvcast.policy-list.v1 "$dir/l"
so=$(dirname "$kvcast")/tests/plugins/second.so
[ -f "$so" ] || so=build/${VARIANT:-release}/tests/plugins/second.so
kvt policy check "$so" >"$dir/p"
covers kvcast.policy-check.v1 "$dir/p"

# inspect, of every kind of log: the samples of docs/formats
kvt inspect "$dir/log.jsonl" --model llama-3.1-8b >"$dir/n0"
for page in "$docs"/formats/*.md; do
    samples "$page"
    for log in "$dir"/s[0-9]*; do
        [ -f "$log" ] || continue
        k=$((k + 1))
        kvt inspect "$log" --prices input=1.25,cached=0.125,output=10 >"$dir/n$k" || kvt inspect "$log" --arrivals poisson:1 >"$dir/n$k"
    done
done
text() { # a time in front of a prompt that is the same otherwise
    for i in 1 2 3 4 5 6; do
        echo "{\"timestamp\": $i, \"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"It is 12:0$i. $(yes 'What is in a cache?' | head -90 | tr '\n' ' ')\"}]}"
    done
}
text >"$dir/text.jsonl"
kvt inspect "$dir/text.jsonl" --tokenizer bytes:4 --block-tokens 16 >"$dir/n$((k + 1))"
{ echo "TIMESTAMP,ContextTokens,GeneratedTokens" && for i in 10 11 12 13 14 15 16 17 18 19; do echo "2023-11-16 18:17:$i.9799600,48$i,$i"; done; } >"$dir/lengths.csv"
kvt inspect "$dir/lengths.csv" >"$dir/n$((k + 2))"
sed 's/"session_id"/"instance": "e1", &/; 3~2s/"e1"/"e2"/' "$dir/log.jsonl" >"$dir/engines.jsonl"
kvt inspect "$dir/engines.jsonl" >"$dir/n$((k + 3))"
covers kvcast.inspect.v1 "$dir"/n[0-9]*

# profiles: a link's two ways and both, a drive's few reads under way, a machine
{ for test in host_to_device device_to_host host_to_device_bidirectional; do
    printf 'Running %s_memcpy_ce.\nmemcpy CE (GB/s)\n 0\n 0 40.0\n\nSUM x 40.0\n' $test
done; } >"$dir/nvb.txt"
awk 'BEGIN { printf "{\"fio version\":\"fio-3.36\",\"global options\":{\"direct\":\"1\",\"ioengine\":\"libaio\"},\"jobs\":["
    for (d = 1; d <= 256; d *= 4) printf "%s{\"groupid\":%d,\"job options\":{\"rw\":\"read\",\"iodepth\":\"%d\"},\"read\":{\"bw_bytes\":%d,\"iops\":%d}}", (d > 1 ? "," : ""), d, d, 4e7 * d, 1e4 * d
    print "]}" }' >"$dir/fio.json"
kvt calibrate "$dir/nvb.txt" "$dir/fio.json" --gpu h100-sxm --queue-depth 8 >"$dir/f1"
kvt bench --quick --only zstd >"$dir/f2"
covers kvcast.profile.v1 "$dir/f1" "$dir/f2"
awk 'BEGIN { print "id,silicon_data_source,backend,model_path,system,precision,mode,isl,osl,gemm_quant_mode,moe_quant_mode,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms"
    for (i = 0; i < 12; i++) printf "r%d,dump,vllm,meta-llama/Llama-3.1-70B,b200_sxm,fp8,agg,%d,%d,fp8,fp8,%d,%d,%d,%.1f\n", i, 1024 * (1 + i % 2), 256 * (1 + i % 3), 2 ^ (i % 6), 4 + 4 * (i % 2), 120 + 60 * (i % 6), 6 + i % 6 }' >"$dir/rows.csv"
kvt calibrate --rows "$dir/rows.csv" >"$dir/h"
covers kvcast.calibrate.rows.v1 "$dir/h"

sort -u "$dir/ever" >"$dir/all"
idle=$(for s in ceiling replay import export policy-list policy-check inspect; do documented "kvcast.$s.v1"; done | sort -u |
    awk 'NR == FNR { have[$0] = 1; next } $2 != "*" && !($0 in have)' "$dir/all" -)
[ -z "$idle" ]; report $? "no key stands there that no run prints"
[ -z "$idle" ] || echo "$idle" | sed 's/^/# never seen: in /'
echo "1..$n"
exit $failed
