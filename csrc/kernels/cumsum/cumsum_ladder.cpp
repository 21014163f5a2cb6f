// The ladder of cumsum: see cumsum.h for what it computes.
#include <algorithm>
#include <cstdlib>

#include "kernels/common/ladder.h"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels {

using enum Device::Type;

void cumsum_cpu_v0_reference(const CumsumArgs&, Queue&);
void cumsum_cpu_v1_parallel(const CumsumArgs&, Queue&);
ROOFLAB_PER_ISA(cumsum_cpu_v2_simd, CumsumArgs)
ROOFLAB_CUDA_RUNG(cumsum_cuda_v0_reference, CumsumArgs)
ROOFLAB_CUDA_RUNG(cumsum_cuda_v1_block_scan, CumsumArgs)
ROOFLAB_CUDA_RUNG(cumsum_cuda_v1a_warp_scan, CumsumArgs)
ROOFLAB_CUDA_RUNG(cumsum_cuda_v2_chunks, CumsumArgs)

namespace {

bool cumsum_cpu_v2_accepts(const CumsumArgs& args, const Target&) {
  if (!is_floating(args.dtype) || args.dtype == DType::kFloat64) return false;
  const bool are_adjacent = args.inner == 1 || (args.x_inner_stride == 1 && args.y_inner_stride == 1);
  if (!are_adjacent || args.inner >= kCumsumFewLines) return are_adjacent;
  const int64_t size = args.n * args.inner;
  const bool lines_adjoin = args.outer == 1 || (args.x_outer_stride == size && args.y_outer_stride == size);
  return lines_adjoin && (args.n == 1 || (std::abs(args.x_stride) == args.inner && args.y_stride == args.x_stride));
}

bool cumsum_cuda_v1_accepts(const CumsumArgs& args, const Target&) { return args.inner == 1; }

// Where lines are few and not short, a block finishes a line sooner than one warp does.
bool cumsum_cuda_v1a_accepts(const CumsumArgs& args, const Target&) {
  constexpr int64_t kShort = 128, kManyLines = 2048;
  return args.inner == 1 && (args.n <= kShort || args.outer >= kManyLines);
}

// Long lines, and few lines that are not side by side in memory.
bool cumsum_cuda_v2_accepts(const CumsumArgs& args, const Target&) {
  constexpr int64_t kFewLines = 16384;  // more keep the GPU busy with a thread each
  return args.n > kCumsumTile || (args.inner > 1 && args.outer * args.inner < kFewLines && args.n > kCumsumTile / 16);
}

Footprint cumsum_cuda_v2_footprint(const CumsumArgs& args, const Target&) {
  const int64_t chunks = cumsum_chunks(args);
  if (chunks == 1) return {.launches = 1};
  return {.launches = 2, .scratch_bytes = args.outer * args.inner * chunks * 8};
}

}  // namespace

int64_t cumsum_chunks(const CumsumArgs& args) {
  constexpr int64_t kEnoughBlocks = 1056, kMost = 1024;
  const int64_t tiles = (args.n + kCumsumTile - 1) / kCumsumTile;
  return std::clamp<int64_t>(std::min(tiles, kEnoughBlocks / std::max<int64_t>(args.outer * args.inner, 1)), 1, kMost);
}

const Ladder<CumsumArgs> cumsum_ladder(
    "cumsum",
    {
        {"v2_chunks", kCuda,
         "blocks share a line: they add up their chunks, then each scans its own from the sum of those before",
         cumsum_cuda_v2_accepts, cumsum_cuda_v2_chunks, cumsum_cuda_v2_footprint},
        {"v1a_warp_scan", kCuda, "a warp for each line, or a few lanes for a short one; the last dimension",
         cumsum_cuda_v1a_accepts, cumsum_cuda_v1a_warp_scan},
        {"v1_block_scan", kCuda, "one block per line, 256 elements at a time by warp scans; the last dimension",
         cumsum_cuda_v1_accepts, cumsum_cuda_v1_block_scan},
        {"v0_reference", kCuda, "one thread per line, in double", nullptr, cumsum_cuda_v0_reference},
        {"v2_simd", kCpu,
         "vectors widen and round a part of some lines, or neighbouring lines; adjacent in memory, not float64",
         cumsum_cpu_v2_accepts, cumsum_cpu_v2_simd},
        {"v1_parallel", kCpu,
         "all threads; neighbouring lines walk the axis together, one alone adds four numbers at a time", nullptr,
         cumsum_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, a line at a time", nullptr, cumsum_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
