// The ladder of gather: see gather.h for what it computes.
#include <algorithm>
#include <bit>

#include "core/launch_shape.h"
#include "kernels/common/ladder.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {

using enum Device::Type;

void gather_cpu_v0_reference(const GatherArgs&, Queue&);
void gather_cpu_v1_parallel(const GatherArgs&, Queue&);
ROOFLAB_CUDA_RUNG(gather_cuda_v0_reference, GatherArgs)
ROOFLAB_CUDA_RUNG(gather_cuda_v1a_elements, GatherArgs)
ROOFLAB_CUDA_RUNG(gather_cuda_v1b_staged, GatherArgs)
ROOFLAB_CUDA_RUNG(gather_cuda_v1_vectorised, GatherArgs)
ROOFLAB_CUDA_RUNG(gather_cuda_v2_rows, GatherArgs)

// The same columns of all rows of a matrix, whose rows lie one after another.
int gather_staged_rows(const GatherArgs& args) {
  constexpr int64_t kBytes = 24 * 1024, kMost = 8;  // two such blocks and more share a multiprocessor
  const IndexLayout& at = args.at;
  const bool is_matrix = at.ndim == 2 && at.strides[0] == 0 && args.x_strides[0] == at.limit && args.x_strides[1] == 0;
  const int64_t bytes = at.limit * size_of(args.dtype);
  if (!is_matrix || at.step != 1 || bytes == 0 || bytes > kSharedBytesOfAnyGpu) return 0;
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(kBytes / bytes, 1, kMost))));
}

namespace {

bool gather_cuda_v1b_accepts(const GatherArgs& args, const Target&) { return gather_staged_rows(args) > 0; }

// Where few are chosen, reading them alone moves less: 32 bytes each. And there have to be blocks enough.
bool gather_cuda_v1b_by_default(const GatherArgs& args, const Target&) {
  constexpr int64_t kSector = 32, kEnoughRows = 2048;
  return args.at.sizes[0] >= kEnoughRows && args.at.sizes[1] * kSector >= args.at.limit * size_of(args.dtype);
}

// Rows of one index, whose elements are adjacent.
bool gather_cuda_rows_accept(const GatherArgs& args, const Target&) {
  const int last = args.at.ndim - 1;
  return args.at.strides[last] == 0 && args.x_strides[last] == 1;
}

// Fewer elements have a thread each that runs at once.
bool gather_cuda_v1a_by_default(const GatherArgs& args, const Target&) {
  constexpr int64_t kManyElements = int64_t{1} << 18;
  return args.at.count >= kManyElements;
}

}  // namespace

const Ladder<GatherArgs> gather_ladder(
    "gather",
    {
        {"v2_rows", kCuda, "neighbouring threads share a row: its index is read once, 4 or 8 words are in flight",
         gather_cuda_rows_accept, gather_cuda_v2_rows},
        {"v1b_staged", kCuda,
         "a block keeps up to 8 rows in shared memory, and chooses the same columns of all of them",
         gather_cuda_v1b_accepts, gather_cuda_v1b_staged, nullptr, gather_cuda_v1b_by_default},
        {"v1a_elements", kCuda, "an index for each element: a thread has four in flight, and then their elements",
         nullptr, gather_cuda_v1a_elements, nullptr, gather_cuda_v1a_by_default},
        {"v1_vectorised", kCuda, "the widest words, of up to 16 bytes, that make up all rows; rows of one index",
         gather_cuda_rows_accept, gather_cuda_v1_vectorised},
        {"v0_reference", kCuda, "one thread per element", nullptr, gather_cuda_v0_reference},
        {"v1_parallel", kCpu, "all threads; a contiguous row that has one index is copied at once", nullptr,
         gather_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, an element at a time", nullptr, gather_cpu_v0_reference},
    },
    {"gather", "index_select", "embedding"});

}  // namespace rooflab::kernels
