#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# accuracy_blis.sh SHARED: the section of docs/accuracy.md on BLIS' real vLLM runs, read by accuracy.sh.
records=$1/validation/blis_sim_to_real/error_records.csv
kvcast=${KVCAST:-build/kvcast}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

cat <<'TEXT'

## BLIS' runs: H100, vLLM 0.15.1, open loop
Two campaigns of inference-sim, February and March 2026. What they asked was read where it was written down:
- Their task installs inference-perf @e8e0aa9 (tektonc-data-collection tekton/tasks/install-inference-perf-blis.yaml @97413ac and
  @5ced0c4). It knew neither `num_unique_system_prompts` nor `enable_multi_turn_chat`, which the profiles set, and resolved to 10 groups of 10 prompts
  (inference-sim/training default_args/\*/results/config.yaml @c4f0340): 100 prompts in rotation, shuffled, each group behind one system
  prompt. Nobody waits for an answer and no context grows. From the 101st request on all blocks of a prompt are hits but the last.
- Load `constant` draws exponential intervals and scales them to the stage (inference_perf/loadgen/load_timer.py); the published
  arrivals of the February runs (replay_data/\*.json) look so.
- Rates, lengths and answers by class: tektonc-data-collection workloads.yaml @2a7cbcd. Prompts are random tokens made text and read
  again: 547, 566, 750 and 1,034 become 575, 592, 786 and 1,081 (published means of the February runs; Llama 3.1's and Qwen 3's
  tokenizers, tried on as many random tokens, give 573 to 578, 592 to 596, 784 to 788, 1,080 to 1,089). Answers have the stated length:
  end marks were ignored, and E2E - TTFT over the time between the stream's events is twice that length. What clients counted, by
  reading the answer's text again, is less (0 to 250 of 247), so the table's ITL, E2E over counted tokens, says nothing of lengths.
- 128 sequences at most, prefix caching, tokens a step as stated; 8 GiB of host memory for KV where offloading was on
  (`--kv-offloading-size`, blis-campaign/generate.py @00596a6). No expert parallelism: it was set with data parallelism only.

Constants as shipped, fitted to closed loops in which none of these runs took part, but 5 ms of front end and client, fitted to
CodeLlama's three runs of February (4, 5 and 6 ms by themselves), and what a step takes that compiles a kernel (`engine.cold`: each
run's server had just started), fitted to the first 65 requests of 130541. Arrivals are drawn here; nothing of a measured figure is used.
Not blind in three rules, which these runs brought up and other evidence decided: steps are captured up to twice the most sequences
(vLLM's source), vLLM's Triton experts are asked evenly, as SGLang's, which are the same kernel, and they are compiled at first use
(vLLM's source; which steps wait was read off single requests of two runs and is a test, [models.md](models.md)).
Errors in percent, predicted against measured.

### Whole runs of February
inference-sim/training @c4f0340, results/summary_lifecycle_metrics.json: all requests of 20 minutes, on a build of vLLM 0.15.1 that
traces requests. Between tokens: twice the time between events. Nothing was fitted to them but what the rows say.

| run | workload | E2E mean | TTFT mean | TTFT P99 | between tokens |
|---|---|---|---|---|---|
TEXT
cat > "$dir/profile.json" <<'PROFILE'
{"schema": "kvcast.profile.v1", "engines": [{"backend": "vllm", "front_end_ns":
 {"value": 5000000, "kind": "fitted", "source": "CodeLlama's three runs of inference-sim/training"}}]}
PROFILE

# class: tokens of system prompt, prompt and answer, stages rate:seconds, requests in the window
classes() {
    cat <<'CLASSES'
general 100 575 248 8:600,20:600 86
general-lite 100 575 248 2.5:600,6:600 88
codegen 100 592 247 5:600,10:600 100
roleplay 150 786 251 6:1200 300
reasoning 100 1081 1448 4:1200 300
CLASSES
}

# log CLASS REQUESTS DRAW: so many requests of a run of that class (0: all), one draw of its chance.
log() {
    classes | awk -v class="$1" -v most="$2" -v draw="$3" '
    function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
    function ask(at,    id, g, b) {
        id = order[asked % 100]; g = int(id / 10)
        printf "{\"timestamp\": %.3f, \"input_length\": %d, \"output_length\": %d, \"hash_ids\": [", at * 1000, tokens, answer
        for (b = 0; b * 16 < tokens; b++)
            printf "%s%d", b ? ", " : "", (b + 1) * 16 <= prefix ? 1000000 + g * 1000 + b : id * 1000 + b
        print "]}"
        asked++ }
    $1 == class { prefix = $2; tokens = $3; answer = $4; n = split($5, stage, ",") }
    END { state = 7919 * draw + 1
        for (i = 0; i < 100; i++) { uniform(); order[i] = i }
        for (i = 99; i > 0; i--) { j = int(uniform() * (i + 1)); k = order[i]; order[i] = order[j]; order[j] = k }
        for (i = 1; i <= n; i++) {
            split(stage[i], r, ":"); m = r[1] * r[2]; sum = 0
            for (k = 0; k < m; k++) sum += gap[k] = -log(uniform())
            for (k = at = 0; k < m; k++) { at += gap[k] / sum * r[2]; if (!most || asked < most) ask(begin + at) }
            begin += r[2] } }'
}

# one MODEL TP CLASS REQUESTS DRAW OPTION..: "E2E mean, TTFT mean, TTFT P99, between tokens" of one replay, ms.
one() {
    model=$1 tp=$2 class=$3 requests=$4 draw=$5
    shift 5
    [ -f "$dir/$class.$requests.$draw" ] || log "$class" "$requests" "$draw" > "$dir/$class.$requests.$draw"
    "$kvcast" replay "$dir/$class.$requests.$draw" --block-tokens 16 --model "$model" --weights_dtype "${weights:-bf16}" --gpu h100-sxm \
        --tp "$tp" --engine.cold true --engine.max_seqs 128 --engine.gpu_memory_utilization 0.9 --profile "$dir/profile.json" --no-bounds --quiet \
        --requests "$dir/rows.csv" "$@" > /dev/null || return 1
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        { print $c["ttft_ms"], $c["e2e_ms"], ($c["e2e_ms"] - $c["ttft_ms"]) / ($c["output_tokens"] - 1) }' "$dir/rows.csv" |
        sort -n | awk '{ v[NR] = $1; ttft += $1; e2e += $2; itl += $3 }
        END { x = 0.99 * (NR - 1); i = int(x)
              print e2e / NR, ttft / NR, v[i + 1] + (x - i) * (v[i + 2] - v[i + 1]), itl / NR }'
}

# run model tp class: measured E2E mean, TTFT mean, TTFT P99, between tokens; note; options
cat > "$dir/whole" <<'RUNS'
155451 llama-2-7b 1 codegen 2080.7 27.98 49.93 8.287 - --engine.kv_cache_memory 58.3GiB
162547 llama-2-7b 1 roleplay 2071.1 27.13 38.26 8.119 - --engine.kv_cache_memory 58.3GiB
231439 llama-2-7b 1 general 3558.0 44.78 70.98 14.130 - --engine.kv_cache_memory 58.3GiB
203421 llama-2-70b 4 codegen 4605.5 55.59 78.17 18.376 -
084319 llama-2-70b 4 roleplay 4561.6 54.75 96.26 17.912 -
202857 llama-2-70b 4 general 5320.6 103.02 881.92 20.989 -
120914 mixtral-8x7b 2 codegen 4675.2 58.85 70.00 18.645 - --engine.kv_cache_memory 53.7GiB
141024 mixtral-8x7b 2 roleplay 4684.7 60.51 85.35 18.378 rule --engine.kv_cache_memory 53.7GiB
130541 mixtral-8x7b 2 general 5038.6 68.94 262.37 19.995 compiled --engine.kv_cache_memory 53.7GiB
150956 codellama-34b 2 codegen 3722.9 45.58 59.39 14.849 front
155500 codellama-34b 2 roleplay 3669.7 45.68 74.88 14.400 front
150304 codellama-34b 2 general 4092.5 51.59 73.12 16.255 front
RUNS
unscored() { # why a row doesn't count in the medians, by the name of the note
    case $1 in
        front) echo ', front end fitted to its run' ;;
        compiled) echo ', compiling fitted to its run' ;;
        rule) echo ', rule of compiling checked on its run' ;;
        open) echo ', which of the two is open' ;;
    esac
}
errors() { # LABEL CLASS NOTE MEASURED.. on stdin: replays, one a line
    awk -v label="$1" -v class="$2" -v note="$3" -v measured="$4" '
    { n++; for (k = 1; k <= NF; k++) v[k] += $k }
    END { split(measured, m, " "); printf "| %s | %s%s", label, class, note
          for (k = 1; k in m; k++) printf " | %+.1f", (v[k] / n / m[k] - 1) * 100
          print " |" }'
}
whole() {
    while read -r run model tp class e2e ttft p99 itl note options; do
        # shellcheck disable=SC2086
        one "$model" "$tp" "$class" 0 1 --dram 8GiB --engine.max_batched_tokens 2048 $options > "$dir/sum" || return 1
        errors "$run $model TP$tp" "$class" "$(unscored "$note")" "$e2e $ttft $p99 $itl" < "$dir/sum"
    done < "$dir/whole"
}
whole > "$dir/february" || exit 1
cat "$dir/february"
cat <<'TEXT'

Not replayed: the four runs of class reasoning, which queue for 100 s and more in the mean and give up at 300 s.

### The published table
error_records.csv of inference-sim/sim-to-real-accuracy-validation @dcec3fd. 17, 20, 62, 63 and 155451 are whole runs. **The others
are the first requests of a run**, as many as LLMServingSim was given (results/llmservingsim_error_records_matched.csv @5f14a0e,
experiment/adapters/llmservingsim.py @e251d30): 300 are shared out to the stages, and those of the first stage count, 86, 88, 100 or
300. It shows to the last digit: P99 of E2E of 3, 6, 7, 9, 10 and 11, and P90 of 9, are those of the first 300, 100, 300, 86, 100 and
300 requests of 155500, 203421, 084319, 130541, 120914 and 141024 (replay_data/\*_ground_truth.json @c4f0340), which are seen whole
above. 27 is labelled general-lite, but that simulator's means of it are 86ths, as of general (88 + 1 else), and general's 8 a second
takes this model longer even when nothing waits (130541: 4.8 s): replayed as both, counted as neither. Such a window has an empty engine that has
just started, the lower rate and hardly a prompt that came before. Replayed so, mean of 20 draws; one draw of 86 is 2 to 3 % off,
with experts more.

| run | workload | E2E mean | TTFT mean | TTFT P99 |
|---|---|---|---|---|
TEXT
cat > "$dir/runs" <<'RUNS'
62 mistral-nemo-12b 2 1024 general-lite whole - --dram 8GiB
63 mistral-nemo-12b 1 2048 codegen whole - --dram 8GiB --engine.kv_cache_memory 47GiB
20260217-155451 llama-2-7b 1 2048 codegen whole - --dram 8GiB --engine.kv_cache_memory 58.3GiB
16 llama-3.1-8b 1 2048 general window -
23 llama-3.1-8b 1 8192 general window -
24 llama-3.1-8b 1 2048 general window - --dram 8GiB
26 llama-3.1-8b 2 2048 general window -
18 llama-3.1-8b 1 2048 codegen window -
46 llama-3.1-8b 1 2048 reasoning window -
14 qwen3-14b 1 2048 codegen window -
13 qwen3-14b 1 2048 general window -
59 qwen3-14b 1 2048 general-lite window -
57 codellama-34b 2 2048 general-lite window -
3 codellama-34b 2 2048 roleplay window front --dram 8GiB
58 llama-2-70b 4 2048 general-lite window -
6 llama-2-70b 4 2048 codegen window - --dram 8GiB
7 llama-2-70b 4 2048 roleplay window - --dram 8GiB
9 mixtral-8x7b 2 2048 general window compiled --dram 8GiB
10 mixtral-8x7b 2 2048 codegen window - --dram 8GiB
11 mixtral-8x7b 2 2048 roleplay window rule --dram 8GiB
27 mixtral-8x7b 2 1024 general-lite window open
27 mixtral-8x7b 2 1024 general window open
28 mixtral-8x7b 2 8192 general window -
30 mixtral-8x7b 2 2048 general window - --engine.gpu_memory_utilization 0.95
56 mixtral-8x7b 2 2048 general window -
49 mixtral-8x22b 8 2048 general window -
50 mixtral-8x22b 8 2048 codegen window -
51 mixtral-8x22b 8 2048 roleplay window -
53 mixtral-8x22b 8 2048 reasoning window -
RUNS
measured() { # of RUN: E2E mean, TTFT mean, TTFT P99
    awk -F, -v run="$1" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["stage_index"] == -1 && index($c["experiment_folder"], run "-") == 1 { m[$c["metric_name"]] = $c["actual"] }
        END { print m["e2e_mean"], m["ttft_mean"], m["ttft_p99"] }' "$records"
}
table() {
    while read -r run model tp budget class part note options; do
        requests=0 draws=1 label=$class
        if [ "$part" = window ]; then
            requests=$(classes | awk -v class="$class" '$1 == class { print $6 }') draws=20 label="$class, first $requests"
        fi
        for draw in $(seq $draws); do
            # shellcheck disable=SC2086
            one "$model" "$tp" "$class" "$requests" "$draw" --engine.max_batched_tokens "$budget" $options || return 1
        done > "$dir/sum"
        errors "$run $model TP$tp" "$label" "$(unscored "$note")" "$(measured "$run")" < "$dir/sum"
    done < "$dir/runs"
}
table > "$dir/table" || exit 1
cat "$dir/table"
medians() { # of the rows on stdin, and how many there are
    awk -F'|' '
    function median(k,    i, j, x) { for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
        if (v[k, j] < v[k, i]) { x = v[k, i]; v[k, i] = v[k, j]; v[k, j] = x }
        return n % 2 ? v[k, (n + 1) / 2] : (v[k, n / 2] + v[k, n / 2 + 1]) / 2 }
    function verdict(x, bar) { return x <= bar ? "met" : "missed" }
    { n++; for (k = 1; k <= 3; k++) { x = $(k + 3) + 0; v[k, n] = x < 0 ? -x : x } }
    END { e = median(1); t = median(2); p = median(3)
        printf "| %d | %.1f | 6 %s | %.1f | 15 %s | %.1f | 25 %s |\n", n, e, verdict(e, 6), t, verdict(t, 15), p, verdict(p, 25) }'
}
cat <<'TEXT'

Medians of the absolute error, without rows that say why not.

| runs | | E2E mean | at most | TTFT mean | at most | TTFT P99 | at most |
|---|---|---|---|---|---|---|---|
TEXT
printf '| the published table, all '; grep -v -e fitted -e 'rule of' -e 'is open' "$dir/table" | medians
printf '| of them dense models '; grep -v -e fitted -e mixtral "$dir/table" | medians
printf '| of them models with experts '; grep mixtral "$dir/table" | grep -v -e fitted -e 'rule of' -e 'is open' | medians
printf '| whole runs of February '; grep -v -e fitted -e 'rule of' "$dir/february" | medians
cat <<'TEXT'

Where it falls short:
- Windows of models with experts are a server's first seconds, in which steps wait for Triton, six or seven in each run of
  February (replayed as if long started they are several times as far off in TTFT). One draw of 86 requests is 10 % off in E2E and
  19 % in TTFT (standard deviation): it hangs on which sizes come when. Beyond that are 8x22B's general and codegen on eight GPUs
  (49, 50: too fast, tails met) and 30 beside 56, the same run but for 5 % of memory: unexplained.
- The first step that only decodes took 0.2 s more in all three runs of Mixtral, and dense models wait once for 0.2 to 0.8 s in the
  first ten requests (3, 6, 7: P99). Nobody named those kernels: not in the model.
- E2E rises a tenth to a fifth too fast near saturation (231439, 82 sequences at once at 20 requests a second; 150304, 63; 202857's TTFT).
  A prompt of which one block is new makes a step 1 ms longer (CodeLlama at 8 a second, the upper tenth of the times between tokens), here 2.5.
- Steps beyond the captured graphs are too long for Llama-3.1-8B on two GPUs (26) and too short for Llama-2-70B on four (6, 7): one
  floor a layer serves all.
- 46: 16.9 ms between tokens with 95 sequences of 1,800 tokens, here an eighth less, unexplained. 53: 125 sequences here, all but the limit of 128.

One stream alone is met better: of nine published (inference-sim/tektonc-data-collection tektoncsample/calibration/RESULTS.md
@00596a6) eight within 9 % (`tests/test_models_silicon.c`); Llama-2-70B's of 18.3 ms is 16 % above, and above its served runs' as well.

Experts in fp8 (whole runs, not in the medians): Llama-4-Scout's 16 of width 8192 were not measured; TensorRT-LLM's tuned kernels stand in for
vLLM's, and Maverick's shapes with the same work of a GPU for Scout's ([models.md](models.md)). vLLM 0.15 ran its own CUTLASS or Triton kernels, which nobody measured.

| run | workload | E2E mean | TTFT mean | TTFT P99 |
|---|---|---|---|---|
TEXT
weights=fp8
cat > "$dir/runs" <<'RUNS'
17 llama-4-scout-17b-16e 2 2048 general-lite whole -
20 llama-4-scout-17b-16e 2 2048 codegen whole -
RUNS
table
