// The ladder of layer_norm: see layer_norm.h for what it computes.
//
// [measured layer_norm] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                 16384x4096  32768x640
//                    float32    float32
//                  % of copy  % of copy
//   v0_reference          15         15
//   v1_simd              120        130
//   copy, GB/s            30         29
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                      16384x4096  16384x4096  32768x640  32768x640  odd 1x262144
//                        bfloat16     float32   bfloat16    float32       float32
//                       % of copy   % of copy  % of copy  % of copy     % of copy
//   v0_reference              4.3         7.7          5        8.5         0.023
//   v1_block_per_row           30          54         29         51           2.9
//   v2_one_pass                97          98         96         98             -
//   v2a_any_alignment           -           -          -          -             -
//   v3_split_rows               -           -          -          -            61
//   torch                      78          67         47         64           2.9
//   copy, GB/s               2916        2978       2641       2850           458
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/common/row_split.h"
#include "kernels/layer_norm/layer_norm.h"

namespace rooflab::kernels {

using enum Device::Type;

void layer_norm_cpu_v0_reference(const LayerNormArgs&, Queue&);
ROOFLAB_PER_ISA(layer_norm_cpu_v1_simd, LayerNormArgs)
ROOFLAB_CUDA_RUNG(layer_norm_cuda_v0_reference, LayerNormArgs)
ROOFLAB_CUDA_RUNG(layer_norm_cuda_v1_block_per_row, LayerNormArgs)
ROOFLAB_CUDA_RUNG(layer_norm_cuda_v2_one_pass, LayerNormArgs)
ROOFLAB_CUDA_RUNG(layer_norm_cuda_v2a_any_alignment, LayerNormArgs)
ROOFLAB_CUDA_RUNG(layer_norm_cuda_v3_split_rows, LayerNormArgs)

namespace {

bool layer_norm_cuda_v2_accepts(const LayerNormArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.y) && is_aligned(args.weight) &&
         is_aligned(args.bias);
}

bool layer_norm_cuda_v2a_accepts(const LayerNormArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.d <= kMaxElementRow;
}

bool layer_norm_cuda_v3_accepts(const LayerNormArgs& args, const Target& target) {
  const bool is_held = layer_norm_cuda_v2_accepts(args, target) || layer_norm_cuda_v2a_accepts(args, target);
  return blocks_share_rows(args.n, args.d, is_held);
}

Footprint layer_norm_cuda_v3_footprint(const LayerNormArgs& args, const Target&) {
  return {.launches = 2, .scratch_bytes = args.n * row_splits(args.n, args.d) * 24};
}

}  // namespace

const Ladder<LayerNormArgs> layer_norm_ladder(
    "layer_norm",
    {
        {"v3_split_rows", kCuda, "blocks share a row: mean and squared distances of each part first; long rows",
         layer_norm_cuda_v3_accepts, layer_norm_cuda_v3_split_rows, layer_norm_cuda_v3_footprint},
        {"v2_one_pass", kCuda,
         "the row stays in registers, read once by 16-byte loads; aligned rows of up to 32768 elements",
         layer_norm_cuda_v2_accepts, layer_norm_cuda_v2_one_pass},
        {"v2a_any_alignment", kCuda, "the same element by element: rows of any length up to 8192; not float64",
         layer_norm_cuda_v2a_accepts, layer_norm_cuda_v2a_any_alignment},
        {"v1_block_per_row", kCuda,
         "one block per row, neighbouring threads on neighbouring elements; later passes hit in L1", nullptr,
         layer_norm_cuda_v1_block_per_row},
        {"v0_reference", kCuda, "one thread per row, four passes, in double", nullptr, layer_norm_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads; later passes find the row in L1, results bypass the caches", nullptr,
         layer_norm_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, four passes: mean, what it lacks, variance, result; in double", nullptr,
         layer_norm_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
