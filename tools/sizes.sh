#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sizes.sh [ROOT]: fails on a line beyond 100 columns, a function beyond 60 lines or a file beyond
# 600, but for public headers, of which there is one a reader.
cd "${1:-.}" || exit 1

find base traces policies models bench sim reports studies cli include tests -name '*.[ch]' 2>/dev/null |
    sort | LC_ALL=C xargs awk '
function complain(at, what) { print "sizes: " file ":" at ": " what >"/dev/stderr"; bad = 1 }
function end_file() {
    if (lines > 600 && file !~ /^include\//)
        complain(lines, "a file of more than 600 lines")
}
FNR == 1 { end_file(); file = FILENAME; begin = 0 }
{ lines = FNR }
length($0) > 100 { complain(FNR, "a line of more than 100 columns") }
/^{$/ { begin = FNR }
/^}$/ && begin {
    if (FNR - begin >= 60)
        complain(begin, "a function of more than 60 lines")
    begin = 0
}
END {
    end_file()
    if (NR == 0)
        complain(0, "there is nothing to look at")
    exit bad
}' || exit 1
echo "sizes: every line, function and file is in bounds"
