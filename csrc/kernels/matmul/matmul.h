#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/cpu_isa.h"

namespace rooflab::kernels {

// C[b, i, j] = sum_k A[b, i, k] * B[b, k, j]. Strides are in elements; C is contiguous. A batch stride of 0 repeats a matrix.
struct MatmulArgs {
  const void* a;  // (batch, M, K)
  const void* b;  // (batch, K, N)
  void* c;        // (batch, M, N)
  int64_t batch, m, n, k;
  int64_t a_batch_stride, a_row_stride, a_col_stride;
  int64_t b_batch_stride, b_row_stride, b_col_stride;
  DType dtype;
};

// CPU.
void matmul_cpu_v0_reference(const MatmulArgs&, Stream);
void matmul_cpu_v1_loop_order(const MatmulArgs&, Stream);
void matmul_cpu_v2_blocked(const MatmulArgs&, Stream);
ROOFLAB_PER_ISA(matmul_cpu_v3_packed_simd, MatmulArgs)
void matmul_cpu_v4_bf16_dot(const MatmulArgs&, Stream);
void matmul_cpu_v5_amx_tile(const MatmulArgs&, Stream);
ROOFLAB_PER_ISA(matmul_cpu_v6_gemv, MatmulArgs)
void matmul_cpu_library(const MatmulArgs&, Stream);
bool matmul_cpu_v4_accepts(const MatmulArgs&);
bool matmul_cpu_v5_accepts(const MatmulArgs&);
bool matmul_cpu_v6_accepts(const MatmulArgs&);
bool matmul_cpu_library_accepts(const MatmulArgs&);

// The BLAS of the `library` rung: Fortran sgemm and dgemm with 32-bit sizes, as scipy.linalg.cython_blas exports them.
void set_cpu_blas(void* sgemm, void* dgemm);

// Memory for packed panels, kept by the calling thread from call to call (fresh pages would cost more than the packing):
// at least `bytes`, aligned to 64. Throws OutOfMemory.
void* matmul_cpu_scratch(int64_t bytes);

// CUDA, weak so that a build without CUDA links. Each rung comes with what it accepts (dtype, layout, architecture).
// v0 and v1 accept all that the others do.
[[gnu::weak]] void matmul_cuda_v0_naive(const MatmulArgs&, Stream);
[[gnu::weak]] void matmul_cuda_v1_coalesced(const MatmulArgs&, Stream);
[[gnu::weak]] void matmul_cuda_v2_shared_tile(const MatmulArgs&, Stream);
[[gnu::weak]] void matmul_cuda_v3_register_tile(const MatmulArgs&, Stream);
[[gnu::weak]] void matmul_cuda_v4_tensor_core(const MatmulArgs&, Stream);
[[gnu::weak]] void matmul_cuda_v5_hopper(const MatmulArgs&, Stream);
[[gnu::weak]] void matmul_cuda_library(const MatmulArgs&, Stream);
[[gnu::weak]] bool matmul_cuda_v0_accepts(const MatmulArgs&);
[[gnu::weak]] bool matmul_cuda_v1_accepts(const MatmulArgs&);
[[gnu::weak]] bool matmul_cuda_v2_accepts(const MatmulArgs&);
[[gnu::weak]] bool matmul_cuda_v3_accepts(const MatmulArgs&);
[[gnu::weak]] bool matmul_cuda_v4_accepts(const MatmulArgs&);
[[gnu::weak]] bool matmul_cuda_v5_accepts(const MatmulArgs&);
[[gnu::weak]] bool matmul_cuda_library_accepts(const MatmulArgs&);

}  // namespace rooflab::kernels
