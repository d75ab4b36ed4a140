#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a log to reports and back: replay writes them, report rebuilds them from what was stored.
. "$(dirname "$0")/tap.sh"

cd "$(dirname "$0")/.." || exit 1
"$kvcast" gen rag-chat --duration 2m --seed 3 --quiet -o "$dir/log.jsonl"
report $? "traffic is generated"
"$kvcast" replay "$dir/log.jsonl" --preset kga-rag --quiet --json --db "$dir/runs.db" \
    --report "$dir/a.html" --requests "$dir/a.csv" >"$dir/a.json"
report $? "replay writes JSON, database, page and rows"
grep -q '"schema": "kvcast.replay.v1"' "$dir/a.json"; report $? "JSON names its schema"
[ "$(grep -c '' "$dir/a.csv")" = $(($(grep -c '' "$dir/log.jsonl") + 1)) ]
report $? "one row a request, and a header"
! grep -Eq '<script|https?:| src=' "$dir/a.html"; report $? "the page fetches nothing and runs nothing"

grep -q '<h2>Your traffic</h2>' "$dir/a.html"; report $? "the page tells of the log itself"
but_traffic() { sed '/<h2>Your traffic<\/h2>/,/<\/section>$/d' "$1"; }
but_traffic "$dir/a.html" >"$dir/bare.html"
"$kvcast" report "$dir/runs.db" -o "$dir/b.html" && but_traffic "$dir/b.html" | cmp -s "$dir/bare.html" -
report $? "a database row gives the same page, but for the log, which it does not keep"
grep -q 'not stored with a run: <code>kvcast inspect' "$dir/b.html"; report $? "and it says where that is"
"$kvcast" report "$dir/runs.db" --json >"$dir/b.json" && "$kvcast" report "$dir/a.json" \
    --format csv >"$dir/c1.csv" && "$kvcast" report "$dir/b.json" --format csv >"$dir/c2.csv"
grep -v '^runtime' "$dir/c1.csv" >"$dir/d1" && grep -v '^runtime' "$dir/c2.csv" >"$dir/d2"
[ -s "$dir/d1" ] && cmp -s "$dir/d1" "$dir/d2"
report $? "and the same figures"
"$kvcast" report "$dir/runs.db" >"$dir/text" && grep -q 'nearest rank' "$dir/text"
report $? "text without -o"
"$kvcast" report "$dir/runs.db" -o "$dir/r.md" && grep -q '^# KV-cache capacity report' "$dir/r.md"
report $? "the file's ending chooses the format"
"$kvcast" replay "$dir/log.jsonl" --preset kga-rag --quiet --db "$dir/runs.db" >/dev/null &&
    "$kvcast" report "$dir/runs.db" --run 2 --format md >/dev/null
report $? "a second run is added"

refused "a run that is not there" 3 "holds no run 9" report "$dir/runs.db" --run 9
refused "a format that is not there" 2 "html, md, json, csv or text" report "$dir/a.json" --format pdf
refused "a log is not a run" 3 "is a log" report "$dir/log.jsonl"
: >"$dir/empty"
refused "an empty file" 3 "the file is empty" report "$dir/empty"
refused "a folder" 3 "directory" report "$dir"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >"$dir/pointer.json"
refused "a Git LFS pointer" 3 "Git LFS pointer" report "$dir/pointer.json"
gzip -c "$dir/a.json" >"$dir/a.json.gz"
"$kvcast" report "$dir/a.json" >"$dir/t1" && "$kvcast" report "$dir/a.json.gz" >"$dir/t2" &&
    cmp -s "$dir/t1" "$dir/t2"
report $? "packed JSON gives the same"
head -c 300 "$dir/a.json.gz" >"$dir/cut.gz"
refused "packed JSON that is cut short" 3 "cut short" report "$dir/cut.gz"
refused "nothing at all" 2 "give one file" report
refused "a file that is not there" 3 "can.t open" report "$dir/none.db"
refused "a full disk" 1 "disk is full" report "$dir/a.json" -o /dev/full
printf 'no database, but long enough to be looked at\n' >"$dir/notes"
"$kvcast" replay "$dir/log.jsonl" --preset kga-rag --quiet --db "$dir/notes" >/dev/null 2>"$dir/err"
[ $? = 3 ] && grep -q 'not an SQLite database' "$dir/err"; report $? "a database that is none"
grep -q '^no database' "$dir/notes"; report $? "which stays as it was"
echo "1..$n"
exit $failed
