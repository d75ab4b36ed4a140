#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# readme.sh: puts what the two commands print today into README.md, between its markers. Run it on a
# system that has the packages already; `make readme` does.
set -e
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
make --no-print-directory quickstart >"$out/quickstart" 2>&1
make --no-print-directory check >"$out/check" 2>&1 || { tail "$out/check"; exit 1; }
grep -v "^    " "$out/check" | tail -4 >"$out/tail" && mv "$out/tail" "$out/check"
for name in quickstart check; do
    awk -v name=$name -v file="$out/$name" '
        $0 == "<!-- begin " name " -->" {
            print
            print "```"
            while ((getline line < file) > 0) print line
            print "```"
            skip = 1
        }
        $0 == "<!-- end " name " -->" { skip = 0 }
        !skip || $0 ~ "^<!-- end" { if ($0 != "<!-- begin " name " -->") print }' README.md >"$out/README.md"
    cat "$out/README.md" >README.md
done
