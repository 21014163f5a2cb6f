// The ladder of gather: see gather.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {

using enum Device::Type;

void gather_cpu_v0_reference(const GatherArgs&, Queue&);
void gather_cpu_v1_parallel(const GatherArgs&, Queue&);
ROOFLAB_CUDA_RUNG(gather_cuda_v0_reference, GatherArgs)
ROOFLAB_CUDA_RUNG(gather_cuda_v1_vectorised, GatherArgs)

namespace {

bool gather_cuda_v1_accepts(const GatherArgs& args, const Target&) {
  const int last = args.at.ndim - 1;
  const int64_t width = 16 / size_of(args.dtype);
  bool whole = args.at.strides[last] == 0 && args.x_strides[last] == 1 && args.at.sizes[last] % width == 0 &&
               args.at.step % width == 0 && is_aligned(args.x) && is_aligned(args.y);
  for (int d = 0; d < last; ++d) whole &= args.x_strides[d] % width == 0;
  return whole;
}

}  // namespace

const Ladder<GatherArgs> gather_ladder(
    "gather",
    {
        {"v1_vectorised", kCuda, "16 bytes of a row per thread; rows of one index, adjacent and aligned",
         gather_cuda_v1_accepts, gather_cuda_v1_vectorised},
        {"v0_reference", kCuda, "one thread per element", nullptr, gather_cuda_v0_reference},
        {"v1_parallel", kCpu, "all threads; a contiguous row that has one index is copied at once", nullptr,
         gather_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, an element at a time", nullptr, gather_cpu_v0_reference},
    },
    {"gather", "index_select", "embedding"});

}  // namespace rooflab::kernels
