#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh BUILD: runs every tests/bench/bench_* (program or script) and prints one table, or with
# BENCH=json one JSON object. A benchmark prints tab-separated lines
#     name  value  unit  spread  goal
# with spread in percent of the value (half of max - min over its runs, "-" for a single one) and a goal
# like ">=300", "<=150" or "-". A line "skip <tab> name <tab> why" says that it could not run.
build=$1
KVCAST=$PWD/$build/kvcast
KVCAST_BUILD=$build
export KVCAST KVCAST_BUILD
rows=$(mktemp) || exit 1
trap 'rm -f "$rows"' EXIT
tab=$(printf '\t')

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -1)
cores=$(nproc 2>/dev/null || echo '?')
load=$(cut -d' ' -f1-3 /proc/loadavg 2>/dev/null)
compiler=$(${CC:-gcc} --version 2>/dev/null | head -1)

broken=0
for b in "$build"/tests/bench/bench_* tests/bench/bench_*.sh; do
    case $b in
    *.sh) command="sh $b" ;;
    *.[od]) continue ;;
    *) command=$b ;;
    esac
    [ -e "$b" ] || continue
    [ "${BENCH:-}" = json ] || echo "running $(basename "$b")" >&2
    $command >>"$rows" || { echo "$b failed" >&2; broken=1; }
done

if [ "${BENCH:-}" = json ]; then
    awk -F"$tab" -v cpu="$cpu" -v cores="$cores" -v load="$load" -v cc="$compiler" -v flags="${CFLAGS:-}" '
        function q(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
        BEGIN { printf "{ \"schema\": \"kvcast.bench.v1\", \"cpu\": %s, \"cores\": %s, \"load\": %s, \"compiler\": %s, \"cflags\": %s,\n  \"rows\": [", q(cpu), q(cores), q(load), q(cc), q(flags) }
        $1 == "skip" { skipped = skipped (skipped ? ", " : "") q($2); next }
        NF >= 5 {
            met = "null"
            if ($5 ~ /^>=/) met = ($2 + 0 >= substr($5, 3) + 0) ? "true" : "false"
            if ($5 ~ /^<=/) met = ($2 + 0 <= substr($5, 3) + 0) ? "true" : "false"
            printf "%s\n    { \"name\": %s, \"value\": %s, \"unit\": %s, \"spread_percent\": %s, \"goal\": %s, \"met\": %s }",
                (n++ ? "," : ""), q($1), $2, q($3), ($4 ~ /^[0-9.]+$/ ? $4 : "null"), ($5 == "-" ? "null" : q($5)), met
        }
        END { printf "\n  ], \"skipped\": [%s] }\n", skipped }' "$rows"
else
    echo "cpu: $cpu, $cores cores; load $load; $compiler; ${CFLAGS:-}"
    awk -F"$tab" '
        BEGIN { printf "%-58s %14s %-26s %8s %10s\n", "what", "measured", "unit", "spread", "goal" }
        $1 == "skip" { printf "%-58s %s\n", $2, "skipped: " $3; next }
        NF >= 5 {
            verdict = ""
            if ($5 ~ /^>=/) verdict = ($2 + 0 >= substr($5, 3) + 0) ? "met" : "MISSED"
            if ($5 ~ /^<=/) verdict = ($2 + 0 <= substr($5, 3) + 0) ? "met" : "MISSED"
            spread = $4 == "-" ? "-" : sprintf("%.1f %%", $4)
            printf "%-58s %14s %-26s %8s %10s %s\n", $1, $2, $3, spread, $5, verdict
        }' "$rows"
fi
exit $broken
