#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh HEADER NAME FILE...: writes C that carries the files as byte arrays, the array of struct
# kvc_blob that HEADER declares as NAME, to stdout.
set -e
header=$1 name=$2
shift 2
echo '/* Written by models/embed.sh; do not edit. */'
echo "#include \"$header\""
i=0
for f in "$@"; do
    echo "static const unsigned char blob_$i[] = {"
    od -An -v -tu1 "$f" | sed 's/  *\([0-9][0-9]*\)/\1,/g'
    echo '0};'
    i=$((i + 1))
done
echo "const struct kvc_blob $name[] = {"
i=0
for f in "$@"; do
    echo "    {\"$(basename "$f")\", blob_$i, sizeof blob_$i - 1},"
    i=$((i + 1))
done
echo '    {0, 0, 0},'
echo '};'
