// The ladder of gelu: see gelu.h for what it computes.
//
// [measured gelu] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                 16384x4096  32768x640
//                    float32    float32
//                  % of copy  % of copy
//   v0_reference         1.2        1.1
//   v1_simd              124        120
//   v2_streaming         157        144
//   copy, GB/s            30         30
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                  16384x4096  16384x4096  32768x640  32768x640
//                    bfloat16     float32   bfloat16    float32
//                   % of copy   % of copy  % of copy  % of copy
//   v0_reference           29          54         31         56
//   v1_fused               40          70         42         71
//   v2_vectorised         100         100        101        101
//   torch                 101         100        100         99
//   copy, GB/s           2922        2979       2671       2846
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/gelu/gelu.h"

namespace rooflab::kernels {

using enum Device::Type;

void gelu_cpu_v0_reference(const GeluArgs& args, Queue& queue);
ROOFLAB_PER_ISA(gelu_cpu_v1_simd, GeluArgs)
ROOFLAB_PER_ISA(gelu_cpu_v2_streaming, GeluArgs)
ROOFLAB_CUDA_RUNG(gelu_cuda_v0_reference, GeluArgs)
ROOFLAB_CUDA_RUNG(gelu_cuda_v1_fused, GeluArgs)
ROOFLAB_CUDA_RUNG(gelu_cuda_v2_vectorised, GeluArgs)

namespace {

bool gelu_cuda_v2_accepts(const GeluArgs& args, const Target&) {
  return args.ndim == 1 && args.strides[0] == 1 && is_aligned(args.x) && is_aligned(args.y);
}

bool gelu_cpu_v2_accepts(const GeluArgs& args, const Target& target) {
  return args.ndim == 1 && args.strides[0] == 1 && reinterpret_cast<uintptr_t>(args.y) % 64 == 0 &&
         target.exceeds_cache(args.count * size_of(args.dtype));
}

}  // namespace

const Ladder<GeluArgs> gelu_ladder(
    "gelu",
    {
        {"v2_vectorised", kCuda, "16-byte accesses; contiguous and aligned", gelu_cuda_v2_accepts,
         gelu_cuda_v2_vectorised},
        {"v1_fused", kCuda, "one element per thread, in float; any strides", nullptr, gelu_cuda_v1_fused},
        {"v0_reference", kCuda, "one element per thread, in double; any strides", nullptr, gelu_cuda_v0_reference},
        {"v2_streaming", kCpu,
         "whole cache lines are stored past the caches, four streams per thread; contiguous x larger than them",
         gelu_cpu_v2_accepts, gelu_cpu_v2_streaming},
        {"v1_simd", kCpu, "SIMD, 16 elements at a time, all threads; any strides", nullptr, gelu_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, in double", nullptr, gelu_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
