#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda.sh NVCC: whether the GPU module can be built here, and what to install where it can't.
nvcc=$1
if [ -z "$nvcc" ] || ! "$nvcc" --version >/dev/null 2>&1; then
    echo "cuda: no nvcc, neither in PATH nor in /usr/local/cuda/bin. Install NVIDIA's CUDA toolkit (packages cuda-nvcc-*" >&2
    echo "cuda: and libcublas-dev-* of NVIDIA's repository, or Debian's nvidia-cuda-toolkit), or name it: make cuda NVCC=/path/nvcc" >&2
    exit 1
fi
probe=$(mktemp -d) || exit 1
trap 'rm -rf "$probe"' EXIT
for header in cuda_runtime.h cublasLt.h cuda_fp8.h cuda_bf16.h; do
    printf '#include <%s>\n' $header > "$probe/p.cu"
    "$nvcc" -E -o /dev/null "$probe/p.cu" >/dev/null 2>&1 && continue
    case $header in
    cublasLt.h) package="libcublas-dev-*" ;;
    *) package="cuda-cudart-dev-*, CUDA 11.8 or later" ;;
    esac
    echo "cuda: nvcc finds no $header: install $package of NVIDIA's repository" >&2
    exit 1
done
