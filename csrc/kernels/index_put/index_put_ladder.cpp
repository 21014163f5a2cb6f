// The ladder of index_put: see index_put.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/index_put/index_put.h"

namespace rooflab::kernels {

using enum Device::Type;

void index_put_cpu_v0_reference(const IndexPutArgs&, Queue&);
ROOFLAB_CUDA_RUNG(index_put_cuda_v0_reference, IndexPutArgs)
ROOFLAB_CUDA_RUNG(index_put_cuda_v1_rows, IndexPutArgs)

namespace {

// Elements that are not in rows are rows of one element, for which there has to be a dimension.
bool index_put_cuda_v1_accepts(const IndexPutArgs& args, const Target&) {
  return are_rows(args) || (is_short(args) && !args.distinct && args.at.ndim < kMaxDims);
}

Footprint index_put_cuda_v0_footprint(const IndexPutArgs& args, const Target&) {
  if (args.distinct) return {.launches = 1};
  return {.launches = 3, .scratch_bytes = args.at.limit * 4 + 4};
}
Footprint index_put_cuda_v1_footprint(const IndexPutArgs& args, const Target& target) {
  return is_short(args) ? Footprint{.launches = 1} : index_put_cuda_v0_footprint(args, target);
}

}  // namespace

const Ladder<IndexPutArgs> index_put_ladder(
    "index_put",
    {
        {"v1_rows", kCuda, "neighbouring threads share a row, in the widest words; a short index needs one launch",
         index_put_cuda_v1_accepts, index_put_cuda_v1_rows, index_put_cuda_v1_footprint},
        {"v0_reference", kCuda, "the last number for each place is found first; then a thread writes an element",
         nullptr, index_put_cuda_v0_reference, index_put_cuda_v0_footprint},
        {"v0_reference", kCpu, "in order; threads share a dimension along which no two elements meet", nullptr,
         index_put_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
