#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The checked-in profiles are what models/fit makes of the measured data: a fitted number that drifts is
# found. KVC_TEST_TABLES=all fits every table anew (a minute of CPU), else three small ones.
. "$(dirname "$0")/tap.sh"

shared=../shared
tables="a100_80_vllm h100_sxm_nccl h20_vllm"
[ "${KVC_TEST_TABLES:-}" != all ] || tables=$(cd models/profiles && ls tables_*_*.json |
    grep -v 'mi300x\|rtx_4090' | sed 's/tables_//; s/.json//')

if [ ! -d $shared/kernels ] || ! command -v python3 >/dev/null; then
    echo "ok 1 - profiles are what the measured data make # SKIP no $shared/kernels or no python3"
    echo "1..1"
    exit 0
fi

mkdir "$dir/new"
python3 models/fit/make_profiles.py $shared "$dir/new" >"$dir/out" 2>&1 || sed 's/^/# /' "$dir/out"
# shellcheck disable=SC2086
sh models/fit/build_tables.sh "$kvcast" $shared/kernels "$dir/new" $tables >"$dir/out" 2>&1 ||
    sed 's/^/# /' "$dir/out"

same() { # name
    cmp "$dir/new/$1.json" "${2:-models/profiles}/$1.json" >"$dir/out" 2>&1
}
for name in hardware llms tables_mi300x_vllm tables_rtx_4090_vllm $(printf 'tables_%s ' $tables); do
    same "$name"
    rc=$?
    [ $rc = 0 ] || echo "# run 'make profiles' if the fit or the data changed"
    report $rc "$name.json is what models/fit makes"
done

mkdir "$dir/old"
awk 'drift { sub(/[0-9.]+/, $1 * 1.001); drift = 0 } /"constants"/ && !done++ { drift = 1 } { print }' \
    models/profiles/tables_h20_vllm.json >"$dir/old/tables_h20_vllm.json"
! cmp -s "$dir/old/tables_h20_vllm.json" models/profiles/tables_h20_vllm.json &&
    ! same tables_h20_vllm "$dir/old"
report $? "a fitted number that drifted is noticed"
echo "1..$n"
exit $failed
