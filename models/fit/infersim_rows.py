# SPDX-License-Identifier: Apache-2.0
"""infersim_rows.py SRC OUT: InferSim's kernel times of H20 (kernels by themselves) as kernel rows with
aiconfigurator's columns, for kvcast calibrate.
infersim_rows.py PROFILE.json: adds to the fitted profile what was not measured, bf16 weights, as closed forms."""
import csv
import json
import sys

READ = "reads as decode attention's longest rows (InferSim @f2293da)"
ASSUMED = [
    {"family": "gemm", "key": "bfloat16", "kind": "assumed", "constants": [3600, 0.94, 0.83], "params": [2, 2, 0, 0],
     "source": "share of peak as its fp8 products reach from 16384 tokens, " + READ + "; launch as H100's"},
    {"family": "moe", "key": "bfloat16", "kind": "assumed", "constants": [40000, 0.82, 0.81, 16], "params": [2, 0, 0, 0],
     "source": "share of peak as its fp8 experts reach at 16384 tokens, " + READ + " less H100's loss; launch as H100's"},
]


def rows(path):
    return [r for r in csv.DictReader(open(path)) if r["device"] == "h20"]


def write(path, columns, lines):
    with open(path, "w") as f:
        f.write(columns + "\n" + "".join(",".join(map(str, x)) + "\n" for x in lines))


def heads(r, tokens, step):
    h, kv, dim = r["shape"].split("-")
    cache = "fp8" if r.get("kv_dtype") == "fp8" else "bfloat16"
    return (r.get("batch_size") or 1, tokens, h, kv, dim, "bfloat16", cache, 0, step, float(r["latency_us"]) / 1e3)


def add_assumed(path):
    profile = json.load(open(path))
    profile["tables"] += [{**t, "range": "a closed form; not measured as a table"} for t in ASSUMED]
    profile["tables"].sort(key=lambda t: (t["family"], t["key"]))
    with open(path, "w") as f:
        f.write(json.dumps(profile, indent=1) + "\n")


def main():
    if len(sys.argv) == 2:
        return add_assumed(sys.argv[1])
    src, out = sys.argv[1:3]
    name = lambda family: f"{out}/h20__{family}__vllm__infersim.csv"
    columns = "batch_size,isl,num_heads,num_key_value_heads,head_dim,attn_dtype,kv_cache_dtype,window_size,step,latency"
    write(name("context_attention"), columns, [heads(r, r["seq_len"], 0) for r in rows(f"{src}/mha_prefill.csv")])
    write(name("generation_attention"), columns,
          [heads(r, 1, int(float(r["kv_len"])) - 1) for r in rows(f"{src}/mha_decode.csv")])
    # its dense products are fp8 in blocks
    write(name("gemm"), "gemm_dtype,m,n,k,latency",
          [("fp8_block", r["m"], r["n"], r["k"], float(r["latency_us"]) / 1e3) for r in rows(f"{src}/gemm.csv")])
    write(name("moe"), "moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,latency",
          [("fp8_block", r.get("batch_size_per_gpu") or r["seq_len_per_gpu"], r["hidden_size"], r["intermediate_size"], r["topk"],
            r["num_experts"], 1, 1, "balanced", (float(r["up_proj_us"]) + float(r["down_proj_us"])) / 1e3)
           for f in ("decode", "prefill") for r in rows(f"{src}/grouped_gemm_{f}.csv") if r["num_gpus"] == "1"])


main()
