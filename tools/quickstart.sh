#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# quickstart.sh [TRACE]: replays an hour of generated RAG chat, or the user's own log, on the
# preset kga-rag and leaves a report. Called by `make quickstart`, which has built the program.
set -e
out=build/quickstart
mkdir -p $out
trace=${1:-}
if [ -z "$trace" ]; then
    trace=$out/rag-chat.jsonl
    echo "generating an hour of RAG chat into $trace (seed 1)"
    build/kvcast gen rag-chat --duration 1h --seed 1 -o $trace
elif [ "$trace" != - ] && [ ! -e "$trace" ]; then
    echo "quickstart: $trace: there is no such file; give TRACE=path of your log" >&2
    exit 3
fi
echo "replaying it on the preset kga-rag ('build/kvcast show preset kga-rag' tells what that is)"
echo
build/kvcast replay "$trace" --preset kga-rag --report $out/report.html
echo
echo "open $out/report.html in a browser: the report for people"
[ -z "$1" ] || echo "another model, GPU or size: build/kvcast replay $trace --model NAME --gpu NAME --tp N --replicas N"
