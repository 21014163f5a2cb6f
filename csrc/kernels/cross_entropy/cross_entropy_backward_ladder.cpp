// The ladder of cross_entropy_backward: see cross_entropy_backward.h for what it computes.
//
// [measured cross_entropy_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                  4096x10000  4096x10000  4096x50257  4096x50257
//                    bfloat16     float32    bfloat16     float32
//                   % of copy   % of copy   % of copy   % of copy
//   v0_composed           7.7          19         7.3          19
//   v1_recompute           52          73          51          76
//   v1a_flat                -           -           -           -
//   v2_vectorised          78          98          82          96
//   torch                  44          48          40          38
//   copy, GB/s           2846        2940        2996        3019
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/common/ladder.h"
#include "kernels/cross_entropy/cross_entropy_backward.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_PER_ISA(cross_entropy_backward_cpu_v1_recompute, CrossEntropyBackwardArgs)
ROOFLAB_CUDA_RUNG(cross_entropy_backward_cuda_v1_recompute, CrossEntropyBackwardArgs)
ROOFLAB_CUDA_RUNG(cross_entropy_backward_cuda_v1a_flat, CrossEntropyBackwardArgs)
ROOFLAB_CUDA_RUNG(cross_entropy_backward_cuda_v2_vectorised, CrossEntropyBackwardArgs)

namespace {

constexpr int64_t kNarrow = 512;  // elements of a row that leave a block idle

bool cross_entropy_backward_cuda_v1a_accepts(const CrossEntropyBackwardArgs& args, const Target&) {
  return args.v <= kNarrow;
}

bool cross_entropy_backward_cuda_v2_accepts(const CrossEntropyBackwardArgs& args, const Target&) {
  const int64_t size = size_of(args.dtype);
  const int64_t apart = reinterpret_cast<intptr_t>(args.logits) - reinterpret_cast<intptr_t>(args.dlogits);
  return args.v > kNarrow && apart % 16 == 0 && (args.row_stride - args.v) * size % 16 == 0;
}

}  // namespace

const Ladder<CrossEntropyBackwardArgs> cross_entropy_backward_ladder(
    "cross_entropy_backward",
    {
        {"v2_vectorised", kCuda,
         "16 bytes at a time, four loads in flight; longer rows, of logits and gradients equally far from 16 bytes",
         cross_entropy_backward_cuda_v2_accepts, cross_entropy_backward_cuda_v2_vectorised},
        {"v1a_flat", kCuda, "a thread's elements lie in many rows, so that none is idle; rows of up to 512 elements",
         cross_entropy_backward_cuda_v1a_accepts, cross_entropy_backward_cuda_v1a_flat},
        {"v1_recompute", kCuda, "one thread per element, probabilities from the log-sum-exp", nullptr,
         cross_entropy_backward_cuda_v1_recompute},
        {"v0_composed", kCuda, "difference, exp, product and scatter_add as separate ops", nullptr,
         composed<CrossEntropyBackwardArgs>},
        {"v1_recompute", kCpu, "probabilities from the log-sum-exp in one pass, SIMD, all threads", nullptr,
         cross_entropy_backward_cpu_v1_recompute},
        {"v0_composed", kCpu, "difference, exp, product and scatter_add as separate ops", nullptr,
         composed<CrossEntropyBackwardArgs>},
    });

}  // namespace rooflab::kernels
