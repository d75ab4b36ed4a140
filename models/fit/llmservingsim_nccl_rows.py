# SPDX-License-Identifier: Apache-2.0
"""llmservingsim_nccl_rows.py SRC OUT: NCCL between two RTX PRO 6000 over PCIe 5, as kernel rows with aiconfigurator's columns.
LLMServingSim `profiler/perf/RTXPRO6000/hardware.yaml` @e08dc388 (2026-09-08, MIT): bf16, replayed from a CUDA graph. The host
was as in its served runs; with ACS and IOMMU off (@1b2cc02d, 2026-09-26) the same pair moves 1.9 to 2.2 times as fast."""
import sys

# bytes a rank gives to an all-reduce or a gather, or gets of a reduce-scatter: us of each
SWEEP = {
    10240: (16.24, 14.52, 13.45), 40960: (17.50, 16.44, 15.68), 139264: (22.78, 20.15, 20.96), 327680: (30.60, 30.36, 32.81),
    557056: (42.64, 46.12, 48.59), 1114112: (78.36, 84.10, 86.98), 1310720: (90.59, 95.45, 100.54),
    2228224: (148.95, 154.57, 161.63), 5242880: (335.41, 352.81, 378.89), 8912896: (566.73, 589.39, 639.52),
    16777216: (1051.83, 1093.41, 1136.82), 20971520: (1309.13, 1362.23, 1405.58),
}
# a message of aiconfigurator's tables is all ranks' data together
OPS = (("all_reduce", 1), ("all_gather", 2), ("reduce_scatter", 2))

with open(f"{sys.argv[2]}/rtx_pro_6000__nccl__nccl__v1.csv", "w") as f:
    f.write("op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\n")
    for size, us in SWEEP.items():
        for (op, ranks), t in zip(OPS, us):
            f.write(f"{op},NCCL,half,2,{size * ranks // 2},{t / 1e3}\n")
