#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Formats of the weights that make steps longer than bf16 would: a warning says so, and by how much.
. "$(dirname "$0")/tap.sh"
case $kvcast in /*) ;; *) kvcast=$PWD/$kvcast ;; esac
cd "$dir" || exit 1
awk 'BEGIN { for (i = 0; i < 20; i++)
    printf "{\"timestamp\": %d, \"input_length\": 4096, \"output_length\": 64, \"hash_ids\": [%d]}\n", i * 5000, i }' >log.jsonl
replay() {
    out=$1
    shift
    "$kvcast" replay log.jsonl --json --quiet --block-tokens 4096 "$@" >"$out" 2>err || sed 's/^/# /' err
}
mean() { sed -n "/\"$2\"/,/}/s/.*\"mean\": *\([0-9.]*\).*/\1/p" "$1" | head -1; }

replay int4.json --model Qwen3-30B-A3B --gpu b200-sxm --weights_dtype int4
replay bf16.json --model Qwen3-30B-A3B --gpu b200-sxm --weights_dtype bf16
grep -q '"slower_weights"' int4.json && ! grep -q '"slower_weights"' bf16.json
report $? "int4 experts on B200 are slower than bf16, which is a warning"
said=$(sed -n 's/.*prompt tokens \([0-9.]*\) times.*/\1/p' int4.json)
awk -v a="$(mean int4.json tpot_ms)" -v b="$(mean bf16.json tpot_ms)" -v s="$(sed -n 's/.*decodes 1 \([0-9.]*\) times.*/\1/p' int4.json)" \
    'BEGIN { exit !(s > 1 && a / b / s > 0.9 && a / b / s < 1.1) }'
report $? "a token takes as much longer in a replay as the warning says"
awk -v a="$(mean int4.json ttft_ms)" -v b="$(mean bf16.json ttft_ms)" -v s="$said" \
    'BEGIN { exit !(s > 1.05 && (a - b) / b > 0.2 && a / b <= s) }'
report $? "and a first token no more than a prompt's step does ($said times)"
grep -q 'make steps longer than bf16 would' int4.json
report $? "both kinds of steps are, it says"
grep -q 'weights_dtype nvfp4: 0' int4.json
report $? "it names a format that is faster"
replay marlin.json --model Qwen3.5-122B-A10B --gpu h100-sxm --tp 2 --weights_dtype int4
grep -q 'make steps with prompts longer than bf16 would: one that decodes 1 [01]\.0' marlin.json
report $? "of others only those with prompts are, and it says which"
replay fp8.json --model Llama-3.1-70B --gpu h100-sxm --tp 4 --weights_dtype fp8
! grep -q 'slower_weights' fp8.json && ! grep -q experts_backend fp8.json
report $? "no warning where a format is faster"
replay mixtral.json --model Mixtral-8x22B --gpu h200-sxm --tp 8 --weights_dtype fp8
! grep -q '"slower_weights"' mixtral.json && grep -q '"kernels_between"' mixtral.json
report $? "vLLM's fp8 experts on Hopper are not: tuned kernels of another engine stand in for untuned rows"
replay glm.json --model GLM-4.5 --gpu b200-sxm --tp 4 --weights_dtype nvfp4 --engine.backend trtllm
grep -q '"experts_backend"' glm.json && grep -q 'moe_config.backend: TRTLLM' glm.json
report $? "TensorRT-LLM's default kernel of nvfp4 experts takes longer than the one assumed, which is told"
echo "1..$n"
exit $failed
