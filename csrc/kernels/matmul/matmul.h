// matmul: C[b, i, j] = sum_k A[b, i, k] * B[b, k, j].
//
// FLOPs: 2 B M N K. Compulsory bytes: A, B and C once. Compute binds large squares, from some tens of rows and columns
// on a CPU and some hundreds on a GPU; memory binds where M, N or K is smaller.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

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
  bool splits_float32 = false;  // float32 may be split into bfloat16 parts where no rung is named
};

// The BLAS of the `library` rung: Fortran's sgemm and dgemm with 32-bit sizes, as scipy.linalg.cython_blas exports
// them.
void set_cpu_blas(void* sgemm, void* dgemm);

bool matmul_cuda_library_accepts(const MatmulArgs&, const Target&);
bool matmul_cuda_v6_by_default(const MatmulArgs&, const Target&);

extern const Ladder<MatmulArgs> matmul_ladder;

// Steps of k that a CPU's accumulator takes before it is added to a total: in one sum, alike numbers lose their digits.
inline constexpr int64_t kMatmulRun = 1024;

// Whether B is the smaller operand of v7_dots, and of equal ones that which may have to be turned. The functions are
// inlined into code for each instruction set.
[[gnu::always_inline]] inline bool matmul_dots_few_columns(const MatmulArgs& args) {
  return args.n < args.m || (args.n == args.m && args.b_row_stride != 1);
}

// The lines that v7_dots turns where the smaller operand is not contiguous along k: those of each of its matrices.
[[gnu::always_inline]] inline int64_t matmul_dots_turned_lines(const MatmulArgs& args) {
  const bool few_columns = matmul_dots_few_columns(args);
  if ((few_columns ? args.b_row_stride : args.a_col_stride) == 1) return 0;
  const bool repeats = (few_columns ? args.b_batch_stride : args.a_batch_stride) == 0;
  return (repeats ? 1 : args.batch) * (few_columns ? args.n : args.m);
}

// Shared memory of a block of v4: four stages of tiles of A and B, 32 along K.
inline constexpr int64_t kMatmulV4Bytes = 4 * (128 + 256) * 32 * 2;

}  // namespace rooflab::kernels
