# SPDX-License-Identifier: Apache-2.0
"""host_constants.py KVCAST SHARED ENGINES.json [BACKEND..]: of the backends named the host constants as `kvcast calibrate --rows`
fits them today, of the others those carried, with a source that says what today's fit would make of them; of all the band of
the constants that the profile then has."""
import json
import math
import os
import re
import subprocess
import sys
import tempfile

ROWS = "validation/aiconfigurator_silicon/silicon_sample.csv.zst"
HALF = ("half of the configurations of aiconfigurator silicon_sample.csv @095f58a, aggregated serving, each model, system and format "
        "counted alike, none of models with sparse or linear attention")
FIT = "robust least squares (kvcast calibrate --rows) on " + HALF + "; one set for all models and GPUs{}; the other half in docs/accuracy.md"
HELD = "as an earlier fit had it, " + FIT
APART = "not fitted: mixed_step_share says what steps with prefill take more"
NOTHING = "none shows in " + HALF + " (kvcast calibrate --rows, standard error {})"
BAND = ("of {configurations} configurations ({rows} rows) 9 of 10 lie above, 9 of 10 below; of those left out {ttft:.0f} % of TTFT, {tpot:.0f} % of TPOT within "
        "(kvcast calibrate --rows)")


def fit(kvcast, shared):
    with tempfile.NamedTemporaryFile(suffix=".csv") as f:
        subprocess.run(["zstd", "-dqc", os.path.join(shared, ROWS)], stdout=f, check=True)
        out = subprocess.run([kvcast, "calibrate", "--rows", f.name], stdout=subprocess.PIPE, check=True)
    return {e["backend"]: e for e in json.loads(out.stdout)["engines"]}


def three_digits(x):
    return int(float(f"{x:.3g}"))


def time(ns):
    for size, unit in ((1e6, "ms"), (1e3, "us")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def constant(line, key, c, refit):
    old = json.loads("{" + line.strip().rstrip(",") + "}")[key]
    told = "not_told" not in c
    error = time(c["standard_error"])
    if refit and told:
        new = {"value": three_digits(c["value"]), "kind": "fitted", "source": FIT.format(", standard error " + error)}
    elif old["value"] or told:
        today = f"; today's says {time(c['value'])}, standard error {error}" if told else f"; today's does not tell it, standard error {error}"
        new = {"value": old["value"], "kind": "fitted", "source": HELD.format(today)}
    else:
        new = {"value": 0, "kind": "assumed", "source": NOTHING.format(error) if c["standard_error"] else APART}
    return f'   "{key}": {json.dumps(new)},\n'


def band(e, refit):
    b = dict(e["band" if refit else "band_of_carried"])
    held = b.pop("left_out")["all"]
    for k in b:
        if k.endswith("low"):
            b[k] = math.floor(1000 * b[k]) / 1000
        elif k.endswith("high"):
            b[k] = math.ceil(1000 * b[k]) / 1000
    b["source"] = BAND.format(rows=held["rows"], configurations=held["configurations"], ttft=100 * held["ttft_covered"],
                              tpot=100 * held["tpot_covered"])
    return f'   "band": {json.dumps(b)}\n'


def main():
    engines, engine, lines = fit(sys.argv[1], sys.argv[2]), None, []
    for line in open(sys.argv[3]):
        key = re.match(r' *\{?"(\w+)":', line)
        key = key.group(1) if key else ""
        if key == "backend":
            name = line.split('"')[3]
            engine, refit = engines.get(name), name in sys.argv[4:]
        if key == "band" and engine:
            line = band(engine, refit)
        elif engine and key in engine and isinstance(engine[key], dict):
            line = constant(line, key, engine[key], refit)
        lines.append(line)
    with open(sys.argv[3], "w") as f:
        f.writelines(lines)


main()
