#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# need.sh CC GROUP..: looks for what the groups (build, test, report) need, by trying it, and
# installs the Debian packages of what is missing, naming them first. Does nothing when all is there.
set -u
cc=$1
shift

has_program() { command -v "$1" >/dev/null 2>&1; }

# Compiles and links, so that a header without its library counts as missing.
has_library() { # header, link flags
    probe=$(mktemp -d) || exit 1
    printf '#include <stddef.h>\n#include <stdio.h>\n#include <stdarg.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <%s>\nint main(void) { return 0; }\n' "$1" > "$probe/p.c"
    # shellcheck disable=SC2086
    $cc ${CFLAGS:-} -o "$probe/p" "$probe/p.c" ${LDFLAGS:-} $2 >/dev/null 2>&1
    found=$?
    rm -rf "$probe"
    return $found
}

# What can't be found, as package names.
missing() {
    list=""
    if ! has_program "${cc%% *}"; then
        case ${cc%% *} in
        *clang*) list="clang" ;;
        *) list="gcc" ;;
        esac
    fi
    [ -n "$list" ] || has_library stdio.h "" || list="libc6-dev"
    [ -z "$list" ] || list="$list libc6-dev"
    for group in "$@"; do
        case $group in
        build)
            has_library cjson/cJSON.h -lcjson || list="$list libcjson-dev"
            has_library gsl/gsl_multimin.h "-lgsl -lgslcblas -lm" || list="$list libgsl-dev"
            has_library zstd.h -lzstd || list="$list libzstd-dev"
            has_library zlib.h -lz || list="$list zlib1g-dev"
            has_library sqlite3.h -lsqlite3 || list="$list libsqlite3-dev"
            has_library pcre2.h "-DPCRE2_CODE_UNIT_WIDTH=8 -lpcre2-8" || list="$list libpcre2-dev"
            ;;
        test)
            has_library cmocka.h -lcmocka || list="$list libcmocka-dev"
            has_program g++ || list="$list g++"
            has_program pkg-config || list="$list pkg-config"
            has_program groff || list="$list groff-base"
            has_program zstd || list="$list zstd"
            ;;
        report)
            has_program gnuplot || list="$list gnuplot-nox"
            ;;
        esac
    done
    echo "$list" | tr -s ' ' '\n' | sed '/^$/d' | sort -u | tr '\n' ' '
}

install_packages() {
    as_root=""
    if [ "$(id -u)" != 0 ]; then
        if ! has_program sudo; then
            echo "not root and no sudo here; as root: apt-get install $*" >&2
            return 1
        fi
        as_root="sudo"
    fi
    echo "installing them with apt-get"
    # "|| .. update": a fresh system has no package lists yet, an old one has stale ones
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    log=$(mktemp) || return 1
    # shellcheck disable=SC2086
    $as_root apt-get install -y --no-install-recommends "$@" >"$log" 2>&1 || {
        $as_root apt-get update >"$log" 2>&1 &&
            $as_root apt-get install -y --no-install-recommends "$@" >"$log" 2>&1
    }
    rc=$?
    [ $rc = 0 ] || tail -20 "$log" >&2
    rm -f "$log"
    return $rc
}

packages=$(missing "$@")
[ -n "$packages" ] || exit 0
echo "missing here, Debian packages: $packages"
if ! has_program apt-get; then
    echo "no apt-get on this system: install what these packages hold and try again" >&2
    exit 1
fi
# shellcheck disable=SC2086
install_packages $packages || exit 1
packages=$(missing "$@")
if [ -n "$packages" ]; then
    echo "still missing after the installation: $packages" >&2
    exit 1
fi
