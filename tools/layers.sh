#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# layers.sh [ROOT]: fails on an #include that points the wrong way:
# cli -> {reports, studies} -> sim -> {policies, models, traces} -> base, and cli -> bench -> base.
cd "${1:-.}" || exit 1

find base traces policies models bench sim reports studies cli -name '*.[ch]' \
    -exec grep -Hn '^ *# *include *["<]' {} + 2>/dev/null | sort | awk '
BEGIN {
    # Folders that a folder may include besides itself and the public headers.
    may["traces"] = may["policies"] = may["models"] = may["bench"] = "base"
    may["sim"] = "base traces policies models"
    may["reports"] = may["studies"] = may["sim"] " sim"
    may["cli"] = may["reports"] " reports studies bench"
    # Third parties stay behind one wall each.
    wall["cjson/"] = "^base/json[.]c$"
    wall["zstd"] = "^(traces|bench)/"
    wall["zlib"] = "^traces/"
    wall["pcre2"] = "^traces/tokenizer"
    wall["gsl/"] = "^models/"
    wall["sqlite3"] = "^reports/"
}
function complain(why) { print "layers: " why >"/dev/stderr"; bad = 1 }
{
    file = $0
    sub(/:.*/, "", file)
    folder = file
    sub(/\/.*/, "", folder)
    target = $0
    sub(/^[^"<]*["<]/, "", target)
}
/^[^"<]*"/ {
    sub(/[\/"].*/, "", target)
    if (target != folder && index(" " may[folder] " ", " " target " ") == 0)
        complain($0 ": " folder " must not include " target)
    next
}
{
    for (party in wall)
        if (index(target, party) == 1 && file !~ wall[party])
            complain(file ": <" party "..> is only for " wall[party])
}
END {
    if (NR == 0)
        complain("there is nothing to look at")
    exit bad
}' || exit 1
echo "layers: every include points the right way"
