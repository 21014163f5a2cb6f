// matmul_bias: C[i, j] = sum_k A[i, k] * B[k, j] + bias[j], rounded once: the bias joins the sum in the product's
// epilogue, where a sum of its own would read and write C again.
//
// FLOPs: 2 M N K + M N. Compulsory bytes: A, B, the bias and C once. Roof: as for matmul.
#pragma once

#include "kernels/common/ladder_declaration.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels {

struct MatmulBiasArgs {
  MatmulArgs product;  // batch is 1
  const void* bias;    // (N), contiguous, of the product's dtype; null if it is not contiguous, which no kernel takes
};

extern const Ladder<MatmulBiasArgs> matmul_bias_ladder;

}  // namespace rooflab::kernels
