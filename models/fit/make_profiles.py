#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes models/profiles/{hardware,llms,tables_mi300x_vllm}.json from collected fact files.

Usage: make_profiles.py SHARED_DIR OUT_DIR

SHARED_DIR holds hardware.json and llm_models.json; what they lack is in MORE_GPUS and MORE_LLMS. Every figure keeps its kind and source; a figure
that no source states is written with kind "assumed" and the reason. links.json and prices.json are
kept by hand.
"""
import json
import sys

# What a driver reports as total memory, where it differs from the datasheet's GB.
DRIVER = {"h100_sxm": 85e9, "h200_sxm": 150e9, "b200_sxm": 191e9}
LINKS = {"h100_sxm": "pcie5-x16", "h200_sxm": "pcie5-x16", "b200_sxm": "pcie5-x16",
         "gh200_96": "nvlink-c2c", "gh200_144": "nvlink-c2c", "gb200": "nvlink-c2c-gb200",
         "gb300": "nvlink-c2c-gb200", "a100_80": "pcie4-x16", "l40s": "pcie4-x16", "rtx_4090": "pcie4-x16"}
MEASURED = ("h100_sxm", "h200_sxm", "b200_sxm", "gb200", "a100_80", "l40s", "rtx_pro_6000")
# Where vLLM runs FlashAttention 2 (compute capability 8.x and 12.x; vllm/v1/attention/backends/fa_utils.py, platforms/cuda.py).
JOINT = ("a100_80", "l40s", "rtx_4090", "rtx_pro_6000")
ALSO = {"a100_80": "a100_sxm"}
# Whose kernels serve, as shares of peak, where a GPU was not measured: the nearest architecture.
LIKE = {"h200_sxm": "h100_sxm", "h100_sxm": "h200_sxm", "gh200_96": "h100_sxm", "gh200_144": "h200_sxm",
        "b300_sxm": "b200_sxm", "gb300": "gb200", "h100_pcie": "h100_sxm", "h800": "h100_sxm", "h20": "h100_sxm", "b200_sxm": "gb200",
        "gb200": "b200_sxm", "a100_80": "h100_sxm", "l40s": "h100_sxm", "mi300x": "h100_sxm",
        "rtx_4090": "rtx_pro_6000", "rtx_pro_6000": "l40s"}


# Workstation and desktop GPUs, which the collected systems lack: their data sheets' figures.
PRO, ADA = "RTX PRO 6000 Blackwell as announced (videocardz, 2025-03)", "waredb.com GeForce RTX 4090 page"
PCIE5, PCIE4 = "PCIe Gen5 x16", "PCIe Gen4 x16"


def desktop(i, name, gb, gb_source, gb_s, bf16, bf16_kind, bf16_source, fp4, pcie, per_dir, watts, source, spot, on_demand):
    def f(value, kind="datasheet", text=source):
        return {"value": value, "kind": kind, "source": text}
    return {"id": i, "name": name, "memory_gb": f(gb, gb_source[0], gb_source[1]), "hbm_gb_s": {"datasheet": f(gb_s)},
            "tflops_dense": {"bf16": f(bf16, bf16_kind, bf16_source), "fp8": f(2 * bf16, bf16_kind, bf16_source),
                             "fp4": f(fp4, bf16_kind, bf16_source) if fp4 else None},
            "host_link": {"type": pcie, "datasheet_gb_s_per_dir": f(per_dir, "datasheet", pcie)},
            "gpu_link": {"datasheet_gb_s_per_dir": f(per_dir, "datasheet", pcie + ", no NVLink")},
            "nic_gbit_per_gpu": f(100, "assumed", "a workstation's"), "tdp_w": f(watts),
            "rental": {"low": spot, "high": on_demand, "typical": None, "quotes": [{"source": "deploybase.ai RunPod pricing (2026-03-10)"}]}}


DESKTOP = [
    desktop("rtx_pro_6000", "NVIDIA RTX PRO 6000 Blackwell 96GB", 96, ("datasheet", PRO), 1792, 503.8, "datasheet",
            PRO + ": an eighth of the 4000 TOPS stated for sparse fp4", 2015, PCIE5, 64, 600, PRO, 0.89, 1.57),
    desktop("rtx_4090", "NVIDIA GeForce RTX 4090 24GB", 25.25,
            ("measured", "25250627584 bytes by the driver (LLMServingSim bench meta.json @5daddb2)"), 1008, 165.2, "datasheet",
            ADA + ", fp32 accumulation", None, PCIE4, 32, 450, ADA, 0.34, 0.60),
]


# How the checkpoint is published, where it isn't bf16.
WEIGHTS = {"DeepSeek-V3": "fp8_block", "DeepSeek-R1": "fp8_block", "DeepSeek-V3.2": "fp8_block",
           "Kimi-K2": "fp8_block", "Kimi-K2.5": "int4", "MiniMax-M2.5": "fp8_block", "gpt-oss-20b": "mxfp4", "gpt-oss-120b": "mxfp4",
           "Mistral-Medium-3.5-128B": "fp8"}

# Checkpoints whose int4 weights carry a scale for fewer than 128 of them.
INT4_GROUP = {"Kimi-K2.5": 32}
# use_qk_norm with qk_norm_type per_layer in the public config; engines (vLLM's MiniMaxText01RMSNormTP)
# all-reduce the sum of squares.
JOINT_QK_NORM = ["MiniMax-M2.5"]


# Multiprocessors (compute units) as the vendors' data sheets and architecture papers state them.
PROCESSORS = {"h100_sxm": 132, "h100_pcie": 114, "h200_sxm": 132, "h800": 132, "h20": 78, "gh200_96": 132, "gh200_144": 132,
              "b200_sxm": 148, "gb200": 148, "a100_80": 108, "l40s": 142, "mi300x": 304, "rtx_pro_6000": 188, "rtx_4090": 128}

# The last cache before HBM, MiB, and who states it; of the same chip in another product: assumed.
GUIDE = "docs.nvidia.com/cuda tuning guide of its architecture"
CACHE = {"h100_sxm": (50, "datasheet", GUIDE), "b200_sxm": (126, "datasheet", GUIDE), "a100_80": (40, "datasheet", GUIDE),
         "l40s": (96, "datasheet", GUIDE), "rtx_4090": (72, "datasheet", "vendor's architecture paper"),
         "rtx_pro_6000": (128, "datasheet", "vendor's architecture paper"),
         "mi300x": (256, "datasheet", "vendor's architecture paper: Infinity Cache"),
         "h100_pcie": (50, "published", "chipsandcheese.com 2023-07-02, of the card tested"),
         **{i: (50, "assumed", "as H100 SXM, the same chip") for i in ("h200_sxm", "h800", "h20", "gh200_96", "gh200_144")},
         **{i: (126, "assumed", "as B200") for i in ("gb200", "b300_sxm", "gb300")}}


def fig(value, kind, source):
    return {"value": value, "kind": kind, "source": source}


def scaled(f, by):
    return fig(round(f["value"] * by, 3), f["kind"], f["source"])


def ultra(i, name, yaml, memory, bytes_s, bf16, fp8, fp4, watt, nic, like):
    """A Blackwell Ultra GPU in the form of hardware.json: no kernels or copies of it were measured."""
    d = "NVIDIA Blackwell Ultra datasheet as in " + yaml
    ds = {"value": 64, "kind": "assumed", "source": "PCIe Gen5 x16 host; the datasheet has Gen6"}
    copies = {"h2d_measured": fig(201, "assumed", "as gb200"),
              "d2h_measured": fig(193, "assumed", "as gb200")} if like == "gb200" else {}
    return {"id": i, "name": name, "memory_gb": fig(memory, "measured", "as nvidia-smi reports it, " + yaml),
            "hbm_gb_s": {"datasheet": fig(bytes_s, "datasheet", d)},
            "tflops_dense": {"bf16": fig(bf16, "datasheet", d), "fp8": fig(fp8, "datasheet", d),
                             "fp4": fig(fp4, "datasheet", d)},
            "host_link": {"datasheet_gb_s_per_dir": ds, **copies},
            "gpu_link": {"datasheet_gb_s_per_dir": fig(900, "datasheet", d)},
            "nic_gbit_per_gpu": fig(nic, "datasheet", d), "tdp_w": fig(watt, "datasheet", d),
            "rental": {"low": None, "high": None, "typical": None, "quotes": [], "like": like}}


MORE_GPUS = [
    ultra("b300_sxm", "NVIDIA B300 SXM 288GB", "simone-chen/aiconfigurator systems/b300_sxm.yaml @84ba8996",
          288.400343, 7750, 2250, 4500, 14000, 1100, 800, "b200_sxm"),
    ultra("gb300", "NVIDIA GB300 (per GPU, NVL72)", "liyuanzhe1991/aiconfigurator systems/gb300.yaml @f2b9379c",
          298.013688, 8000, 2500, 5000, 15000, 1400, 200, "gb200")]


def more_llms(models):
    """Models that share another's geometry."""
    k2 = dict(next(m for m in models if m["name"] == "Kimi-K2"))
    k2.update(name="Kimi-K2.5", max_position_embeddings=262144,
              source="geometry of Kimi-K2, as the text_config of public kimi_k25 configurations; routed experts in int4 in groups "
                     "of 32, the rest bf16 (ROCm/ATOM recipes/Kimi-K2.5.md); vision tower not counted")
    return [k2] + [plain(*m) for m in PLAIN] + [scout(), nemotron(), qwen3_next()]


# Plain dense models of public serving runs: name, layers, hidden, intermediate, heads, KV heads, vocabulary, longest, 1e9 parameters.
PLAIN = [("Llama-2-7B", 32, 4096, 11008, 32, 32, 32000, 4096, 6.74), ("Qwen2.5-7B", 28, 3584, 18944, 28, 4, 152064, 32768, 7.62),
         ("Qwen3-14B", 40, 5120, 17408, 40, 8, 151936, 40960, 14.77),
         ("Mistral-Nemo-12B", 40, 5120, 14336, 32, 8, 131072, 131072, 12.25),
         ("CodeLlama-34B", 48, 8192, 22016, 64, 8, 32000, 16384, 33.74)]


def plain(name, layers, hidden, inter, heads, kv, vocab, longest, params):
    return {"name": name, "source": "its public config.json", "layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
            "num_kv_heads": kv, "head_dim": 128, "vocab_size": vocab, "intermediate_size": inter, "max_position_embeddings": longest,
            "kv_bytes_per_token": {"bf16_total_all_layers": 2 * layers * kv * 128 * 2},
            "params_total_computed_b": params, "params_active_computed_b": params}


def scout():
    m = plain("Llama-4-Scout-17B-16E", 48, 5120, None, 40, 8, 202048, 1048576, 107.77)
    m.update(params_active_computed_b=17.17, moe={"num_experts": 16, "top_k": 1, "intermediate_size": 8192, "shared_intermediate_total": 8192},
             source="its public config.json, text part; layers that attend in chunks of 8192 are taken as full ones")
    return m


def nemotron():
    """52 blocks of one part each, 23 of mamba2, 23 of experts and 6 of attention, as 29 layers that attend, 6 of them without a
    feed-forward part. Parameters as they add up (31.58e9): published as 31.6e9."""
    h, vocab, width, groups, heads, state = 2688, 131072, 4096, 8, 64, 128
    into = 2 * width + 2 * groups * state + heads
    params = 23 * (h * into + width * h + 4 * (width + 2 * groups * state)) + 6 * h * 128 * (2 * 32 + 2 * 2) + \
        23 * (2 * h * (128 * 1856 + 3712) + 128 * h) + 2 * vocab * h
    m = plain("Nemotron-3-Nano-30B-A3B", 29, h, None, 32, 2, vocab, 262144, round(params / 1e9, 2))
    m.update(params_active_computed_b=3.6, moe={"num_experts": 128, "top_k": 6, "intermediate_size": 1856, "shared_intermediate_total": 3712},
             kv_bytes_per_token={"bf16_total_all_layers": 6 * 2 * 2 * 128 * 2},
             linear_attention={"type": "mamba2", "layers": 23, "key_heads": groups, "value_heads": heads, "value_dim": state, "width": into,
                               "value_width": width, "state_bytes_per_sequence_fp32": 23 * width * state * 4,
                               "conv_state_bytes_per_sequence_bf16": 23 * 3 * (width + 2 * groups * state) * 2},
             source="Nemotron3NanoProvider of NVIDIA-NeMo/Megatron-Bridge @d9f7643b; 23 mamba2, 23 expert and 6 attention blocks")
    return m


def qwen3_next():
    """48 layers, every fourth with gated attention, the others gated delta nets. Parameters as they add up (79.67e9): published as 80e9."""
    h, vocab, keys, values, width = 2048, 151936, 16, 32, 128
    channels = 2 * keys * width + values * width
    params = 48 * (3 * h * 512 * (512 + 1) + h * 512) + 12 * h * 256 * (3 * 16 + 2 * 2) + \
        36 * (h * (channels + values * width + 2 * values) + values * width * h + 4 * channels) + 2 * vocab * h
    m = plain("Qwen3-Next-80B-A3B", 48, h, None, 16, 2, vocab, 262144, round(params / 1e9, 2))
    m.update(head_dim=256, params_active_computed_b=3.0,
             moe={"num_experts": 512, "top_k": 10, "intermediate_size": 512, "shared_intermediate_total": 512},
             kv_bytes_per_token={"bf16_total_all_layers": 12 * 2 * 2 * 256 * 2},
             linear_attention={"type": "gated delta net", "layers": 36, "key_heads": keys, "key_dim": width, "value_heads": values,
                               "value_dim": width, "state_bytes_per_sequence_fp32": 36 * values * width * width * 4,
                               "conv_state_bytes_per_sequence_bf16": 36 * 3 * channels * 2},
             source="its public config.json (Qwen/Qwen3-Next-80B-A3B-Instruct); MTP head not counted")
    return m


def gpu(s):
    i = s["id"]
    hbm, tf, hl = s["hbm_gb_s"], s["tflops_dense"], s["host_link"]
    mem = scaled(s["memory_gb"], 1e9)
    if i in DRIVER:
        mem = fig(DRIVER[i], "assumed", "total as drivers report it; KV-limited public engine rows fit it (aiconfigurator silicon_sample.csv @095f58a)")
    ds = hl["datasheet_gb_s_per_dir"]

    def host(key):
        f = hl.get(key)
        if f and f["value"] is not None:
            return scaled(f, 1e9)
        return fig(round(0.8 * ds["value"]) * 1e9, "assumed",
                   f"0.8 of {ds['value']:g} GB/s ({ds['source']}); H100 reaches 0.8")
    tdp = s.get("tdp_w")
    if not tdp or not isinstance(tdp["value"], (int, float)):
        tdp = fig(700, "assumed", f"stated as '{tdp['value']}' ({tdp['source']})" if tdp else "as H100 SXM")
    r = s["rental"]
    if r["typical"] is not None:
        q = "; ".join(str(x["source"]) for x in r["quotes"][:2])
        usd = fig(r["typical"], "published", f"typical of posted prices {r['low']}..{r['high'] or r['low']}: {q}")
    elif r["low"] and r["high"]:
        usd = fig(round((r["low"] + r["high"]) / 2, 2), "assumed",
                  f"middle of posted prices {r['low']}..{r['high']}: {r['quotes'][0]['source']}")
    elif "like" in r:
        usd = fig(5.5, "assumed", "no posted price seen; about a B200's")
    else:
        usd = fig(3.0, "assumed", "no posted price seen; about an H100's")
    nic = s["nic_gbit_per_gpu"]
    gl = s.get("gpu_link", {}).get("datasheet_gb_s_per_dir")
    if gl:
        link = scaled(gl, 1e9)
    else:
        link = fig(58e9, "assumed", "staged copy between two GH200 (dnhkng.github.io); no GPU link stated")
    if hbm["datasheet"]["source"] == "same":
        hbm["datasheet"]["source"] = s["memory_gb"]["source"]
    return {
        "id": i, "name": s["name"], "host_link": LINKS.get(i, "pcie5-x16"),
        **({"also": ALSO[i]} if i in ALSO else {}), "kernels_like": LIKE.get(i),
        **({"no_backend": "trtllm"} if s["name"].startswith("AMD") else {}),
        "kernels_measured": i in MEASURED, **({"joint_attention": True} if i in JOINT else {}),
        "memory_bytes": mem, "hbm_bytes_per_s": scaled(hbm["datasheet"], 1e9),
        "bf16_flops": scaled(tf["bf16"], 1e12),
        "fp8_flops": scaled(tf["fp8"] or fig(tf["bf16"]["value"], "assumed", "no fp8 units: bf16 rate"), 1e12),
        "fp4_flops": scaled(tf["fp4"], 1e12) if tf.get("fp4") else None,
        **({"multiprocessors": fig(PROCESSORS[i], "datasheet", "vendor's architecture paper")} if i in PROCESSORS else {}),
        "l2_bytes": fig(CACHE[i][0] << 20, *CACHE[i][1:]),
        "tdp_w": fig(tdp["value"], tdp["kind"], tdp["source"]), "usd_per_hour": usd,
        "h2d_bytes_per_s": host("h2d_measured"), "d2h_bytes_per_s": host("d2h_measured"),
        "nic_bytes_per_s": scaled(nic, 1e9 / 8), "gpu_link_bytes_per_s": link,
        **({"peer_links": fig(7, "datasheet", "7 x 64 GB/s: a link to each of the other seven, no switch")} if i == "mi300x" else {})}


def dense_layers(o):
    """How many layers have a dense FFN: the only count at which the parameters add up."""
    h, heads, dim = o["hidden"], o["heads"], o["head_dim"]
    if "kv_lora_rank" in o:
        qk = o["qk_nope_dim"] + o["qk_rope_dim"]
        attn = h * o["q_lora_rank"] + o["q_lora_rank"] * heads * qk + \
            h * (o["kv_lora_rank"] + o["qk_rope_dim"]) + \
            o["kv_lora_rank"] * heads * (o["qk_nope_dim"] + o["v_head_dim"]) + heads * o["v_head_dim"] * h
    else:
        attn = h * dim * (2 * heads + 2 * o["kv_heads"])
    moe = 3 * h * (o["experts"] * o["expert_intermediate"] + o["shared_intermediate"]) + h * o["experts"]
    dense = 3 * h * o["intermediate"]
    rest = o["params_total_b"] * 1e9 - 2 * o["vocab"] * h - o["layers"] * attn
    n = (o["layers"] * moe - rest) / (moe - dense)
    print(o["name"], "dense layers", round(n, 2))
    if abs(n - round(n)) > 0.1 or n < -0.1:
        return 0
    return max(0, round(n))


def llm(m):
    kv, moe, mla = m["kv_bytes_per_token"], m.get("moe") or {}, m.get("mla") or {}
    win, lin = m.get("sliding_window") or {}, m.get("linear_attention") or {}
    sp = m.get("sparse_attention") or {}
    o = {"name": m["name"], "source": m["source"], "weights_dtype": WEIGHTS.get(m["name"], "bf16"), "layers": m["layers"], "hidden": m["hidden_size"],
         "heads": m["num_attention_heads"], "kv_heads": m["num_kv_heads"], "head_dim": m["head_dim"],
         "vocab": m.get("vocab_size"), "intermediate": m.get("intermediate_size"),
         "max_position": m.get("max_position_embeddings"),
         "params_total_b": m.get("params_total_computed_b"),
         "params_active_b": m.get("params_active_computed_b"),
         "kv_bytes_per_token_bf16": kv.get("bf16_unbounded_layers_only", kv["bf16_total_all_layers"])}
    if moe:
        o.update(experts=moe["num_experts"], top_k=moe["top_k"],
                 expert_intermediate=moe["intermediate_size"],
                 shared_intermediate=moe["shared_intermediate_total"])
    if mla:
        o.update(kv_lora_rank=mla["kv_lora_rank"], q_lora_rank=mla["q_lora_rank"],
                 qk_rope_dim=mla["qk_rope_head_dim"], qk_nope_dim=mla["qk_nope_head_dim"],
                 v_head_dim=mla["v_head_dim"])
    if win:
        o.update(window_layers=win["layers"], window_tokens=win["window"])
        if "full_kv_heads" in win:
            o.update(window_kv_heads=win["kv_heads"], window_head_dim=win["head_dim"],
                     kv_heads=win["full_kv_heads"], head_dim=win["full_head_dim"])
    if lin:
        o.update(linear_layers=lin["layers"], linear_state_bytes=lin["state_bytes_per_sequence_fp32"],
                 linear_conv_bytes=lin["conv_state_bytes_per_sequence_bf16"],
                 linear_width=lin.get("width") or 2 * lin["key_heads"] * lin["key_dim"] + 2 * lin["value_heads"] * lin["value_dim"],
                 linear_value_width=lin.get("value_width") or lin["value_heads"] * lin["value_dim"],
                 linear_kind="mamba2" if lin["type"] == "mamba2" else "kda" if "kimi" in lin["type"] else "gdn",
                 linear_key_heads=lin["key_heads"],
                 linear_value_heads=lin["value_heads"], linear_head_dim=lin["value_dim"])
    if sp:
        o.update(indexer_dim=sp["index_head_dim"], index_heads=sp["index_n_heads"], sparse_tokens=sp["index_topk"])
    if m["name"] in JOINT_QK_NORM:
        o["joint_qk_norm"] = 1
    if lin and lin["type"] == "mamba2":
        o.update(ungated=1, dense_layers=m["layers"] - lin["layers"])
    if m["name"] in INT4_GROUP:
        o["int4_group"] = INT4_GROUP[m["name"]]
    if moe and o["intermediate"] and o["params_total_b"]:
        o["dense_layers"] = dense_layers(o)
    if m.get("compressed_attention"):
        o["compressed_kv"] = True
    missing = [k for k in ("vocab", "params_total_b") if not o[k]]
    if not o["intermediate"] and not o.get("experts"):
        missing.append("intermediate")
    if m.get("compressed_attention"):
        missing.append("the cost of compressed attention")
    if m.get("moe_note"):
        missing.append("expert sizes")
    if missing:
        o["no_step_model"] = "not known: " + ", ".join(missing)
    return {k: v for k, v in o.items() if v is not None}


def mi300x():
    """MI300X was not measured as tables: closed forms on published single points."""
    copy = "4.11 TB/s copy (BabelStream, AI-benchmarking-guide ND_MI300X_v5, samuel-bohman @3de0c294)"
    aiter = "own fit: ROCm/aiter tuned block-scale fp8 @e4048607, 304 CUs; winners of an autotuner, few rows at m <= 64"
    bf = "668 TFLOP/s best shape (stas00/ml-engineering @744d01e1, MAMF, torch 2.5.1) and " + copy + "; launch as H100's"
    fa = "flash attention 2 forward 329 TFLOP/s (d 64, batch 2, 8192 tokens); launch, padding and tiles as H100's"
    tables = []
    def t(family, key, kind, source, constants, params):
        tables.append({"family": family, "key": key, "kind": kind, "source": source, "range": "a closed form; not measured as a table",
                  "constants": constants, "params": params})
    t("gemm", "bfloat16", "assumed", bf, [3600, 0.511, 0.775], [2, 2, 0, 0])
    for k in ("fp8", "fp8_block"):
        t("gemm", k, "fitted", aiter, [13600, 0.313, 0.488], [1, 1, 1, 0])
    for kv, size in (("bfloat16", 2), ("fp8", 1)):
        t("generation_attention", f"bfloat16 {kv} d128 w0", "assumed", copy + "; launch as H100's", [12748, 0.775], [size, 128, 0, 0])
        t("context_attention", f"bfloat16 {kv} d128 w0", "assumed", fa, [13501, 0.2514, 0.5, 304], [size, 128, 0, 0])
    return {"schema": "kvcast.kernels.v2", "gpu": "mi300x", "backend": "vllm", "version": "0", "tables": tables}


def rtx4090():
    """No tables of RTX 4090 are public: matrix products and decode attention by published single points."""
    read = "921 GB/s read (clpeak, krrishnarraj/clpeak#106, at 248 W)"
    points = "158.6 TFLOP/s fp16 at 8192 cubed (mli/transformers-benchmarks#4) and " + read
    tables = [{"family": family, "key": key, "kind": "assumed", "source": source, "constants": constants, "params": params,
               "range": "a closed form; not measured as a table"} for family, key, source, constants, params in (
        ("gemm", "bfloat16", points + "; launch as H100's", [3600, 0.96, 0.914], [2, 2, 0, 0]),
        ("generation_attention", "bfloat16 bfloat16 d128 w0", read + "; launch as RTX PRO 6000's", [14320, 0.914],
         [2, 128, 0, 0]))]
    return {"schema": "kvcast.kernels.v2", "gpu": "rtx_4090", "backend": "vllm", "version": "0", "tables": tables}


def write(path, obj):
    with open(path, "w") as f:
        f.write(json.dumps(obj, indent=1) + "\n")


def main():
    shared, out = sys.argv[1:3]
    hw = json.load(open(f"{shared}/hardware.json"))
    write(f"{out}/hardware.json", {"schema": "kvcast.hardware.v1", "date": hw["date"],
                                   "gpus": [gpu(s) for s in hw["systems"] + MORE_GPUS + DESKTOP]})
    ms = json.load(open(f"{shared}/llm_models.json"))
    write(f"{out}/llms.json", {"schema": "kvcast.llms.v1", "date": ms["date"],
                               "llms": [llm(m) for m in ms["models"] + more_llms(ms["models"])]})
    write(f"{out}/tables_mi300x_vllm.json", mi300x())
    write(f"{out}/tables_rtx_4090_vllm.json", rtx4090())


main()
