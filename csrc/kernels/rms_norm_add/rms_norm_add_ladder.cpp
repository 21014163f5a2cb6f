// The ladder of rms_norm_add: see rms_norm_add.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/rms_norm_add/rms_norm_add.h"

namespace rooflab::kernels {

using enum Device::Type;

void rms_norm_add_cpu_v0_reference(const RmsNormAddArgs&, Queue&);
ROOFLAB_PER_ISA(rms_norm_add_cpu_v1_simd, RmsNormAddArgs)
ROOFLAB_CUDA_RUNG(rms_norm_add_cuda_v0_reference, RmsNormAddArgs)
ROOFLAB_CUDA_RUNG(rms_norm_add_cuda_v0a_block_per_row, RmsNormAddArgs)
ROOFLAB_CUDA_RUNG(rms_norm_add_cuda_v1_one_pass, RmsNormAddArgs)
ROOFLAB_CUDA_RUNG(rms_norm_add_cuda_v2_few_rows, RmsNormAddArgs)

namespace {

bool rms_norm_add_cuda_v1_accepts(const RmsNormAddArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.h) &&
         rows_fit_tile(args.dtype, args.d, args.residual, args.residual_row_stride, args.h) &&
         is_aligned(args.weight) && is_aligned(args.next_weight) && is_aligned(args.y);
}

bool rms_norm_add_cuda_v2_accepts(const RmsNormAddArgs& args, const Target& target) {
  constexpr int64_t kRowsOfSm = 2;
  return rms_norm_add_cuda_v1_accepts(args, target) && args.d * size_of(args.dtype) <= 16 * kMaxRowThreads &&
         args.n <= kRowsOfSm * target.sm_count;
}

}  // namespace

const Ladder<RmsNormAddArgs> rms_norm_add_ladder(
    "rms_norm_add",
    {
        {"v2_few_rows", kCuda,
         "a block per row and a vector per thread, weights requested with it; few aligned rows of up to 16 KiB",
         rms_norm_add_cuda_v2_accepts, rms_norm_add_cuda_v2_few_rows},
        {"v1_one_pass", kCuda, "both rows stay in registers, 16-byte accesses; aligned rows of up to 32768 elements",
         rms_norm_add_cuda_v1_accepts, rms_norm_add_cuda_v1_one_pass},
        {"v0a_block_per_row", kCuda, "one block per row, or a few lanes of one for a narrow row; in double", nullptr,
         rms_norm_add_cuda_v0a_block_per_row},
        {"v0_reference", kCuda, "one thread per row, in double", nullptr, rms_norm_add_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads; the later passes find the row in L1", nullptr, rms_norm_add_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, in double", nullptr, rms_norm_add_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
