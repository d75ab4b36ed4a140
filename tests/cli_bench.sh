#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench measures this machine and writes a profile; nothing is left behind.
. "$(dirname "$0")/tap.sh"

mkdir "$dir/drive"
"$kvcast" bench --quick --only files --dir "$dir/drive" --file-size 32MiB -o "$dir/p.json" > "$dir/out" 2> "$dir/err"
report $? "bench measures file reads"
[ -z "$(ls -A "$dir/drive")" ]
report $? "its file is gone"
grep -q '^  4KiB, 16 under way, .* GB/s  spread ' "$dir/out"
report $? "each figure with its spread"
grep -q '"schema": "kvcast.profile.v1"' "$dir/p.json" && grep -q '"cpu": "' "$dir/p.json" && grep -q '"virtual": ' "$dir/p.json"
report $? "the profile says of which machine"
if grep -q 'has no direct I/O' "$dir/out"; then
    report 0 "reads past the page cache become a link # SKIP no direct I/O in $dir"
else
    grep -q '"name": "nvme-gen5-x4"' "$dir/p.json" && "$kvcast" calibrate --bench "$dir/p.json" -o "$dir/q.json" > "$dir/out" 2> "$dir/err"
    report $? "reads past the page cache become a link, and can be fitted again"
fi
printf '{"timestamp":0,"input_length":100,"output_length":1}\n' > "$dir/log.jsonl"
"$kvcast" replay "$dir/log.jsonl" --model llama-3.1-8b --gpu h100-sxm --nvme 1TiB --profile "$dir/p.json" --no-bounds --quiet > /dev/null 2> "$dir/err"
report $? "a replay takes the profile"
"$kvcast" bench --quick --only zstd --json --quiet 2> "$dir/err" | grep -q '"what": "zstd decompress"'
report $? "JSON, with figures that are no link's"

"$kvcast" bench --only files --dir "$dir/drive" --file-size 64MiB > "$dir/out" 2>&1 &
pid=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
    grep -q 'under way' "$dir/out" && break
    sleep 0.2
done
kill -INT $pid 2>/dev/null
kill -TERM $pid 2>/dev/null # a shell's background job does not hear INT
wait $pid 2>/dev/null
[ -z "$(ls -A "$dir/drive")" ]
report $? "a signal leaves no file"

"$kvcast" bench --only gpu > "$dir/out" 2> "$dir/err"
rc=$?
[ $rc = 0 ] || grep -q -e "make cuda" -e "no GPU can be used here" "$dir/err"
report $? "without a GPU, or without its module, it is said"
root=$(dirname "$0")/..
# a module of a GPU that is not there, beside a copy of the program
cp "$kvcast" "$dir/kvcast" && ${CC:-cc} -std=c11 -shared -fPIC -I"$root" -I"$root/include" -o "$dir/kvcast-gpu.so" "$root/tests/modules/gpu.c" 2> "$dir/err" &&
    "$dir/kvcast" bench --only gpu --like l40s -o "$dir/gpu.json" > "$dir/out" 2> "$dir/err"
report $? "a GPU that no list has is measured as one like another"
grep -q '^  bf16 m 16, n 28672, k 4096 .* TFLOP/s' "$dir/out" && grep -q 'a table of their own' "$dir/out" && grep -q 'plain kernels, .* slower' "$dir/out" &&
    grep -q '"device": "A New GPU"' "$dir/gpu.json" && grep -q '"measured_to": \[16384\]' "$dir/gpu.json"
report $? "its products become a table, and its peaks what they imply"
"$kvcast" replay "$dir/log.jsonl" --model llama-3.1-8b --gpu l40s --profile "$dir/gpu.json" --no-bounds --quiet > "$dir/out" 2> "$dir/err" && grep -q 'x A New GPU' "$dir/out"
report $? "a replay takes them"
"$dir/kvcast" bench --only gpu -o "$dir/none.json" > "$dir/out" 2> "$dir/err" && grep -q 'name it with --gpu' "$dir/out" && ! grep -q '"tables"' "$dir/none.json" && grep -q '"kernel_measurements"' "$dir/none.json" &&
    "$kvcast" calibrate "$dir/none.json" --gpu l40s -o "$dir/named.json" > "$dir/out" 2> "$dir/err" && grep -q '"tables"' "$dir/named.json"
report $? "an unnamed one can be named later"
refused "parts are known ones" 2 "memory, files, zstd and gpu" bench --only disk
refused "no folder" 1 "/nonexistent" bench --only files --dir /nonexistent
refused "a file that a drive would cache" 2 "32 MiB" bench --only files --dir "$dir/drive" --file-size 1MiB
refused "a link that there is not" 2 "show link" bench --link sata
refused "a GPU is one or is like one" 2 "give one of them" bench --gpu l40s --like l40s
refused "an engine that there is not" 2 "vllm, sglang or trtllm" bench --like l40s --backend tgi
refused "it reads no files" 2 "calibrate" bench "$dir/log.jsonl"
sh tools/cuda.sh /nonexistent/nvcc 2> "$dir/err"
[ $? = 1 ] && grep -q 'cuda-nvcc' "$dir/err" && grep -q 'libcublas-dev' "$dir/err"
report $? "make cuda says what to install"
echo "1..$n"
exit $failed
