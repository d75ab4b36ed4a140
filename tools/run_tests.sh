#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_tests.sh BUILD [NAME]: runs every cmocka program and every tests/cli_*.sh, shows what fails or
# is skipped, and ends with "N passed, N failed, N skipped".
build=$1
filter=${2:-}
passed=0 failed=0 skipped=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
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

run() { # name, command..
    name=$1
    shift
    case $name in
    *"$filter"*) ;;
    *) return ;;
    esac
    timeout 600 "$@" >"$out" 2>&1
    status=$?
    [ $status != 124 ] || echo "took longer than 600 s" >>"$out"
    count "$name" $status
}

for source in tests/test_*.c; do
    [ -e "$source" ] || continue
    name=$(basename "$source" .c)
    run "$name" "$build/tests/$name"
done
for script in tests/cli_*.sh; do
    [ -e "$script" ] || continue
    run "$(basename "$script" .sh)" sh "$script"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
