#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kvcast show: lists, details, JSON, and what wrong names get.
KVCAST=${KVCAST:-build/kvcast}
n=0
failed=0
check() { # check "what" command...: passes when the command succeeds
    n=$((n + 1))
    what=$1
    shift
    if "$@" >/dev/null 2>&1; then
        echo "ok $n - $what"
    else
        echo "not ok $n - $what"
        failed=1
    fi
}
has() { # has TEXT ARGS...: kvcast's stdout holds the text
    text=$1
    shift
    "$KVCAST" "$@" 2>/dev/null | grep -q -e "$text"
}
fails() { # fails CODE TEXT ARGS...: exits so, and says so on stderr only
    code=$1 text=$2
    shift 2
    err=$("$KVCAST" "$@" 2>&1 >/dev/null)
    [ $? -eq "$code" ] && echo "$err" | grep -q -e "$text" && [ -z "$("$KVCAST" "$@" 2>/dev/null)" ]
}
for kind in hardware model engine preset price link; do
    check "show $kind lists" "$KVCAST" show $kind
    check "show $kind --json has the schema" has '"schema": "kvcast.show.v1"' show $kind --json
done
check "a name in another spelling is found" has '^h200_sxm: ' show hardware H200-SXM
check "figures carry kind and source" has 'datasheet .*aiconfigurator' show hardware h200_sxm
check "kernel tables state their error" has 'gemm.fp8 .*% off, .*fitted' show hardware h200_sxm
check "another GPU's kernels have its error" has 'trtllm: mean error .* of the GPU in the source' show hardware h800
rate() { # read or write of pcie5-x16 as its list has it
    "$KVCAST" show link 2>/dev/null | sed -n "s/^pcie5-x16 .*$1 *\([0-9.]*[1-9]\)0* GB.*/\1/p"
}
check "a GPU says what rates copies of KV have" has \
    "pcie5-x16: what replays use for KV, $(rate read) GB/s to the GPU, $(rate write) back" show hardware h200_sxm
check "errors say on how many rows" has 'generation_attention bfloat16 bfloat16 d128 w0 [0-9.]* % off, 126 ' show hardware h20
check "the list of GPUs has a head" has '^ .* GB  *GB/s  *bf16  *fp8  *USD/h  kernel times' show hardware
check "and marks what is assumed" has '^a100_80 .* 312    ~312 ' show hardware
check "a model shows its KV bytes" has '327680' show model llama-3.1-70b
check "a link shows its latency" has 'latency .*500 us' show link rdma-400
check "prices name their source" has 'PUE.*assumed' show price
profile() { # its value of the first engine's figure $1
    sed -n "s/.*\"$1\": *{\"value\": *\([0-9]*\).*/\1/p" "$(dirname "$0")/../models/profiles/engines.json" | head -1
}
engine() { # the same, as shown
    "$KVCAST" show engine vllm --json 2>/dev/null | sed -n "/\"$1\"/,/value/s/.*\"value\": *\([0-9]*\).*/\1/p"
}
for figure in front_end_ns host_per_sequence_ns kv_load_ns; do
    check "an engine shows its $figure as its profile has it" \
        [ "$(engine $figure)" -eq "$(profile $figure)" ]
done
check "figures for people have their unit" has 'front end, a request .* ms .*fitted' show engine vllm
check "bands name their rows" has '80 % band .*TTFT x .*TPOT x .* rows' show engine vllm
check "KV formats say what stays bf16" has 'turboquant_k8v4 .*stay bf16' show kv
check "an unknown name gets the nearest one" fails 2 "did you mean 'h100_sxm'" show hardware h100sxm
check "an unknown kind lists the known ones" fails 2 'hardware, model, engine, preset, price, link' show bogus
check "no kind is wrong usage" fails 2 'say what to show' show
check "three names are wrong usage" fails 2 'one too many' show link gds tcp-25
echo "1..$n"
exit $failed
