#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/formats: a page for each format that is read, short, with what it can't tell, in the table of
# all; and each sample on it is read as what it is, with the figures that stand below it.
. "$(dirname "$0")/tap.sh"
pages=$(dirname "$0")/../docs/formats

names() { "$kvcast" import --format "?" "$0" -o "$dir/x" 2>&1 | sed -n "s/.*there are: auto, //p" | tr -d ","; }

figures() { # log, options..
    "$kvcast" inspect --json --strict "$@" 2>"$dir/err" | awk -F'[:,]' '
        /^  "trace"/ { on = 1 }
        on && /"requests"/ { r = $2 } on && /"input_tokens"/ { i = $2 }
        on && /"output_tokens"/ { o = $2 } /^  }/ { on = 0 }
        END { printf "%d request%s, %d tokens in, %d out\n", r, r == 1 ? "" : "s", i, o }'
}

# One sample: read by itself and by its own name, with the figures the page states.
sample() { # page, log, options..
    page=$1 log=$2
    shift 2
    read_as=$(figures "$log" "$@")
    grep -qF "$read_as" "$pages/$page.md"
    fine=$?
    [ $fine = 0 ] || { echo "# $read_as"; sed 's/^/# /' "$dir/err"; }
    report $fine "$page: ${log##*/} is read as the page says"
    by_name=$(figures "$log" --format "$page" "$@")
    [ "$by_name" = "$read_as" ]; report $? "$page: ${log##*/} is known for what it is"
}

binary() { # hex digits of a page's record
    for byte in $(sed -n 's/^A record `\([0-9a-f ]*\)`.*/\1/p' "$1" | tr -d ' ' | sed 's/../& /g'); do
        # shellcheck disable=SC2059
        printf "\\$(printf %03o "0x$byte")"
    done
}

for name in $(names) servegen; do
    page=$pages/$name.md
    [ -f "$page" ]; report $? "$name has a page"
    [ -f "$page" ] || continue
    [ "$(wc -l <"$page")" -le 40 ]; report $? "$name: no more than 40 lines"
    head -1 "$page" | grep -q "^# $name: "; report $? "$name: begins with its name"
    grep -qi "cannot tell\|can't tell" "$page"; report $? "$name: says what it cannot tell"
    grep -qF "[$name]($name.md)" "$pages/README.md"; report $? "$name: in the table of all formats"
    samples "$page"
    case $name in
    servegen)
        mkdir -p "$dir/models"
        mv "$dir/s1" "$dir/models/chunk-0-trace.csv" && mv "$dir/s2" "$dir/models/chunk-0-dataset.json"
        "$kvcast" gen servegen "$dir/models" -o "$dir/drawn" --duration 10m --quiet
        report $? "$name: requests are drawn from the sample"
        [ "$(wc -l <"$dir/drawn")" = 8190 ]; report $? "$name: as many as its rate says"
        ;;
    oraclegeneral)
        binary "$page" >"$dir/s1"
        [ "$(wc -c <"$dir/s1")" = 24 ]; report $? "$name: a whole record"
        "$kvcast" inspect --format oraclegeneral --strict --json "$dir/s1" 2>"$dir/err" | grep -q '"requests": 1,'
        report $? "$name: the record is read"
        ;;
    vidur) sample "$name" "$dir/s1" && sample "$name" "$dir/s2" --arrivals poisson:1 ;;
    libcachesim)
        "$kvcast" inspect --strict --json "$dir/s1" 2>"$dir/err" | grep -q '"requests": 2,'
        report $? "$name: the sample is read"
        ;;
    *)
        [ -f "$dir/s1" ]; report $? "$name: has a sample"
        for log in "$dir"/s[0-9]*; do
            [ ! -f "$log" ] || sample "$name" "$log"
        done
        ;;
    esac
done
for page in "$pages"/*.md; do
    name=$(basename "$page" .md)
    case " README servegen $(names | tr '\n' ' ')" in *" $name "*) ;; *)
        report 1 "$name.md is the page of a format" ;;
    esac
done

echo "1..$n"
exit $failed
