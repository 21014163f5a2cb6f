// The CUDA rungs of rope: see rope.h for what they compute.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/rope/rope.h"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads) rope_cuda_v0_reference_kernel(const __grid_constant__ RopeArgs args) {
  const int64_t half = args.head_size / 2, points = args.batch * args.heads * args.length * half;
  const int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (at >= points) return;
  const RopeRow<T> row(args, at / half);
  const int64_t i = at % half;
  const auto number = [](T value) { return static_cast<double>(to_float(value)); };
  const auto [first, second] =
      rope_point(number(row.x[i]), number(row.x[i + half]), number(row.cos[i]), number(row.cos[i + half]),
                 number(row.sin[i]), number(row.sin[i + half]), args.is_reverse);
  row.y[i] = round_to<T>(first);
  row.y[i + half] = round_to<T>(second);
}

template <class T>
__global__ void __launch_bounds__(kThreads) rope_cuda_v1_vectorised_kernel(const __grid_constant__ RopeArgs args) {
  constexpr int kWidth = kVectorWidth<T>;
  const unsigned half = static_cast<unsigned>(args.head_size / 2), row_vectors = half / kWidth;
  const int64_t vectors = args.batch * args.heads * args.length * row_vectors;
  const int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  overlap_launches();
  if (at >= vectors) return;
  const RopeRow<T> row(args, at / row_vectors);
  const unsigned i = static_cast<unsigned>(at % row_vectors) * kWidth;
  const auto first = load_vector<kWidth>(row.x + i), second = load_vector<kWidth>(row.x + half + i);
  const auto cos_first = load_vector<kWidth>(row.cos + i), cos_second = load_vector<kWidth>(row.cos + half + i);
  const auto sin_first = load_vector<kWidth>(row.sin + i), sin_second = load_vector<kWidth>(row.sin + half + i);
  Vector<T, kWidth> turned_first, turned_second;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    const auto point =
        rope_point(to_float(first[j]), to_float(second[j]), to_float(cos_first[j]), to_float(cos_second[j]),
                   to_float(sin_first[j]), to_float(sin_second[j]), args.is_reverse);
    turned_first[j] = static_cast<T>(point.first);
    turned_second[j] = static_cast<T>(point.second);
  }
  store_vector(row.y + i, turned_first);
  store_vector(row.y + half + i, turned_second);
}

}  // namespace

void rope_cuda_v0_reference(const RopeArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "rope", [&]<class Element>() {
    const int64_t points = args.batch * args.heads * args.length * (args.head_size / 2);
    queue.launch(rope_cuda_v0_reference_kernel<cuda_type_t<Element>>, {blocks_of(points), kThreads}, args);
  });
}

void rope_cuda_v1_vectorised(const RopeArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "rope", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    const int64_t vectors = args.batch * args.heads * args.length * (args.head_size / 2) / kVectorWidth<T>;
    queue.launch(rope_cuda_v1_vectorised_kernel<T>, early({blocks_of(vectors), kThreads}, queue), args);
  });
}

}  // namespace rooflab::kernels
