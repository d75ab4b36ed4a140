#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build_tables.sh KVCAST KERNELS_DIR OUT_DIR [SYSTEM_BACKEND..]: fits models/profiles/tables_*.json
# from KERNELS_DIR/aic, llmservingsim and infersim, one profile per GPU and engine backend, NCCL apart.
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

# LLMServingSim profiled RTX PRO 6000 layer by layer, InferSim H20 kernel by kernel.
others() { # name, rows' script, source's folder, origin
    case " ${wanted:-$1} " in *" $1 "*) ;; *) return 0 ;; esac
    rows=$(mktemp -d)
    python3 "$(dirname "$0")/$2" "$aic/../$3" "$rows"
    "$kvcast" calibrate --kernels "$rows"/*.csv --origin "$4" -o "$out/tables_$1.json" --quiet
    rm -r "$rows"
}
wanted=$*
others rtx_pro_6000_vllm llmservingsim_rows.py llmservingsim "LLMServingSim @5daddb2"
others rtx_pro_6000_nccl llmservingsim_nccl_rows.py llmservingsim "LLMServingSim @e08dc388"
others h20_vllm infersim_rows.py infersim "InferSim @f2293da"
[ ! -f "$out/tables_h20_vllm.json" ] || grep -q '"assumed"' "$out/tables_h20_vllm.json" ||
    python3 "$(dirname "$0")/infersim_rows.py" "$out/tables_h20_vllm.json"
