#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build_tables.sh KVCAST KERNELS_DIR OUT_DIR [SYSTEM_BACKEND..]: fits models/profiles/tables_*.json
# from KERNELS_DIR/aic and llmservingsim, one profile per GPU and engine backend, NCCL apart.
set -e
kvcast=$1 aic=$2/aic out=$3
shift 3
# Tables that a step or its kernels' check asks for.
families="gemm generation_attention context_attention generation_mla context_mla moe custom_allreduce nccl gdn kda mamba2"
origin="aiconfigurator @095f58a"

gpu_of() { case $1 in a100_sxm) echo a100_80 ;; *) echo "$1" ;; esac; }

for system in h100_sxm h200_sxm b200_sxm gb200 a100_sxm l40s; do
    for backend in vllm sglang trtllm nccl; do
        name=$(gpu_of $system)_$backend
        [ $# = 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
        files=""
        for family in $families; do
            for file in "$aic/${system}__${family}__${backend}__"*; do
                [ -f "$file" ] && files="$files $file"
            done
        done
        [ -n "$files" ] || continue
        # shellcheck disable=SC2086
        "$kvcast" calibrate --kernels $files --origin "$origin" -o "$out/tables_$name.json" --quiet
        echo "tables_$name.json $(wc -c < "$out/tables_$name.json")"
    done
done

# LLMServingSim profiled RTX PRO 6000 layer by layer.
case " ${*:-rtx_pro_6000_vllm} " in *" rtx_pro_6000_vllm "*)
    rows=$(mktemp -d)
    trap 'rm -r "$rows"' EXIT
    python3 "$(dirname "$0")/llmservingsim_rows.py" "$aic/../llmservingsim" "$rows"
    "$kvcast" calibrate --kernels "$rows"/*.csv --origin "LLMServingSim @5daddb2" \
        -o "$out/tables_rtx_pro_6000_vllm.json" --quiet
    echo "tables_rtx_pro_6000_vllm.json $(wc -c < "$out/tables_rtx_pro_6000_vllm.json")" ;;
esac
