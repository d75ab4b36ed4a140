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
prefixes, TTFT and TPOT as measured by the clients. No constant is fitted to half of the configurations (model, system, backend,
format, tp, isl, osl, by their hash). The bars are what a prototype of this model reached, with some room.
*No constant fitted*: the host costs nothing and no step waits for its launches, so that nothing rests on whole runs; verdicts are on all
rows. TTFT is a third (vLLM) to 60 % (SGLang) short there: what a request costs outside the kernels is not small.

All clients start at once into an empty engine; one set of four host constants per backend (vLLM five), what a launch outside
of graphs takes with TensorRT-LLM and vLLM, and by how much vLLM's steps of prompts and decodes exceed their kernels, fitted to the
other half ([models.md](models.md)). vLLM plans a step when the one before begins, as these runs did by version or launch script. Nothing is
tuned per model or row. How a row ran is a fact of the run and taken from what its publisher states (`studies/engine/recipe.c`),
chosen by source, model, system, backend and day, never by what was measured:

| rows | client | engine |
|---|---|---|
| InferenceX (dumps, `db-dump`) | ten requests a client; lengths uniform in 80 to 100 % of those named, as `bench_serving` draws them after seed 0 | options of the launch script of that model, GPU, backend and day: tokens a step, sequences at most, share of memory, KV format; TensorRT-LLM takes whole prompts, and holds them back for 20 steps or 90 % of a full step with Llama-3.1-70B 1024/1024 below tp 8 (`batch_wait_*`), SGLang looks for requests every 10 or 30 decode steps (`scheduler-recv-interval`); kernels where the script names them: DeepSeek's experts on B200 (DeepGEMM in 2025, TensorRT-LLM's own in 2026) and products with SGLang (FlashInfer); experts dealt to the GPUs where it says so (MiniMax-M2.5 fp8 on B200 until March 2026); GLM-5 on H200 five requests a client |
| NVIDIA's own (`aic-auto-gap-analysis`) | ten requests a client, lengths all alike (`genai-perf`, deviation 0) | as aiconfigurator's generator for benchmarks sets them: TensorRT-LLM batch + input + 1500 tokens a step, SGLang mixes prefill and decode; as many sequences as clients. With Llama-3.1-8B on TensorRT-LLM one fewer: a client that always waits is the only thing that explains a TTFT of generation time / clients; this one is read off the rows, not stated |
| disaggregated | as InferenceX | 8192 tokens or one prompt a prefill step; only rows that state how many workers there were |

TensorRT-LLM 1.0 launches fp8 quantisation by itself (4.8 to 9 us a product), later versions fuse it. Runs that guess tokens ahead
carry no label: what only InferenceX's speculative configurations can be, or contradicts plain runs of the same configuration, is
shown apart. Rows that state no options have those of the engine.

TEXT
"$kvcast" validate --rows "$silicon" --mode agg || exit 1
cat <<'TEXT'

### The same with all rows taken as run alike
`--alike`: ten requests a client, lengths uniform in 90 to 100 %, chunks, 8192 tokens a step, no other option. The difference is what
knowing the runs is worth.

| group | rows (aside) | TPOT | TPOT aside | median at most | P90 at most | TTFT | TTFT aside | median at most |
|---|---|---|---|---|---|---|---|---|
TEXT
"$kvcast" validate --rows "$silicon" --mode agg --alike | grep '^| \*\*all' | head -n 4 || exit 1
cat <<'TEXT'

### Disaggregated
`--mode disagg`: prefill engines, a copy of the KV (0.5 ms and the NICs' rate, NVLink in a GB200 or GB300 rack), decode engines.
No constant is fitted to these rows.

TEXT
"$kvcast" validate --rows "$silicon" --mode disagg || exit 1
cat <<'TEXT'

Where it falls short:
- What a request costs outside the engine (`front_end_ns`) differs by version, model and client far more than one constant can
  say: gpt-oss takes some 10 to 20 ms on B200 and H100 where the pooled fit says 30 (TensorRT-LLM) and 18 and 5 us a token (vLLM).
  Calibrate it on your own runs before trusting a TTFT below 150 ms.
- SGLang has no tables on H200 (H100's, as shares of their own peaks) and none of B200's FlashInfer products; its host constants (2.4 ms a step)
  hold what is missing. Measured TPOT grows with the answer's length by 1 ms per 1,000 tokens (Qwen3-235B), here it doesn't; a prompt of 4,000 tokens
  on four GPUs takes as long as on two. Llama-3.1-8B with 512 clients on four and on eight GPUs gets 17,600 to 19,600 tokens a second with answers
  of 500 and 1,000 tokens, 15,400 with 2,000 on either, and its TTFT is 2 to 8 s where the engine alone would make 0.7: one process takes all
  tokens on, and copies for each all that the answer has so far (tokenizer_manager.py, `state.output_ids.copy()`, without `--stream-output`).
  That is as 48 us a token and 16 ns for each before it would be (six rows): not modelled. DeepSeek on B300 with prompts of 8,192 tokens takes 1.6 s each: an unknown slow path.
- GLM-5's sparse attention is a closed form held against measured modules; its NVFP4 rows are 25 % too fast beside fp8 ones that fit. No constant is
  fitted to models with sparse or linear attention.
- DeepSeek with TensorRT-LLM: experts dealt to the ranks (DeepGEMM, 2025) are 15 to 37 % too fast; with 2026's kernels TPOT is 15 % too fast; TTFT of
  nvfp4 from 64 clients on at 8192/1024 is 1.2 to 1.8 s short (block-scaled fp8's 0.4 to 0.7, with 256 clients 5.4), on H200 3 s, where a token takes
  30 % less than predicted: as if fewer ran at once, by no stated limit.
- DeepSeek nvfp4 with attention data parallelism on TensorRT-LLM: its script says CUTLASS, whose tables make TPOT 33 % too slow; TensorRT-LLM's own
  kernel, taken here, is 6 % too fast. What CUTLASS takes behind an exchange of tokens was not measured.
- Where KV is short, vLLM and SGLang preempt; here their running requests hold half of their output's room, the mean of a long run, and nobody is preempted.
- Guessing tokens ahead is not modelled: such rows, and disaggregated ones that may do so without a label, are predicted too slow.
- B300 and GB300 have no kernel tables: B200's, as shares of their own peaks.
TEXT
sh "$(dirname "$0")/accuracy_runs.sh" "$1" || exit 1
sh "$(dirname "$0")/accuracy_tiers.sh" "$1" || exit 1
sh "$(dirname "$0")/accuracy_blis.sh" "$1" || exit 1
cat <<'TEXT'

## Published figures
`kvcast validate`: what others published, under the conditions that they state. *Order*: within a factor of two, or the direction
where only that is claimed. C01's tolerance is 40 %, since it divides by 0.14 ms.

TEXT
"$kvcast" validate || exit 1
cat <<'TEXT'

## Each table on what it has not seen
`kvcast validate --kernels`. *Rows aside*: fitted to three quarters of the rows, scored on the others. *Shapes aside*: the same
with a quarter of the shapes ((n, k), heads, experts and ranks) held back whole. Which rows and shapes, their values decide.
A file is a system, a backend and a dtype; "at most" is the bar. *Fitted*: the tables in the program, on the rows they were fitted to. Ranges: n and k from 512;
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
borrowed=$(mktemp) || exit 1
trap 'rm -f "$borrowed"' EXIT
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
done > "$borrowed" <<'PAIRS'
h200_sxm h100_sxm
h100_sxm h200_sxm
gb200 b200_sxm
b200_sxm gb200
a100_sxm h100_sxm
l40s h100_sxm
PAIRS
cat "$borrowed"
median() {
    cut -d'|' -f7 | sort -n | awk '{ v[NR] = $1 } END { m = (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2
        printf "%.1f %% (%d files, %s)", m, NR, m <= 20 ? "met" : "missed" }'
}
printf '\nMedian over files: %s; of pairs within an architecture %s, across %s.\n' "$(median < "$borrowed")" \
    "$(grep -v -e '^| a100' -e '^| l40s' "$borrowed" | median)" "$(grep -e '^| a100' -e '^| l40s' "$borrowed" | median)"
cat <<'TEXT'

## Where it falls short
- All-reduce, the shapes aside: there are only two or three counts of GPUs, so nothing is held back there; between counts nothing is claimed.
- B200's fp8 products with vLLM 0.24 choose between kernels shape by shape: the largest error of all products.
- Across architectures (A100 or L40S from H100's tables) launches, caches and kernels differ: 10 to over 100 %.
- A prefix before the new tokens is in no public table of these GPUs: the time per query and key is taken over; no error is known.
- Rows are single kernels, called in a loop with weights that may lie in L2; engines pad, fuse and overlap. docs/models.md says what is done about each.
TEXT
