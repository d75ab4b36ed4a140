# SPDX-License-Identifier: Apache-2.0
"""llmservingsim_rows.py SRC OUT: LLMServingSim's layer profile of RTX PRO 6000 (vLLM, bf16, one GPU)
as kernel rows with aiconfigurator's columns, for kvcast calibrate."""
import csv, io, subprocess, sys

# layer -> (n, k), heads, KV heads of a model; every head is 128 wide
MODELS = {
    "meta-llama_Llama-3.1-8B": ({"qkv_proj": (6144, 4096), "o_proj": (4096, 4096), "gate_up_proj": (28672, 4096),
                                 "down_proj": (4096, 14336), "lm_head": (128256, 4096)}, 32, 8),
    "Qwen_Qwen3-32B": ({"qkv_proj": (10240, 5120), "o_proj": (5120, 8192), "gate_up_proj": (51200, 5120),
                        "down_proj": (5120, 25600), "lm_head": (151936, 5120)}, 64, 8),
    "Qwen_Qwen3-30B-A3B-Instruct-2507": ({"qkv_proj": (5120, 2048), "o_proj": (2048, 4096),
                                          "lm_head": (151936, 2048)}, 32, 4),
}


def rows(path):
    text = subprocess.check_output(["zstd", "-dc", path], text=True) if path.endswith(".zst") else open(path).read()
    return list(csv.DictReader(io.StringIO(text)))


def write(path, columns, lines):
    with open(path, "w") as f:
        f.write(columns + "\n" + "".join(",".join(map(str, x)) + "\n" for x in lines))


def at(points, x):
    """Between measured (x, y), along the nearest two beyond them."""
    points = sorted(points)
    i = next((i for i in range(1, len(points)) if x <= points[i][0]), len(points) - 1)
    (a, ya), (b, yb) = points[i - 1], points[i]
    return ya + (yb - ya) * (x - a) / (b - a)


# A rank that holds half of 128 experts of 2048 x 768, by the tokens of both, 8 experts each: us. vLLM gathers all tokens, so that
# sorting, activation and sum see choices of the other rank's experts too. LLMServingSim @0d3de681 (profiler/perf/RTXPRO6000,
# moe_components, rank 0, experts in a graph, weights not in L2), between the numbers of experts measured as in experts() below.
DEALT = {1: 40.4, 2: 68.4, 3: 86.8, 4: 109.2, 6: 147.0, 8: 181.2, 11: 225.3, 16: 287.2, 23: 342.1, 32: 382.0, 45: 403.0, 64: 420.1,
         91: 429.9, 128: 445.2, 181: 447.7, 256: 445.6, 362: 461.5, 512: 473.5, 724: 500.3, 1024: 521.4, 1448: 551.3, 2048: 590.8,
         2896: 688.5, 4096: 783.6}


def experts(measured):
    """(tokens, us) of 128 experts, each token choosing 8 alike: so many wake."""
    grid = {}
    for r in measured:
        grid.setdefault(int(r["tokens"]), []).append((int(r["activated_experts"]), float(r["time_us"])))
    return [(tokens, at(points, 128 * (1 - (1 - 8 / 128) ** tokens)) if len(points) > 1 else points[0][1])
            for tokens, points in grid.items()]


def main():
    src, out = sys.argv[1:3]
    gemm, past, decode = [], [], []
    moe = rows(f"{src}/rtxpro6000_v1_Qwen_Qwen3-30B-A3B-Instruct-2507_bf16_tp1_moe.csv")
    for model, (shapes, heads, kv_heads) in MODELS.items():
        base = f"{src}/rtxpro6000_v1_{model}_bf16_tp1_"
        for part, axis in (("dense.csv", "tokens"), ("per_sequence.csv", "sequences")):
            for r in rows(base + part):
                if r["layer"] in shapes:
                    n, k = shapes[r["layer"]]
                    gemm.append(("bfloat16", r[axis], n, k, float(r["time_us"]) / 1e3))
        for r in rows(base + "attention.csv.zst"):
            q, p, n, c = (int(r[x]) for x in ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode"))
            ms = float(r["time_us"]) / 1e3
            head = (heads, kv_heads, 128, "bfloat16", "bfloat16")
            if n == 0 and p == 0 and q:
                past.append((1, q) + head + (0, 0, ms))
            elif q == 0 and n:
                decode.append((n, 1) + head + (0, c - 1, ms))
    name = lambda family, version="v1": f"{out}/rtx_pro_6000__{family}__vllm__{version}.csv"
    write(name("gemm"), "gemm_dtype,m,n,k,latency", gemm)
    heads = "batch_size,isl,num_heads,num_key_value_heads,head_dim,attn_dtype,kv_cache_dtype,window_size,step,latency"
    write(name("context_attention"), heads, past)
    write(name("generation_attention"), heads, decode)
    write(name("moe", "v1; of two GPUs: @0d3de681"),
          "moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,latency",
          [("bfloat16", tokens, 2048, 768, 8, 128, 1, ranks, "balanced", us / 1e3)
           for ranks, points in ((1, experts(moe)), (2, DEALT.items())) for tokens, us in points])


main()
