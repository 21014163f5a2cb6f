#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/cpu_isa.h"

namespace rooflab::kernels {

// C[b, i, j] = sum_k A[b, i, k] * B[b, k, j]. Strides are in elements; C is contiguous. A batch stride of 0 repeats a
// matrix.
struct MatmulArgs {
  const void* a;  // (batch, M, K)
  const void* b;  // (batch, K, N)
  void* c;        // (batch, M, N)
  int64_t batch, m, n, k;
  int64_t a_batch_stride, a_row_stride, a_col_stride;
  int64_t b_batch_stride, b_row_stride, b_col_stride;
  DType dtype;
};

// The ladder on the CPU. float32 GFLOP/s at 1024 on 2 cores of Sapphire Rapids unless it says otherwise; NumPy's
// OpenBLAS there: 381. Operands may have any strides: packing is where they are dealt with.
//   v0_reference    three loops, sums in double                          1 (Zen 3, one thread)
//   v1_loop_order   i-k-j: the inner loop runs along rows of B           17 (Zen 3, one thread)
//   v2_blocked      tiles in cache, four rows of B for each pass over C  as v1 while B fits in cache
//   v3_packed_simd  packed panels, sums in registers, all threads        344 (Zen 3: 175 at 512, NumPy 184)
//   v4_bf16_dot     vdpbf16ps, two steps of k at once; bfloat16          199
//   v5_amx_tile     16 x 32 x 16 products an instruction; bfloat16       2096 (PyTorch: 1993)
//   v6_gemv         one row or column: the matrix is read once           1.0 to 1.1 of plain reading
//   library         the BLAS that SciPy ships; float32 and float64
// 2 B M N K FLOPs; compulsory bytes: A, B and C once. Compute binds from some tens of rows and columns on; for one row
// or one column memory does.
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

// CUDA, weak so that a build without CUDA links. Each rung comes with what it accepts (dtype, layout, architecture).
// The ladder, measured on one H200 at N = 4096, row-major (v0 to v2 at 2048):
//   v0 naive           a thread per element, rows along the warp, double sums  fp32   0.5 TFLOP/s
//   v1 coalesced       columns along the warp                           fp32   3.2
//   v2 shared_tile     32 x 32 tiles in shared memory                   fp32   5.5
//   v3 register_tile   8 x 16 of C in a thread's registers              fp32  46.5, 0.91 of library; A B^T 0.84
//   v4 tensor_core     mma.sync, tiles by cp.async, ldmatrix            bf16   365, 0.51 of library
//   v5 hopper          wgmma, TMA, warps specialised, blocks in pairs   bf16   723, 1.00 of library
//   library            cuBLASLt                                         fp32    51; bf16 722
// v0 to v2 take any strides. The rest want unit stride along one side, v5 16-byte alignment too. Work 2 B M N K FLOPs,
// compulsory bytes those of A, B and C: arithmetic binds large squares (fp32 50, bf16 about 790 TFLOP/s by clock and
// power), memory binds where M, N or K is under a few hundred.
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
