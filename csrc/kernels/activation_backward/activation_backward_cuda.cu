// The CUDA rungs of activation_backward: see activation_backward.h for what they compute.
#include "core/dispatch.h"
#include "core/queue.h"
#include "kernels/activation_backward/activation_backward.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/vector_load.cuh"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels {
namespace {

constexpr int kSmallBlock = 128;  // small blocks: new ones start as soon as others end

struct ValueAndSlope {
  float value, slope;
};

// The comparisons let NaN through: it is neither below nor above the range. 1 - s is computed as exp(-u) s, because the
// difference would cancel where s is nearly 1.
template <Activation kActivation>
__device__ __forceinline__ ValueAndSlope activate(float a) {
  constexpr ActivationRange kRange = kActivation == Activation::kGelu ? kGeluRange : kSiluRange;
  const float above = a < kRange.low ? kRange.low : a, x = above > kRange.high ? kRange.high : above;
  float u = x, slope_of_u = 1;
  if constexpr (kActivation == Activation::kGelu) {
    constexpr float kScale = static_cast<float>(2 * kGeluScale),
                    kCube = static_cast<float>(2 * kGeluScale * kGeluCubic);
    const float cube = kCube * (x * x);
    u = x * (kScale + cube);
    slope_of_u = kScale + 3.0f * cube;
  }
  const float e = __expf(-u), s = __fdividef(1.0f, 1.0f + e);
  return {above * s, s * (1.0f + x * (e * s) * slope_of_u)};
}

// kWidth elements per thread. The last vector of a row may be incomplete where N is 1: then it goes element by element.
template <class T, int kWidth, Activation kActivation, bool kGated>
__device__ __forceinline__ void write_gradients(const ActivationBackwardArgs& args) {
  const int64_t row_vectors = (args.d + kWidth - 1) / kWidth;
  const int64_t item = blockIdx.x * int64_t{kSmallBlock} + threadIdx.x;
  const int64_t row = args.n == 1 ? 0 : item / row_vectors, at = (item - row * row_vectors) * kWidth;
  if (row >= args.n || at >= args.d) return;
  const T* dy = static_cast<const T*>(args.dy) + row * args.dy_row_stride + at;
  const T* a = static_cast<const T*>(args.a) + row * args.a_row_stride + at;
  const T* b = kGated ? static_cast<const T*>(args.b) + row * args.b_row_stride + at : nullptr;
  T* da = static_cast<T*>(args.da) + row * args.d + at;
  T* db = kGated ? static_cast<T*>(args.db) + row * args.d + at : nullptr;
  if (at + kWidth <= args.d) {
    const Vector<T, kWidth> slopes = load_vector<kWidth>(dy), values = load_vector<kWidth>(a);
    Vector<T, kWidth> gates;
    if constexpr (kGated) gates = load_vector<kWidth>(b);
    Vector<float, kWidth> of_a, of_b;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const ValueAndSlope active = activate<kActivation>(to_float(values[i]));
      of_a[i] = to_float(slopes[i]) * active.slope;
      if constexpr (kGated) {
        of_a[i] *= to_float(gates[i]);
        of_b[i] = to_float(slopes[i]) * active.value;
      }
    }
    store_vector(da, from_float<T>(of_a));
    if constexpr (kGated) store_vector(db, from_float<T>(of_b));
  } else {
    for (int64_t i = 0; at + i < args.d; ++i) {
      const ValueAndSlope active = activate<kActivation>(to_float(a[i]));
      const float slope = to_float(dy[i]);
      da[i] = from_float<T>(slope * active.slope * (kGated ? to_float(b[i]) : 1.0f));
      if constexpr (kGated) db[i] = from_float<T>(slope * active.value);
    }
  }
}

template <class T, Activation kActivation, bool kGated>
__global__ void __launch_bounds__(kSmallBlock)
    activation_backward_cuda_v1_fused_kernel(const __grid_constant__ ActivationBackwardArgs args) {
  write_gradients<T, 1, kActivation, kGated>(args);
}

template <class T, Activation kActivation, bool kGated>
__global__ void __launch_bounds__(kSmallBlock)
    activation_backward_cuda_v2_vectorised_kernel(const __grid_constant__ ActivationBackwardArgs args) {
  overlap_launches();
  write_gradients<T, kVectorWidth<T>, kActivation, kGated>(args);
}

LaunchShape a_vector_each(const ActivationBackwardArgs& args, int64_t width) {
  const int64_t vectors = args.n * ((args.d + width - 1) / width);
  return {blocks_of(vectors, kSmallBlock), kSmallBlock};
}

// Calls launch.operator()<T, kActivation, kGated>() for the types that the arguments name; T is not double.
template <class Launch>
void dispatch_kernel(const ActivationBackwardArgs& args, Launch&& launch) {
  const auto of_type = [&]<class T>() {
    const bool is_gelu = args.activation == Activation::kGelu;
    if (is_gelu && args.b) return launch.template operator()<T, Activation::kGelu, true>();
    if (is_gelu) return launch.template operator()<T, Activation::kGelu, false>();
    if (args.b) return launch.template operator()<T, Activation::kSilu, true>();
    launch.template operator()<T, Activation::kSilu, false>();
  };
  dispatch_float(args.dtype, "activation_backward", [&]<class T>() { of_type.template operator()<cuda_type_t<T>>(); });
}

}  // namespace

void activation_backward_cuda_v1_fused(const ActivationBackwardArgs& args, Queue& queue) {
  dispatch_kernel(args, [&]<class T, Activation kActivation, bool kGated>() {
    queue.launch(activation_backward_cuda_v1_fused_kernel<T, kActivation, kGated>, a_vector_each(args, 1), args);
  });
}

void activation_backward_cuda_v2_vectorised(const ActivationBackwardArgs& args, Queue& queue) {
  dispatch_kernel(args, [&]<class T, Activation kActivation, bool kGated>() {
    queue.launch(activation_backward_cuda_v2_vectorised_kernel<T, kActivation, kGated>,
                 early(a_vector_each(args, kVectorWidth<T>), queue), args);
  });
}

}  // namespace rooflab::kernels
