#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the readers with libFuzzer under address and undefined-behaviour sanitizers:
#   tools/fuzz.sh SECONDS [TARGET...]     a target is a format's name, or mooncake-row, trace,
#                                         tokenizer, servegen, text; without any: all of them
# JOBS=n runs n targets side by side. Findings are left in build/fuzz/TARGET/.
set -eu
seconds=${1:-300}
[ $# -gt 0 ] && shift
out=build/fuzz
mkdir -p $out
CLANG=${CLANG:-clang}
flags="-std=c11 -D_GNU_SOURCE -g -O1 -I. -Iinclude -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
libs="-lcjson -lpcre2-8 -lzstd -lz -lm -lpthread"

# Objects are built once; the targets are linked from them.
build() {
    for c in base/*.c traces/*.c traces/*/*.c tests/fuzz/fuzz_*.c; do
        o=$out/$(echo "$c" | tr / _).o
        if [ ! -e "$o" ] || [ -n "$(find base traces tests/fuzz include -newer "$o" -name '*.[ch]' -print -quit)" ]; then
            echo "$c $o"
        fi
    done | xargs -r -P "${JOBS:-2}" -n 2 sh -c "$CLANG $flags -c -o \"\$1\" \"\$0\""
    for f in tests/fuzz/fuzz_*.c; do
        name=$(basename "$f" .c)
        $CLANG -fsanitize=fuzzer,address,undefined -o $out/$name $out/base_*.o $out/traces_*.o \
            $out/tests_fuzz_$name.c.o $libs
    done
}

formats() {
    sed -n 's/^ *F([a-z0-9_]*, "\([a-z0-9-]*\)").*/\1/p' traces/import/formats.c
}

one() {
    target=$1
    case $target in
    mooncake-row) program=fuzz_mooncake corpus=mooncake ;;
    trace | tokenizer | servegen | text) program=fuzz_$target corpus=$target ;;
    *) program=fuzz_import corpus=$target ;;
    esac
    mkdir -p $out/$target/corpus
    seeds=
    [ -d tests/fuzz/corpus/$corpus ] && seeds=tests/fuzz/corpus/$corpus
    if KVC_FUZZ_FORMAT=$target $out/$program -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
        -max_len=16384 -print_final_stats=1 -artifact_prefix=$out/$target/ $out/$target/corpus $seeds \
        ${EXTRA_SEEDS:-} >$out/$target/log 2>&1; then
        echo "$target: no finding in $seconds s, $(sed -n 's/.*number_of_executed_units: //p' $out/$target/log) runs"
    else
        echo "$target: FINDING, see $out/$target/log"
        return 1
    fi
}

if [ "${KVC_FUZZ_ONE:-}" ]; then
    one "$KVC_FUZZ_ONE"
    exit
fi
build
[ $# -gt 0 ] || set -- $(formats) mooncake-row trace tokenizer servegen text
for t in "$@"; do
    echo "$t"
done | xargs -P "${JOBS:-2}" -I{} env KVC_FUZZ_ONE={} sh "$0" "$seconds"
