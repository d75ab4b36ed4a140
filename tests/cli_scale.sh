#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Logs larger than they should be: estimates, memory, forgetting, signals at any moment.
. "$(dirname "$0")/tap.sh"

# endless ROWS: sessions of three turns below a shared prompt, one a second, all else new.
endless() {
    awk -v rows="$1" 'BEGIN {
        for (i = 0; i < rows; i++) {
            turn = i % 3; s = int(i / 3)
            printf "{\"timestamp\": %d, \"input_length\": %d, \"output_length\": 9, \"hash_ids\": [1, 2, 3", i * 1000, (3 + 8 * (turn + 1)) * 512
            for (k = 0; k < 8 * (turn + 1); k++) printf ", %d", 100 + s * 24 + k
            print "]}"
        }
    }'
}

endless 20000 >"$dir/log"
"$kvcast" import "$dir/log" -o "$dir/a.kvt" 2>"$dir/err"; report $? "a log without sessions"
grep -q 'infer-sessions would link' "$dir/err"; report $? "is proposed to infer them"
"$kvcast" import --infer-sessions --json "$dir/log" -o "$dir/s.kvt" >"$dir/out" 2>/dev/null
grep -q '"linked_turns": 13333' "$dir/out" && grep -q '"sessions": 6667' "$dir/out"; report $? "inferred sessions have three turns"
"$kvcast" import --forget 6h "$dir/log" -o "$dir/f.kvt" 2>/dev/null && cmp -s "$dir/a.kvt" "$dir/f.kvt"
report $? "forgetting after more than the span changes no byte"
"$kvcast" import --forget 10m --json "$dir/log" -o "$dir/f.kvt" >"$dir/out" 2>"$dir/err"; report $? "forgetting after 10 minutes"
grep -q '"unjudged_tokens": 0,' "$dir/out" && grep -q '"forgotten_blocks": [1-9]' "$dir/out" && grep -q warning "$dir/err"
report $? "forgets blocks, leaves nothing unjudged where none comes back, and warns"
"$kvcast" inspect "$dir/f.kvt" 2>&1 >/dev/null | grep -q 'forgotten at import'; report $? "inspect warns"
"$kvcast" ceiling "$dir/f.kvt" --capacity inf 2>&1 >/dev/null | grep -q 'forgotten at import'; report $? "ceiling warns"
{ cat "$dir/log"; sed 's/"timestamp": /"timestamp": 9/' "$dir/log"; } >"$dir/twice"
"$kvcast" import --forget 10m --json "$dir/twice" -o "$dir/f.kvt" 2>/dev/null >"$dir/out"
grep -q '"unjudged_tokens": [1-9]' "$dir/out"; report $? "what comes back can't be judged"
refused "no forgetting at once" 2 "forget" import --forget 0s "$dir/log" -o "$dir/x.kvt"
refused "no forgetting without a unit" 2 "forget" import --forget 24 "$dir/log" -o "$dir/x.kvt"
"$kvcast" import --forget 6h --window :1h "$dir/log" -o "$dir/f.kvt" 2>/dev/null &&
    "$kvcast" import --window :1h "$dir/log" -o "$dir/w.kvt" 2>/dev/null && cmp -s "$dir/w.kvt" "$dir/f.kvt"
report $? "a window is cut while forgetting as it is without"

# ---- memory through a pipe ----
if [ -r /proc/self/status ] && grep -q RssAnon /proc/self/status; then
    mkfifo "$dir/fifo"
    "$kvcast" import --forget 1h - -o "$dir/p.kvt" <"$dir/fifo" 2>"$dir/err" &
    job=$!
    exec 3>"$dir/fifo"
    endless 400000 >&3
    anon=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' /proc/$job/status)
    exec 3>&-
    wait $job; report $? "a pipe of 90 MB"
    echo "# RssAnon $anon kB"
    [ -n "$anon" ] && [ "$anon" -lt 300000 ]; report $? "its anonymous memory stays small"
    grep -q 'size of the log unknown; so far' "$dir/err"; report $? "an estimate says that the size is unknown"
else
    n=$((n + 3)); echo "ok $n # SKIP no RssAnon"
fi

# ---- signals at any moment: reading, finishing, writing ----
mkdir "$dir/k"
bad=0
for delay in 0.005 0.02 0.05 0.08 0.1 0.12 0.15 0.2; do
    for signal in INT TERM HUP; do
        case $signal in INT) code=130 ;; TERM) code=143 ;; HUP) code=129 ;; esac
        # A script's background jobs ignore INT; timeout sends it to a child that does not.
        TMPDIR="$dir/k" timeout --preserve-status -s $signal $delay "$kvcast" import --quiet "$dir/log" "$dir/twice" -o "$dir/k/t.kvt" 2>/dev/null
        rc=$?
        left=$(ls -A "$dir/k")
        whole=no # it may have been put in place just before
        [ "$left" = t.kvt ] && "$kvcast" inspect "$dir/k/t.kvt" >/dev/null 2>&1 && whole=yes
        case $rc,$left,$whole in
        0,t.kvt,yes | $code,t.kvt,yes | $code,,no) ;;
        *) bad=1; echo "# $signal after $delay s: exit $rc, left: $left" ;;
        esac
        rm -f "$dir/k/"*
    done
done
report $bad "a signal leaves the whole trace or nothing, and 128 + its number"

echo "1..$n"
exit $failed
