#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# import, inspect and gen from the outside: exit codes, places in messages, no partial files.
. "$(dirname "$0")/tap.sh"

# Exit code, and a pattern that stderr must hold ("" = anything).
expect() { # name, code, pattern, arguments..
    name=$1 code=$2 pattern=$3
    shift 3
    "$kvcast" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    rc=$?
    if [ $rc = "$code" ] && { [ -z "$pattern" ] || grep -q -e "$pattern" "$dir/err"; }; then
        report 0 "$name"
    else
        echo "# exit $rc; stderr:" && sed 's/^/# /' "$dir/err"
        report 1 "$name"
    fi
}

row() { # timestamp, tokens, ids
    printf '{"timestamp": %s, "input_length": %s, "output_length": 9, "hash_ids": [%s]}\n' "$1" "$2" "$3"
}

# ---- good logs ----
{ row 0 1100 1,2,3; row 1000 1100 1,2,3; row 2000 1300 1,2,4; } >"$dir/log.jsonl"
expect "import writes a trace" 0 "3 requests" import "$dir/log.jsonl" -o "$dir/t.kvt"
[ -s "$dir/t.kvt" ]; report $? "the trace is there"
expect "quiet says nothing" 0 "" import --quiet "$dir/log.jsonl" -o "$dir/t.kvt"
[ ! -s "$dir/err" ]; report $? "nothing at all"
expect "inspect reads the trace" 0 "" inspect "$dir/t.kvt"
grep -q '3 requests over 2.00 s, 3,500 input' "$dir/out"; report $? "inspect counts requests and tokens"
expect "inspect --json of log and trace" 0 "" inspect --json "$dir/t.kvt"
digest=$(sed -n 's/.*"digest": "\(.*\)".*/\1/p' "$dir/out")
for form in "cat" "gzip -c" "zstd -qc"; do
    command -v ${form%% *} >/dev/null || { n=$((n + 1)); echo "ok $n # SKIP no $form"; continue; }
    $form <"$dir/log.jsonl" >"$dir/packed"
    "$kvcast" inspect --json "$dir/packed" 2>/dev/null | grep -q "\"digest\": \"$digest\""
    report $? "the same by a file made with $form"
    "$kvcast" inspect --json - <"$dir/packed" 2>/dev/null | grep -q "\"digest\": \"$digest\""
    report $? "the same from stdin, $form"
done
expect "import --json" 0 "" import --json "$dir/log.jsonl" -o "$dir/t.kvt"
grep -q '"accepted": 3' "$dir/out"; report $? "import --json counts rows"
cp "$dir/log.jsonl" "$dir/same.jsonl"
expect "several logs are merged" 0 "6 requests" import "$dir/log.jsonl" "$dir/same.jsonl" -o "$dir/u.kvt"

# ---- bad rows ----
{ row 0 512 1; row -1 512 1; row 5 512 '1'; echo '{"timestamp":'; } >"$dir/bad.jsonl"
expect "bad rows are counted and named" 0 "bad.jsonl:2:timestamp: -1" import "$dir/bad.jsonl" -o "$dir/b.kvt"
grep -q '2 of 4 rows' "$dir/err"; report $? "with their number"
rm -f "$dir/b.kvt"
expect "--strict stops at the first" 3 "bad.jsonl:2:timestamp" import --strict "$dir/bad.jsonl" -o "$dir/b.kvt"
[ ! -e "$dir/b.kvt" ]; report $? "and writes nothing"
{ row 0 200 1,2,3,4; row 1 330 1,2,3,5,6,7; row 2 129 1,2,8; } >"$dir/b64.jsonl"
expect "block size is inferred" 0 "blocks of 64 tokens" import "$dir/b64.jsonl" -o "$dir/b.kvt"
expect "a contradicting block size is an error" 3 "b64.jsonl:1:hash_ids" \
    import --block-tokens 512 "$dir/b64.jsonl" -o "$dir/c.kvt"
[ ! -e "$dir/c.kvt" ]; report $? "no file from it"

expect "an output that can't be written" 1 "none/x.kvt: can't write" import "$dir/log.jsonl" -o "$dir/none/x.kvt"
! grep -q note "$dir/err"; report $? "is told before the log is read"
{ row 0 1536 1,2,2; row 1 512 1; } >"$dir/twice.jsonl"
expect "an id twice in a row" 0 "1 row: a block id twice" import "$dir/twice.jsonl" -o "$dir/c.kvt"

# ---- what is no log ----
: >"$dir/empty"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n' >"$dir/pointer"
head -c 4000 /dev/zero >"$dir/zeros"
awk 'BEGIN { s = "{\"x\":"; for (i = 0; i < 5000; i++) s = s "["; print s }' >"$dir/deep"
expect "an empty file" 3 "empty: the file is empty" import "$dir/empty" -o "$dir/x.kvt"
expect "a Git LFS pointer" 3 "fetch the real file" import "$dir/pointer" -o "$dir/x.kvt"
for kind in 'lz4 data:\004\042\115\030' '7z archive:7z\274\257\047\034' 'Python pickle:\200\004\225'; do
    printf '%b' "${kind#*:}abcdefgh" >"$dir/kind"
    expect "${kind%%:*}" 3 "this is .*${kind%%:*}" import "$dir/kind" -o "$dir/x.kvt"
done
expect "a directory" 3 "directory" import "$dir" -o "$dir/x.kvt"
expect "a binary file" 3 "binary" import "$dir/zeros" -o "$dir/x.kvt"
expect "a missing file" 3 "No such file" import "$dir/none" -o "$dir/x.kvt"
expect "deep nesting" 3 "" import --format mooncake "$dir/deep" -o "$dir/x.kvt"
grep -q 'deep:1: nested' "$dir/err"; report $? "is named with its line"
if command -v zstd >/dev/null; then
    zstd -qc <"$dir/log.jsonl" | head -c 60 >"$dir/cut.zst"
    expect "cut zstd data" 3 "cut.zst: zstd data is cut short at byte 60" import "$dir/cut.zst" -o "$dir/x.kvt"
else
    n=$((n + 2)); echo "ok $((n - 1)) # SKIP no zstd"; echo "ok $n # SKIP no zstd"
fi
head -c 200 "$dir/t.kvt" >"$dir/cut.kvt"
expect "a cut .kvt" 3 "damaged" inspect "$dir/cut.kvt"
[ ! -e "$dir/x.kvt" ]; report $? "none of them left a file"

# ---- archives of any format ----
if command -v tar >/dev/null; then
    mkdir "$dir/logs"
    printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.5,10,1\n2023-11-16 18:00:02,20,2\n' >"$dir/logs/a.csv"
    printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:01,30,3\n2023-13-16 18:00:02,5,3\n' >"$dir/logs/b.csv"
    gzip -c <"$dir/logs/b.csv" >"$dir/logs/c.csv.gz"
    rm "$dir/logs/b.csv"
    echo "what these are" >"$dir/logs/README"
    row 0 512 1 >"$dir/logs/sample.md" # a document that quotes a log
    (cd "$dir/logs" && tar cf ../logs.tar .)
    gzip -c <"$dir/logs.tar" >"$dir/logs.tgz"
    expect "a tar of logs, one of them packed" 0 "3 requests over 1.50 s, 60 input" import "$dir/logs.tar" -o "$dir/tar.kvt"
    grep -q "2 members of the archive are documents (.md) or in no known format" "$dir/err"; report $? "says what it passed over"
    grep -q "logs.tar:./c.csv.gz:3" "$dir/err"; report $? "a bad row is named by archive, member and line"
    "$kvcast" import --quiet "$dir/logs.tgz" -o "$dir/tgz.kvt" && cmp -s "$dir/tar.kvt" "$dir/tgz.kvt"; report $? "a packed tar gives the same"
    "$kvcast" import --quiet - -o "$dir/pipe.kvt" <"$dir/logs.tgz" && cmp -s "$dir/tar.kvt" "$dir/pipe.kvt"; report $? "so does stdin"
    awk 'BEGIN { print "TIMESTAMP,ContextTokens,GeneratedTokens"
        for (i = 0; i < 80000; i++) printf "2023-11-16 18:%02d:%02d.%03d,10,1\n", i / 60000, i / 1000 % 60, i % 1000 }' >"$dir/long.csv"
    (cd "$dir" && tar cf long.tar long.csv)
    "$kvcast" import --quiet "$dir/long.csv" -o "$dir/long.kvt" && "$kvcast" import --quiet "$dir/long.tar" -o "$dir/longtar.kvt" &&
        cmp -s "$dir/long.kvt" "$dir/longtar.kvt"; report $? "a member of more than a buffer gives the same as the file"
    head -c 1500 "$dir/logs.tar" >"$dir/cut.tar"
    expect "a cut tar" 3 "cut.tar" import "$dir/cut.tar" -o "$dir/x.kvt"
    (cd "$dir/logs" && rm a.csv c.csv.gz && tar cf ../none.tar .)
    expect "a tar of no logs" 3 "no member of this archive" import "$dir/none.tar" -o "$dir/x.kvt"
else
    n=$((n + 8)); for i in 1 2 3 4 5 6 7 8; do echo "ok $((n - 8 + i)) # SKIP no tar"; done
fi

# ---- usage ----
expect "no log" 2 "no log named" import -o "$dir/x.kvt"
expect "no output" 2 "where to" import "$dir/log.jsonl"
printf '\n \n\n' >"$dir/blank.jsonl"
expect "blank lines only" 3 "blank lines and nothing else" import "$dir/blank.jsonl" -o "$dir/b.kvt"
expect "a log named twice" 2 "named twice" import "$dir/log.jsonl" "$dir/log.jsonl" -o "$dir/b.kvt"
expect "stdin named twice" 2 "named twice" import - - -o "$dir/b.kvt"
cat >"$dir/idle.jsonl" <<'LOG'
{"timestamp": 0, "input_length": 10, "output_length": 5, "hash_ids": [1], "engine": "a"}
{"timestamp": 1, "input_length": 10, "output_length": 5, "hash_ids": [1], "engine": "b"}
LOG
expect "a tenant field that no row has" 0 "field nosuch: no row names a tenant" \
    import "$dir/idle.jsonl" -o "$dir/b.kvt" --tenant-field nosuch
expect "a key field that no row has" 0 "key-field nosuch: not read in any row of this mooncake log" \
    import "$dir/idle.jsonl" -o "$dir/b.kvt" --key-field nosuch
expect "arrivals for a log with times" 0 "arrivals had nothing to do" \
    import "$dir/idle.jsonl" -o "$dir/b.kvt" --arrivals poisson:2
"$kvcast" import "$dir/idle.jsonl" -o "$dir/b.kvt" --key-field engine --tenant-field engine 2>"$dir/err"
! grep -q -e '-field' "$dir/err"; report $? "no such note where the field is there"
# Options that change what a log means hold wherever a log may stand for a trace, and a .kvt knows
# better than to take them.
cat >"$dir/salted.jsonl" <<'LOG'
{"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2], "engine": "a", "model": "m"}
{"timestamp": 5, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2], "engine": "b", "model": "n"}
{"timestamp": 9, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2], "engine": "a", "model": "m"}
LOG
ceiling_of() { "$kvcast" ceiling --quiet --json "$dir/salted.jsonl" "$@" 2>/dev/null | grep -m 1 '"hit_blocks"'; }
[ "$(ceiling_of --merge-models | tr -dc 0-9)" = 4 ]; report $? "ceiling takes --merge-models"
[ "$(ceiling_of --merge-models --key-field engine | tr -dc 0-9)" = 2 ]; report $? "ceiling takes --key-field"
"$kvcast" import --quiet "$dir/salted.jsonl" -o "$dir/salted.kvt"
for command in "ceiling --capacity 2" "inspect" "replay --preset kga-rag" "export -o $dir/out.csv --format csv"; do
    # shellcheck disable=SC2086
    for option in "--key-field engine" --merge-models "--tenant-field engine" "--tokenizer bytes:4" \
        "--time-unit ms" "--window 0s:1h" --infer-sessions "--forget 24h" --anonymize; do
        expect "$command takes $option of a log" 0 "" $command --quiet "$dir/salted.jsonl" $option
        expect "$command refuses $option of a .kvt" 2 "this is a .kvt.*${option%% *}" $command "$dir/salted.kvt" $option
    done
done
expect "a .kvt of other blocks" 2 "blocks of 512 tokens, where --block-tokens says 16" \
    ceiling "$dir/salted.kvt" --block-tokens 16
for what in "inspect --report" "replay --preset kga-rag --report" "replay --preset kga-rag --requests" \
    "replay --preset kga-rag --db"; do
    cp "$dir/idle.jsonl" "$dir/own.jsonl"
    # shellcheck disable=SC2086
    set -- $what
    command=$1
    shift
    expect "$what refuses its own log" 2 "would overwrite the log" "$command" "$dir/own.jsonl" "$@" "$dir/own.jsonl"
    cmp -s "$dir/idle.jsonl" "$dir/own.jsonl"; report $? "and leaves it as it is"
done
expect "the log is not overwritten" 2 "overwrite" import "$dir/log.jsonl" -o "$dir/log.jsonl"
expect "an unknown format" 2 "unknown format" import --format csv "$dir/log.jsonl" -o "$dir/x.kvt"
expect "a block size of 0" 2 "block-tokens" import --block-tokens 0 "$dir/log.jsonl" -o "$dir/x.kvt"
expect "inspect wants one trace" 2 "one trace" inspect "$dir/t.kvt" "$dir/t.kvt"
expect "gen wants a known kind" 2 "rag-chat" gen chat -o "$dir/g"
expect "gen refuses a bare duration" 2 "duration" gen agent -o "$dir/g" --duration 5
expect "gen refuses nonsense" 2 "rate" gen agent -o "$dir/g" --rate -3
[ ! -e "$dir/g" ]; report $? "and writes nothing"

# ---- gen ----
expect "gen" 0 "" gen rag-chat -o "$dir/a.jsonl" --duration 2m --seed 5
"$kvcast" gen rag-chat -o - --duration 2m --seed 5 2>/dev/null | cmp -s - "$dir/a.jsonl"
report $? "equal seeds give equal bytes"
"$kvcast" gen rag-chat -o - --duration 2m --seed 6 2>/dev/null | cmp -s - "$dir/a.jsonl"
[ $? = 1 ]; report $? "another seed gives others"
expect "import what gen wrote" 0 "blocks of 16 tokens" import "$dir/a.jsonl" -o "$dir/a.kvt"

# ---- a full disk, a kill ----
if [ -c /dev/full ]; then
    expect "a full disk is named" 1 "disk is full" import "$dir/log.jsonl" -o /dev/full
    "$kvcast" inspect "$dir/t.kvt" >/dev/full 2>"$dir/err"
    [ $? != 0 ] && grep -q 'disk full' "$dir/err"; report $? "on stdout as well"
else
    n=$((n + 2)); echo "ok $((n - 1)) # SKIP no /dev/full"; echo "ok $n # SKIP no /dev/full"
fi
mkdir "$dir/k"
for signal in HUP TERM KILL; do # background jobs of a script ignore INT
    mkfifo "$dir/fifo"
    "$kvcast" import - -o "$dir/k/t.kvt" <"$dir/fifo" 2>/dev/null &
    job=$!
    exec 3>"$dir/fifo"
    cat "$dir/a.jsonl" >&3 # nothing follows; the import waits in mid-log
    kill -$signal $job
    exec 3>&-
    wait $job 2>/dev/null
    rc=$?
    [ $rc -gt 128 ] && [ -z "$(ls -A "$dir/k")" ]; report $? "nothing is left after SIG$signal in mid-import"
    rm -f "$dir/fifo"
done
for delay in 0.00 0.01 0.02 0.05 0.1; do
    "$kvcast" gen agent -o "$dir/k/g.jsonl" --duration 20m 2>/dev/null &
    job=$!
    sleep $delay
    kill -KILL $job 2>/dev/null
    wait $job 2>/dev/null
done
left=$(ls -A "$dir/k" | grep -v '^g.jsonl$')
[ -z "$left" ]; report $? "a killed gen leaves no temporary file"

echo "1..$n"
exit $failed
