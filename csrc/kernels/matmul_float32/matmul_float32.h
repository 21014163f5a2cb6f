// matmul_float32: C[i, j] = sum_k A[i, k] * B[k, j] of 16-bit matrices, with C in float32, as the sums are: what the
// gradient of a float32 weight is made of under autocast. Rounded to 16 bits first it would lose digits, and a cast
// would read and write it once more.
//
// Ladder, CPU:
//   v0_composed    matmul, then a cast: what is rounded to 16 bits stays so
// Ladder, CUDA:
//   v0_composed    the same ops
//   library        cuBLASLt writes float32
//
// FLOPs: 2 M N K. Compulsory bytes: A, B and C once. Roof: as of matmul.
#pragma once

#include "kernels/matmul/matmul.h"

namespace rooflab::kernels {

// dtype is that of A and B; batch is 1.
[[gnu::weak]] void matmul_float32_cuda_library(const MatmulArgs&, Queue&);

}  // namespace rooflab::kernels
