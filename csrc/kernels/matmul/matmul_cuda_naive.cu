// The first two rungs of the CUDA ladder: one thread computes one element of C, straight from device memory. They take
// any dtype and any strides.
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/common/cuda_types.cuh"
#include "kernels/matmul/matmul_cuda.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kSide = 32;

template <class T, class Accumulator>
__device__ Accumulator dot(const MatmulArgs& args, int64_t batch, int64_t row, int64_t col) {
  const T* a = static_cast<const T*>(args.a) + batch * args.a_batch_stride + row * args.a_row_stride;
  const T* b = static_cast<const T*>(args.b) + batch * args.b_batch_stride + col * args.b_col_stride;
  Accumulator sum = 0;
  for (int64_t k = 0; k < args.k; ++k) {
    sum += Accumulator(to_float(a[k * args.a_col_stride])) * Accumulator(to_float(b[k * args.b_row_stride]));
  }
  return sum;
}

// v0. Neighbouring threads take neighbouring rows, as a first attempt might: each warp then reads 32 rows of A and
// writes 32 rows of C at a time, using 4 bytes of every 32 it moves.
template <class T>
__global__ void matmul_cuda_v0_naive_kernel(MatmulArgs args) {
  const int64_t row = int64_t{blockIdx.x} * kSide + threadIdx.x;
  for (int64_t batch = blockIdx.z; batch < args.batch; batch += gridDim.z) {
    for (int64_t col = int64_t{blockIdx.y} * kSide + threadIdx.y; col < args.n; col += int64_t{gridDim.y} * kSide) {
      if (row >= args.m) continue;
      static_cast<T*>(args.c)[(batch * args.m + row) * args.n + col] =
          static_cast<T>(dot<T, double>(args, batch, row, col));
    }
  }
}

// v1. Neighbouring threads take neighbouring columns: a warp's reads of B and its writes of C are each contiguous, and
// its 32 reads of A are one and the same word.
template <class T>
__global__ void matmul_cuda_v1_coalesced_kernel(MatmulArgs args) {
  using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const int64_t col = int64_t{blockIdx.x} * kSide + threadIdx.x;
  for (int64_t batch = blockIdx.z; batch < args.batch; batch += gridDim.z) {
    for (int64_t row = int64_t{blockIdx.y} * kSide + threadIdx.y; row < args.m; row += int64_t{gridDim.y} * kSide) {
      if (col >= args.n) continue;
      static_cast<T*>(args.c)[(batch * args.m + row) * args.n + col] =
          static_cast<T>(dot<T, Accumulator>(args, batch, row, col));
    }
  }
}

// Blocks of 32 x 32 over (x, y). Where the grid is too small in y or z, blocks stride over the rest.
Dim3 grid_over(int64_t x, int64_t y, int64_t batch) {
  const int64_t y_blocks = std::min<int64_t>((y + kSide - 1) / kSide, kMaxGridZ);
  return {(x + kSide - 1) / kSide, y_blocks, std::min<int64_t>(batch, kMaxGridZ)};
}

}  // namespace

void matmul_cuda_v0_naive(const MatmulArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "matmul", [&]<class T>() {
    queue.launch(matmul_cuda_v0_naive_kernel<cuda_type_t<T>>, {grid_over(args.m, args.n, args.batch), {kSide, kSide}},
                 args);
  });
}

void matmul_cuda_v1_coalesced(const MatmulArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "matmul", [&]<class T>() {
    queue.launch(matmul_cuda_v1_coalesced_kernel<cuda_type_t<T>>,
                 {grid_over(args.n, args.m, args.batch), {kSide, kSide}}, args);
  });
}

}  // namespace rooflab::kernels
