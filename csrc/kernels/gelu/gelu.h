// gelu (tanh form): y = x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) * (x + 0.044715 x^3), in one pass over x of any shape.
// All rungs but the reference compute the equivalent y = x / (1 + exp(-2u)): one exponential and one division, and no
// 1 + tanh that cancels for negative x. NaN gives NaN, +inf gives +inf, and -inf gives NaN, as 0 * -inf does in the
// definition.
//
// Ladder, CPU:
//   v0_reference   one thread, in double
//   v1_simd        all threads, 16 elements at a time; any strides
//   v2_streaming   whole cache lines are stored past the caches, and each thread reads four streams with prefetch; x is
//                  contiguous and larger than the caches
// Ladder, CUDA:
//   v0_reference   one element per thread, in double; any strides
//   v1_fused       one element per thread, in float; any strides
//   v2_vectorised  16-byte accesses; x and y contiguous and aligned
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
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                  16384x4096  16384x4096  32768x640  32768x640
//                    bfloat16     float32   bfloat16    float32
//                   % of copy   % of copy  % of copy  % of copy
//   v0_reference           17          33         18         34
//   v1_fused               30          54         32         56
//   v2_vectorised         100         100        101        100
//   torch                  87          99         86        100
//   copy, GB/s           4071        4197       3657       3948
// [end measured]
//
// FLOPs: 8 per element (3 to scale x^3 and add it, 2 to scale, tanh, 2 for the rest). Compulsory bytes: x once, y once.
// Roof: memory bandwidth.
#pragma once

#include "core/device.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "kernels/common/alignment.h"
#include "kernels/common/per_isa.h"

namespace rooflab::kernels {

struct GeluArgs {
  const void* x;  // of sizes[ndim] and strides[ndim], in elements
  void* y;        // as many elements, contiguous
  DType dtype;    // floating
  int ndim;       // at least 1; a contiguous x has one dimension
  int64_t count;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];
};

void gelu_cpu_v0_reference(const GeluArgs& args, Queue& queue);
ROOFLAB_PER_ISA(gelu_cpu_v1_simd, GeluArgs)
ROOFLAB_PER_ISA(gelu_cpu_v2_streaming, GeluArgs)
bool gelu_cpu_v2_accepts(const GeluArgs& args, const Target& target);

[[gnu::weak]] void gelu_cuda_v0_reference(const GeluArgs& args, Queue& queue);
[[gnu::weak]] void gelu_cuda_v1_fused(const GeluArgs& args, Queue& queue);
[[gnu::weak]] void gelu_cuda_v2_vectorised(const GeluArgs& args, Queue& queue);

inline bool gelu_cuda_v2_accepts(const GeluArgs& args, const Target&) {
  return args.ndim == 1 && args.strides[0] == 1 && is_aligned(args.x) && is_aligned(args.y);
}

}  // namespace rooflab::kernels
