#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gen servegen from the outside: folder and archive alike, refused as a log to import.
. "$(dirname "$0")/tap.sh"
m=$dir/m/deep
mkdir -p "$m"
printf '0,2,1,Gamma,1,0.5\r\n600,1,1,Weibull,0.7,1\r\n' >"$m/chunk-0-trace.csv"
echo '{"0": {"input_tokens": "{5: 1.0}", "output_tokens": "{6: 1.0}"}}' >"$m/chunk-0-dataset.json"
printf '0,1,1,Gamma,1,1\n600,0,0,,0,0\n' >"$m/chunk-3-trace.csv"
"$kvcast" gen servegen "$dir/m" -o "$dir/a.jsonl" --seed 4 2>"$dir/err"
report $? "models in a folder"
[ "$(wc -l <"$dir/a.jsonl")" = 1800 ]; report $? "as many requests as the rates say"
grep -q '1 of 2 clients left out.*0.5 of 2.0 requests per second' "$dir/err"; report $? "the client without lengths is told"
grep -q 'hit rates of this log are unknown' "$dir/err"; report $? "and what the models can't show"
if command -v tar >/dev/null; then
    tar -C "$dir" -czf "$dir/m.tar.gz" m
    "$kvcast" gen servegen "$dir/m.tar.gz" -o - --seed 4 --quiet | cmp -s - "$dir/a.jsonl"
    report $? "the same from a packed tar"
    refused "the tar isn't a log" 3 "kvcast gen servegen" import "$dir/m.tar.gz" -o "$dir/t.kvt"
else
    for i in 1 2; do n=$((n + 1)); echo "ok $n # SKIP no tar"; done
fi
refused "rates aren't a log" 3 "kvcast gen servegen" import "$m/chunk-0-trace.csv" -o "$dir/t.kvt"
refused "lengths aren't a log" 3 "kvcast gen servegen" import "$m/chunk-0-dataset.json" -o "$dir/t.kvt"
refused "no models named" 2 "one folder or tar" gen servegen -o "$dir/b"
refused "turns make no sense" 2 "not for servegen" gen servegen "$dir/m" --turns 3 -o "$dir/b"
refused "from within a window" 2 "multiple" gen servegen "$dir/m" --from 1m -o "$dir/b"
refused "no rate" 2 "more than 0" gen servegen "$dir/m" --rate 0 -o "$dir/b"
"$kvcast" inspect --json "$dir/a.jsonl" 2>/dev/null | grep -q '"block_tokens": null'
report $? "the drawn log has no prefixes"

echo "1..$n"
exit $failed
