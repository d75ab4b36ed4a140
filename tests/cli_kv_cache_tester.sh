#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kv-cache-tester sessions from the outside: counts that an independent reference gave.
. "$(dirname "$0")/tap.sh"
sessions=../shared/traces/kv-cache-tester

figure() { # file of JSON, key
    sed -n "s/^ *\"$2\": \([0-9.]*\),*$/\1/p" "$1" | head -1
}

same() { # name, file, key, value
    got=$(figure "$2" "$3")
    [ "$got" = "$4" ] || echo "# $3: $got, expected $4"
    [ "$got" = "$4" ]; report $? "$1"
}

# ---- hand-made ones ----
session() { # tokens of the first request
    printf '{"id":"s","block_size":64,"hash_id_scope":"local","requests":[{"t":0,"type":"n","in":%s,"out":1,"hash_ids":[1]},' "$1"
    printf '{"t":1,"type":"n","in":130,"out":1,"hash_ids":[1,2]}]}'
}
mkdir "$dir/s"
session 64 >"$dir/s/a.json" && session 65 >"$dir/s/b.json"
"$kvcast" import "$dir/s/a.json" "$dir/s/b.json" -o "$dir/t.kvt" 2>"$dir/err"
report $? "sessions as files"
grep -q 'starts at k x 60 s' "$dir/err"; report $? "the starts are stated"
"$kvcast" inspect --json "$dir/t.kvt" >"$dir/files.json"
same "both are there" "$dir/files.json" requests 4
digest=$(sed -n 's/.*"digest": "\(.*\)".*/\1/p' "$dir/files.json")
for form in "cat" "gzip -c" "zstd -qc"; do
    command -v tar >/dev/null && command -v ${form%% *} >/dev/null ||
        { n=$((n + 1)); echo "ok $n # SKIP no tar or $form"; continue; }
    tar -C "$dir" -cf - s | $form >"$dir/s.tar"
    "$kvcast" inspect --json "$dir/s.tar" 2>/dev/null | grep -q "\"digest\": \"$digest\""
    report $? "the same by a tar through $form"
done
if command -v tar >/dev/null; then
    tar -C "$dir" -cf "$dir/s.tar" s
    head -c 1800 "$dir/s.tar" >"$dir/cut.tar"
    refused "a cut tar" 3 "cut.tar.*the tar archive is cut short" import --format kv-cache-tester "$dir/cut.tar" -o "$dir/x.kvt"
    [ ! -e "$dir/x.kvt" ]; report $? "no file from it"
    session 0 >"$dir/s/b.json" && tar -C "$dir" -cf "$dir/s.tar" s
    refused "a wrong row is told with its member" 3 "s.tar:s/b.json:1:requests\[0\].in: 0 is wrong" import --strict "$dir/s.tar" -o "$dir/x.kvt"
else
    for i in 1 2 3; do n=$((n + 1)); echo "ok $n # SKIP no tar"; done
fi

# ---- the whole archive ----
if [ -r $sessions/traces.tar.zst ]; then
    "$kvcast" import --strict --quiet $sessions/traces.tar.zst -o "$dir/all.kvt"
    report $? "the archive of 468 sessions is read"
    "$kvcast" ceiling "$dir/all.kvt" --capacity 1 --json >"$dir/all.json"
    same "requests" "$dir/all.json" requests 33004
    same "input tokens" "$dir/all.json" input_tokens 4071563775
    same "block touches" "$dir/all.json" block_touches 63601794
    same "content bound, model in the key" "$dir/all.json" raw_hit_blocks 61299564
    "$kvcast" import --quiet --merge-models $sessions/traces.tar.zst -o "$dir/all.kvt"
    "$kvcast" ceiling "$dir/all.kvt" --capacity 1 --json >"$dir/all.json"
    same "content bound, models merged" "$dir/all.json" raw_hit_blocks 61302002
    "$kvcast" import --strict --quiet $sessions/single/* -o "$dir/single.kvt"
    report $? "ten sessions, plain and packed"
else
    for i in 1 2 3 4 5 6 7; do n=$((n + 1)); echo "ok $n # SKIP $sessions is not here"; done
fi

echo "1..$n"
exit $failed
