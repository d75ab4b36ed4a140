# SPDX-License-Identifier: Apache-2.0
# Read by each tests/cli_*.sh: the program, a folder that goes away, and lines of TAP. A script ends
# with: echo "1..$n"; exit $failed
kvcast=${KVCAST:-build/kvcast}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0 failed=0

report() { # status, name
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}

# Exit code, a pattern that stderr must hold, and nothing on stdout.
refused() { # name, code, pattern, arguments..
    name=$1 code=$2 pattern=$3
    shift 3
    "$kvcast" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    rc=$?
    [ $rc = "$code" ] && grep -q -e "$pattern" "$dir/err" && [ ! -s "$dir/out" ]
    fine=$?
    [ $fine = 0 ] || { echo "# exit $rc; stderr:" && sed 's/^/# /' "$dir/err"; }
    report $fine "$name"
}

# The fenced blocks of a page as files $dir/s1, s2, ..; a row may go on in lines that begin with a
# blank, as docs/formats/README.md says.
samples() {
    rm -f "$dir"/s[0-9]*
    awk -v to="$dir/s" '
        /^```/ { if (inside) { print row >(to k); close(to k) } else { k++; row = "" }
                 inside = !inside; first = 1; next }
        !inside { next }
        /^ / { sub(/^ */, " "); row = row $0; next }
        { row = first ? $0 : row "\n" $0; first = 0 }' "$1"
}
