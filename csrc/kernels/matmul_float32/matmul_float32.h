// matmul_float32: C[i, j] = sum_k A[i, k] * B[k, j] of 16-bit matrices, with C in float32, like the sums. Under
// autocast the gradients of float32 weights are computed this way: rounding to 16 bits first would lose digits, and the
// cast would cost another read and write.
//
// FLOPs: 2 M N K. Compulsory bytes: A, B and C once. Roof: as for matmul.
#pragma once

#include "kernels/common/ladder_declaration.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels {

// dtype is that of A and B; batch is 1.

extern const Ladder<MatmulArgs> matmul_float32_ladder;

}  // namespace rooflab::kernels
