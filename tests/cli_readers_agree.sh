#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fast readers against careful ones on every row of the shared logs.
. "$(dirname "$0")/tap.sh"
traces=../shared/traces

agree() { # name, logs..
    name=$1
    shift
    if [ ! -e "$1" ]; then
        n=$((n + 1)); echo "ok $n - $name # SKIP ../shared is not here"
        return
    fi
    "$kvcast" import --quiet --compare-readers "$@" -o "$dir/t.kvt" 2>"$dir/err"
    fine=$?
    [ $fine = 0 ] || sed 's/^/# /' "$dir/err"
    report $fine "$name"
}

agree "Mooncake" $traces/mooncake/conversation_trace.jsonl.zst
for f in $traces/llmservingsim/workloads/*; do
    agree "LLMServingSim, $(basename "$f")" "$f"
done
agree "Azure" $traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv.zst
agree "lmcache-agent, miniswe" $traces/lmcache-agent-trace/miniswe.tar.zst
agree "lmcache-agent, taubench" $traces/lmcache-agent-trace/taubench.tar.zst
for f in $traces/aibrix/workload/*; do
    agree "AIBrix, $(basename "$f")" "$f"
done
agree "messages" ../shared/cases/inputs/c38-timestamp-in-system.aiperf-messages.jsonl

echo "1..$n"
exit $failed
