#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make install` leaves can be used: the program runs from there, and a stranger's program
# compiles against the headers and runs with the shared and with the static library.
. "$(dirname "$0")/tap.sh"
cc=${CC:-gcc}
skip() { n=$((n + 1)); echo "ok $n # SKIP $1"; }

case ${VARIANT:-release} in
asan | tsan)
    skip "a sanitizer build is not for installing"
    echo "1..$n"
    exit 0
    ;;
esac

make --no-print-directory -s install PREFIX="$dir/usr" VARIANT="${VARIANT:-release}" >"$dir/log" 2>&1
rc=$?
[ $rc = 0 ] || sed 's/^/# /' "$dir/log"
report $rc "make install"
[ "$("$dir/usr/bin/kvcast" --version)" = "$("${KVCAST:-build/kvcast}" --version)" ]
report $? "the installed program runs"
for f in lib/libkvcast.a lib/libkvcast.so.0 lib/libkvcast.so lib/pkgconfig/kvcast.pc include/kvcast/kvcast.h \
    share/man/man1/kvcast.1 share/doc/kvcast/docs/examples/offload.json; do
    [ -e "$dir/usr/$f" ]
    report $? "$f is installed"
done

cat >"$dir/user.c" <<'C'
#include <kvcast/kvcast.h>
#include <stdio.h>
int main(void)
{
    struct kvc_scenario *s = NULL;
    char *text = NULL;
    if (kvc_scenario_create(&s, "kga-rag", NULL) != KVC_OK || kvc_scenario_json(s, &text, NULL) != KVC_OK)
        return 1;
    printf("%s\n%s", kvc_version(), text);
    kvc_free(text);
    kvc_scenario_destroy(s);
    return 0;
}
C
for h in "$dir"/usr/include/kvcast/*.h; do
    echo "#include <kvcast/$(basename "$h")>" >"$dir/alone.c"
    $cc -std=c11 -pedantic -Wall -Wextra -Werror -I"$dir/usr/include" -fsyntax-only "$dir/alone.c" 2>"$dir/log"
    report $? "$(basename "$h") compiles alone, pedantically"
    if command -v g++ >/dev/null 2>&1; then
        g++ -pedantic -Wall -Wextra -Werror -I"$dir/usr/include" -fsyntax-only -x c++ "$dir/alone.c" 2>"$dir/log"
        report $? "$(basename "$h") compiles as C++"
    else
        skip "no g++ to try $(basename "$h") as C++ with"
    fi
done
$cc -I"$dir/usr/include" "$dir/user.c" -L"$dir/usr/lib" -lkvcast -o "$dir/shared" 2>"$dir/log" &&
    LD_LIBRARY_PATH="$dir/usr/lib" "$dir/shared" >"$dir/out" && grep -q kga-rag "$dir/out"
rc=$?
[ $rc = 0 ] || sed 's/^/# /' "$dir/log"
report $rc "a program runs with the shared library"
libs=$(sed -n 's/^Libs.private: //p' "$dir/usr/lib/pkgconfig/kvcast.pc")
# shellcheck disable=SC2086
$cc -I"$dir/usr/include" "$dir/user.c" "$dir/usr/lib/libkvcast.a" $libs -o "$dir/static" 2>"$dir/log" &&
    "$dir/static" | cmp -s - "$dir/out"
report $? "and says the same with the static one"
if command -v pkg-config >/dev/null 2>&1; then
    PKG_CONFIG_PATH="$dir/usr/lib/pkgconfig" pkg-config --exists kvcast
    report $? "pkg-config finds it"
else
    skip "no pkg-config"
fi
if command -v nm >/dev/null 2>&1; then
    nm -D --defined-only "$dir/usr/lib/libkvcast.so.0" | awk '$2 ~ /[TDRBWV]/ { print $3 }' | grep -v '^kvc_' >"$dir/log"
    [ ! -s "$dir/log" ]
    report $? "the shared library exports nothing but kvc_ names"
    nm -D --defined-only "$dir/usr/lib/libkvcast.so.0" | awk '{ print $3 }' | sort >"$dir/exported"
    tr '\n' ' ' <include/kvcast/kvcast.h | grep -o 'KVC_API [^;]*;' | grep -o 'kvc_[a-z0-9_]*(' | tr -d '(' |
        grep -v '_fn$' | sort -u | comm -23 - "$dir/exported" >"$dir/log"
    [ ! -s "$dir/log" ]
    rc=$?
    sed 's/^/# not exported: /' "$dir/log"
    report $rc "it exports every function of the public header"
fi
echo "1..$n"
exit $failed
