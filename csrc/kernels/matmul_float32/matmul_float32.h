// matmul_float32: C[i, j] = sum_k A[i, k] * B[k, j] of 16-bit matrices, with C in float32, like the sums. Under
// autocast the gradients of float32 weights are computed this way: rounding to 16 bits first would lose digits, and the
// cast would cost another read and write.
//
// Ladder, CPU:
//   v0_composed    matmul, then a cast: digits lost in rounding to 16 bits stay lost
// Ladder, CUDA:
//   v0_composed    the same ops
//   library        cuBLASLt writes float32
//
// FLOPs: 2 M N K. Compulsory bytes: A, B and C once. Roof: as for matmul.
#pragma once

#include "kernels/matmul/matmul.h"

namespace rooflab::kernels {

// dtype is that of A and B; batch is 1.
[[gnu::weak]] void matmul_float32_cuda_library(const MatmulArgs&, Queue&);

}  // namespace rooflab::kernels
