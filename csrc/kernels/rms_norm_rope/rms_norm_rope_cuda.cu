// The CUDA rungs of rms_norm_rope: see rms_norm_rope.h for what they compute.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/rms_norm/rms_norm_tile.cuh"
#include "kernels/rms_norm_rope/rms_norm_rope.h"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void rms_norm_rope_cuda_v0_reference_kernel(const __grid_constant__ RmsNormRopeArgs args) {
  const RopeArgs& rope = args.rope;
  const int64_t d = rope.head_size, half = d / 2, rows = rope.batch * rope.heads * rope.length;
  const T* weight = static_cast<const T*>(args.weight);
  for (int64_t n = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; n < rows; n += int64_t{gridDim.x} * blockDim.x) {
    const RopeRow<T> row(rope, n);
    const auto number = [](T value) { return static_cast<double>(to_float(value)); };
    double squares = 0;
    for (int64_t i = 0; i < d; ++i) squares += number(row.x[i]) * number(row.x[i]);
    const double scale = 1 / sqrt(squares / d + args.eps);
    const auto normal = [&](int64_t i) {
      return number(row.x[i]) * scale * (number(weight[i]) + static_cast<double>(args.zero_centered));
    };
    for (int64_t i = 0; i < half; ++i) {
      const auto point = rope_point(normal(i), normal(i + half), number(row.cos[i]), number(row.cos[i + half]),
                                    number(row.sin[i]), number(row.sin[i + half]), false);
      row.y[i] = round_to<T>(point.first);
      row.y[i + half] = round_to<T>(point.second);
    }
  }
}

constexpr int kWarps = 4;

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp)
    rms_norm_rope_cuda_v1_warp_per_row_kernel(const __grid_constant__ RmsNormRopeArgs args) {
  overlap_launches();
  constexpr int kWidth = kVectorWidth<T>;
  const RopeArgs& rope = args.rope;
  const int64_t n = blockIdx.x * int64_t{kWarps} + threadIdx.x / kWarp;
  if (n >= rope.batch * rope.heads * rope.length) return;
  const RopeRow<T> row(rope, n);
  const int half = static_cast<int>(rope.head_size / 2), i = static_cast<int>(threadIdx.x % kWarp) * kWidth;
  const bool inside = i < half;
  const auto at = [&](const T* p) { return inside ? to_float(load_vector<kWidth>(p + i)) : Vector<float, kWidth>{}; };
  const Vector<float, kWidth> a = at(row.x), b = at(row.x + half);
  const float scale = inverse_rms<false>(static_cast<float>(args.eps), [&](float unit) {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) squares += a[j] * unit * (a[j] * unit) + b[j] * unit * (b[j] * unit);
    return warp_reduce(squares, Add{}, kWarp) / (2 * half);
  });
  if (!inside) return;
  const T* weight = static_cast<const T*>(args.weight);
  const Vector<float, kWidth> gain_a = at(weight), gain_b = at(weight + half);
  const Vector<float, kWidth> cos_a = at(row.cos), cos_b = at(row.cos + half), sin_a = at(row.sin),
                              sin_b = at(row.sin + half);
  const float offset = args.zero_centered;
  Vector<float, kWidth> first, second;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    const auto point = rope_point(a[j] * scale * (gain_a[j] + offset), b[j] * scale * (gain_b[j] + offset), cos_a[j],
                                  cos_b[j], sin_a[j], sin_b[j], false);
    first[j] = point.first;
    second[j] = point.second;
  }
  store_vector(row.y + i, from_float<T>(first));
  store_vector(row.y + half + i, from_float<T>(second));
}

}  // namespace

void rms_norm_rope_cuda_v0_reference(const RmsNormRopeArgs& args, Queue& queue) {
  dispatch_floating(args.rope.dtype, "rms_norm_rope", [&]<class Element>() {
    const int64_t rows = args.rope.batch * args.rope.heads * args.rope.length;
    queue.launch(rms_norm_rope_cuda_v0_reference_kernel<cuda_type_t<Element>>, {grid_for(rows, 128), 128}, args);
  });
}

void rms_norm_rope_cuda_v1_warp_per_row(const RmsNormRopeArgs& args, Queue& queue) {
  dispatch_tile_type(args.rope.dtype, [&]<class T>() {
    const int64_t rows = args.rope.batch * args.rope.heads * args.rope.length;
    const LaunchShape shape{(rows + kWarps - 1) / kWarps, kWarps * kWarp};
    queue.launch(rms_norm_rope_cuda_v1_warp_per_row_kernel<T>, early(shape, queue), args);
  });
}

}  // namespace rooflab::kernels
