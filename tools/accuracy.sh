#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# accuracy.sh KERNELS_DIR: writes docs/accuracy.md to stdout ('make accuracy').
aic=$1/aic
kvcast=${KVCAST:-build/kvcast}

cat <<'TEXT'
# How accurate the kernel times are

Written by `make accuracy`; the tables are the output of the commands named.

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
