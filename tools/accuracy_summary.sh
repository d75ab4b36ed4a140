#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# accuracy_summary.sh FILE: what accuracy.sh wrote, to stdout, with all bars and how many are met on top.
# Rows that show what a figure rests on (copies alone, another NIC, --alike) are held to no bar there.
awk -F'|' '
function verdict(cell) { if (cell ~ /met/) met[s]++; else if (cell ~ /missed/) missed[s]++ }
function first(cell) { split(cell, part, "/"); return part[1] + 0 }
function size(x) { return x < 0 ? -x : x }
function of(s) { return met[s] + 0 " of " met[s] + missed[s] " met" }
FNR == 1 { pass++ }
pass == 2 {
    print
    if (/^Written by/) summary()
    next
}
/^## / { s = ""; inner = 0; on = 0 }
/^### / { inner++; on = 1 }
/^## Runs of serving engines/ { s = "rows" }
/^## Served runs, request/ { s = "served" }
/^## A prefix by the tier/ { s = "tier" }
/^## BLIS/ { s = "blis" }
/^## Each table on what/ { s = "kernel" }
/^The copies alone|^What that rests on|^The pulls as copies|^llm-d.s guide/ { on = 0 }
/^Scored, by what|^The RDMA row is/ { on = 1 }
s == "rows" && !inner && /^\| % of rows/ { shares = 1 }
s == "rows" && !inner && /^\| / && !shares {
    verdict($6); verdict($7); verdict($10)
    if (/\*\*all (vllm|trtllm)\*\*/) {
        all = all sprintf("%s%s TPOT %.1f, TTFT %.1f", all ? "; " : "", /vllm/ ? "vLLM" : "TensorRT-LLM", first($5), first($9))
    }
}
s == "rows" && !inner && shares && /^\| / {
    verdict($4); verdict($6); verdict($8)
    if (/\*\*all (vllm|sglang|trtllm)\*\*/) {
        for (k = 9; k <= 10; k++) { bands++; within += $k + 0 >= 70 && $k + 0 <= 90; held = held sprintf("%s%d", held ? ", " : "", $k) }
    }
}
s == "served" && $6 + 0 > 0 { verdict($7); if (size($5 + 0) > size(worst)) worst = $5 + 0 }
s == "tier" && on && /^\| [0-9]/ { verdict($8) }
s == "blis" && /^\| (the published table, all|of them models with experts) / {
    blis = blis (blis ? "; models with experts alone" : "")
    for (k = 4; k <= 8; k += 2)
        blis = blis sprintf("%s%.1f%s", k > 4 ? " / " : blis ? " " : "", $k, $(k + 1) ~ /met/ ? "" : " (missed)")
}
s == "kernel" && NF == 8 && /^\| / { verdict($7) }
/^Median over files: / { never = $0; sub(/^Median over files: /, "", never); sub(/\.$/, "", never) }
/published figures: / { published = $0; sub(/\.$/, "", published) }
function summary() {
    print "\n| what | at most | reached |\n|---|---|---|"
    print "| [kernels](#each-table-on-what-it-has-not-seen) that no table was fitted to, medians over files | 6 to 12 % by family | " of("kernel") " |"
    print "| [a system whose backend was never measured](#a-system-whose-backend-was-never-measured), median over files | 20 % | " never " |"
    print "| [runs of serving engines](#runs-of-serving-engines) that no constant is fitted to, medians and shares by group and engine | by group | " of("rows") "; medians: " all " % |"
    print "| their share in the 80 % bands: TPOT and TTFT of vLLM, SGLang, TensorRT-LLM | 70 to 90 % | " within " of " bands " met: " held " % |"
    print "| [served runs, request by request](#served-runs-request-by-request): mean, P50 and P99 of TTFT and TPOT | 10 % | " of("served") sprintf(", the worst %+.1f %% off |", worst)
    print "| [BLIS\047 runs](#blis-runs-h100-vllm-0151-open-loop): E2E mean / TTFT mean / TTFT P99, medians | 6 / 15 / 25 % | " blis " |"
    print "| [a prefix by tier](#a-prefix-by-the-tier-that-serves-it), H20 and H200: TTFT | 15 % | " of("tier") " |"
    print "| [published figures](#published-figures) | theirs | " published " |"
}' "$1" "$1"
