#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/ceilings.md: the figures of its worked example, by the commands that stand beside them.
. "$(dirname "$0")/tap.sh"
page=$(dirname "$0")/../docs/ceilings.md

awk '/^```/ { inside = !inside; next } inside && /^{/' "$page" >"$dir/t.jsonl"
[ "$(wc -l <"$dir/t.jsonl")" = 5 ]; report $? "the page has a log"

# Rows | `command` | .. `figure` |; a row without a command is of the one above.
sed -n 's/^| `ceiling T\([^`]*\)` |[^`]*`\([^`]*\)`.*/\1|\2/p; s/^| |[^`]*`\([^`]*\)`.*/+|\1/p' "$page" >"$dir/rows"
[ "$(wc -l <"$dir/rows")" -ge 5 ]; report $? "and a table of commands"
args=
while IFS='|' read -r given figure; do
    [ "$given" = + ] || args=$given
    # shellcheck disable=SC2086
    "$kvcast" ceiling "$dir/t.jsonl" --json --quiet $args 2>"$dir/err" | tr -d ' \n' >"$dir/flat"
    grep -qF -e "$(printf %s "$figure" | tr -d ' ')" "$dir/flat"
    report $? "ceiling$args: $figure"
done <"$dir/rows"

echo "1..$n"
exit $failed
