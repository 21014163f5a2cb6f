// The ladder of softmax_backward: see softmax_backward.h for what it computes.
//
// [measured softmax_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                                                                                    columns of
//                      16384x4096  16384x4096  32768x640  32768x640  odd 1x262144  64x1024x1024
//                        bfloat16     float32   bfloat16    float32       float32       float32
//                       % of copy   % of copy  % of copy  % of copy     % of copy     % of copy
//   v0_composed                11          33         11         32            22            33
//   v1_block_per_row           53          79         52         82           3.3            19
//   v2_one_pass                98          98         98         97             -            20
//   v2a_any_alignment           -           -          -          -             -             -
//   v3_split_rows               -           -          -          -            55             -
//   v4_columns                  -           -          -          -             -            47
//   torch                      51          51         45         50            11            28
//   copy, GB/s               2948        3002       2787       2916           485          3002
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/common/alignment.h"
#include "kernels/common/column_groups.h"
#include "kernels/common/ladder.h"
#include "kernels/common/row_split.h"
#include "kernels/softmax_backward/softmax_backward.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_PER_ISA(softmax_backward_cpu_v1_simd, SoftmaxBackwardArgs)
ROOFLAB_PER_ISA(softmax_backward_cpu_v4_columns, SoftmaxBackwardArgs)
ROOFLAB_CUDA_RUNG(softmax_backward_cuda_v1_block_per_row, SoftmaxBackwardArgs)
ROOFLAB_CUDA_RUNG(softmax_backward_cuda_v2_one_pass, SoftmaxBackwardArgs)
ROOFLAB_CUDA_RUNG(softmax_backward_cuda_v2a_any_alignment, SoftmaxBackwardArgs)
ROOFLAB_CUDA_RUNG(softmax_backward_cuda_v3_split_rows, SoftmaxBackwardArgs)
ROOFLAB_CUDA_RUNG(softmax_backward_cuda_v4_columns, SoftmaxBackwardArgs)

namespace {

bool softmax_backward_accepts(const SoftmaxBackwardArgs& args, const Target&) { return args.dtype != DType::kFloat64; }

bool softmax_backward_cpu_v4_accepts(const SoftmaxBackwardArgs& args, const Target& target) {
  return softmax_backward_accepts(args, target) && args.inner >= kFewColumns;
}

bool softmax_backward_cuda_v4_accepts(const SoftmaxBackwardArgs& args, const Target& target) {
  return softmax_backward_accepts(args, target) && columns_fill_gpu(args.n, args.d, args.inner);
}

bool softmax_backward_cuda_v2_accepts(const SoftmaxBackwardArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.y, args.y_row_stride, args.dx) &&
         rows_fit_tile(args.dtype, args.d, args.dy, args.dy_row_stride, args.dx) &&
         args.d <= 32 * kSoftmaxBackwardThreads;
}

bool softmax_backward_cuda_v2a_accepts(const SoftmaxBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.d <= kMaxElementRow;
}

bool softmax_backward_cuda_v3_accepts(const SoftmaxBackwardArgs& args, const Target& target) {
  const bool is_held =
      softmax_backward_cuda_v2_accepts(args, target) || softmax_backward_cuda_v2a_accepts(args, target);
  return softmax_backward_accepts(args, target) && blocks_share_rows(args.n, args.d, is_held);
}

Footprint softmax_backward_cuda_v3_footprint(const SoftmaxBackwardArgs& args, const Target&) {
  return {.launches = 2, .scratch_bytes = args.n * row_splits(args.n, args.d) * 4};
}

}  // namespace

const Ladder<SoftmaxBackwardArgs> softmax_backward_ladder(
    "softmax_backward",
    {
        {kSoftmaxBackwardColumns, kCuda,
         "a block's threads lie across columns and share their length; any other dimension, not float64",
         softmax_backward_cuda_v4_accepts, softmax_backward_cuda_v4_columns},
        {"v3_split_rows", kCuda, "blocks share a row: the sum of each part first; long rows, not float64",
         softmax_backward_cuda_v3_accepts, softmax_backward_cuda_v3_split_rows, softmax_backward_cuda_v3_footprint},
        {"v2_one_pass", kCuda,
         "the rows stay in registers, read once by 16-byte loads; aligned rows of up to 16384 elements",
         softmax_backward_cuda_v2_accepts, softmax_backward_cuda_v2_one_pass},
        {"v2a_any_alignment", kCuda, "the same element by element: rows of any length up to 8192; not float64",
         softmax_backward_cuda_v2a_accepts, softmax_backward_cuda_v2a_any_alignment},
        {"v1_block_per_row", kCuda,
         "one block per row, or a few lanes of one for a narrow row; the second pass in L1; not float64",
         softmax_backward_accepts, softmax_backward_cuda_v1_block_per_row},
        {"v0_composed", kCuda, "the formula, made of other ops", nullptr, composed<SoftmaxBackwardArgs>},
        {kSoftmaxBackwardColumns, kCpu,
         "a lane is a column, so rows need not be turned first; any other dimension, not float64",
         softmax_backward_cpu_v4_accepts, softmax_backward_cpu_v4_columns},
        {"v1_simd", kCpu,
         "SIMD, all threads; the second pass finds the row in L1, results bypass the caches; not float64",
         softmax_backward_accepts, softmax_backward_cpu_v1_simd},
        {"v0_composed", kCpu, "the formula, made of other ops", nullptr, composed<SoftmaxBackwardArgs>},
    },
    {"softmax_backward", "log_softmax_backward"});

}  // namespace rooflab::kernels
