#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# calibrate and validate from the outside: a known law is learned, rows outside the claim counted.
. "$(dirname "$0")/tap.sh"

# Matrix products of 3 us + the slower of products at 500 TFLOP/s and bytes at 2 TB/s.
law() { # system column?
    awk -v named="$1" 'BEGIN {
        print (named ? "system,family,backend,version," : "") "gemm_dtype,m,n,k,latency"
        for (n = 256; n <= 16384; n *= 2) for (k = 256; k <= 16384; k *= 2) for (m = 1; m <= 8192; m *= 2) {
            c = 2 * m * n * k / 500e12; b = 2 * (m * k + n * k + m * n) / 2e12
            print (named ? "h200_sxm,gemm,vllm,0.1," : "") "bfloat16," m "," n "," k "," 3e-3 + 1e3 * (c > b ? c : b)
        } }'
}
law "" > "$dir/h100_sxm__gemm__vllm__0.1.csv"
law 1 > "$dir/rows.csv"

"$kvcast" calibrate --kernels "$dir/h100_sxm__gemm__vllm__0.1.csv" -o "$dir/p.json" 2> "$dir/err"
report $? "calibrate writes a profile"
grep -q '"schema": "kvcast.kernels.v2"' "$dir/p.json" && grep -q '"gpu": "h100_sxm"' "$dir/p.json"
report $? "the profile names schema and GPU"
grep -q 'h100_sxm gemm vllm 0.1' "$dir/p.json"
report $? "a table's source is its file"

"$kvcast" validate --kernels "$dir/h100_sxm__gemm__vllm__0.1.csv" --profile "$dir/p.json" --json > "$dir/v.json" 2>/dev/null
report $? "validate predicts from that profile"
tr -d '\n ' < "$dir/v.json" | grep -q '"rows":504,"excluded":182,'
report $? "rows outside the claim are excluded and counted"
grep -q '"n or k below 512"' "$dir/v.json"
report $? "with the reason"
awk -F'[:,]' '/mape_percent/ { exit !($2 < 1) }' "$dir/v.json"
report $? "a law is met within 1 %"

"$kvcast" validate --kernels "$dir/rows.csv" > "$dir/out" 2>"$dir/err" && grep -q 'h200_sxm gemm vllm 0.1, tables of h200_sxm' "$dir/out"
report $? "columns name the system where the file does not"
"$kvcast" validate --kernels "$dir/rows.csv" --like h100_sxm > "$dir/out" 2>"$dir/err" && grep -q 'tables of h100_sxm (borrowed)' "$dir/out"
report $? "another GPU's tables are said to be borrowed"
"$kvcast" validate --kernels > "$dir/out" 2>"$dir/err" && grep -q '^| gemm bfloat16 | [0-9]* | [0-9.]* | [0-9.]* | 6.0 |' "$dir/out"
report $? "without files the tables state their own errors"
"$kvcast" validate > "$dir/out" 2>"$dir/err" && grep -q '^| A02 | .* | 40 GiB | 40 GiB | 1.00 | met | ' "$dir/out"
report $? "alone it holds published figures"
head -1 "$dir/out" | grep -q '^| id | claim | published | predicted | ratio |'
report $? "under a header"
"$kvcast" validate C15 A01 --json 2>"$dir/err" | tr -d '\n ' > "$dir/out"
grep -q '"headlines":\[{"id":"A01",.*"published":\[1\],"predicted":\[10.99[0-9]*\],"ratio":10.99[0-9]*,"verdict":"met","reason":"' "$dir/out" &&
    grep -q '"id":"C15",.*"predicted":null,"ratio":null,"verdict":"conditionsunknown"' "$dir/out" &&
    grep -q '"summary":{"headlines":2,"met":1,"order":0,"missed":0,"conditionsunknown":1}' "$dir/out"
report $? "those of the ids, as JSON"
refused "no such figure" 2 "'Z9'" validate Z9

refused "calibrate needs a place for the profile" 2 "-o PROFILE.json" calibrate --kernels "$dir/rows.csv"
refused "calibrate tells what it knows" 3 "no output of a tool" calibrate "$dir/rows.csv" -o "$dir/x.json"
refused "two systems are no one profile" 2 "one profile, one system" calibrate --kernels "$dir/rows.csv" "$dir/h100_sxm__gemm__vllm__0.1.csv" -o "$dir/x.json"
cp "$dir/h100_sxm__gemm__vllm__0.1.csv" "$dir/x100__gemm__vllm__1.csv"
refused "an unknown system is named" 3 "x100" calibrate --kernels "$dir/x100__gemm__vllm__1.csv" -o "$dir/x.json"
cp "$dir/h100_sxm__gemm__vllm__0.1.csv" "$dir/h100_sxm__gen__vllm__1.csv"
refused "an unknown family is named" 3 "'gen' is no family" validate --kernels "$dir/h100_sxm__gen__vllm__1.csv"
awk -F, 'BEGIN { OFS = "," } NR > 1 { $NF = $NF "us" } { print }' "$dir/h100_sxm__gemm__vllm__0.1.csv" > "$dir/h100_sxm__gemm__vllm__0.2.csv"
"$kvcast" validate --kernels "$dir/h100_sxm__gemm__vllm__0.2.csv" > "$dir/out" 2>&1
grep -q '^no row to score' "$dir/out" && grep -q 'a number is missing or wrong' "$dir/out"
report $? "times with a unit are no kernels' milliseconds"
refused "a profile must be one" 3 "kernel profile" validate --kernels "$dir/rows.csv" --profile "$dir/v.json"
refused "no such GPU" 2 "no hardware profile" validate --kernels "$dir/rows.csv" --like rtx1
# Engine rows
printf '%s\n' 'id,silicon_data_source,backend,model_path,system,precision,mode,isl,osl,gemm_quant_mode,moe_quant_mode,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms' \
    'a,dump,vllm,meta-llama/Llama-3.1-70B,b200_sxm,fp8,agg,1024,256,fp8,fp8,4,4,120,8' \
    'b,dump,vllm,meta-llama/Llama-3.1-70B,x100,fp8,agg,1024,256,fp8,fp8,4,4,120,9' > "$dir/engine.csv"
"$kvcast" validate --rows "$dir/engine.csv" > "$dir/out" 2>"$dir/err" && grep -q '^| Llama-3.1-70B fp8, b200_sxm, vllm | 1 ' "$dir/out" && grep -q "^- 1: no hardware profile 'x100'" "$dir/out"
report $? "engine rows are predicted by group, others skipped with the reason"
grep -q '^Errors in percent: median/mean/P90 of the absolute error' "$dir/out"
report $? "with what their figures are"
grep -q '^| [*][*]TensorRT-LLM and vLLM, no constant fitted[*][*] | 1 (. *' "$dir/out" && ! grep -q 'DeepSeek on H200' "$dir/out"
report $? "and by the kernels' tables alone, where there are such rows"
"$kvcast" validate --rows "$dir/engine.csv" --json 2>"$dir/err" | tr -d '\n ' > "$dir/out"
grep -q '"schema":"kvcast.validate.v1"' "$dir/out" && grep -q '"id":"a","measured":{"ttft_ms":120,"tpot_ms":8},"predicted":{"ttft_ms":[0-9.]*,' "$dir/out" &&
    grep -q '"summary":{"rows":1,"doubtful":0,"skipped":1,"ttft":{"rows":1,"median_ape_percent":' "$dir/out"
report $? "the same as JSON"
printf 'a,b\n1,2\n' > "$dir/rows2.csv"
refused "engine rows need their columns" 3 "backend" validate --rows "$dir/rows2.csv"
refused "too few rows to calibrate on" 3 "needed at least" calibrate --rows "$dir/engine.csv"
head -1 "$dir/engine.csv" >"$dir/header.csv"
refused "a table of no rows" 3 "no row in it" validate --rows "$dir/header.csv"
refused "no rows to calibrate on" 3 "no row that can be predicted" calibrate --rows "$dir/header.csv"
refused "two tasks at once" 2 "--rows and --kernels" validate --rows "$dir/engine.csv" --kernels
refused "an option of another task" 2 "does not go with --rows" validate --rows "$dir/engine.csv" --calibrate
refused "a profile for published figures" 2 "published figures" validate --profile "$dir/v.json"
refused "tables of no file" 2 "no file of kernel rows" validate --kernels --like h100-sxm
refused "no such mode" 2 "agg or disagg" validate --rows "$dir/engine.csv" --mode both

echo "1..$n"
exit $failed
