#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Logs with text from the command line: rates, keys, what is told of them.
. "$(dirname "$0")/tap.sh"

say() { # time, text
    printf '{"timestamp": %s, "output_length": 5, "messages": [{"role": "user", "content": "%s"}]}\n' "$1" "$2"
}
long='the same beginning of all of them, long enough for some blocks of sixteen tokens each'
{ say 0 "$long one"; say 1000 "$long two"; say 2000 "$long one"; } >"$dir/log.jsonl"

"$kvcast" import "$dir/log.jsonl" -o "$dir/a.kvt" --json >"$dir/a.json" 2>"$dir/err"
[ $? = 0 ] && grep -q '4.0 bytes a token assumed' "$dir/a.json"; report $? "the assumed rate is told"
head -c 32 /dev/urandom >"$dir/salt"
"$kvcast" import --quiet "$dir/log.jsonl" -o "$dir/b.kvt" --salt-file "$dir/salt" 2>"$dir/err"
cmp -s "$dir/a.kvt" "$dir/b.kvt"; report $? "the key changes nothing in the trace"
grep -q 'beginning' "$dir/a.kvt" "$dir/a.json"; [ $? = 1 ]; report $? "no text in trace and report"
"$kvcast" import "$dir/log.jsonl" -o "$dir/c.kvt" --tokenizer bytes:2 --block-tokens 4 2>"$dir/err"
[ $? = 0 ] && grep -q 'cut at 2 bytes a token' "$dir/err"; report $? "a rate can be given"
gzip -c "$dir/log.jsonl" | "$kvcast" inspect - --tokenizer bytes:2 >"$dir/out" 2>&1
report $? "inspect reads it, packed and from stdin"

refused "a rate that is none" 2 "bytes:R" import "$dir/log.jsonl" -o "$dir/x.kvt" --tokenizer bytes:fast
refused "a rate out of range" 2 "0.25 to 64" import "$dir/log.jsonl" -o "$dir/x.kvt" --tokenizer bytes:1000
refused "a tokenizer that is not there" 3 "tokenizer.json is expected" import "$dir/log.jsonl" -o "$dir/x.kvt" --tokenizer "$dir/none.json"
printf 'short' >"$dir/short"
refused "a key too short" 3 "at least 16" import "$dir/log.jsonl" -o "$dir/x.kvt" --salt-file "$dir/short"
refused "a key that is not there" 3 "can't be read" import "$dir/log.jsonl" -o "$dir/x.kvt" --salt-file "$dir/none"
[ ! -e "$dir/x.kvt" ]; report $? "and nothing written"
echo "1..$n"
exit $failed
