// triangle on the GPU: see triangle.h for what it computes.
#include "kernels/common/launch_size.h"
#include "kernels/common/strided.h"
#include "kernels/triangle/triangle.h"

namespace rooflab::kernels {
namespace {

template <class Word>
__global__ void triangle_cuda_v0_reference_kernel(const __grid_constant__ TriangleArgs args) {
  const int64_t columns = args.sizes[args.ndim - 1], rows = args.sizes[args.ndim - 2];
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < args.count; i += threads) {
    const int64_t column = i % columns, from_diagonal = column - i / columns % rows - args.diagonal;
    int64_t offsets[1] = {};
    add_offsets(i, args.ndim, args.sizes, {args.strides}, offsets);
    const bool keeps = args.upper ? from_diagonal >= 0 : from_diagonal <= 0;
    static_cast<Word*>(args.y)[i] = keeps ? static_cast<const Word*>(args.x)[offsets[0]] : Word{0};
  }
}

}  // namespace

void triangle_cuda_v0_reference(const TriangleArgs& args, Queue& queue) {
  const auto kernel = [&] {
    switch (size_of(args.dtype)) {
      case 1: return triangle_cuda_v0_reference_kernel<uint8_t>;
      case 2: return triangle_cuda_v0_reference_kernel<uint16_t>;
      case 4: return triangle_cuda_v0_reference_kernel<uint32_t>;
      default: return triangle_cuda_v0_reference_kernel<uint64_t>;
    }
  }();
  queue.launch(kernel, a_thread_each(args.count), args);
}

}  // namespace rooflab::kernels
