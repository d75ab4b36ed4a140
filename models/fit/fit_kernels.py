#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits models/profiles/kernels_GPU_BACKEND.json from measured kernel tables.

Usage: fit_kernels.py KERNELS_DIR OUT_DIR [GPU ...]

KERNELS_DIR holds aic/*.csv.zst and fitted_constants.json. Only kernel rows are read here, never an
end-to-end row. Needs python3 (standard library) and zstd; neither is needed to build kvcast.
"""
import csv
import io
import json
import math
import subprocess
import sys

BACKEND = "vllm"
VERSION = "0.24.0"
# Datasheet peaks, as in hardware.json: bf16 FLOP/s, fp8 FLOP/s, fp4 FLOP/s, HBM bytes/s.
PEAK = {
    "h100_sxm": (989e12, 1979e12, 0, 3350e9),
    "h200_sxm": (989e12, 1979e12, 0, 4800e9),
    "b200_sxm": (2250e12, 4500e12, 9000e12, 7700e9),
    "gb200": (2500e12, 5000e12, 10000e12, 8000e9),
}
# Odd m pays for padding that serving engines do not run; the tables keep m <= 16 and multiples of 16.
M_KNOTS = [1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512, 768, 1024, 1280,
           1536, 1792, 2048, 2560, 3072, 3584, 4096, 8192, 16384, 32768]
S_KNOTS = [64, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 10240, 12288, 16384]
# Rows' dtype, bytes of an activation and a weight, which peak, whose table, and the separate quantise
# launch in it that engines fuse (a form checked on aiconfigurator's silicon_sample.csv @095f58a).
DTYPES = {"bf16": ("bfloat16", 2.0, 2.0, 0, BACKEND, VERSION, 0),
          "fp8": ("fp8", 1.0, 1.0, 1, BACKEND, VERSION, 4800),
          "fp8_block": ("fp8_block", 1.0, 1.0, 1, "trtllm", "1.3.0rc20", 3500),
          "nvfp4": ("nvfp4", 0.5625, 0.5625, 2, BACKEND, VERSION, 0)}
MOE_DTYPES = {"bf16": ["bfloat16"], "fp8": ["fp8"], "fp8_block": ["fp8_block"], "nvfp4": ["nvfp4"],
              "mxfp4": ["w4a8_mxfp4_mxfp8", "w4a16_mxfp4"], "int4": ["int4_wo"]}
MOE_TOKENS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768]


def rows(path):
    if path.endswith(".zst"):
        data = subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
        return csv.DictReader(io.StringIO(data.decode()))
    return csv.DictReader(open(path, newline=""))


def origin(path):
    """Where a reader finds the rows: aiconfigurator's tables, named system, table, engine, version."""
    name = path.split("/")[-1].removesuffix(".zst").removesuffix(".csv")
    return "aiconfigurator @095f58a " + name.replace("__", " ")


def roofline_us(m, n, k, c, ab, wb, peak, bw):
    """Three constants: overhead + max(compute, memory)."""
    ov, ec, eb = c
    return ov + 1e6 * max(2.0 * m * n * k / (ec * peak),
                          (m * k * ab + n * k * wb + 2.0 * m * n) / (eb * bw))


def pct(v, q):
    v = sorted(v)
    return v[min(len(v) - 1, int(q * len(v)))] if v else float("nan")


def residual(errors):
    """Signed relative errors -> the figures the profile keeps."""
    a = [abs(e) for e in errors]
    return {"rows": len(a), "mape_percent": round(100 * sum(a) / len(a), 2),
            "p90_percent": round(100 * pct(a, 0.9), 2),
            "bias_percent": round(100 * pct(errors, 0.5), 2)}


def interp_log(xs, ys, x):
    if x <= xs[0]:
        return ys[0]
    for i in range(1, len(xs)):
        if x <= xs[i]:
            f = math.log(x / xs[i - 1]) / math.log(xs[i] / xs[i - 1])
            return ys[i - 1] + f * (ys[i] - ys[i - 1])
    return ys[-1]


def nearest_ratio(table, n, k, skip=None):
    """Mean ratio row of the nearest four (n, k) or (heads, kv heads), inverse distance in log2."""
    d = []
    for (a, b), r in table.items():
        if (a, b) == skip:
            continue
        dist = math.hypot(math.log2(a / n), math.log2(b / k))
        d.append((dist, (a, b)))
    d.sort()
    if d[0][0] == 0.0:
        return table[d[0][1]]
    w = [1.0 / x[0] for x in d[:4]]
    rs = [table[x[1]] for x in d[:4]]
    return [sum(wi * r[i] for wi, r in zip(w, rs)) / sum(w) for i in range(len(rs[0]))]


def gemm_table(path, gpu, backend, key, dtype, ab, wb, pk, quantise_ns, c):
    data = {}
    for r in rows(path):
        m, n, k = int(r["m"]), int(r["n"]), int(r["k"])
        if r["gemm_dtype"] == dtype and n >= 256 and k >= 256 and (m <= 16 or m % 16 == 0):
            data.setdefault((n, k), {})[m] = 1e3 * float(r["latency"])
    peak, bw = PEAK[gpu][pk], PEAK[gpu][3]
    table = {}
    for nk, ms in sorted(data.items()):
        if len(ms) < 12:
            continue
        xs = sorted(ms)
        ys = [ms[m] / roofline_us(m, *nk, c, ab, wb, peak, bw) for m in xs]
        table[nk] = [max(1, round(100 * interp_log(xs, ys, m))) for m in M_KNOTS]
    errs, loo = [], []
    for nk, ms in data.items():
        other = nearest_ratio(table, *nk, skip=nk)
        for m, t in ms.items():
            a = roofline_us(m, *nk, c, ab, wb, peak, bw)
            if nk in table:
                errs.append(a * interp_log(M_KNOTS, table[nk], m) / 100 / t - 1)
            if nk[0] >= 512 and nk[1] >= 512:
                loo.append(a * interp_log(M_KNOTS, other, m) / 100 / t - 1)
    out = {
        "kind": "fitted" if backend == BACKEND else "assumed",
        "source": f"{origin(path)} ({dtype}); roofline constants fitted to it" +
        ("" if backend == BACKEND else f"; {BACKEND}'s own table carries a host launch floor, so {backend}'s"),
        "overhead_us": c[0], "compute_efficiency": c[1], "bandwidth_efficiency": c[2],
        "activation_bytes": ab, "weight_bytes": wb, "quantise_ns": quantise_ns,
        "range": "m 1..32768, n and k 256..65536", "residual": residual(errs),
        "residual_other_shape": residual(loo),
        "m": " ".join(map(str, M_KNOTS)),
        "percent_of_roofline": [f"{n} {k}: " + " ".join(map(str, r)) for (n, k), r in sorted(table.items())]}
    print(gpu, key, len(table), out["residual"], out["residual_other_shape"])
    return out


def fit_gemm(kernels, gpu, consts):
    out, names = {}, []
    for key, (dtype, ab, wb, pk, backend, version, quantise_ns) in DTYPES.items():
        name = f"{gpu}__gemm__{backend}__{version}.csv.zst"
        if (gpu, backend, dtype) not in consts:
            continue
        out[key] = gemm_table(f"{kernels}/aic/{name}", gpu, backend, key, dtype, ab, wb, pk, quantise_ns,
                              consts[(gpu, backend, dtype)])
        if name not in names:
            names.append(name)
    return out, names


def least_abs(errfn, x, steps=400):
    """Direct search on the mean absolute log error, multiplicative steps."""
    best, size = errfn(x), 0.3
    for _ in range(steps):
        moved = False
        for i in range(len(x)):
            for s in (1 + size, 1 / (1 + size)):
                y = list(x)
                y[i] *= s
                e = errfn(y)
                if e < best - 1e-9:
                    best, x, moved = e, y, True
        if not moved:
            size /= 2
            if size < 0.002:
                break
    return x


def attention_rows(path, lo):
    out = {}
    for r in rows(path):
        if r["attn_dtype"] != "bfloat16" or int(r["window_size"]):
            continue
        B, H, G, D = (int(r[x]) for x in ("batch_size", "num_heads", "num_key_value_heads", "head_dim"))
        L = int(r["isl"]) + int(r["step"]) if lo else int(r["isl"])
        kv = {"bfloat16": "bf16", "fp8": "fp8"}[r["kv_cache_dtype"]]
        out.setdefault((kv, D), []).append((B, L, H, G, 1e6 * float(r["latency"])))
    return out


def fit_decode(kernels, gpu):
    """Form A of section 4 plus a per-sequence term: o + bytes / (eb bw) + s * batch."""
    name = f"{gpu}__generation_attention__{BACKEND}__{VERSION}.csv.zst"
    out = {}
    for (kv, D), data in sorted(attention_rows(f"{kernels}/aic/{name}", True).items()):
        use = [d for d in data if d[1] >= 256 and d[0] <= 512]
        if len(use) < 200:
            continue
        sz = 2.0 if kv == "bf16" else 1.0
        bw = PEAK[gpu][3]

        def f(x, d):
            B, L, H, G, _ = d
            return x[0] + 1e9 * (2.0 * B * L * G * D * sz + 4.0 * B * H * D) / (x[1] * bw)
        sample = use[::max(1, len(use) // 1500)]
        x = least_abs(lambda x: sum(abs(math.log(f(x, d) / d[4])) for d in sample) / len(sample),
                      [12e3, 0.8])
        out.setdefault(kv, {})[str(D)] = {
            "kind": "fitted", "source": origin(name), "range": "context >= 256, batch <= 512",
            "overhead_ns": round(x[0]), "bandwidth_efficiency": round(x[1], 4),
            "residual": residual([f(x, d) / d[4] - 1 for d in use])}
        print(gpu, "decode", kv, D, out[kv][str(D)])
    return out, name


def prefill_ratios(data, form):
    """Measured over form for one sequence, by (heads, kv heads), at S_KNOTS; in percent."""
    points = {}
    for d in data:
        if d[0] == 1:
            points.setdefault((d[2], d[3]), {})[d[1]] = 100 * d[4] / form(d)
    return {hg: [round(interp_log(sorted(p), [p[s] for s in sorted(p)], s)) for s in S_KNOTS]
            for hg, p in points.items() if len(p) >= 6}


def fit_prefill(kernels, gpu):
    """a + sum over sequences of 4 H D (q + q0)(past + q/2 + p0) / F; past is 0 in every row."""
    name = f"{gpu}__context_attention__{BACKEND}__{VERSION}.csv.zst"
    out = {}
    for (kv, D), data in sorted(attention_rows(f"{kernels}/aic/{name}", False).items()):
        use = [d for d in data if d[1] >= 64 and d[0] * d[1] <= 32768]
        if len(use) < 200:
            continue
        q0 = 128.0

        def f(x, d):
            B, S, H, G, _ = d
            return x[0] + 1e9 * B * 4.0 * H * D * (S + q0) * (S / 2 + x[2]) / (x[1] * 1e12)
        sample = use[::max(1, len(use) // 1500)]
        x = least_abs(lambda x: sum(abs(math.log(f(x, d) / d[4])) for d in sample) / len(sample),
                      [13e3, 0.6 * PEAK[gpu][0] / 1e12, 60.0])
        table = prefill_ratios(use, lambda d: f(x, d))

        def t(d, skip=None):
            row = nearest_ratio(table, d[2], d[3], skip)
            return f(x, d) * interp_log(S_KNOTS, row, d[1]) / 100
        one = [d for d in use if d[0] == 1]
        out.setdefault(kv, {})[str(D)] = {
            "kind": "fitted", "source": origin(name),
            "range": "new tokens >= 64, no prefix measured: past > 0 is extrapolated",
            "launch_ns": round(x[0]), "flops": float(round(x[1] * 1e3) * 10**9), "q0": q0, "p0": round(x[2], 1),
            "q0_kind": "assumed", "q0_source": "one 128-row tile; LLMServingSim's RTX PRO 6000 grid @5daddb21 fits "
            "127..289 on another GPU",
            "residual_form": residual([f(x, d) / d[4] - 1 for d in use]),
            "residual": residual([t(d) / d[4] - 1 for d in use]),
            "residual_batch_1": residual([t(d) / d[4] - 1 for d in one]),
            "residual_other_heads": residual([t(d, (d[2], d[3])) / d[4] - 1 for d in one]),
            "tokens": " ".join(map(str, S_KNOTS)),
            "percent_of_form": [f"{h} {g}: " + " ".join(map(str, r)) for (h, g), r in sorted(table.items())]}
        print(gpu, "prefill", kv, D, {k: v for k, v in out[kv][str(D)].items() if k.startswith("resid")})
    return out, name


def collectives(kernels, gpu):
    names = [f"{gpu}__custom_allreduce__{BACKEND}__{VERSION}.csv", f"{gpu}__nccl__nccl__2.29.2.csv"]
    out = {}
    for key, name in zip(("graph", "nccl"), names):
        t = {}
        for r in rows(f"{kernels}/aic/{name}"):
            if key == "graph" and r["backend"] != "vllm_graph":
                continue
            if key == "nccl" and (r["op_name"] != "all_reduce" or r["nccl_dtype"] != "half"):
                continue
            t.setdefault(int(r["num_gpus"]), {})[2 * int(r["message_size"])] = 1e6 * float(r["latency"])
        out[key] = {"kind": "measured", "source": origin(name),
                    "bytes_ns": [f"{g}: " + " ".join(f"{b} {round(ns)}" for b, ns in sorted(v.items()))
                                 for g, v in sorted(t.items())]}
    return out, names


def mla(consts, gpu):
    """Section 5's forms. vLLM's own latent kernels are not in these tables: TensorRT-LLM's are taken."""
    out = {}
    for kv, name in (("bf16", "bfloat16"), ("fp8", "fp8")):
        g, c = consts.get((gpu, "generation_mla", name)), consts.get((gpu, "context_mla", name))
        if g and c:
            out[kv] = {"kind": "assumed", "source": "own fit of aiconfigurator tables @095f58a: TensorRT-LLM's latent "
                       "attention on this GPU, taken for vLLM",
                       "decode_overhead_ns": round(1e3 * g[0]), "decode_bandwidth": g[1],
                       "decode_compute": g[2], "prefill_overhead_ns": round(1e3 * c[0]),
                       "prefill_compute": c[1], "prefill_c": c[2]}
    return out


def generic(outdir, consts):
    """For GPUs without kernel tables: H100's vLLM efficiencies on the GPU's own peaks."""
    why = "H100's closed form (own fit of aiconfigurator tables @095f58a) on this GPU's datasheet peaks"
    gemm, dec, pre = {}, {}, {}
    for key, (dtype, ab, wb, _, backend, _, quantise_ns) in DTYPES.items():
        if ("h100_sxm", backend, dtype) in consts:
            c = consts[("h100_sxm", backend, dtype)]
            gemm[key] = {"kind": "assumed", "source": why, "overhead_us": c[0], "compute_efficiency": c[1],
                         "bandwidth_efficiency": c[2], "activation_bytes": ab, "weight_bytes": wb,
                         "quantise_ns": quantise_ns}
    h = json.load(open(f"{outdir}/kernels_h100_sxm_{BACKEND}.json"))
    for kv in ("bf16", "fp8"):
        d, p = h["decode_attention"][kv]["128"], h["prefill_attention"][kv]["128"]
        dec[kv] = {"128": {"kind": "assumed", "source": why, "overhead_ns": d["overhead_ns"],
                           "bandwidth_efficiency": d["bandwidth_efficiency"]}}
        pre[kv] = {"128": {"kind": "assumed", "source": why, "launch_ns": p["launch_ns"],
                           "compute_efficiency": round(p["flops"] / PEAK["h100_sxm"][0], 4),
                           "q0": p["q0"], "p0": p["p0"]}}
    m = {k: dict(v, source="H100's constants: " + v["source"]) for k, v in mla(consts, "h100_sxm").items()}
    p = {"schema": "kvcast.kernels.v1", "gpu": "generic", "backend": BACKEND, "version": VERSION,
         "gemm": gemm, "decode_attention": dec, "prefill_attention": pre, "mla": m}
    open(f"{outdir}/kernels_generic_{BACKEND}.json", "w").write(json.dumps(p, indent=1) + "\n")


def mi300x(outdir, consts):
    """MI300X: block-scaled fp8 products from aiter's tuned tables, the rest from single points."""
    copy = "4.11 TB/s copy (BabelStream, AI-benchmarking-guide ND_MI300X_v5, samuel-bohman @3de0c294)"
    fp8 = {"kind": "fitted", "source": "own fit: ROCm/aiter tuned block-scale fp8, "
           "304 CUs; winners of an autotuner, few rows at m <= 64", "overhead_us": 13.6,
           "compute_efficiency": 0.313, "bandwidth_efficiency": 0.488, "activation_bytes": 1.0,
           "weight_bytes": 1.0}
    bf16 = {"kind": "assumed", "source": "668 TFLOP/s best shape (stas00/ml-engineering @744d01e1, MAMF, "
            "torch 2.5.1) and " + copy + "; launch as H100's", "overhead_us": 3.6, "compute_efficiency": 0.511,
            "bandwidth_efficiency": 0.775, "activation_bytes": 2.0, "weight_bytes": 2.0}
    dec = {"kind": "assumed", "source": copy + "; launch as H100's", "overhead_ns": 12748,
           "bandwidth_efficiency": 0.775}
    pre = {"kind": "assumed", "source": "flash attention 2 forward 329 TFLOP/s (d 64, batch 2, 8192 "
           "tokens); launch and padding as H100's", "launch_ns": 13501, "flops": 328.6e12, "q0": 128.0,
           "p0": 228.4}
    m = {k: dict(v, source="H100's constants: " + v["source"]) for k, v in mla(consts, "h100_sxm").items()}
    p = {"schema": "kvcast.kernels.v1", "gpu": "mi300x", "backend": BACKEND, "version": "0", "measured": False,
         "gemm": {"bf16": bf16, "fp8": fp8, "fp8_block": fp8},
         "decode_attention": {"bf16": {"128": dec}, "fp8": {"128": dec}},
         "prefill_attention": {"bf16": {"128": pre}, "fp8": {"128": pre}}, "mla": m}
    open(f"{outdir}/kernels_mi300x_{BACKEND}.json", "w").write(json.dumps(p, indent=1) + "\n")


def fit_moe(kernels, gpu):
    name = f"{gpu}__moe__{BACKEND}__{VERSION}.csv.zst"
    data = {}
    for r in rows(f"{kernels}/aic/{name}"):
        tp, ep = int(r["moe_tp_size"]), int(r["moe_ep_size"])
        if r["distribution"] != "power_law_1.2" or tp > 8 or ep > 8 or (tp > 1 and ep > 1):
            continue
        shape = tuple(int(r[x]) for x in ("hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size",
                                          "moe_ep_size"))
        d = data.setdefault(r["moe_dtype"], {}).setdefault(shape, {})
        t = int(r["num_tokens"])
        d[t] = min(d.get(t, 1e30), 1e3 * float(r["latency"]))
    out = {}
    for key, names in MOE_DTYPES.items():
        shapes = {}
        for dt in reversed(names):
            shapes.update(data.get(dt, {}))
        lines = []
        for s, pts in sorted(shapes.items()):
            if len(pts) < 8:
                continue
            xs = sorted(pts)
            ts = [t for t in MOE_TOKENS if t <= xs[-1]]
            lines.append(" ".join(map(str, s)) + ": " +
                         " ".join(f"{t} {interp_log(xs, [pts[x] for x in xs], t):.4g}" for t in ts))
        if lines:
            out[key] = {"kind": "measured", "source": f"{origin(name)} ({', '.join(n for n in names if n in data)}), routing "
                        "power_law_1.2", "columns": "hidden inter topk experts tp ep: tokens us ..",
                        "tokens_us": lines}
    return out, name


def main():
    kernels, outdir = sys.argv[1:3]
    consts = {}
    for r in json.load(open(f"{kernels}/fitted_constants.json"))["records"]:
        if r["kind"] == "gemm":
            consts[(r["system"], r["backend"], r["dtype"])] = (r["overhead_us"], r["eff_c"], r["eff_b"])
        if r["kind"].endswith("_mla") and r["backend"] == "trtllm":
            consts[(r["system"], r["kind"], r["kv"])] = r["x"]
    for gpu in sys.argv[3:] or PEAK:
        p = {"schema": "kvcast.kernels.v1", "gpu": gpu, "backend": BACKEND, "version": VERSION,
             "origin": "ai-dynamo/aiconfigurator @095f58a51c4ca8e61b66ec108d86f223f8d559ce, Apache-2.0; "
             "facts refitted"}
        p["gemm"], a = fit_gemm(kernels, gpu, consts)
        p["decode_attention"], b = fit_decode(kernels, gpu)
        p["prefill_attention"], c = fit_prefill(kernels, gpu)
        p["mla"] = mla(consts, gpu)
        p["allreduce"], d = collectives(kernels, gpu)
        p["moe"], e = fit_moe(kernels, gpu)
        p["source_files"] = [*a, b, c, *d, e]
        text = json.dumps(p, indent=1)
        open(f"{outdir}/kernels_{gpu}_{BACKEND}.json", "w").write(text + "\n")
        print(gpu, len(text), "bytes")
    generic(outdir, consts)
    mi300x(outdir, consts)


main()
