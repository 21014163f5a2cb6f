// triangle on the GPU: see triangle.h for what it computes.
#include "kernels/common/launch_size.h"
#include "kernels/common/strided.h"
#include "kernels/common/vector_load.cuh"
#include "kernels/triangle/triangle.h"

namespace rooflab::kernels {
namespace {

template <class Word>
__global__ void triangle_cuda_v0_reference_kernel(const __grid_constant__ TriangleArgs args) {
  const int64_t columns = args.sizes[args.ndim - 1], rows = args.sizes[args.ndim - 2];
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < args.count; i += threads) {
    int64_t column, row;
    divide(divide(i, columns, column), rows, row);
    const int64_t from_diagonal = column - row - args.diagonal;
    int64_t offsets[1] = {};
    add_offsets(i, args.ndim, args.sizes, {args.strides}, offsets);
    const bool keeps = args.upper ? from_diagonal >= 0 : from_diagonal <= 0;
    static_cast<Word*>(args.y)[i] = keeps ? static_cast<const Word*>(args.x)[offsets[0]] : Word{0};
  }
}

// A thread for each vector of y. Where x is contiguous, a vector may reach from one row into the next. One that is
// cleared whole is not read.
template <class Word>
__global__ void triangle_cuda_v1_vectorised_kernel(const __grid_constant__ TriangleArgs args, bool is_contiguous) {
  constexpr int kWidth = kVectorWidth<Word>;
  const int64_t columns = args.sizes[args.ndim - 1], rows = args.sizes[args.ndim - 2];
  const int64_t threads = gridDim.x * int64_t{blockDim.x} * kWidth;
  for (int64_t i = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) * kWidth; i < args.count; i += threads) {
    int64_t column, row;
    divide(divide(i, columns, column), rows, row);
    unsigned kept = 0;  // a bit for each element
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const int64_t from_diagonal = column - row - args.diagonal;
      kept |= (args.upper ? from_diagonal >= 0 : from_diagonal <= 0) ? 1u << e : 0;
      if (++column == columns) {
        column = 0;
        if (++row == rows) row = 0;
      }
    }
    int64_t offsets[1] = {is_contiguous ? i : 0};
    if (!is_contiguous) add_offsets(i, args.ndim, args.sizes, {args.strides}, offsets);
    const Word* from = static_cast<const Word*>(args.x) + offsets[0];
    Word* to = static_cast<Word*>(args.y) + i;
    if (i + kWidth > args.count) {
      for (int e = 0; i + e < args.count; ++e) to[e] = kept >> e & 1 ? from[e] : Word{0};
      continue;
    }
    Vector<Word, kWidth> out;
    fill_vector(out, Word{0});
    if (kept != 0) {
      out = load_vector<kWidth>(from);
#pragma unroll
      for (int e = 0; e < kWidth; ++e)
        if (!(kept >> e & 1)) out[e] = Word{0};
    }
    store_vector(to, out);
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

void triangle_cuda_v1_vectorised(const TriangleArgs& args, Queue& queue) {
  const auto kernel = [&] {
    switch (size_of(args.dtype)) {
      case 1: return triangle_cuda_v1_vectorised_kernel<uint8_t>;
      case 2: return triangle_cuda_v1_vectorised_kernel<uint16_t>;
      case 4: return triangle_cuda_v1_vectorised_kernel<uint32_t>;
      default: return triangle_cuda_v1_vectorised_kernel<uint64_t>;
    }
  }();
  const int64_t width = 16 / size_of(args.dtype);
  queue.launch(kernel, a_thread_each((args.count + width - 1) / width), args, is_contiguous(args));
}

}  // namespace rooflab::kernels
