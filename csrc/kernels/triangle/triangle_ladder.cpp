// The ladder of triangle: see triangle.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/triangle/triangle.h"

namespace rooflab::kernels {

using enum Device::Type;

void triangle_cpu_v0_reference(const TriangleArgs&, Queue&);
void triangle_cpu_v1_parallel(const TriangleArgs&, Queue&);
ROOFLAB_CUDA_RUNG(triangle_cuda_v0_reference, TriangleArgs)
ROOFLAB_CUDA_RUNG(triangle_cuda_v1_vectorised, TriangleArgs)

namespace {

bool triangle_cuda_v1_accepts(const TriangleArgs& args, const Target&) {
  if (!is_aligned(args.x) || !is_aligned(args.y)) return false;
  if (is_contiguous(args)) return true;
  const int64_t width = 16 / size_of(args.dtype);
  const int last = args.ndim - 1;
  bool accepts = args.sizes[last] % width == 0 && args.strides[last] == 1;
  for (int d = 0; d < last; ++d) accepts &= args.strides[d] % width == 0;
  return accepts;
}

}  // namespace

const Ladder<TriangleArgs> triangle_ladder(
    "triangle",
    {
        {"v1_vectorised", kCuda,
         "16-byte accesses; what is cleared is not read; contiguous, or adjacent elements in aligned rows",
         triangle_cuda_v1_accepts, triangle_cuda_v1_vectorised},
        {"v0_reference", kCuda, "one thread per element", nullptr, triangle_cuda_v0_reference},
        {"v1_parallel", kCpu, "all threads; rows kept or cleared whole are treated at once, in others the two parts",
         nullptr, triangle_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, an element at a time", nullptr, triangle_cpu_v0_reference},
    },
    {"tril", "triu"});

}  // namespace rooflab::kernels
