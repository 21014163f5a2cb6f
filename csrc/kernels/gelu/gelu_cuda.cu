// GeLU on the GPU.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/strided.h"
#include "kernels/common/vector_load.cuh"
#include "kernels/gelu/gelu.h"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels {
namespace {

constexpr int kVectorThreads = 256;

// Two special-function operations per element and no branches: expf(-2u) is computed as 2^(-2u log2(e)).
__device__ __forceinline__ float gelu(float x) {
  constexpr float kLinear = static_cast<float>(-2 * kGeluScale * 1.4426950408889634074);
  constexpr float kCubic = static_cast<float>(-2 * kGeluScale * kGeluCubic * 1.4426950408889634074);
  x = x < kGeluLowest ? kGeluLowest : x;
  return __fdividef(x, 1.0f + exp2f(x * fmaf(kCubic, x * x, kLinear)));
}
__device__ __forceinline__ double gelu(double x) {
  x = x < kGeluLowest ? kGeluLowest : x;
  return x / (1 + exp(x * fma(-2 * kGeluScale * kGeluCubic, x * x, -2 * kGeluScale)));
}

template <class T>
__device__ __forceinline__ int64_t offset_of(const GeluArgs& args, int64_t i) {
  int64_t offset[1] = {};
  add_offsets(i, args.ndim, args.sizes, {args.strides}, offset);
  return offset[0];
}

template <class T>
__global__ void __launch_bounds__(kThreads) gelu_cuda_v0_reference_kernel(const __grid_constant__ GeluArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= args.count) return;
  const double x = to_float(static_cast<const T*>(args.x)[offset_of<T>(args, i)]);
  static_cast<T*>(args.y)[i] = static_cast<T>(gelu_reference(x));
}

template <class T>
__global__ void __launch_bounds__(kThreads) gelu_cuda_v1_fused_kernel(const __grid_constant__ GeluArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= args.count) return;
  static_cast<T*>(args.y)[i] = static_cast<T>(gelu(to_float(static_cast<const T*>(args.x)[offset_of<T>(args, i)])));
}

template <class T>
__global__ void __launch_bounds__(kVectorThreads) gelu_cuda_v2_vectorised_kernel(const T* x, T* y, int64_t count) {
  constexpr int kWidth = kVectorWidth<T>;
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * kVectorThreads + threadIdx.x) * kWidth;
  overlap_launches();
  if (begin + kWidth <= count) {
    const Vector<T, kWidth> in = load_vector<kWidth>(x + begin);
    Vector<T, kWidth> out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) out[i] = static_cast<T>(gelu(to_float(in[i])));
    store_vector(y + begin, out);
  } else {
    for (int64_t i = begin; i < count; ++i) y[i] = static_cast<T>(gelu(to_float(x[i])));
  }
}

}  // namespace

void gelu_cuda_v0_reference(const GeluArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "gelu", [&]<class T>() {
    queue.launch(gelu_cuda_v0_reference_kernel<cuda_type_t<T>>, {blocks_of(args.count), kThreads}, args);
  });
}

void gelu_cuda_v1_fused(const GeluArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "gelu", [&]<class T>() {
    queue.launch(gelu_cuda_v1_fused_kernel<cuda_type_t<T>>, {blocks_of(args.count), kThreads}, args);
  });
}

void gelu_cuda_v2_vectorised(const GeluArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "gelu", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    const int64_t blocks = blocks_of(args.count, kVectorThreads * kVectorWidth<T>);
    queue.launch(gelu_cuda_v2_vectorised_kernel<T>, early({blocks, kVectorThreads}, queue),
                 static_cast<const T*>(args.x), static_cast<T*>(args.y), args.count);
  });
}

}  // namespace rooflab::kernels
