// The ladder of index_put: see index_put.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/index_put/index_put.h"

namespace rooflab::kernels {

using enum Device::Type;

void index_put_cpu_v0_reference(const IndexPutArgs&, Queue&);
ROOFLAB_CUDA_RUNG(index_put_cuda_v0_reference, IndexPutArgs)
ROOFLAB_CUDA_RUNG(index_put_cuda_v1_vectorised, IndexPutArgs)

namespace {

bool index_put_cuda_v1_accepts(const IndexPutArgs& args, const Target&) {
  const int last = args.at.ndim - 1;
  const int64_t width = 16 / size_of(args.dtype);
  bool whole = args.at.strides[last] == 0 && args.value_strides[last] == 1 && args.y_strides[last] == 1 &&
               args.at.sizes[last] % width == 0 && args.at.step % width == 0 && is_aligned(args.values) &&
               is_aligned(args.y);
  for (int d = 0; d < last; ++d) whole &= args.value_strides[d] % width == 0 && args.y_strides[d] % width == 0;
  return whole;
}

Footprint index_put_cuda_footprint(const IndexPutArgs& args, const Target&) {
  if (args.distinct) return {.launches = 1};
  return {.launches = 3, .fills = 1, .scratch_bytes = args.at.limit * 4};
}

}  // namespace

const Ladder<IndexPutArgs> index_put_ladder(
    "index_put",
    {
        {"v1_vectorised", kCuda, "16 bytes of a row per thread; rows of one index, adjacent and aligned",
         index_put_cuda_v1_accepts, index_put_cuda_v1_vectorised, index_put_cuda_footprint},
        {"v0_reference", kCuda, "the last number for each place is found first; then a thread writes an element",
         nullptr, index_put_cuda_v0_reference, index_put_cuda_footprint},
        {"v0_reference", kCpu, "in order; threads share a dimension along which no two elements meet", nullptr,
         index_put_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
