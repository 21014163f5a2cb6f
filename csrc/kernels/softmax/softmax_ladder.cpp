// The ladder of softmax: see softmax.h for what it computes.
//
// [measured softmax] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                 16384x4096  32768x640
//                    float32    float32
//                  % of copy  % of copy
//   v0_reference         3.2        3.3
//   v1_online             61         73
//   v2_one_pass           85        100
//   v4_columns             -          -
//   copy, GB/s            30         30
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                                                                                    columns of
//                      16384x4096  16384x4096  32768x640  32768x640  odd 1x262144  64x1024x1024
//                        bfloat16     float32   bfloat16    float32       float32       float32
//                       % of copy   % of copy  % of copy  % of copy     % of copy     % of copy
//   v0_reference              4.4         7.3        5.4          9         0.011           6.5
//   v0a_block_per_row          28          52         31         55             3            21
//   v0b_warp_shuffles          35          60         36         61             3            22
//   v1_online                  26          50         27         50           3.8            20
//   v1a_four_loads             31          63         30         57           5.2            22
//   v1b_staged                  -           -         46         66             -            24
//   v2_one_pass                99          99        100         99             -            25
//   v2a_any_alignment           -           -          -          -             -             -
//   v2b_long_rows               -           -          -          -             -             -
//   v3_split_rows               -           -          -          -            58             -
//   v4_columns                  -           -          -          -             -            51
//   v4a_short_columns           -           -          -          -             -             -
//   torch                      44          79         69         96            15            13
//   copy, GB/s               2922        2978       2642       2846           226          2978
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/common/alignment.h"
#include "kernels/common/column_groups.h"
#include "kernels/common/ladder.h"
#include "kernels/common/row_split.h"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {

using enum Device::Type;

void softmax_cpu_v0_reference(const SoftmaxArgs&, Queue&);
ROOFLAB_PER_ISA(softmax_cpu_v1_online, SoftmaxArgs)
ROOFLAB_PER_ISA(softmax_cpu_v2_one_pass, SoftmaxArgs)
ROOFLAB_PER_ISA(softmax_cpu_v4_columns, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v0_reference, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v0a_block_per_row, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v0b_warp_shuffles, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v1_online, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v1a_four_loads, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v1b_staged, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v2_one_pass, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v2a_any_alignment, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v2b_long_rows, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v3_split_rows, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v4_columns, SoftmaxArgs)
ROOFLAB_CUDA_RUNG(softmax_cuda_v4a_short_columns, SoftmaxArgs)

namespace {

bool softmax_cpu_v4_accepts(const SoftmaxArgs& args, const Target&) {
  return args.y_has_columns || args.inner >= kFewColumns;
}

bool softmax_cuda_v4_accepts(const SoftmaxArgs& args, const Target&) {
  return args.y_has_columns || columns_fill_gpu(args.n, args.d, args.inner);
}

// Rows of one element without gaps are a row of columns, too.
bool softmax_cuda_v4a_accepts(const SoftmaxArgs& args, const Target&) {
  if (args.dtype == DType::kFloat64 || args.d < 1 || args.d > kSoftmaxShortColumn) return false;
  if (!is_aligned(args.inner > 0 ? args.columns : args.x) || !is_aligned(args.y)) return false;
  if (args.inner == 0) return args.d == 1 && (args.x_row_stride == 1 || args.n == 1);
  const int64_t width = 16 / size_of(args.dtype);
  const auto whole = [&](int64_t stride, int64_t count) { return count == 1 || stride % width == 0; };
  return args.inner % width == 0 && whole(args.outer_stride, args.n / args.inner) && whole(args.step, args.d);
}

bool softmax_cpu_v2_accepts(const SoftmaxArgs& args, const Target&) {
  if (args.logarithm) return args.d <= kSoftmaxCpuShort;  // others would have no use for the exponentials
  return args.d <= kSoftmaxCpuScratch / (args.dtype == DType::kFloat64 ? 8 : 4);
}

bool softmax_cuda_v1b_accepts(const SoftmaxArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.d > 0 && args.d <= kSoftmaxStagedWidth &&
         (args.x_row_stride == args.d || args.n == 1) && is_aligned(args.x) && is_aligned(args.y);
}

// v2 and v2a give a row up to eight lanes, of 16 bytes each. Where that leaves many of them idle, or many elements to
// be accessed one by one, v1b is faster.
bool is_wide(const SoftmaxArgs& args, const Target& target, int64_t bytes) {
  return args.d * size_of(args.dtype) >= bytes || !softmax_cuda_v1b_accepts(args, target);
}
bool softmax_cuda_v2_by_default(const SoftmaxArgs& args, const Target& target) { return is_wide(args, target, 32); }
bool softmax_cuda_v2a_by_default(const SoftmaxArgs& args, const Target& target) {
  return is_wide(args, target, args.dtype == DType::kFloat32 ? 64 : 128);
}

bool softmax_cuda_v2_accepts(const SoftmaxArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.y);
}

bool softmax_cuda_v2a_accepts(const SoftmaxArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && softmax_held_elements(args) <= kMaxRowElements &&
         (args.dtype == DType::kFloat32 || softmax_rows_lie_alike(args));
}

bool softmax_cuda_v2b_accepts(const SoftmaxArgs& args, const Target&) {
  return args.dtype != DType::kFloat64 && args.d > kMaxRowElements && softmax_rows_lie_alike(args);
}

Footprint softmax_cuda_v2b_footprint(const SoftmaxArgs& args, const Target& target) {
  return {.shared_bytes = softmax_held_bytes(args, target)};
}

Footprint softmax_cuda_v1b_footprint(const SoftmaxArgs& args, const Target&) {
  return {.shared_bytes = softmax_staged_rows(args) * args.d * 4};
}

// Where v2b takes them, rows are shared only if they are fewer than the parts of a row.
bool softmax_cuda_v3_accepts(const SoftmaxArgs& args, const Target& target) {
  constexpr int64_t kPart = 2048;  // elements
  const bool rows_fill_gpu = softmax_cuda_v2b_accepts(args, target) && args.n * kPart >= args.d;
  return blocks_share_rows(args.n, args.d) && !rows_fill_gpu;
}

Footprint softmax_cuda_v3_footprint(const SoftmaxArgs& args, const Target&) {
  const int64_t bytes = args.dtype == DType::kFloat64 ? 16 : 8;  // a maximum and a sum
  return {.launches = 2, .scratch_bytes = args.n * row_splits(args.n, args.d) * bytes};
}

}  // namespace

int64_t softmax_held_elements(const SoftmaxArgs& args) {
  const int64_t width = 16 / size_of(args.dtype), shared = args.dtype == DType::kFloat32 ? 0 : width - 1;
  return (args.d + shared + width - 1) / width * width;
}

bool softmax_rows_lie_alike(const SoftmaxArgs& args) {
  return rows_lie_alike(size_of(args.dtype), args.n, args.x, args.x_row_stride, args.y, args.d);
}

int64_t softmax_held_bytes(const SoftmaxArgs& args, const Target& target) {
  constexpr int64_t kOther = 2048;  // bytes that a block has beside the row, for its reduction and of the system
  return std::min(args.d * size_of(args.dtype), target.shared_bytes_of_block / 2 - kOther) / 16 * 16;
}

int softmax_staged_lanes(const SoftmaxArgs& args) {
  constexpr uint64_t kElementsOfLane = 4, kMost = 32;
  return static_cast<int>(std::min(std::bit_ceil((args.d + kElementsOfLane - 1) / kElementsOfLane), kMost));
}

int64_t softmax_staged_rows(const SoftmaxArgs& args) {
  constexpr int64_t kThreads = 256, kEnoughBlocks = 264;
  const int64_t width = 16 / size_of(args.dtype), together = width / std::gcd(args.d, width);  // rows of whole vectors
  const int64_t fewest = kThreads / softmax_staged_lanes(args);
  const int64_t rows = std::max(std::min(kSoftmaxStaged / args.d, args.n / kEnoughBlocks), fewest);
  return (rows + together - 1) / together * together;
}

const Ladder<SoftmaxArgs> softmax_ladder(
    "softmax",
    {
        {kSoftmaxShortColumns, kCuda, "a thread holds columns of up to 8 elements in registers, 16 bytes of each row",
         softmax_cuda_v4a_accepts, softmax_cuda_v4a_short_columns},
        {kSoftmaxColumns, kCuda, "a block's threads lie across columns and share their length; any other dimension",
         softmax_cuda_v4_accepts, softmax_cuda_v4_columns},
        {"v3_split_rows", kCuda, "blocks share a row: maximum and sum of each part first; long rows",
         softmax_cuda_v3_accepts, softmax_cuda_v3_split_rows, softmax_cuda_v3_footprint},
        {"v2_one_pass", kCuda,
         "the row stays in registers, read once by 16-byte loads; aligned rows of up to 32768 elements",
         softmax_cuda_v2_accepts, softmax_cuda_v2_one_pass, nullptr, softmax_cuda_v2_by_default},
        {"v2a_any_alignment", kCuda,
         "as v2, where rows begin anywhere: floats one by one, others by the 16 bytes that they share with neighbours",
         softmax_cuda_v2a_accepts, softmax_cuda_v2a_any_alignment, nullptr, softmax_cuda_v2a_by_default},
        {"v2b_long_rows", kCuda,
         "a block reads its row twice, by 16-byte loads, the second time from shared memory; rows that v2a cannot hold",
         softmax_cuda_v2b_accepts, softmax_cuda_v2b_long_rows, softmax_cuda_v2b_footprint},
        {"v1b_staged", kCuda,
         "narrow rows of any width go through shared memory together, so that all accesses have 16 bytes",
         softmax_cuda_v1b_accepts, softmax_cuda_v1b_staged, softmax_cuda_v1b_footprint},
        {"v1a_four_loads", kCuda, "each thread has four loads in flight, and rescales once for the four", nullptr,
         softmax_cuda_v1a_four_loads},
        {"v1_online", kCuda, "the sum is rescaled when the maximum grows, so one pass finds both", nullptr,
         softmax_cuda_v1_online},
        {"v0b_warp_shuffles", kCuda, "values go from lane to lane without shared memory, then once across the warps",
         nullptr, softmax_cuda_v0b_warp_shuffles},
        {"v0a_block_per_row", kCuda, "one block per row: neighbours read neighbours, a tree in shared memory", nullptr,
         softmax_cuda_v0a_block_per_row},
        {"v0_reference", kCuda, "one thread per row, three passes: maximum, sum, result; in double", nullptr,
         softmax_cuda_v0_reference},
        {kSoftmaxColumns, kCpu, "a lane is a column, so rows need not be turned first; any other dimension",
         softmax_cpu_v4_accepts, softmax_cpu_v4_columns},
        {"v2_one_pass", kCpu,
         "exponentials stay in cache, results bypass it; rows of up to 128 KiB of them, short ones side by side",
         softmax_cpu_v2_accepts, softmax_cpu_v2_one_pass},
        {"v1_online", kCpu, "maximum and sum in one pass, SIMD, all threads", nullptr, softmax_cpu_v1_online},
        {"v0_reference", kCpu, "one thread, three passes: maximum, sum, result; in double", nullptr,
         softmax_cpu_v0_reference},
    },
    {"softmax", "log_softmax"});

}  // namespace rooflab::kernels
