// The CUDA type of each element type of core/dtype.h, and conversions to and from float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/dtype.h"

namespace rooflab::kernels {

template <class T>
struct CudaType {
  using type = T;
};
template <>
struct CudaType<Half> {
  using type = __half;
};
template <>
struct CudaType<BFloat16> {
  using type = __nv_bfloat16;
};
template <class T>
using cuda_type_t = typename CudaType<T>::type;

__device__ __forceinline__ double to_float(double x) { return x; }
__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ __forceinline__ T from_float(float x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

}  // namespace rooflab::kernels
