// matmul: C[b, i, j] = sum_k A[b, i, k] * B[b, k, j].
//
// Ladder, CPU; operands may have any strides: packing deals with them.
//   v0_reference      three loops, sums in double
//   v1_loop_order     i-k-j: the inner loop runs along rows of B
//   v2_blocked        tiles in cache, four rows of B for each pass over C: faster where B does not fit in cache
//   v2a_register_tile 6 rows x 2 vectors of sums in registers, one thread; float32 and float64. 96 to 103 % of NumPy's
//                     BLAS on one thread at N = 1024, 52 to 58 % at 2048
//   v2b_packed_b      the same, reading B from contiguous copies of its panels: 99 to 103 % and 84 to 90 %
//   v3_packed_simd    A is packed too, blocks for L2, a taller tile, all threads
//   v4_bf16_dot       vdpbf16ps, two steps of k at once; bfloat16
//   v5_amx_tile       16 x 32 x 16 products per instruction; bfloat16
//   v6_gemv           one row or column: the matrix is read once
//   library           the BLAS that SciPy ships; float32 and float64
// Ladder, CUDA; v0 to v2 take any strides; the rest need unit stride along one side, and v5 also 16-byte alignment.
//   v0_naive           one thread per element, a warp along the rows, double sums
//   v1_coalesced       a warp along the columns
//   v2_shared_tile     32 x 32 tiles in shared memory; one sum per thread
//   v2a_thread_column  a column of 8 sums per thread, which share each element read from B; float32
//   v2b_thread_tile    8 x 8 sums per thread, which share each element read from A too; float32
//   v2c_vector_loads   the same with 16-byte loads; float32, aligned row-major operands
//   v3_register_tile   8 x 16 sums, warps laid out for shared memory, the next tile is loaded meanwhile; float32
//   v4_tensor_core     mma.sync, tiles loaded by cp.async, ldmatrix; 16 bits
//   v5_hopper          wgmma, TMA, specialised warps, blocks in pairs; 16 bits
//   v6_split_bf16      float32 as three bfloat16 parts, six products of parts on tensor cores; by name only
//   library            cuBLASLt
//
// [measured matmul] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                         1024      1024       gemv
//                      float32  bfloat16    float32
//                      GFLOP/s   GFLOP/s  % of copy
//   v0_reference          0.55       1.3         17
//   v1_loop_order           20        19          4
//   v2_blocked              33        22         11
//   v2a_register_tile        -         -          -
//   v2b_packed_b             -         -          -
//   v3_packed_simd         346       388         36
//   v4_bf16_dot              -       645          -
//   v5_amx_tile              -         -          -
//   v6_gemv                  -         -        174
//   library                181         -         50
//   copy, GB/s               -         -         30
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                         4096      4096       gemv
//                      float32  bfloat16   bfloat16
//                      TFLOP/s   TFLOP/s  % of copy
//   v0_naive               0.5       0.5        2.9
//   v1_coalesced           1.6       2.6        3.9
//   v2_shared_tile         4.6       5.5        3.6
//   v2a_thread_column       11         -          -
//   v2b_thread_tile         12         -          -
//   v2c_vector_loads        24         -          -
//   v3_register_tile        46         -          -
//   v4_tensor_core           -       436         23
//   v5_hopper                -       798          -
//   v6_split_bf16          128         -          -
//   library                 51       807         98
//   torch                   51       808         95
//   copy, GB/s               -         -       3862
// [end measured]
//
// FLOPs: 2 B M N K. Compulsory bytes: A, B and C once. Compute binds large squares, from some tens of rows and columns
// on a CPU and some hundreds on a GPU; memory binds where M, N or K is smaller.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/per_isa.h"

namespace rooflab::kernels {

// Strides are in elements; C is contiguous. A batch stride of 0 repeats a matrix.
struct MatmulArgs {
  const void* a;  // (batch, M, K)
  const void* b;  // (batch, K, N)
  void* c;        // (batch, M, N)
  int64_t batch, m, n, k;
  int64_t a_batch_stride, a_row_stride, a_col_stride;
  int64_t b_batch_stride, b_row_stride, b_col_stride;
  DType dtype;
};

void matmul_cpu_v0_reference(const MatmulArgs&, Queue&);
void matmul_cpu_v1_loop_order(const MatmulArgs&, Queue&);
void matmul_cpu_v2_blocked(const MatmulArgs&, Queue&);
ROOFLAB_PER_ISA(matmul_cpu_v2a_register_tile, MatmulArgs)
ROOFLAB_PER_ISA(matmul_cpu_v2b_packed_b, MatmulArgs)
ROOFLAB_PER_ISA(matmul_cpu_v3_packed_simd, MatmulArgs)
void matmul_cpu_v4_bf16_dot(const MatmulArgs&, Queue&);
void matmul_cpu_v5_amx_tile(const MatmulArgs&, Queue&);
ROOFLAB_PER_ISA(matmul_cpu_v6_gemv, MatmulArgs)
void matmul_cpu_library(const MatmulArgs&, Queue&);
Footprint matmul_cpu_v1_footprint(const MatmulArgs&, const Target&);
Footprint matmul_cpu_v2_footprint(const MatmulArgs&, const Target&);
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v2a_footprint, MatmulArgs)
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v2b_footprint, MatmulArgs)
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v3_footprint, MatmulArgs)
Footprint matmul_cpu_v4_footprint(const MatmulArgs&, const Target&);
Footprint matmul_cpu_v5_footprint(const MatmulArgs&, const Target&);
ROOFLAB_FOOTPRINT_PER_ISA(matmul_cpu_v6_footprint, MatmulArgs)
bool matmul_cpu_v2a_accepts(const MatmulArgs&, const Target&);  // and v2b
bool matmul_cpu_v4_accepts(const MatmulArgs&, const Target&);
bool matmul_cpu_v5_accepts(const MatmulArgs&, const Target&);
bool matmul_cpu_v6_accepts(const MatmulArgs&, const Target&);
bool matmul_cpu_library_accepts(const MatmulArgs&, const Target&);

// The BLAS of the `library` rung: Fortran's sgemm and dgemm with 32-bit sizes, as scipy.linalg.cython_blas exports
// them.
void set_cpu_blas(void* sgemm, void* dgemm);

// The CUDA rungs are weak so that a build without CUDA links. What a rung accepts (dtype, layout, architecture) needs
// none.
[[gnu::weak]] void matmul_cuda_v0_naive(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v1_coalesced(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v2_shared_tile(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v2a_thread_column(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v2b_thread_tile(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v2c_vector_loads(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v3_register_tile(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v4_tensor_core(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v5_hopper(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_v6_split_bf16(const MatmulArgs&, Queue&);
[[gnu::weak]] void matmul_cuda_library(const MatmulArgs&, Queue&);
bool matmul_cuda_v2c_accepts(const MatmulArgs&, const Target&);
bool matmul_cuda_v3_accepts(const MatmulArgs&, const Target&);  // and v2a and v2b
bool matmul_cuda_v4_accepts(const MatmulArgs&, const Target&);
bool matmul_cuda_v5_accepts(const MatmulArgs&, const Target&);
bool matmul_cuda_v6_accepts(const MatmulArgs&, const Target&);
bool matmul_cuda_library_accepts(const MatmulArgs&, const Target&);
Footprint matmul_cuda_v6_footprint(const MatmulArgs&, const Target&);

}  // namespace rooflab::kernels
