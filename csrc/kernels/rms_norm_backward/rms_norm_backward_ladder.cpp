// The ladder of rms_norm_backward: see rms_norm_backward.h for what it computes.
//
// [measured rms_norm_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                      16384x4096  16384x4096  32768x640  32768x640  odd 1x262144
//                        bfloat16     float32   bfloat16    float32       float32
//                       % of copy   % of copy  % of copy  % of copy     % of copy
//   v0_composed                 3         5.6          3        5.5           6.4
//   v1_block_per_row           30          46         15         27           3.4
//   v2_one_pass                90          94         88         90             -
//   v2a_any_alignment           -           -          -          -             -
//   v3_split_rows               -           -          -          -            42
//   copy, GB/s               2951        3002       2752       2909           531
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/common/row_split.h"
#include "kernels/rms_norm_backward/rms_norm_backward.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_PER_ISA(rms_norm_backward_cpu_v1_simd, RmsNormBackwardArgs)
ROOFLAB_CUDA_RUNG(rms_norm_backward_cuda_v1_block_per_row, RmsNormBackwardArgs)
ROOFLAB_CUDA_RUNG(rms_norm_backward_cuda_v2_one_pass, RmsNormBackwardArgs)
ROOFLAB_CUDA_RUNG(rms_norm_backward_cuda_v2a_any_alignment, RmsNormBackwardArgs)
ROOFLAB_CUDA_RUNG(rms_norm_backward_cuda_v3_split_rows, RmsNormBackwardArgs)

namespace {

bool rms_norm_backward_accepts(const RmsNormBackwardArgs& args, const Target&) { return args.dtype != DType::kFloat64; }

Footprint rms_norm_backward_cpu_v1_footprint(const RmsNormBackwardArgs& args, const Target&) {
  return {1, 0, args.has_dweight ? cpu_blocks(args.n) * args.d * 4 : 0};
}

bool rms_norm_backward_cuda_v2a_accepts(const RmsNormBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.d <= kColumnSumElements * kColumnSumRowThreads;
}

bool rms_norm_backward_cuda_v2_accepts(const RmsNormBackwardArgs& args, const Target& target) {
  return rms_norm_backward_cuda_v2a_accepts(args, target) && rms_norm_backward_has_vectors(args);
}

Footprint rms_norm_backward_cuda_v1_footprint(const RmsNormBackwardArgs& args, const Target& target) {
  return column_sum_footprint(walking_blocks(args.n, target), args.d, args.has_dweight);
}

Footprint rms_norm_backward_cuda_v2_footprint(const RmsNormBackwardArgs& args, const Target& target) {
  return column_sum_footprint(rms_norm_backward_plan(args, target).blocks, args.d, args.has_dweight);
}

bool rms_norm_backward_cuda_v3_accepts(const RmsNormBackwardArgs& args, const Target& target) {
  const bool is_held = rms_norm_backward_cuda_v2a_accepts(args, target);
  return args.dtype != DType::kFloat64 && blocks_share_rows(args.n, args.d, is_held);
}

Footprint rms_norm_backward_cuda_v3_footprint(const RmsNormBackwardArgs& args, const Target&) {
  return split_norm_footprint(args.n, args.d, kRmsNormBackwardPart, args.has_dweight);
}

}  // namespace

const Ladder<RmsNormBackwardArgs> rms_norm_backward_ladder(
    "rms_norm_backward",
    {
        {"v3_split_rows", kCuda, "blocks share a row: the sums of each part first; long rows, not float64",
         rms_norm_backward_cuda_v3_accepts, rms_norm_backward_cuda_v3_split_rows, rms_norm_backward_cuda_v3_footprint},
        // Values are converted once. Accesses are of 16 bytes, or of 4 elements where a warp works on a row, which fits
        // more closely. The gains stay in shared memory.
        {"v2_one_pass", kCuda,
         "the row and a block's sums for dweight stay in registers; aligned rows of up to 8192 elements",
         rms_norm_backward_cuda_v2_accepts, rms_norm_backward_cuda_v2_one_pass, rms_norm_backward_cuda_v2_footprint},
        {"v2a_any_alignment", kCuda, "the same element by element: rows of any length up to 8192; not float64",
         rms_norm_backward_cuda_v2a_accepts, rms_norm_backward_cuda_v2a_any_alignment,
         rms_norm_backward_cuda_v2_footprint},
        {"v1_block_per_row", kCuda,
         "blocks walk over rows, each with its own sums for dweight in device memory; not float64",
         rms_norm_backward_accepts, rms_norm_backward_cuda_v1_block_per_row, rms_norm_backward_cuda_v1_footprint},
        {"v0_composed", kCuda, "the formula, made of other ops", nullptr, composed<RmsNormBackwardArgs>},
        {"v1_simd", kCpu,
         "SIMD, all threads, a row at a time through L1, sums for dweight by blocks of rows; not float64",
         rms_norm_backward_accepts, rms_norm_backward_cpu_v1_simd, rms_norm_backward_cpu_v1_footprint},
        {"v0_composed", kCpu, "the formula, made of other ops", nullptr, composed<RmsNormBackwardArgs>},
    });

}  // namespace rooflab::kernels
