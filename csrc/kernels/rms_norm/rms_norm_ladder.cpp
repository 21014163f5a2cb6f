// The ladder of rms_norm: see rms_norm.h for what it computes.
//
// [measured rms_norm] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                 16384x4096  32768x640
//                    float32    float32
//                  % of copy  % of copy
//   v0_reference          28         29
//   v1_simd              132        142
//   copy, GB/s            31         30
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                      16384x4096  16384x4096  32768x640  32768x640  odd 1x262144
//                        bfloat16     float32   bfloat16    float32       float32
//                       % of copy   % of copy  % of copy  % of copy     % of copy
//   v0_reference              6.1          11        6.6         11         0.032
//   v1_block_per_row           38          69         41         69           4.3
//   v2_one_pass                98          99         99         99             -
//   v2a_any_alignment           -           -          -          -             -
//   v3_split_rows               -           -          -          -            63
//   torch                      70          68         78         92           6.3
//   copy, GB/s               2919        2976       2681       2845           398
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/common/row_split.h"
#include "kernels/rms_norm/rms_norm.h"

namespace rooflab::kernels {

using enum Device::Type;

void rms_norm_cpu_v0_reference(const RmsNormArgs&, Queue&);
ROOFLAB_PER_ISA(rms_norm_cpu_v1_simd, RmsNormArgs)
ROOFLAB_CUDA_RUNG(rms_norm_cuda_v0_reference, RmsNormArgs)
ROOFLAB_CUDA_RUNG(rms_norm_cuda_v1_block_per_row, RmsNormArgs)
ROOFLAB_CUDA_RUNG(rms_norm_cuda_v2_one_pass, RmsNormArgs)
ROOFLAB_CUDA_RUNG(rms_norm_cuda_v2a_any_alignment, RmsNormArgs)
ROOFLAB_CUDA_RUNG(rms_norm_cuda_v3_split_rows, RmsNormArgs)

namespace {

bool rms_norm_cuda_v2_accepts(const RmsNormArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.y) && is_aligned(args.weight);
}

bool rms_norm_cuda_v2a_accepts(const RmsNormArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.d <= kMaxElementRow;
}

bool rms_norm_cuda_v3_accepts(const RmsNormArgs& args, const Target& target) {
  const bool is_held = rms_norm_cuda_v2_accepts(args, target) || rms_norm_cuda_v2a_accepts(args, target);
  return blocks_share_rows(args.n, args.d, is_held);
}

Footprint rms_norm_cuda_v3_footprint(const RmsNormArgs& args, const Target&) {
  return {.launches = 2, .scratch_bytes = args.n * row_splits(args.n, args.d) * 8};
}

}  // namespace

const Ladder<RmsNormArgs> rms_norm_ladder(
    "rms_norm",
    {
        {"v3_split_rows", kCuda, "blocks share a row: the sum of squares of each part first; long rows",
         rms_norm_cuda_v3_accepts, rms_norm_cuda_v3_split_rows, rms_norm_cuda_v3_footprint},
        {"v2_one_pass", kCuda,
         "the row stays in registers, read once by 16-byte loads; aligned rows of up to 32768 elements",
         rms_norm_cuda_v2_accepts, rms_norm_cuda_v2_one_pass},
        {"v2a_any_alignment", kCuda, "the same element by element: rows of any length up to 8192; not float64",
         rms_norm_cuda_v2a_accepts, rms_norm_cuda_v2a_any_alignment},
        {"v1_block_per_row", kCuda,
         "one block per row, neighbouring threads on neighbouring elements; the second pass hits in L1", nullptr,
         rms_norm_cuda_v1_block_per_row},
        {"v0_reference", kCuda, "one thread per row, two passes, in double", nullptr, rms_norm_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads; the second pass finds the row in L1, results bypass the caches", nullptr,
         rms_norm_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, two passes: mean square, result; in double", nullptr,
         rms_norm_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
