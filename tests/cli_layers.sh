#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes point the right way, and the check notices when one doesn't.
. "$(dirname "$0")/tap.sh"

sh tools/layers.sh >"$dir/out" 2>&1
rc=$?
[ $rc = 0 ] || sed 's/^/# /' "$dir/out"
report $rc "every include points the right way"

plant() { # name, file, line, pattern
    rm -rf "$dir/tree"
    mkdir "$dir/tree"
    for folder in base traces policies models bench sim reports studies cli; do
        [ ! -d $folder ] || cp -r $folder "$dir/tree/"
    done
    echo "$3" >>"$dir/tree/$2"
    sh tools/layers.sh "$dir/tree" >"$dir/out" 2>&1
    [ $? = 1 ] && grep -q "$4" "$dir/out"
    report $? "$1"
}
plant "base must not know sim" base/json.c '#include "sim/scenario/scenario.h"' "base/json.c.*must not include sim"
plant "models must not know traces" models/models.h '#  include "traces/trace.h"' "models/models.h"
plant "sim must not know reports" sim/scenario/scenario.h '#include "reports/detail.h"' "sim/scenario/scenario.h"
plant "reports must not know the command line" reports/json.c '#include "cli/cli.h"' "reports/json.c"
plant "cJSON stays in base/json.c" sim/scenario/presets.c '#include <cjson/cJSON.h>' "sim/scenario/presets.c"
plant "PCRE2 stays in the tokenizer" traces/formats/mooncake.c '#include <pcre2.h>' "traces/formats/mooncake.c"
plant "SQLite stays in reports" sim/scenario/presets.c '#include <sqlite3.h>' "sim/scenario/presets.c"
echo "1..$n"
exit $failed
