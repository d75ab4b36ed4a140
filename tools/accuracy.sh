#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# accuracy.sh SHARED: writes docs/accuracy.md to stdout ('make accuracy').
aic=$1/kernels/aic
silicon=$1/validation/aiconfigurator_silicon/silicon_sample.csv.zst
kvcast=${KVCAST:-build/kvcast}

cat <<'TEXT'
# How accurate the times are

Written by `make accuracy`; the tables are the output of the commands named.

## Runs of serving engines
`kvcast validate --rows F.csv --mode agg`, on aiconfigurator's silicon_sample.csv @095f58a: closed-loop runs without reused
prefixes, TTFT and TPOT as measured by the clients. Errors are median/mean/P90 of the absolute error and the bias (signed
median), in percent. *Aside*: the half of the configurations (model, system, backend, format, tp, isl, osl, by their hash)
that no constant is fitted to; verdicts are on that half. The bars are what a prototype of this model reached, with some room.

Every row is predicted by the same rules: ten requests a client, lengths uniform in 90 to 100 % of those named, all clients
start at once into an empty engine, 8192 tokens a step, one set of four host constants per backend. Nothing is tuned per
model or row. Rows do not name the KV's format: fp8 beside fp8 and nvfp4 weights (and mxfp4 where the GPU computes in fp4),
else bf16.

TEXT
"$kvcast" validate --rows "$silicon" --mode agg || exit 1
cat <<'TEXT'

Where it falls short:
- TTFT, with TensorRT-LLM and SGLang most of all: front ends, clients and schedulers differ by version far more than one set
  of constants can say. Calibrate `front_end_ns` on your own runs before trusting a TTFT.
- vLLM's constants are an earlier pooled fit that saw all of its rows, so *aside* is not unseen there; those of TensorRT-LLM
  and SGLang are `kvcast calibrate --rows`, fitted to the other half. Their time per step with prefill (13 and 38 ms) is larger
  than any host needs: it also stands for what the closed loop lacks.
- Rows of 1024/1024 with Llama-3.1-70B on TensorRT-LLM and all of Qwen3's fit lengths that do not vary, and Llama-3.1-8B on
  TensorRT-LLM one slot fewer than clients; no row says so, so all are predicted alike.
- A few rows whose requests just fit or just don't have TTFTs off by orders of magnitude: they make means useless, medians not.
- Attention data parallelism, disaggregated serving, B300 and GB300 are not predicted yet.
TEXT
sh "$(dirname "$0")/accuracy_runs.sh" "$1" || exit 1
sh "$(dirname "$0")/accuracy_blis.sh" "$1" || exit 1
cat <<'TEXT'

## Published figures
`kvcast validate`: what others published, under the conditions that they state. *Order*: within a factor of two, or the direction
where only that is claimed. C01's tolerance is 40 %, since it divides by 0.14 ms.

| id | claim | published | predicted | ratio | | why |
|---|---|---|---|---|---|---|
TEXT
"$kvcast" validate || exit 1
cat <<'TEXT'

## Each table on what it has not seen
`kvcast validate --kernels`. Mean absolute error in percent. *Rows aside*: fitted to three quarters of the rows, scored on
the others. *Shapes aside*: the same with a quarter of the shapes ((n, k), heads, experts and ranks) held back whole. Which
rows and shapes, their values decide. The first table is the median over files (one file: a system, a backend, a dtype);
"at most" is the bar. *Fitted*: the tables in the program, on the rows they were fitted to. Ranges: n and k from 512;
context from 256 tokens and up to 512 sequences; 64 new tokens or more, heads of 128, no prefix; all-reduce in a graph.

TEXT
"$kvcast" validate --kernels || exit 1
cat <<'TEXT'

## A system whose backend was never measured
`kvcast validate --kernels FILE --like GPU`: the rows of one system from the tables of another, as shares of its own
datasheet peaks. The bar is 20 %. The last two pairs cross an architecture and show what such a guess is worth.

| system | tables of | backend | family | rows | MAPE % | P90 % | |
|---|---|---|---|---|---|---|---|
TEXT
while read -r system like; do
    for backend in vllm sglang trtllm; do
        for family in gemm generation_attention context_attention moe custom_allreduce; do
            for file in "$aic/${system}__${family}__${backend}__"*; do
                [ -f "$file" ] || continue
                "$kvcast" validate --kernels "$file" --like "$like" --json 2>/dev/null | tr -d '\n' |
                    sed -n 's/.*"rows": *\([1-9][0-9]*\),.*"summary": *{ *"mape_percent": *\([0-9.]*\), *"p90_ape_percent": *\([0-9.]*\).*/\1 \2 \3/p' |
                    awk -v a="| $system | $like | $backend | $family |" \
                        '{ printf "%s %d | %.1f | %.1f | %s |\n", a, $1, $2, $3, $2 <= 20 ? "met" : "missed" }'
            done
        done
    done
done <<'PAIRS'
h200_sxm h100_sxm
h100_sxm h200_sxm
gb200 b200_sxm
b200_sxm gb200
a100_sxm h100_sxm
l40s h100_sxm
PAIRS
cat <<'TEXT'

## Where it falls short
- All-reduce, the shapes aside: there are only two or three counts of GPUs, so nothing is held back there; between counts nothing is claimed.
- B200's fp8 products with vLLM 0.24 choose between kernels shape by shape: the largest error of all products.
- Across architectures (A100 or L40S from H100's tables) launches, caches and kernels differ: 10 to over 100 %.
- A prefix before the new tokens is in no public table of these GPUs: the time per query and key is taken over; no error is known.
- Rows are single kernels, called in a loop with weights that may lie in L2; engines pad, fuse and overlap. docs/models.md says what is done about each.
TEXT
