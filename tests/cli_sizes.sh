#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lines, functions and files stay in bounds, and the check notices when one doesn't.
. "$(dirname "$0")/tap.sh"

sh tools/sizes.sh >"$dir/out" 2>&1
rc=$?
[ $rc = 0 ] || sed 's/^/# /' "$dir/out"
report $rc "every line, function and file is in bounds"

mkdir -p "$dir/tree/base"
file=$dir/tree/base/x.c
many() { yes "$2" | head -"$1"; }
body() { printf 'void f(void)\n{\n' && many "$1" '    g();' && echo '}'; } # of so many statements
noticed() { # name, where and what
    sh tools/sizes.sh "$dir/tree" 2>&1 | grep -q "base/x.c:$2"
    report $? "$1"
}
printf '%0101d\n' 1 >"$file"
noticed "a line of 101 columns" "1: a line"
body 59 >"$file"
noticed "a function of 61 lines" "2: a function"
many 601 'int i;' >"$file"
noticed "a file of 601 lines" "601: a file"
{ body 58 && printf '%0100d\n' 1 && many 538 'int i;'; } >"$file"
sh tools/sizes.sh "$dir/tree" >"$dir/out" 2>&1
report $? "what just fits is let through"
echo "1..$n"
exit $failed
