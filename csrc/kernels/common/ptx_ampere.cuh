// Instructions of sm_80 and later that CUDA C++ has no names for: copies that bypass registers, and tensor core
// products of one warp. Kernels that use them guard their body with ROOFLAB_SM80.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/architecture.cuh"

namespace rooflab::kernels::ptx {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Copies kBytes (4, 8 or 16) from global to shared memory in the background; those past `valid` become zero.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global, int valid) {
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)), "l"(global),
                 "n"(kBytes), "r"(valid)
                 : "memory");
  }
}

__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's committed groups are still in flight.
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Loads four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. Each lane
// receives two neighbours in a row of each matrix, or with kTranspose two neighbours in a column.
template <bool kTranspose>
__device__ __forceinline__ void load_matrices(uint32_t (&out)[4], const void* shared_row) {
  if constexpr (kTranspose) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared_address(shared_row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared_address(shared_row))
                 : "memory");
  }
}

// The name of an element type in PTX, for the "C" constraint of asm.
template <class T>
struct TypeName;
template <>
struct TypeName<__half> {
  static constexpr const char value[] = "f16";
};
template <>
struct TypeName<__nv_bfloat16> {
  static constexpr const char value[] = "bf16";
};

// d += a b for a 16 x 16 (row-major) and b 16 x 8 (column-major), by one warp.
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.%10.%10.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "C"(TypeName<T>::value));
}

// Two floats as neighbouring 16-bit elements, the first in the lower half.
template <class T>
__device__ __forceinline__ uint32_t pack(float first, float second) {
  if constexpr (sizeof(T) == 2 && TypeName<T>::value[0] == 'b') {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return reinterpret_cast<const uint32_t&>(pair);
  } else {
    const __half2 pair = __floats2half2_rn(first, second);
    return reinterpret_cast<const uint32_t&>(pair);
  }
}

}  // namespace rooflab::kernels::ptx
