// The ladder of activation_backward: see activation_backward.h for what it computes.
//
// [measured gelu_backward, swiglu_backward] by python -m rooflab.benchmark.tables; - is not measured
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                  gelu_backward  gelu_backward  swiglu_backward  swiglu_backward
//                     16384x4096     16384x4096       16384x4096       16384x4096
//                       bfloat16        float32         bfloat16          float32
//                      % of copy      % of copy        % of copy        % of copy
//   v0_composed              4.2            8.6               11               20
//   v1_fused                  43             84               70              100
//   v2_vectorised            102            101              101              101
//   copy, GB/s              2956           2997             2988             3009
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/activation_backward/activation_backward.h"
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_PER_ISA(activation_backward_cpu_v1_simd, ActivationBackwardArgs)
ROOFLAB_CUDA_RUNG(activation_backward_cuda_v1_fused, ActivationBackwardArgs)
ROOFLAB_CUDA_RUNG(activation_backward_cuda_v2_vectorised, ActivationBackwardArgs)

namespace {

bool activation_backward_accepts(const ActivationBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64;
}

bool activation_backward_cuda_v2_accepts(const ActivationBackwardArgs& args, const Target& target) {
  const int64_t width = 16 / size_of(args.dtype);
  const auto whole = [&](int64_t row_stride) {
    return args.n == 1 || (args.d % width == 0 && row_stride % width == 0);
  };
  return activation_backward_accepts(args, target) && whole(args.dy_row_stride) && whole(args.a_row_stride) &&
         whole(args.b_row_stride) && is_aligned(args.dy) && is_aligned(args.a) && is_aligned(args.b) &&
         is_aligned(args.da) && is_aligned(args.db);
}

}  // namespace

const Ladder<ActivationBackwardArgs> activation_backward_ladder(
    "activation_backward",
    {
        {"v2_vectorised", kCuda, "16-byte accesses; aligned, not float64", activation_backward_cuda_v2_accepts,
         activation_backward_cuda_v2_vectorised},
        {"v1_fused", kCuda, "one element per thread, in float, one launch for both gradients; not float64",
         activation_backward_accepts, activation_backward_cuda_v1_fused},
        {"v0_composed", kCuda, "the formula, made of elementwise ops", nullptr, composed<ActivationBackwardArgs>},
        {"v1_simd", kCpu, "SIMD, all threads, one pass for both gradients, which bypass the caches; not float64",
         activation_backward_accepts, activation_backward_cpu_v1_simd},
        {"v0_composed", kCpu, "the formula, made of elementwise ops", nullptr, composed<ActivationBackwardArgs>},
    },
    {"gelu_backward", "silu_backward", "geglu_backward", "swiglu_backward"});

}  // namespace rooflab::kernels
