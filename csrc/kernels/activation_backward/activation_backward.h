// gelu_backward and silu_backward: da = dy act'(a). geglu_backward and swiglu_backward, for a gated activation
// y = act(a) b:
//   da = dy b act'(a)        db = dy act(a).
// Both activations have the form a s with s = 1 / (1 + exp(-u)): silu has u = a, and gelu in its tanh form has
// u = 2 sqrt(2/pi) (a + 0.044715 a^3). So act'(a) = s (1 + a (1 - s) u').
//
// Ladder, CPU:
//   v0_composed    the formula, made of elementwise ops
//   v1_simd        SIMD, all threads, one pass for both gradients; results bypass the caches
// Ladder, CUDA:
//   v0_composed    as on the CPU
//   v1_fused       one element per thread, one launch for both gradients
//   v2_vectorised  16-byte accesses; aligned operands
//
// [measured gelu_backward, swiglu_backward] by python -m rooflab.benchmark.tables; - is not measured
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                  gelu_backward  gelu_backward  swiglu_backward  swiglu_backward
//                     16384x4096     16384x4096       16384x4096       16384x4096
//                       bfloat16        float32         bfloat16          float32
//                      % of copy      % of copy        % of copy        % of copy
//   v0_composed              4.2            8.6               13               24
//   v1_fused                  30             60               50               93
//   v2_vectorised            102            102              101              101
//   copy, GB/s              4156           4226             4204             4271
// [end measured]
//
// FLOPs: 6 per element for silu, 13 for gelu, and 3 more where gated (dy b, act, dy act); computing s counts as one.
// Compulsory bytes: dy, a and b read once, da and db written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/alignment.h"
#include "kernels/common/per_isa.h"

namespace rooflab::kernels {

enum class Activation : uint8_t { kGelu, kSilu };

// Outside these ranges s is 0 or 1 to within float's precision, and powers of a could overflow.
struct ActivationRange {
  float low, high;
};
constexpr ActivationRange kGeluRange{-10, 10}, kSiluRange{-87, 87};

struct ActivationBackwardArgs {
  const void* dy;  // (N, D), elements of a row adjacent, as in a and b; N is 1 where all three are contiguous
  const void* a;   // (N, D)
  const void* b;   // (N, D); null: not gated
  void* da;        // (N, D), contiguous
  void* db;        // (N, D), contiguous; null: not gated
  int64_t n, d;
  int64_t dy_row_stride, a_row_stride, b_row_stride;  // in elements
  Activation activation;
  DType dtype;
};

inline bool activation_backward_accepts(const ActivationBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64;
}

ROOFLAB_PER_ISA(activation_backward_cpu_v1_simd, ActivationBackwardArgs)

[[gnu::weak]] void activation_backward_cuda_v1_fused(const ActivationBackwardArgs&, Queue&);
[[gnu::weak]] void activation_backward_cuda_v2_vectorised(const ActivationBackwardArgs&, Queue&);

inline bool activation_backward_cuda_v2_accepts(const ActivationBackwardArgs& args, const Target& target) {
  const int64_t width = 16 / size_of(args.dtype);
  const auto whole = [&](int64_t row_stride) {
    return args.n == 1 || (args.d % width == 0 && row_stride % width == 0);
  };
  return activation_backward_accepts(args, target) && whole(args.dy_row_stride) && whole(args.a_row_stride) &&
         whole(args.b_row_stride) && is_aligned(args.dy) && is_aligned(args.a) && is_aligned(args.b) &&
         is_aligned(args.da) && is_aligned(args.db);
}

}  // namespace rooflab::kernels
