#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How KV is stored: its formats, evicted tokens, windows without a pool of their own.
. "$(dirname "$0")/tap.sh"
case $kvcast in /*) ;; *) kvcast=$PWD/$kvcast ;; esac
cd "$dir" || exit 1
number() { sed -n "s/.*\"$2\": *\([0-9.e+-]*\).*/\1/p" "$1" | head -1; }
replay() {
    out=$1
    shift
    "$kvcast" replay log.jsonl --gpu h100-sxm --tp 4 --engine.kv_cache_memory 4TB --json --quiet "$@" >"$out" 2>err || sed 's/^/# /' err
}

"$kvcast" gen rag-chat --duration 2m --rate 1 --seed 5 -o log.jsonl --quiet
replay full.json --model Llama-3.3-70B
replay four.json --model Llama-3.3-70B --kv-dtype turboquant_4bit_nc
peak() { number "$1" peak_bytes; }
a=$(peak full.json) b=$(peak four.json)
awk -v a="$a" -v b="$b" 'BEGIN { exit !(a / b > 3.2 && a / b < 3.6) }'
report $? "4 bits hold 3.4 times the tokens of bf16, as published ($a, $b bytes)"
grep -q kernels_between four.json && ! grep -q kernels_between full.json
report $? "that no kernel table covers them is a warning"
"$kvcast" replay log.jsonl --gpu h100-sxm --tp 4 --model Llama-3.3-70B --kv-dtype turboquant_4bit_nc \
    --quiet --report four.html >/dev/null
grep -q 'accuracy: 0.96' four.html
report $? "the page says what quality was published"
"$kvcast" replay log.jsonl --gpu h100-sxm --tp 4 --model Llama-3.3-70B --kv-dtype int8 \
    --quiet --report int8.html >/dev/null
grep -q 'no published figure' int8.html
report $? "or that no figure was"
tpot() { sed -n '/"tpot_ms"/,/}/s/.*"mean": *\([0-9.]*\).*/\1/p' "$1" | head -1; }
awk -v a="$(tpot full.json)" -v b="$(tpot four.json)" 'BEGIN { exit !(b > a) }'
report $? "reading 4 bits takes longer than bf16 ($(tpot full.json), $(tpot four.json) ms)"

replay h2o.json --model Llama-3.3-70B --engine.kv_resident 0.2
awk -v a="$a" -v b="$(peak h2o.json)" 'BEGIN { exit !(a / b > 4.5 && a / b < 5.5) }'
report $? "a fifth of the tokens kept is a fifth of the bytes ($(peak h2o.json))"
replay long.json --model Llama-3.3-70B --engine.output_inflation 1.5
awk -v a="$(number full.json output_tokens)" -v b="$(number long.json output_tokens)" \
    'BEGIN { exit !(b / a > 1.499 && b / a < 1.501) }'
report $? "inflated outputs are that much longer"

replay capped.json --model gpt-oss-120b
replay unified.json --model gpt-oss-120b --engine.unified_kv true
awk -v a="$(peak capped.json)" -v b="$(peak unified.json)" 'BEGIN { exit !(b / a > 1.9 && b / a < 2.1) }'
report $? "without a hybrid manager the windows of half of gpt-oss' layers keep the whole context"
grep -q '"window_kv"' capped.json && ! grep -q '"window_kv"' unified.json
report $? "and only the first warns of what windows take"

awk 'BEGIN { printf "{\"timestamp\": 0, \"input_length\": 300000, \"output_length\": 10, \"hash_ids\": [0"
    for (i = 1; i < 586; i++) printf ", %d", i; print "]}" }' >long.jsonl
"$kvcast" replay long.jsonl --model Llama-3.3-70B --gpu h100-sxm --tp 4 --engine.kv_cache_memory 4TB --json --quiet >wide.json
grep -q kernels_outside wide.json && ! grep -q kernels_outside full.json && grep -q 'beyond the measured tables' wide.json
report $? "a context more than twice beyond the tables is a warning, and its band wider"
grep -q '300010 tokens of context of a request, measured up to [0-9]*\. Such times are extrapolated, and the bands wider' wide.json
report $? "which says of what the run has more, how much was measured and what that does to the bands"
# Llama-2-7B has 4,096 positions; what GLM-4.6 has is not known
short() { # model, prompt, options: the result of one request with 10 tokens of output
    echo "{\"timestamp\": 0, \"input_length\": $2, \"output_length\": 10, \"hash_ids\": []}" >short.jsonl
    model=$1; shift 2
    "$kvcast" replay short.jsonl --model "$model" --gpu h100-sxm --no-bounds --json --quiet "$@" >short.json
}
short Llama-2-7B 4087 && grep -q '1 requests of up to 4097 tokens exceed Llama-2-7B.s 4096 .*the raised limit\."' short.json &&
    short Llama-2-7B 4086 && ! grep -q beyond_model_length short.json && short GLM-4.6 300000 --tp 8 --engine.kv_cache_memory 4TB && ! grep -q beyond_model_length short.json
report $? "a request longer than its model is a warning, one as long is none"
short Llama-2-7B 4087 --engine.max_model_len 8192 && ! grep -q beyond_model_length short.json && grep -q '"completed": 1' short.json &&
    short Llama-2-7B 4087 --engine.max_model_len 4096 && ! grep -q beyond_model_length short.json && grep -q '"unservable": 1' short.json
report $? "nor is one within the limit that is stated, or refused"
# 32 heads over 8 were measured to 65,536 tokens on H100, other shapes to 131,072
for long in 60000 110000; do
    echo "{\"timestamp\": 0, \"input_length\": $long, \"output_length\": 10, \"hash_ids\": []}" >"$long.jsonl"
    "$kvcast" replay $long.jsonl --model Llama-3.1-8B --gpu h100-sxm --kv_dtype fp8 --json --quiet >$long.json
done
width() { sed -n 's/.*"tpot_ms.mean": \[\([0-9.]*\), \([0-9.]*\)\].*/\1 \2/p' "$1" | awk '{ print $2 / $1 }'; }
grep -q kernels_outside 110000.json && ! grep -q kernels_outside 60000.json &&
    awk -v a="$(width 60000.json)" -v b="$(width 110000.json)" 'BEGIN { exit !(a > 1 && b > 1.05 * a) }'
report $? "so is one beyond what its own heads were measured for, be others measured further"
# 524,288 in all; each of them alone is within
for many in 20 60; do
    awk -v n=$many 'BEGIN { while (n--) print "{\"timestamp\": 0, \"input_length\": 16000, \"output_length\": 500, \"hash_ids\": []}" }' >"all$many.jsonl"
    "$kvcast" replay all$many.jsonl --model Llama-3.1-8B --gpu h100-sxm --kv_dtype fp8 --engine.kv_cache_memory 4TB --no-bounds --json --quiet >all$many.json
done
grep -q kernels_outside all60.json && ! grep -q kernels_outside all20.json
report $? "and contexts that are beyond all together"
# RTX PRO 6000's rows end at 2,048 tokens a step
for long in 2048 2049; do
    echo "{\"timestamp\": 0, \"input_length\": $long, \"output_length\": 3, \"hash_ids\": []}" >"$long.jsonl"
    "$kvcast" replay $long.jsonl --model Qwen3-8B --gpu rtx-pro-6000 --no-bounds --json --quiet >$long.json
done
grep -q '2049 [a-z ]*in a step, measured up to 2048' 2049.json && ! grep -q kernels_outside 2048.json
report $? "and steps with a token more than was measured, but none with as many"
grep -q prefill_past full.json && grep -q 'wider for prefill behind cached' full.json && ! grep -q prefill_past wide.json
report $? "prefill behind cached tokens, in no table of Hopper, is a warning, and the band wider"
"$kvcast" replay log.jsonl --model Llama-3.1-8B --gpu gh200-96 --json --quiet >gh200.json
grep -q kernels_assumed gh200.json && ! grep -q kernels_assumed full.json &&
    awk -v a="$(width full.json)" -v b="$(width gh200.json)" 'BEGIN { exit !(a > 1 && b > 1.3 * a) }'
report $? "another GPU's kernels are a warning, and the band wider ($(width full.json), $(width gh200.json))"
echo "1..$n"
exit $failed
