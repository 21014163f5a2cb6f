// The ladder of layer_norm_backward: see layer_norm_backward.h for what it computes.
//
// [measured layer_norm_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                      16384x4096  16384x4096  32768x640  32768x640  odd 1x262144
//                        bfloat16     float32   bfloat16    float32       float32
//                       % of copy   % of copy  % of copy  % of copy     % of copy
//   v0_composed               2.2         4.2        2.1        3.9           4.2
//   v1_block_per_row           20          31         11         20             2
//   v2_one_pass                87          93         81         88             -
//   v2a_any_alignment           -           -          -          -             -
//   v3_split_rows               -           -          -          -            24
//   copy, GB/s               2951        3001       2752       2917           744
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/common/row_split.h"
#include "kernels/layer_norm_backward/layer_norm_backward.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_PER_ISA(layer_norm_backward_cpu_v1_simd, LayerNormBackwardArgs)
ROOFLAB_CUDA_RUNG(layer_norm_backward_cuda_v1_block_per_row, LayerNormBackwardArgs)
ROOFLAB_CUDA_RUNG(layer_norm_backward_cuda_v2_one_pass, LayerNormBackwardArgs)
ROOFLAB_CUDA_RUNG(layer_norm_backward_cuda_v2a_any_alignment, LayerNormBackwardArgs)
ROOFLAB_CUDA_RUNG(layer_norm_backward_cuda_v3_split_rows, LayerNormBackwardArgs)

namespace {

bool layer_norm_backward_accepts(const LayerNormBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64;
}

Footprint layer_norm_backward_cpu_v1_footprint(const LayerNormBackwardArgs& args, const Target&) {
  return {1, 0, args.sums() * cpu_blocks(args.n) * args.d * 4};
}

bool layer_norm_backward_cuda_v2a_accepts(const LayerNormBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.d <= kColumnSumElements * kColumnSumRowThreads;
}

bool layer_norm_backward_cuda_v2_accepts(const LayerNormBackwardArgs& args, const Target& target) {
  return layer_norm_backward_cuda_v2a_accepts(args, target) && layer_norm_backward_has_vectors(args);
}

Footprint layer_norm_backward_cuda_v1_footprint(const LayerNormBackwardArgs& args, const Target& target) {
  return column_sum_footprint(walking_blocks(args.n, target), args.d, args.sums());
}

Footprint layer_norm_backward_cuda_v2_footprint(const LayerNormBackwardArgs& args, const Target& target) {
  return column_sum_footprint(layer_norm_backward_plan(args, target).blocks, args.d, args.sums());
}

bool layer_norm_backward_cuda_v3_accepts(const LayerNormBackwardArgs& args, const Target& target) {
  const bool is_held = layer_norm_backward_cuda_v2a_accepts(args, target);
  return args.dtype != DType::kFloat64 && blocks_share_rows(args.n, args.d, is_held);
}

Footprint layer_norm_backward_cuda_v3_footprint(const LayerNormBackwardArgs& args, const Target&) {
  return split_norm_footprint(args.n, args.d, kLayerNormBackwardPart, args.sums());
}

}  // namespace

const Ladder<LayerNormBackwardArgs> layer_norm_backward_ladder(
    "layer_norm_backward",
    {
        {"v3_split_rows", kCuda, "blocks share a row: the sums of each part first; long rows, not float64",
         layer_norm_backward_cuda_v3_accepts, layer_norm_backward_cuda_v3_split_rows,
         layer_norm_backward_cuda_v3_footprint},
        // Values are converted once. Accesses are of 16 bytes, or of 4 elements where a warp works on a row, which fits
        // more closely. The weight stays in shared memory.
        {"v2_one_pass", kCuda,
         "the row and a block's sums over its rows stay in registers; aligned rows of up to 8192 elements",
         layer_norm_backward_cuda_v2_accepts, layer_norm_backward_cuda_v2_one_pass,
         layer_norm_backward_cuda_v2_footprint},
        {"v2a_any_alignment", kCuda, "the same element by element: rows of any length up to 8192; not float64",
         layer_norm_backward_cuda_v2a_accepts, layer_norm_backward_cuda_v2a_any_alignment,
         layer_norm_backward_cuda_v2_footprint},
        {"v1_block_per_row", kCuda,
         "blocks walk over rows, each with its own sums over rows in device memory; not float64",
         layer_norm_backward_accepts, layer_norm_backward_cuda_v1_block_per_row, layer_norm_backward_cuda_v1_footprint},
        {"v0_composed", kCuda, "the formula, made of other ops", nullptr, composed<LayerNormBackwardArgs>},
        {"v1_simd", kCpu,
         "SIMD, all threads, a row at a time through L1, sums over rows by blocks of them; not float64",
         layer_norm_backward_accepts, layer_norm_backward_cpu_v1_simd, layer_norm_backward_cpu_v1_footprint},
        {"v0_composed", kCpu, "the formula, made of other ops", nullptr, composed<LayerNormBackwardArgs>},
    });

}  // namespace rooflab::kernels
