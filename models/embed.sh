#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh FILE...: writes C that carries the files as byte arrays (models/blobs.h) to stdout.
set -e
echo '/* Written by models/embed.sh; do not edit. */'
echo '#include "models/blobs.h"'
i=0
for f in "$@"; do
    echo "static const unsigned char blob_$i[] = {"
    od -An -v -tu1 "$f" | sed 's/  *\([0-9][0-9]*\)/\1,/g'
    echo '0};'
    i=$((i + 1))
done
echo 'const struct kvc_blob kvc_blobs[] = {'
i=0
for f in "$@"; do
    echo "    {\"$(basename "$f")\", blob_$i, sizeof blob_$i - 1},"
    i=$((i + 1))
done
echo '    {0, 0, 0},'
echo '};'
