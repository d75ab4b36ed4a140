#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_tests.sh BUILD [NAME]: runs every cmocka program and every tests/cli_*.sh, shows what fails or
# is skipped, and ends with "N passed, N failed, N skipped".
build=$1
filter=${2:-}
passed=0 failed=0 skipped=0
jobs=${JOBS:-$(nproc 2>/dev/null || echo 1)} # programs side by side
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export CMOCKA_MESSAGE_OUTPUT=TAP
KVCAST=$PWD/$build/kvcast
export KVCAST
# A sanitizer's finding has its own exit code, so that no test takes it for an expected one.
export ASAN_OPTIONS="${ASAN_OPTIONS:-exitcode=99}" UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

# cmocka calls a skipped test "not ok" and says why in the line before; scripts say it at the end.
skipped_tests() {
    awk '/^not ok.*# SKIP/ { name = $0; sub(/.*# SKIP */, "", name); print "    skipped " name " (" why ")" }
         /^ok.*# SKIP/ { split($0, part, / *# SKIP */); sub(/^ok [0-9]* *-* */, "", part[1])
                         print "    skipped " part[1] " (" part[2] ")" }
         { why = $0; sub(/^\[  SKIPPED \] |^[Ss][Kk][Ii][Pp][Pp][Ee][Dd]: /, "", why); sub(/; skipped$/, "", why) }' "$out"
}

# Adds up the TAP lines in $out; a program that fails without a "not ok" counts as one failure.
count() { # name, exit status
    skip=$(grep -c '^\(not \)\{0,1\}ok.*# SKIP' "$out")
    ok=$(grep '^ok' "$out" | grep -vc '# SKIP')
    bad=$(grep '^not ok' "$out" | grep -vc '# SKIP')
    [ "$2" = 0 ] || [ "$bad" -gt 0 ] || bad=1
    [ "$2" != 0 ] || [ $((ok + bad + skip)) -gt 0 ] || bad=1
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-28s %4d passed' "$1" "$ok"
    [ "$bad" = 0 ] || printf ', %d FAILED (exit %d)' "$bad" "$2"
    [ "$skip" = 0 ] || printf ', %d skipped' "$skip"
    printf '\n'
    if [ "$bad" != 0 ]; then
        sed 's/^/    /' "$out" | grep -v '^    ok ' | tail -60
    elif [ "$skip" != 0 ]; then
        skipped_tests | head -20
    fi
}

# Each program's output and exit status go into files of its name.
run_one='timeout 600 $2 "$3" >"$1.out" 2>&1
status=$?
[ $status != 124 ] || echo "took longer than 600 s" >>"$1.out"
echo $status >"$1.status"'

tests() { # name, what runs it, program; scripts first, as the longest are among them
    for script in tests/cli_*.sh; do
        [ ! -e "$script" ] || echo "$(basename "$script" .sh) sh $script"
    done
    for source in tests/test_*.c; do
        name=$(basename "$source" .c)
        [ ! -e "$source" ] || echo "$name env $build/tests/$name"
    done
}

tests | awk -v want="$filter" 'want == "" || index($1, want)' >"$folder/list"
while read -r name with program; do
    printf '%s\0%s\0%s\0' "$folder/$name" "$with" "$program"
done <"$folder/list" | xargs -0 -r -P "$jobs" -n 3 sh -c "$run_one" run
while read -r name with program; do
    out=$folder/$name.out
    count "$name" "$(cat "$folder/$name.status")"
done <"$folder/list"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
