#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# layers.sh [ROOT]: fails on an #include that points the wrong way:
# cli -> {reports, studies} -> sim -> {policies, models, traces} -> base, and cli -> bench -> base.
cd "${1:-.}" || exit 1

# Folders that a folder may include besides itself and the public headers.
allowed() {
    case $1 in
    base) echo "" ;;
    traces | policies | models) echo "base" ;;
    sim) echo "base traces policies models" ;;
    reports | studies) echo "base traces policies models sim" ;;
    bench) echo "base" ;;
    cli) echo "base traces policies models sim reports studies bench" ;;
    esac
}

bad=0
complain() { echo "$1" >&2; bad=$((bad + 1)); }

for folder in base traces policies models bench sim reports studies cli; do
    [ -d $folder ] || continue
    may=" $folder $(allowed $folder) "
    includes=$(find $folder -name '*.[ch]' -exec grep -Hn '^ *# *include *"' {} + | sort)
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        target=$(printf '%s\n' "$line" | sed 's/.*"\([^"]*\)".*/\1/')
        case "$may" in
        *" ${target%%/*} "*) ;;
        *) complain "layers: $line: $folder must not include ${target%%/*}" ;;
        esac
    done <<LINES
$includes
LINES
done

# Third parties stay behind one wall each.
wall() { # pattern, where it is allowed: patterns apart by blanks
    set -f
    for folder in base traces policies models bench sim reports studies cli; do
        [ -d $folder ] || continue
        for hit in $(find $folder -name '*.[ch]' -exec grep -l "^ *# *include *<$1" {} +); do
            fine=0
            for place in $2; do
                case $hit in $place) fine=1 ;; esac
            done
            [ $fine = 1 ] || complain "layers: $hit: <$1..> is only for $2"
        done
    done
}
wall 'cjson/' 'base/json.c'
wall 'zstd' 'traces/* bench/*'
wall 'zlib' 'traces/*'
wall 'pcre2' 'traces/tokenizer*'
wall 'gsl/' 'models/*'
wall 'sqlite3' 'reports/*'

[ $bad = 0 ] || exit 1
echo "layers: every include points the right way"
