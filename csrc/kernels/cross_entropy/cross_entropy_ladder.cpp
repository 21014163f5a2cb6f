// The ladder of cross_entropy: see cross_entropy.h for what it computes.
//
// [measured cross_entropy] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                  4096x10000  4096x10000  4096x50257  4096x50257
//                    bfloat16     float32    bfloat16     float32
//                   % of copy   % of copy   % of copy   % of copy
//   v0_composed           6.6          15         6.8          16
//   v1_online              39          66          53          86
//   v2_vectorised          55          68          69          97
//   torch                  29          38          36          26
//   copy, GB/s           2663        2851        2962        2998
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/common/ladder.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_PER_ISA(cross_entropy_cpu_v1_online, CrossEntropyArgs)
ROOFLAB_CUDA_RUNG(cross_entropy_cuda_v1_online, CrossEntropyArgs)
ROOFLAB_CUDA_RUNG(cross_entropy_cuda_v2_vectorised, CrossEntropyArgs)

namespace {

Footprint cross_entropy_cpu_footprint(const CrossEntropyArgs& args, const Target&) {
  return {.scratch_bytes = cross_entropy_scratch(args)};
}

// A narrow row leaves most of a block idle.
bool cross_entropy_cuda_v2_accepts(const CrossEntropyArgs& args, const Target&) { return args.v >= 128; }

Footprint cross_entropy_cuda_footprint(const CrossEntropyArgs& args, const Target&) {
  return {.launches = (args.n > 0) + args.reduces, .scratch_bytes = cross_entropy_scratch(args)};
}

}  // namespace

const Ladder<CrossEntropyArgs> cross_entropy_ladder(
    "cross_entropy",
    {
        {"v2_vectorised", kCuda,
         "one block per row, 16-byte loads, four in flight; rows of 128 elements or more, their unaligned ends one by "
         "one",
         cross_entropy_cuda_v2_accepts, cross_entropy_cuda_v2_vectorised, cross_entropy_cuda_footprint},
        {"v1_online", kCuda,
         "one block per row, or a few lanes of one for a narrow row; maximum and sum in one pass; one block sums "
         "losses",
         nullptr, cross_entropy_cuda_v1_online, cross_entropy_cuda_footprint},
        {"v0_composed", kCuda, "maximum, difference, exp, sum, log and the chosen logit as separate ops", nullptr,
         composed<CrossEntropyArgs>},
        {"v1_online", kCpu, "SIMD, all threads; the sum is rescaled when the maximum grows, so each logit is read once",
         nullptr, cross_entropy_cpu_v1_online, cross_entropy_cpu_footprint},
        {"v0_composed", kCpu, "maximum, difference, exp, sum, log and the chosen logit as separate ops", nullptr,
         composed<CrossEntropyArgs>},
    });

}  // namespace rooflab::kernels
