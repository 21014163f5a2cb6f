// The ladder of cumsum: see cumsum.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels {

using enum Device::Type;

void cumsum_cpu_v0_reference(const CumsumArgs&, Queue&);
void cumsum_cpu_v1_parallel(const CumsumArgs&, Queue&);
ROOFLAB_PER_ISA(cumsum_cpu_v2_simd, CumsumArgs)
ROOFLAB_CUDA_RUNG(cumsum_cuda_v0_reference, CumsumArgs)
ROOFLAB_CUDA_RUNG(cumsum_cuda_v1_block_scan, CumsumArgs)

namespace {

bool cumsum_cpu_v2_accepts(const CumsumArgs& args, const Target&) {
  if (!is_floating(args.dtype) || size_of(args.dtype) != 2 || args.inner != 1) return false;
  const bool lines_adjoin = args.outer == 1 || (args.x_outer_stride == args.n && args.y_outer_stride == args.n);
  return args.x_stride == 1 && args.y_stride == 1 && lines_adjoin;
}

bool cumsum_cuda_v1_accepts(const CumsumArgs& args, const Target&) { return args.inner == 1; }

}  // namespace

const Ladder<CumsumArgs> cumsum_ladder(
    "cumsum",
    {
        {"v1_block_scan", kCuda, "one block per line, 256 elements at a time by warp scans; the last dimension",
         cumsum_cuda_v1_accepts, cumsum_cuda_v1_block_scan},
        {"v0_reference", kCuda, "one thread per line, in double", nullptr, cumsum_cuda_v0_reference},
        {"v2_simd", kCpu, "512 elements at a time are widened and rounded by vectors; contiguous ones of 16 bits",
         cumsum_cpu_v2_accepts, cumsum_cpu_v2_simd},
        {"v1_parallel", kCpu,
         "all threads; neighbouring lines walk the axis together, one alone adds four numbers at a time", nullptr,
         cumsum_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, a line at a time", nullptr, cumsum_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
